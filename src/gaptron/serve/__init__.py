"""The decision service: decisions over HTTP, feedback that may arrive late, and a durable event log.

Every request becomes an event, which is on disk before the response is sent. The models are a pure function of the
event log (`model_state`). `coordinator` owns them, `committer` writes the log, `store` holds it, and `web` serves HTTP.
Needs the extra `serve`.
"""

from importlib.util import find_spec

from gaptron.errors import SettingError

_missing = [name for name in ("msgspec", "prometheus_client", "starlette", "uvicorn") if find_spec(name) is None]
if _missing:
    raise SettingError(f"the service needs {', '.join(_missing)}: pip install '.[serve]' in gaptron's source folder")
