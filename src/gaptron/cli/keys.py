"""`gaptron keys`: the keys of a service."""

from typing import Annotated

import typer

from gaptron.cli.serve import DEFAULT_STORE, StoreLocation
from gaptron.errors import SettingError

ACTIONS = ("add", "list", "revoke")


def keys(
    action: Annotated[str, typer.Argument(help="add, list or revoke.")],
    id: Annotated[str, typer.Argument(help="revoke: the id of the key, as `list` shows it.")] = "",
    role: Annotated[
        list[str] | None, typer.Option(help="add: decide, feedback, read or admin; can be repeated.")
    ] = None,
    model: Annotated[str, typer.Option(help="add: the only model the key is valid for; default: all models.")] = "",
    store: StoreLocation = DEFAULT_STORE,
) -> None:
    """Add, list and revoke the keys of a service. Stop the service first if its store is a folder (SQLite).

    gaptron keys add --role decide --role feedback --model triage

    gaptron keys revoke 3f9a0c12d4e5
    """
    from gaptron.serve.keys import new_key  # noqa: PLC0415
    from gaptron.serve.store import open_store  # noqa: PLC0415

    if action not in ACTIONS:
        raise SettingError(f"{action!r} must be one of {', '.join(ACTIONS)}")
    opened = open_store(store)
    try:
        opened.acquire_lease()
        if action == "add":
            key, text = new_key(role or [], model or None)
            opened.add_key(key)
            typer.echo(text)
            typer.echo("The key is shown only once: the store contains its hash.", err=True)
        elif action == "list":
            for key in opened.keys():
                state = "revoked" if key.revoked else "valid"
                typer.echo(f"{key.id}  {state:7}  {key.roles}  {key.model or 'all models'}")
        elif not opened.revoke_key(id):
            raise SettingError(f"there is no key {id!r}: list the keys with `gaptron keys list`")
    finally:
        opened.close()
