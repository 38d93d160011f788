"""`gaptron serve`: decisions over HTTP."""

from typing import Annotated

import typer

from gaptron.errors import SettingError

STORE = "A folder (SQLite), or postgresql://..."
StoreLocation = Annotated[str, typer.Option(help=STORE)]
DEFAULT_STORE = "gaptron-serve"

BANNER = """Serving on {url}  (open it for the web page, {url}/api for the API; press Ctrl-C to stop)
The store is {location}. Try:

  curl {url}/v1/models -H 'Content-Type: application/json' \\
    {key}-d '{{"name":"triage","labels":["mail","chat","phone"]}}'
  curl {url}/v1/models/triage/decisions -H 'Content-Type: application/json' \\
    {key}-d '{{"event_id":"order-7","x":[0.3,1.0]}}'
  curl -X PUT {url}/v1/models/triage/decisions/order-7/outcome \\
    {key}-H 'Content-Type: application/json' -d '{{"correct":true}}'
"""
KEY = """-H "Authorization: Bearer $GAPTRON_KEY" """
REPLICA_BANNER = """Replica on {url}  (press Ctrl-C to stop)
It decides with the models that the leader of {location} publishes. Send outcomes to the leader.
"""


def serve(
    store: StoreLocation = DEFAULT_STORE,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8717,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Requests per second allowed for each key; default: no limit.")
    ] = None,
    trust_log: Annotated[
        bool,
        typer.Option(
            "--trust-log", help="Start even if replaying the log gives different decisions, as after an upgrade."
        ),
    ] = False,
    keep_days: Annotated[
        float | None,
        typer.Option(min=1.0, help="Remove the features of decisions older than this many days; default: never."),
    ] = None,
    with_replicas: Annotated[
        bool, typer.Option("--with-replicas", help="Learn, and let replicas make the decisions (PostgreSQL).")
    ] = False,
    replica: Annotated[
        bool, typer.Option("--replica", help="Only decide, with models about a second old (PostgreSQL).")
    ] = False,
) -> None:
    """Serve decisions over HTTP. Every decision is on disk before it is returned.

    gaptron serve

    gaptron serve --store postgresql://localhost/decisions --host 0.0.0.0

    gaptron serve --store postgresql://localhost/decisions --replica --port 8718
    """
    from gaptron.serve.run import check_host, has_keys, run  # noqa: PLC0415
    from gaptron.serve.service import Options  # noqa: PLC0415
    from gaptron.serve.store import SharedStore, as_shared, open_store  # noqa: PLC0415

    if with_replicas and replica:
        raise SettingError("--replica only decides, --with-replicas may become the leader: give one of them")
    opened = open_store(store)
    if with_replicas or replica:
        as_shared(opened)
    check_host(opened, host, replica=replica)
    if not isinstance(opened, SharedStore):
        opened.acquire_lease()  # before the banner: refuses a folder that another process is using
    shown_host = f"[{host}]" if ":" in host else host
    banner = REPLICA_BANNER if replica else BANNER
    key = KEY if has_keys(opened) else ""
    typer.echo(banner.format(url=f"http://{shown_host}:{port}", location=without_password(store), key=key))
    options = Options(trust_log=trust_log, rate=rate, keep_days=keep_days, with_replicas=with_replicas)
    run(opened, host, port, options, replica=replica)


def without_password(location: str) -> str:
    """Remove user and password from the location of a store, so that it can be printed."""
    head, at, tail = location.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else location
