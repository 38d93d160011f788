"""Run the service in this process until it is told to end."""

from types import FrameType

import uvicorn

from gaptron.errors import SettingError
from gaptron.serve.decider import DeciderService
from gaptron.serve.keys import LOCAL
from gaptron.serve.service import Options, Service
from gaptron.serve.store import Store, shared
from gaptron.serve.web import application


def check_host(store: Store, host: str, *, decider: bool = False) -> None:
    """Refuse to serve others than this machine without keys."""
    if host in LOCAL:
        return
    if not _has_keys(store, may_lead=not decider):
        raise SettingError(
            f"--host {host} would serve everybody: make a key first (gaptron keys add --role admin), or use localhost"
        )


def _has_keys(store: Store, *, may_lead: bool) -> bool:
    try:
        return bool(store.keys())
    except SettingError:  # nothing there yet
        return may_lead and store.lead() and bool(store.keys())


def run(store: Store, host: str, port: int, options: Options, *, decider: bool = False) -> None:
    """Serve. Ends at SIGINT or SIGTERM, with everything on disk. `decider`: only decide, and never lead."""
    service = DeciderService(shared(store), options) if decider else Service(store, options)
    config = uvicorn.Config(
        application(service),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    _Server(config, service).run()


class _Server(uvicorn.Server):
    """Tells the service of a signal at once; the requests under way are answered first."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """At a signal."""
        self._service.leave()
        super().handle_exit(sig, frame)
