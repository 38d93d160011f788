"""Options for rounds that bring their own named actions: how a file is read, and which options do not apply."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from gaptron.cli import options
from gaptron.errors import SettingError

if TYPE_CHECKING:
    from gaptron import Features, Learner
    from gaptron.streams.actions import NamedRounds

ACTIONS = options.panel("Actions with features")
HELP = {
    "actions": "Every round of the file brings its own actions, with their features.",
    "costs": "vw, dsjson: the lowest and the highest cost; the reward is (high - cost) / (high - low). Default: -1..0.",
    "id_": "vw, dsjson: tag, position, or the feature with the ids of actions; by default as the first action shows.",
    "round_": "Tables: the column with the number of the round. Default: round.",
    "action": "Tables: the column with the ids of actions, or with the label played. Default: action.",
    "propensity": "Tables: the column with the propensity of the action played. Default: propensity or probability.",
    "played": "Tables: the column with 1 for the action played. Default: played.",
    "right": "Tables: the column with 1 for the right action. Default: right.",
    "in_context": "Tables: the columns of the context, separated by commas; by default those that do not differ.",
}
SEPARATOR = "\n"  # between names of columns in a model; the first has one before it
ROLES = ("costs", "id_", "round_", "action", "propensity", "played", "right", "in_context")


def flag() -> Any:
    """Return the option --actions."""
    return ACTIONS("--actions", help=HELP["actions"])


def role(name: str) -> Any:
    """Return one of the options in `ROLES`."""
    if name == "costs":
        return ACTIONS("--costs", metavar="LOW..HIGH", help=HELP[name])
    word = "--context" if name == "in_context" else f"--{name.rstrip('_')}"
    return ACTIONS(word, metavar="WHERE" if name == "id_" else "COLUMN", help=HELP[name])


@dataclass(frozen=True)
class ActionFile:
    """The options of reading a file of rounds with named actions."""

    path: str
    format: str
    reward: str
    limit: int | None
    damaged: str
    roles: dict[str, str]  # by the names in `ROLES`

    def open(self, model: "Learner | None") -> "NamedRounds":
        """Read the file; where the options leave a choice, as the files that the model learned from."""
        from gaptron.streams.actions import open_actions  # noqa: PLC0415
        from gaptron.streams.actions.files import TABLES, format_of  # noqa: PLC0415
        from gaptron.streams.actions.worlds import is_world  # noqa: PLC0415

        saved = {} if model is None else model.reading
        names = {"reward": self.reward, **self.roles}
        given: dict[str, Any] = {name.rstrip("_"): options.read_column(text) for name, text in names.items()}
        del given["in_context"]
        in_context: Any = self.roles["in_context"] or None
        if in_context is not None:
            in_context = [name.strip() for name in in_context.split(",")]
        elif not is_world(self.path) and format_of(self.path, self.format or None) in TABLES:
            in_context = None if "context" not in saved else str(saved["context"]).split(SEPARATOR)[1:]
        given |= {"costs": self.roles["costs"] or None, "context": in_context}
        stream: NamedRounds = open_actions(self.path, format=self.format or None, damaged=self.damaged, **given)
        return stream if self.limit is None else stream[: self.limit]


def remember(learner: "Learner", stream: "NamedRounds") -> None:
    """Keep in a learner what it needs to know to read further files in the same way."""
    if stream.context_columns is not None:
        learner.reading["context"] = SEPARATOR.join(["", *stream.context_columns])


def declared(stream: "NamedRounds", features: "Features | None" = None) -> "Features":
    """Return the declared features for a stream: ids that are only positions have no weights."""
    from gaptron import Features  # noqa: PLC0415

    ids = None if stream.named else False
    return Features(ids=ids) if features is None else Features(features.columns, cross=features.cross or None, ids=ids)


def check_applicable(
    context: typer.Context, actions: bool, applicable: Collection[str], of_logs: Collection[str] = ()
) -> None:
    """Refuse options that are not for --actions, or only for it.

    Args:
        context: the command.
        actions: is --actions given?
        applicable: the names of the parameters that go with --actions, besides those of this module.
        of_logs: the names of those of this module that also go without --actions.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name == "DEFAULT" or name == "actions":
            continue
        if not actions and name in ROLES and name not in of_logs:
            raise SettingError(f"{parameter.opts[0]} is for files of actions with features: add --actions")
        if actions and name not in (*ROLES, *applicable):
            raise SettingError(f"{parameter.opts[0]} is not for --actions: leave it out")


def describe(stream: "NamedRounds") -> str:
    """Return one line about the size of a stream."""
    counts = stream.counts
    fewest, most = counts.min(), counts.max()
    each = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{stream.name}: {stream.n_rounds:,} rounds, {each} actions in each, {counts.sum():,} in all"
