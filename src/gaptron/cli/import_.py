"""`gaptron import`: let a model of a service learn from a log before its first decision."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaptron.cli import action_options, options
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaptron.serve.schemas import ModelInfo
    from gaptron.streams.actions import NamedRounds

DATA = options.panel("Reading the log")


def import_(
    store: Annotated[
        str, typer.Argument(help="The store (a folder, or postgresql://...), or http://... of a running service.")
    ],
    log: Annotated[str, typer.Argument(help="A log of decisions, or a table with the true labels.")],
    model: Annotated[str, typer.Option(help="The model that learns from it.")],
    key: Annotated[
        str,
        typer.Option(envvar="GAPTRON_KEY", help="A running service: a key with the role admin.", show_default=False),
    ] = "",
    ids: Annotated[
        str,
        typer.Option(
            metavar="PREFIX",
            help="The ids of the events are PREFIX-1, PREFIX-2, ...; known ones are not imported again. Default: the "
            "checksum of the file.",
        ),
    ] = "",
    format_: Annotated[
        str, DATA("--format", help="jsonl, dsjson, obp, csv, tsv or parquet; by default from the extension.")
    ] = "",
    label: Annotated[
        str, DATA(metavar="COLUMN", help="Tables: the column with the true label; default: label, y, class or target.")
    ] = "",
    reward: Annotated[str, DATA(metavar="COLUMN", help="Tables of actions: the column with the reward.")] = "",
    costs: Annotated[str, action_options.role("costs")] = "",
    id_: Annotated[str, action_options.role("id_")] = "",
    round_: Annotated[str, action_options.role("round_")] = "",
    action: Annotated[str, action_options.role("action")] = "",
    propensity: Annotated[str, action_options.role("propensity")] = "",
    played: Annotated[str, action_options.role("played")] = "",
    right: Annotated[str, action_options.role("right")] = "",
    in_context: Annotated[str, action_options.role("in_context")] = "",
    skip_damaged: Annotated[bool, options.skip_damaged(DATA)] = False,
) -> None:
    """Let a model of a service learn from the decisions of a log. Its own decisions begin with what the log shows.

    Importing a file again imports nothing; after an interruption, the rest.

    gaptron import gaptron-serve decisions.jsonl --model triage

    gaptron import http://127.0.0.1:8717 clicks.dsjson --model news
    """
    from gaptron.cli.import_target import batches, open_target  # noqa: PLC0415
    from gaptron.serve.imported_files import prefix_of  # noqa: PLC0415

    if log == "-":
        raise SettingError("- is standard input: give a file, which can be read again after an interruption")
    roles = dict(zip(action_options.ROLES, (costs, id_, round_, action, propensity, played, right, in_context)))
    file = _File(log, format_, label, reward, roles, skip_damaged)
    imported = known = 0
    target = open_target(store, model, key or None)
    try:
        info = target.info()
        decisions = file.decisions(info)
        for body in batches(decisions, ids or prefix_of(log, info)):
            done = target.send(body)
            imported, known = imported + done.imported, known + done.known
    finally:
        target.close()
        if imported or known:
            again = f"; {known:,} were known already" if known else ""
            typer.echo(f"{model}: {imported:,} decision{'' if imported == 1 else 's'} imported{again}.")


@dataclass(frozen=True)
class _File:
    """The options of reading the log."""

    path: str
    format: str
    label: str
    reward: str
    roles: dict[str, str]
    skip_damaged: bool

    def decisions(self, model: "ModelInfo") -> "Iterator[dict[str, Any]]":
        """Read the decisions as the model takes them."""
        from gaptron.serve.imported_files import decisions_of_actions, decisions_of_labels, readable  # noqa: PLC0415

        if model.actions:
            if self.label:
                raise SettingError(f"--label is for models with labels; {model.name} chooses among actions")
            return decisions_of_actions(readable(self._actions, self.path, self.skip_damaged), model)
        given = [name for name in ("reward", *self.roles) if getattr(self, name, "") or self.roles.get(name)]
        if given:
            raise SettingError(f"--{given[0].rstrip('_')} is for models with actions; {model.name} has labels")
        return decisions_of_labels(
            self.path,
            model,
            format=self.format or None,
            label=options.read_column(self.label),
            skip_damaged=self.skip_damaged,
        )

    def _actions(self, damaged: str) -> "NamedRounds":
        return action_options.ActionFile(self.path, self.format, self.reward, None, damaged, self.roles).open(None)
