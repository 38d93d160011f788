"""Run the service in this process until a signal ends it."""

from types import FrameType

import uvicorn

from gaptron.errors import SettingError
from gaptron.serve.connections import LimitedProtocol
from gaptron.serve.keys import LOCAL_HOSTS
from gaptron.serve.replica import ReplicaService
from gaptron.serve.service import Options, Service
from gaptron.serve.store import Store, as_shared
from gaptron.serve.web import application


def check_host(store: Store, host: str, *, replica: bool = False) -> None:
    """Refuse to listen on a host other than localhost while the store has no keys."""
    if host not in LOCAL_HOSTS and not has_keys(store, may_create=not replica):
        raise SettingError(
            f"--host {host} would serve everybody: create a key first (gaptron keys add --role admin), or use localhost"
        )


def has_keys(store: Store, *, may_create: bool = False) -> bool:
    """Must every request have a key? If the store does not exist yet, it may be created to find out."""
    try:
        return bool(store.keys())
    except SettingError:  # the store does not exist yet
        return may_create and store.acquire_lease() and bool(store.keys())


def run(store: Store, host: str, port: int, options: Options, *, replica: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; then everything is on disk.

    Args:
        store: where the event log is.
        host: the address to listen on.
        port: the port to listen on.
        options: how to run the service.
        replica: only decide, and never become the leader.
    """
    service = ReplicaService(as_shared(store), options) if replica else Service(store, options)
    config = uvicorn.Config(
        application(service),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=LimitedProtocol,
        ws="none",
        timeout_graceful_shutdown=10,
    )
    _Server(config, service).run()


class _Server(uvicorn.Server):
    """Notifies the service of a signal at once; uvicorn would do so after the open requests."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self._service.begin_shutdown()
        super().handle_exit(sig, frame)
