"""`gaptron serve`: decisions over HTTP."""

from typing import Annotated

import typer

STORE = "A folder (SQLite), or postgresql://..."
Place = Annotated[str, typer.Option(help=STORE)]
HERE = "gaptron-serve"

TRY = """Serving on {url}  (the page; /api says the rest; Ctrl-C ends it)
Everything is kept in {place}. Try:

  curl {url}/v1/models -H 'Content-Type: application/json' \\
    -d '{{"name":"triage","labels":["mail","chat","phone"]}}'
  curl {url}/v1/models/triage/decisions -H 'Content-Type: application/json' \\
    -d '{{"event_id":"order-7","x":[0.3,1.0]}}'
  curl -X PUT {url}/v1/models/triage/decisions/order-7/outcome \\
    -H 'Content-Type: application/json' -d '{{"correct":true}}'
"""


def serve(
    store: Place = HERE,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 8717,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Requests a second that each key may make; by default any number.")
    ] = None,
    trust_log: Annotated[
        bool,
        typer.Option(
            "--trust-log", help="Start although the fold would decide otherwise than the log, as after an upgrade."
        ),
    ] = False,
) -> None:
    """Serve decisions over HTTP, each on disk before it is answered.

    gaptron serve

    gaptron serve --store postgresql://localhost/decisions --host 0.0.0.0
    """
    from gaptron.serve.run import check_host, run  # noqa: PLC0415
    from gaptron.serve.service import Options  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    opened = open_store(store)
    check_host(opened, host)
    shown = f"[{host}]" if ":" in host else host
    typer.echo(TRY.format(url=f"http://{shown}:{port}", place=without_password(store)))
    run(opened, host, port, Options(trust_log=trust_log, rate=rate))


def without_password(place: str) -> str:
    """A store's place, fit to be shown."""
    head, at, tail = place.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else place
