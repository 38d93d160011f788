"""`gaptron keys`: who may use a service."""

from typing import Annotated

import typer

from gaptron.cli.serve import HERE, Place
from gaptron.errors import SettingError

ACTIONS = ("add", "list", "revoke")


def keys(
    action: Annotated[str, typer.Argument(help="add, list or revoke.")],
    id: Annotated[str, typer.Argument(help="revoke: which key, as `list` shows it.")] = "",
    role: Annotated[list[str] | None, typer.Option(help="add: decide, answer, read or admin; may be repeated.")] = None,
    model: Annotated[str, typer.Option(help="add: the one model it is for; by default all.")] = "",
    store: Place = HERE,
) -> None:
    """Make, list and revoke the keys of a service. A SQLite store must not be in use meanwhile.

    gaptron keys add --role decide --role answer --model triage

    gaptron keys revoke 3f9a0c12d4e5
    """
    from gaptron.serve.keys import new_key  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    if action not in ACTIONS:
        raise SettingError(f"{action!r} must be one of {', '.join(ACTIONS)}")
    opened = open_store(store)
    try:
        opened.lead()
        if action == "add":
            key, text = new_key(role or [], model or None)
            opened.add_key(key)
            typer.echo(text)
            typer.echo("This is shown once: the store has only its hash.", err=True)
        elif action == "list":
            for key in opened.keys():
                state = "revoked" if key.revoked else "valid"
                typer.echo(f"{key.id}  {state:7}  {key.roles}  {key.model or 'all models'}")
        elif not opened.revoke_key(id):
            raise SettingError(f"there is no key {id!r}: gaptron keys list shows them")
    finally:
        opened.close()
