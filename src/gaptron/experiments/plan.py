"""A plan: streams × feedback × algorithms × settings × seeds, crossed into tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest
from typing import Any

from gaptron.algorithms import load
from gaptron.errors import InputError, SettingError
from gaptron.experiments.grids import GRIDS, Grid
from gaptron.experiments.record import GRID
from gaptron.experiments.task import Task
from gaptron.feedback import GRAPHS, WORDS, as_graph
from gaptron.streams import Stream, open_stream, prepare
from gaptron.types import Feedback, Problem

FEEDBACK = (*WORDS, *GRAPHS)
BOUNDS = ("first", "all", "none")


@dataclass(frozen=True)
class Source:
    """Where a stream comes from, and how it is prepared."""

    data: str
    name: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)  # of open_stream
    preparing: Mapping[str, Any] = field(default_factory=dict)  # of prepare
    shuffle: bool = True  # another order for every seed
    feedback: tuple[str, ...] = ()  # (): all the plan asks for

    @property
    def title(self) -> str:
        """What records and people call it."""
        return self.name or self.data

    def open(self) -> Stream:
        """The stream, read and prepared; the shuffle waits for the seed."""
        stream = open_stream(self.data, **self.reading)
        assert isinstance(stream, Stream)  # chunk= is not among the words of a plan
        return prepare(stream, **self.preparing)


@dataclass(frozen=True)
class Entry:
    """An algorithm of the plan."""

    algorithm: str
    losses: tuple[str, ...] = ()  # (): its first
    feedback: tuple[str, ...] = ()  # (): what the plan asks for and it can do
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Grid | None = None  # None: the built-in one; {}: none

    def can(self, feedback: str) -> bool:
        """Does it know this feedback, and does the plan want it?"""
        known = {word.word for word in load(self.algorithm).CARD.feedback}
        wanted = not self.feedback or feedback in self.feedback
        return wanted and ("graph" if feedback in GRAPHS else feedback) in known

    def variants(self, grids: bool) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Settings and what is tuned in them: as given, then every point of the grid."""
        yield dict(self.settings), None
        grid = (GRIDS.get(self.algorithm, {}) if grids else {}) if self.grid is None else self.grid
        grid = {name: values for name, values in grid.items() if name not in self.settings}
        for values in product(*grid.values()) if grid else ():
            yield {**self.settings, **dict(zip(grid, values))}, ",".join(grid)


@dataclass(frozen=True)
class Plan:
    """What is to be compared."""

    streams: tuple[Source, ...]
    algorithms: tuple[Entry, ...]
    feedback: tuple[str, ...] = ("full", "bandit")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    grids: bool = True  # the built-in grids for algorithms without one of their own
    bounds: str = "first"  # look for the best comparator with the first seed, with all, or not at all
    radius: float = 10.0  # D, for those that cannot do without

    def __post_init__(self) -> None:
        for word in self.feedback:
            as_graph(word, 2)  # raises if it is none
        if self.bounds not in BOUNDS:
            raise SettingError(f"unknown bounds {self.bounds!r}; there are: {', '.join(BOUNDS)}")
        if not self.radius > 0:
            raise SettingError(f"radius = {self.radius} must be positive")
        titles = [source.title for source in self.streams]
        for title in titles:
            if titles.count(title) > 1:
                raise SettingError(f"two streams are called {title!r}: give them a name each")
        for entry in self.algorithms:
            if not any(entry.can(word) for word in self.feedback):
                known = ", ".join(word.word for word in load(entry.algorithm).CARD.feedback)
                raise SettingError(
                    f"{entry.algorithm} knows {known} feedback, and the plan asks for {', '.join(self.feedback)}"
                )

    def tasks(self, source: Source) -> Iterator[Task]:
        """Those of one stream. Algorithms take turns, so that workers that start together compile different ones."""
        wanted = [word for word in self.feedback if not source.feedback or word in source.feedback]
        for feedback, at in product(wanted, range(len(self.seeds))):
            columns = [self._of(source, entry, feedback, at) for entry in self.algorithms if entry.can(feedback)]
            yield from (task for task in chain(*zip_longest(*columns)) if task is not None)

    def _of(self, source: Source, entry: Entry, feedback: str, at: int) -> Iterator[Task]:
        """The tasks of one algorithm with one seed."""
        losses = entry.losses or (load(entry.algorithm).CARD.losses[0].word,)
        for loss, (settings, tuned) in product(losses, entry.variants(self.grids)):
            task = Task(source.title, entry.algorithm, feedback, loss, self.seeds[at], settings, shuffle=source.shuffle)
            if needs_radius(task):
                task = task._replace(radius=self.radius)
            if tuned is not None:
                yield task._replace(role=GRID, tuned=tuned)
            else:
                yield task._replace(bound=self.bounds == "all" or (self.bounds == "first" and at == 0))


def needs_radius(task: Task) -> bool:
    """Whether the algorithm has no settings for this problem unless it is told D."""
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
