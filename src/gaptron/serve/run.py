"""Run the service in this process until it is told to end."""

import uvicorn

from gaptron.errors import SettingError
from gaptron.serve.keys import LOCAL
from gaptron.serve.service import Options, Service
from gaptron.serve.store import Store
from gaptron.serve.web import application


def check_host(store: Store, host: str) -> None:
    """Refuse to serve others than this machine without keys."""
    if host in LOCAL:
        return
    if not _has_keys(store):
        raise SettingError(
            f"--host {host} would serve everybody: make a key first (gaptron keys add --role admin), or use localhost"
        )


def _has_keys(store: Store) -> bool:
    try:
        return bool(store.keys())
    except SettingError:  # nothing there yet
        return store.lead() and bool(store.keys())


def run(store: Store, host: str, port: int, options: Options) -> None:
    """Serve. Ends at SIGINT or SIGTERM, with everything on disk."""
    app = application(Service(store, options))
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
        h11_max_incomplete_event_size=1 << 16,
    )
