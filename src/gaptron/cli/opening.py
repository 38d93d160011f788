"""Open the stream of a run, and create or load the learner that plays it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gaptron.cli import columns as table_columns
from gaptron.cli import options, reading
from gaptron.cli.learned_from import remember_file
from gaptron.errors import GaptronError, SettingError

if TYPE_CHECKING:
    from gaptron import Features, Learner
    from gaptron.features import Account
    from gaptron.streams import Chunks, Stream
    from gaptron.streams.tables import TableStream

    AnyStream = Stream | Chunks | TableStream

# Options that a loaded model fixes.
FIXED = (
    "algorithm",
    "feedback",
    "loss",
    "norm",
    "radius",
    "horizon",
    "set_",
    "seed",
    "observed",
    "classes",
    "features",
    "column",
    "cross",
)
# Options that apply to numeric features, so that the columns of a table are not encoded.
NUMERIC = ("unit_norm", "constant", "log1p", "standardize", "norm", "features", "raw")


@dataclass(frozen=True)
class LearnerOptions:
    """The options of a new learner."""

    algorithm: str
    feedback: str
    loss: str
    norm: float | None
    radius: float | None
    horizon: int | None
    settings: dict[str, Any]
    seed: int
    observe: bool
    features: "Features"  # the declared columns of a table

    def create(self, classes: Sequence[Any], horizon: int | None, **inputs: Any) -> "Learner":
        """Create a learner.

        Args:
            classes: the labels in the order of their codes.
            horizon: the number of rounds, unless the user gives it.
            inputs: `features`, or `n_features` and `norm`.
        """
        from gaptron.learner import Learner  # noqa: PLC0415

        return Learner(
            self.algorithm,
            classes=classes,
            feedback=self.feedback or _default_feedback(self.algorithm),
            loss=self.loss or None,
            radius=self.radius,
            horizon=self.horizon or horizon,
            seed=self.seed,
            observe=self.observe,
            **inputs,
            **self.settings,
        )

    def create_for(self, stream: "Stream | Chunks") -> "Learner":
        """Create a learner for numeric features. The norm is measured only if the algorithm needs it."""

        def create(norm: float | None) -> "Learner":
            return self.create(stream.classes, stream.n_rounds, n_features=stream.n_features, norm=norm)

        learner = create(self.norm)
        if learner.settings is None and self.norm is None:
            measured = stream.measured_norm() if hasattr(stream, "measured_norm") else stream.norm
            learner = create(measured or None)
        if learner.settings is None:
            raise SettingError(f"{stream.name} can be read only once: give --norm X or --unit-norm")
        return learner

    def needs_norm(self) -> bool:
        """Does the algorithm need the largest norm of an example before the first round?"""
        try:
            return self.create(range(2), 1, n_features=1, norm=None).settings is None
        except GaptronError:
            return True  # the error is raised again once the stream is known


@dataclass(frozen=True)
class StreamOptions:
    """The options of reading and preparing a stream."""

    path: str
    format: str
    label: str
    reward: str
    available: str
    classes: str
    n_features: int | None
    index_base: str
    header: bool | None
    text: dict[str, str | None]  # separator, decimal, dates, encoding; None: not given
    unlabelled: str
    grow: bool
    chunk: int | None
    bound: bool | None
    shuffle: int | None
    limit: int | None
    steps: dict[str, bool] = field(default_factory=dict)  # unit_norm, constant, log1p, standardize


@dataclass(frozen=True)
class Opened:
    """A learner and the stream that it will play."""

    learner: "Learner"
    stream: "AnyStream"
    encoded: bool  # does the learner encode the columns of a table?
    has_rewards: bool
    path: str  # of the stream, as given
    before: table_columns.Before  # what the model had counted before this file
    text: dict[str, Any]  # how the text of a table is written

    def after_run(self) -> "Opened":
        """Return the same, with the remarks that only reading the rounds brings up."""
        late: tuple[str, ...] = getattr(self.stream, "late_notes", tuple)()
        return replace(self, stream=replace(self.stream, notes=(*self.stream.notes, *late)))

    def columns(self) -> "list[Account]":
        """Return how the columns of this file were encoded."""
        return table_columns.columns_of_file(self.learner, self.before)

    def save(self, path: str) -> None:
        """Save the learner, with what it needs to know to read further files in the same way."""
        from gaptron.streams.tables import TableStream  # noqa: PLC0415

        if isinstance(self.stream, TableStream):
            roles = self.stream.roles._asdict()
            if self.stream.dates is not None:
                roles["dates"] = self.stream.dates
            self.learner.reading |= self.text | {role: name for role, name in roles.items() if name is not None}
        elif self.stream.index_base is not None:
            self.learner.reading["index_base"] = self.stream.index_base
        remember_file(self.learner, self.path)
        self.learner.save(path)


def load_model(path: str, context: typer.Context) -> "Learner":
    """Load a model; raise an error if an option contradicts it."""
    from gaptron.learner import Learner  # noqa: PLC0415

    model = Learner.load(path)
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in FIXED and source is not None and source.name != "DEFAULT":
            raise SettingError(f"--load continues with a learner as it is: omit {parameter.opts[0]}")
    return model


def check_folder(path: str) -> None:
    """Raise an error if the folder of --save does not exist: now, not after an hour of playing."""
    if not Path(path).absolute().parent.is_dir():
        raise SettingError(f"--save {path}: there is no such folder")


def open_run(
    stream: StreamOptions,
    learner: LearnerOptions,
    model: "Learner | None",
    context: typer.Context,
    progress: Callable[[int], None],
) -> Opened:
    """Open the stream, and create the learner unless a model is given.

    Args:
        stream: the options of the stream.
        learner: the options of a new learner.
        model: a loaded learner.
        context: the command, whose options tell whether the columns of a table are encoded.
        progress: called while a text file is read, with the number of bytes read so far.
    """
    from gaptron.streams import Stream  # noqa: PLC0415

    roles = _roles(stream, model)
    before = table_columns.before_file(model)
    text = reading.text_options(stream.path, stream.format or None, stream.text, model)
    encoded = _encodes_columns(stream, roles["available"], model, context)
    opened: AnyStream
    if encoded:
        opened = _open_table(stream, roles, text, model, progress)
        player = model or learner.create(opened.classes, opened.n_rounds, features=learner.features)
    else:
        opened = _open_numeric(stream, roles, text, model, learner, progress)
        player = model or learner.create_for(opened)
    names = {(parameter.name or "").rstrip("_"): parameter.opts[0] for parameter in context.command.params}
    notes = tuple(options.in_options(note, names, ()) for note in opened.notes)
    if model is not None and stream.grow and opened.classes != model.classes:
        new = opened.classes[len(model.classes) :]
        model.grow(classes=opened.classes)
        notes = (*notes, f"labels that are new to the model: {', '.join(map(str, new))}")
    opened = replace(opened, notes=notes)
    if player.classes != opened.classes:
        raise SettingError(f"the classes of the model are not those of {opened.name}")
    has_rewards = roles["reward"] is not None or (isinstance(opened, Stream) and opened.rewards is not None)
    return Opened(player, opened, encoded, has_rewards, stream.path, before, text)


def _open_table(
    stream: StreamOptions,
    roles: dict[str, Any],
    text: dict[str, Any],
    model: "Learner | None",
    progress: Callable[[int], None],
) -> "TableStream":
    from gaptron.streams.tables import open_table  # noqa: PLC0415

    classes = _classes(stream, model)
    table = open_table(
        stream.path,
        format=stream.format or None,
        **roles,
        classes=classes,
        chunk=_chunk_size(stream, classes is not None and not stream.grow, True),
        header=stream.header,
        **text,
        unlabelled=stream.unlabelled,
        grow=stream.grow,
        limit=stream.limit,
        shuffle=stream.shuffle,
        progress=progress,
    )
    if model is not None and table.columns:
        table = replace(table, notes=(*table.notes, *table_columns.differences(model, table.columns)))
    return table


def _open_numeric(
    stream: StreamOptions,
    roles: dict[str, Any],
    text: dict[str, Any],
    model: "Learner | None",
    learner: LearnerOptions,
    progress: Callable[[int], None],
) -> "Stream | Chunks":
    from gaptron.streams import open_stream, prepare  # noqa: PLC0415

    is_new = model is None
    if _is_built_in(stream.path):  # which fixes its classes and features
        model = None
    classes, unit_norm = _classes(stream, model), stream.steps["unit_norm"]
    norm_known = model is not None or learner.norm is not None or unit_norm
    opened: Any = open_stream(
        stream.path,
        format=stream.format or None,
        **roles,
        classes=classes,
        n_features=stream.n_features if model is None else model.problem.n_features - stream.steps["constant"] or None,
        chunk=_chunk_size(
            stream,
            classes is not None and norm_known and not stream.grow,
            model is not None or stream.n_features is not None,
        ),
        index_base=_index_base(stream.index_base, model),
        header=stream.header,
        **text,
        unlabelled=stream.unlabelled,
        grow=stream.grow,
        measure=is_new and learner.norm is None and not unit_norm and learner.needs_norm(),
        progress=progress,
    )
    prepared: Stream | Chunks = prepare(opened, **stream.steps, shuffle=stream.shuffle, limit=stream.limit)
    return prepared


def _chunk_size(stream: StreamOptions, classes_known: bool, width_known: bool) -> int | None:
    whole = reading.option_for_whole_stream(stream.bound, stream.shuffle, stream.steps["standardize"])
    chunk = reading.chunk_size(stream.chunk, whole, stream.path, stream.format or None, classes_known, width_known)
    if chunk is not None:
        reading.keep_freed_memory()
    return chunk


def _classes(stream: StreamOptions, model: "Learner | None") -> Sequence[Any] | None:
    return options.read_classes(stream.classes) if model is None else model.classes


def _is_built_in(path: str) -> bool:
    from gaptron.streams.named import NAMED  # noqa: PLC0415

    return path.partition(":")[0] in NAMED


def _roles(stream: StreamOptions, model: "Learner | None") -> dict[str, Any]:
    """Return the columns that are not features: as given, otherwise as in the files that the model learned from."""
    saved = {} if model is None else model.reading
    given = {"label": stream.label, "reward": stream.reward, "available": stream.available}
    return {role: options.read_column(name) if name else saved.get(role) for role, name in given.items()}


def _encodes_columns(
    stream: StreamOptions, available: str | int | None, model: "Learner | None", context: typer.Context
) -> bool:
    """Are the columns of this file encoded? If the model encodes them; without a model, unless an option forbids it."""
    from gaptron.streams.tables import is_table_file  # noqa: PLC0415

    numeric = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in NUMERIC and context.params[parameter.name]
    ]
    is_table = is_table_file(stream.path, stream.format or None, available)
    if model is not None and model.features is not None:
        if numeric:
            raise SettingError(f"the model encodes the columns itself: omit {numeric[0]}")
        if not is_table:
            raise SettingError(f"the model needs a table with named columns, but {stream.path} is not a table")
        return True
    return is_table and not numeric and model is None


def _index_base(given: str, model: "Learner | None") -> str | int:
    """Return the index of the first feature: as given, otherwise as in the files that the model learned from."""
    saved = None if model is None else model.reading.get("index_base")
    if saved is None:
        return given
    if given not in ("auto", str(saved)):
        raise SettingError(f"the model learned from files whose first feature has index {saved}: omit --index-base")
    return int(saved)


def _default_feedback(algorithm: str) -> str:
    """Return full information, unless the algorithm only supports bandit feedback."""
    from gaptron.algorithms import load  # noqa: PLC0415

    first: str = load(algorithm).CARD.feedback[0].word
    return first
