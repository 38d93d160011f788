"""`gaptron serve`: decisions over HTTP."""

from typing import Annotated

import typer

from gaptron.errors import SettingError

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
DECIDES = "Deciding on {url}  (Ctrl-C ends it) with what the leader of {place} publishes; answers go to the leader.\n"


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
    keep_days: Annotated[
        float | None,
        typer.Option(min=1.0, help="Forget the features of decisions older than so many days; by default never."),
    ] = None,
    with_deciders: Annotated[
        bool,
        typer.Option("--with-deciders", help="Learn, and leave deciding to deciders (PostgreSQL)."),
    ] = False,
    decider: Annotated[
        bool, typer.Option("--decider", help="Only decide, with models about a second old, and never lead.")
    ] = False,
) -> None:
    """Serve decisions over HTTP, each on disk before it is answered.

    gaptron serve

    gaptron serve --store postgresql://localhost/decisions --host 0.0.0.0

    gaptron serve --store postgresql://localhost/decisions --decider --port 8718
    """
    from gaptron.serve.run import check_host, run  # noqa: PLC0415
    from gaptron.serve.service import Options  # noqa: PLC0415
    from gaptron.serve.store import open_store, shared  # noqa: PLC0415

    if with_deciders and decider:
        raise SettingError("--decider only decides, --with-deciders leads: choose one for this process")
    opened = open_store(store)
    if with_deciders or decider:
        shared(opened)
    check_host(opened, host, decider=decider)
    if not decider:
        opened.lead()  # before we say that we serve: a folder that another process uses is refused here
    shown = f"[{host}]" if ":" in host else host
    said = DECIDES if decider else TRY
    typer.echo(said.format(url=f"http://{shown}:{port}", place=without_password(store)))
    options = Options(trust_log=trust_log, rate=rate, keep_days=keep_days, with_deciders=with_deciders)
    run(opened, host, port, options, decider=decider)


def without_password(place: str) -> str:
    """A store's place, fit to be shown."""
    head, at, tail = place.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else place
