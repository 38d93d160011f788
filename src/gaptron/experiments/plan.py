"""A plan: streams × feedback × algorithms × settings × seeds, crossed into tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest
from typing import Any

from gaptron.algorithms import load
from gaptron.errors import InputError, SettingError
from gaptron.experiments.command import play_command
from gaptron.experiments.task import GRID, Task
from gaptron.feedback import GRAPHS, WORDS, as_graph
from gaptron.streams import Stream, open_stream, prepare
from gaptron.streams.rows_by_name import encoded, open_by_name
from gaptron.types import Feedback, Problem

FEEDBACK = (*WORDS, *GRAPHS)
BOUNDS = ("first", "all", "none")


@dataclass(frozen=True)
class PlannedStream:
    """Where a stream comes from, and how it is prepared."""

    data: str
    name: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)  # of open_stream
    preparing: Mapping[str, Any] = field(default_factory=dict)  # of prepare
    shuffle: bool = True  # another order for every seed
    feedback: tuple[str, ...] = ()  # (): all the plan asks for
    by_name: bool = False  # a table whose columns are encoded by the rows before, as `gaptron play` does it

    @property
    def encoded_in_order(self) -> bool:
        """Does a row depend on those before it, so that every seed's order must be encoded by itself?"""
        return self.by_name and self.shuffle

    @property
    def title(self) -> str:
        """What results and people call it."""
        return self.name or self.data

    def open(self, seed: int | None = None) -> Stream:
        """The stream, read and prepared; the shuffle waits for the seed, unless rows are encoded in its order."""
        if self.by_name:
            return encoded(open_by_name(self.data, **self.reading, limit=self.preparing.get("limit"), shuffle=seed))
        stream = open_stream(self.data, **self.reading)
        assert isinstance(stream, Stream)  # a plan has no chunk=
        return prepare(stream, **self.preparing)


@dataclass(frozen=True)
class PlannedAlgorithm:
    """An algorithm of the plan."""

    algorithm: str
    losses: tuple[str, ...] = ()  # (): its first
    feedback: tuple[str, ...] = ()  # (): what the plan asks for and it can do
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] | None = None  # values by setting; None: those of its card; {}: none

    def can(self, feedback: str) -> bool:
        """Does it know this feedback, and does the plan want it?"""
        known = {word.word for word in load(self.algorithm).CARD.feedback}
        wanted = not self.feedback or feedback in self.feedback
        return wanted and ("graph" if feedback in GRAPHS else feedback) in known

    def tried(self, grids: bool) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Settings and which of them are tuned: as given, then every point of the grid."""
        yield dict(self.settings), None
        grid = (load(self.algorithm).CARD.grid if grids else {}) if self.grid is None else self.grid
        grid = {name: values for name, values in grid.items() if name not in self.settings}
        for values in product(*grid.values()) if grid else ():
            yield {**self.settings, **dict(zip(grid, values))}, ",".join(grid)


@dataclass(frozen=True)
class Plan:
    """What is to be compared."""

    streams: tuple[PlannedStream, ...]
    algorithms: tuple[PlannedAlgorithm, ...]
    feedback: tuple[str, ...] = ("full", "bandit")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    grids: bool = True  # use the grids of the algorithms' cards where the plan has none
    bounds: str = "first"  # look for the best comparator with the first seed, with all, or not at all
    radius: float = 10.0  # D, for the algorithms that have no settings without it

    def __post_init__(self) -> None:
        for word in self.feedback:
            as_graph(word, 2)  # raises if it is none
        if self.bounds not in BOUNDS:
            raise SettingError(f"unknown bounds {self.bounds!r}; there are: {', '.join(BOUNDS)}")
        if not self.radius > 0:
            raise SettingError(f"radius = {self.radius} must be positive")
        titles = [stream.title for stream in self.streams]
        for title in titles:
            if titles.count(title) > 1:
                raise SettingError(f"two streams are called {title!r}: give them a name each")
        for planned in self.algorithms:
            if not any(planned.can(word) for word in self.feedback):
                known = ", ".join(word.word for word in load(planned.algorithm).CARD.feedback)
                raise SettingError(
                    f"{planned.algorithm} knows {known} feedback, and the plan asks for {', '.join(self.feedback)}"
                )

    def tasks(self, stream: PlannedStream) -> Iterator[Task]:
        """Those of one stream. Algorithms take turns, so that workers that start together compile different ones."""
        wanted = [word for word in self.feedback if not stream.feedback or word in stream.feedback]
        for feedback, at in product(wanted, range(len(self.seeds))):
            columns = [self._of(stream, planned, feedback, at) for planned in self.algorithms if planned.can(feedback)]
            yield from (task for task in chain(*zip_longest(*columns)) if task is not None)

    def _of(self, stream: PlannedStream, planned: PlannedAlgorithm, feedback: str, at: int) -> Iterator[Task]:
        """The tasks of one algorithm with one seed."""
        losses = planned.losses or (load(planned.algorithm).CARD.losses[0].word,)
        for loss, (settings, tuned) in product(losses, planned.tried(self.grids)):
            task = Task(
                stream.title, planned.algorithm, feedback, loss, self.seeds[at], settings, shuffle=stream.shuffle
            )
            if needs_radius(task):
                task = task._replace(radius=self.radius)
            if tuned is not None:
                task = task._replace(role=GRID, tuned=tuned)
            else:
                task = task._replace(bound=self.bounds == "all" or (self.bounds == "first" and at == 0))
            yield task._replace(
                command=play_command(stream.data, stream.reading, stream.preparing, task, by_name=stream.by_name)
            )


def needs_radius(task: Task) -> bool:
    """Whether the algorithm has settings for this problem only if D is known."""
    if "radius" in task.settings:
        return False
    file = load(task.algorithm)
    loss = next(loss for loss in file.CARD.losses if loss.word == task.loss)
    graph = as_graph(task.feedback, 2)
    kind = Feedback.GRAPH if graph is not None else Feedback[task.feedback.upper()]
    problem = Problem(2, 1, kind, loss, norm=1.0, horizon=1000, graph=graph)
    for radius in (None, 1.0):
        try:
            file.recommend(problem._replace(radius=radius), **task.settings)
        except (SettingError, InputError, TypeError):
            continue
        return radius is not None
    return False  # something else is wrong, which the run will say
