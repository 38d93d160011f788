"""The decision service: labels asked for over HTTP, answers that may come late, and a log that is the truth.

A request becomes an entry of the log, which is on disk before its answer goes out; the learners are a pure fold over
the log (`fold`). `desk` owns them, `committer` writes, `store` keeps, `web` speaks HTTP. Needs the extra `serve`.
"""

from importlib.util import find_spec

from gaptron.errors import SettingError

_missing = [name for name in ("msgspec", "prometheus_client", "starlette", "uvicorn") if find_spec(name) is None]
if _missing:
    raise SettingError(f"the service needs {', '.join(_missing)}: pip install 'gaptron[serve]'")
