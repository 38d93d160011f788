"""A plan: the product of streams, feedback, algorithms, settings and seeds, as tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest
from typing import Any

from gaptron.algorithms import able, load
from gaptron.algorithms.feedback import GRAPHS, WORDS, as_graph
from gaptron.errors import InputError, SettingError
from gaptron.experiments import external
from gaptron.experiments.action_stream import encode_actions
from gaptron.experiments.command import action_command, play_command
from gaptron.experiments.contender import contender
from gaptron.experiments.stream_cache import AnyStream
from gaptron.experiments.task import GRID, Task
from gaptron.streams import Stream, open_stream, prepare
from gaptron.streams.actions import open_actions
from gaptron.streams.tables import encode_table, open_table
from gaptron.types import Feedback, Problem

FEEDBACK = (*WORDS, *GRAPHS)
BOUNDS = ("first", "all", "none")


@dataclass(frozen=True)
class PlannedStream:
    """Where a stream comes from, and how it is prepared."""

    data: str
    name: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)  # options of open_stream
    preparing: Mapping[str, Any] = field(default_factory=dict)  # options of prepare
    shuffle: bool = True  # in a different order for each seed
    feedback: tuple[str, ...] = ()  # (): all of the plan's
    by_name: bool = False  # encode the columns of a table from the rows before, as `gaptron play` does
    actions: bool = False  # its rounds bring their own named actions, and are played in order

    @property
    def encoded_in_order(self) -> bool:
        """Whether an example depends on those before it, so that each seed's order is encoded separately."""
        return self.by_name and self.shuffle

    @property
    def title(self) -> str:
        """The name shown in results."""
        return self.name or self.data

    def open(self, seed: int | None = None) -> AnyStream:
        """Read and prepare the stream. Only a stream that is encoded in order is shuffled here, with the seed."""
        if self.actions:
            return encode_actions(open_actions(self.data, **self.reading)[: self.preparing.get("limit")])
        if self.by_name:
            return encode_table(open_table(self.data, **self.reading, limit=self.preparing.get("limit"), shuffle=seed))
        stream = open_stream(self.data, **self.reading)
        assert isinstance(stream, Stream)  # without chunk=
        return prepare(stream, **self.preparing)


@dataclass(frozen=True)
class PlannedAlgorithm:
    """An algorithm of the plan."""

    algorithm: str
    losses: tuple[str, ...] = ()  # (): its first one
    feedback: tuple[str, ...] = ()  # (): all of the plan's that it supports
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] | None = None  # values to try by setting; None: those of its card; {}: none

    def __post_init__(self) -> None:
        if external.library_of(self.algorithm):
            external.make(self.algorithm, self.settings, seed=0)  # raises if that is impossible

    def supports(self, feedback: str) -> bool:
        """Whether the algorithm supports this feedback and the plan includes it."""
        requested = not self.feedback or feedback in self.feedback
        return requested and ("graph" if feedback in GRAPHS else feedback) in contender(self.algorithm).feedback

    @property
    def supports_actions(self) -> bool:
        """Whether the algorithm plays rounds that bring their own actions."""
        return not external.library_of(self.algorithm) and load(self.algorithm).CARD.actions

    def settings_to_try(self, grids: bool) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Yield settings and the names of the tuned ones: the plan's settings, then every point of the grid."""
        yield dict(self.settings), None
        grid = (contender(self.algorithm).grid if grids else {}) if self.grid is None else self.grid
        grid = {name: values for name, values in grid.items() if name not in self.settings}
        for values in product(*grid.values()) if grid else ():
            yield {**self.settings, **dict(zip(grid, values))}, ",".join(grid)


@dataclass(frozen=True)
class Plan:
    """What to compare."""

    streams: tuple[PlannedStream, ...]
    algorithms: tuple[PlannedAlgorithm, ...]
    feedback: tuple[str, ...] = ("full", "bandit")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    grids: bool = True  # use the grids of the algorithms' cards where the plan gives none
    bounds: str = "first"  # compute bounds for the first seed, all seeds or none
    radius: float = 10.0  # D, for the algorithms that need it

    def __post_init__(self) -> None:
        for word in self.feedback:
            as_graph(word, 2)  # raises if it is unknown
        if self.bounds not in BOUNDS:
            raise SettingError(f"unknown bounds {self.bounds!r}; choose from: {', '.join(BOUNDS)}")
        if not self.radius > 0:
            raise SettingError(f"radius = {self.radius} must be positive")
        titles = [stream.title for stream in self.streams]
        for title in titles:
            if titles.count(title) > 1:
                raise SettingError(f"two streams are called {title!r}: give each a different name")
        for planned in self.algorithms:
            if all(stream.actions for stream in self.streams) and not planned.supports_actions:
                raise SettingError(
                    f"{planned.algorithm} does not support actions=True; algorithms that do: {able('actions')}"
                )
            if not any(planned.supports(word) for word in self.feedback):
                known = ", ".join(contender(planned.algorithm).feedback)
                raise SettingError(
                    f"{planned.algorithm} supports {known} feedback, but the plan has {', '.join(self.feedback)}"
                )

    def tasks(self, stream: PlannedStream) -> Iterator[Task]:
        """Yield the tasks of one stream. Algorithms alternate, so that the first workers compile different ones."""
        wanted = [word for word in self.feedback if not stream.feedback or word in stream.feedback]
        for feedback, at in product(wanted, range(len(self.seeds))):
            columns = [
                self._algorithm_tasks(stream, planned, feedback, at)
                for planned in self.algorithms
                if planned.supports(feedback) and (planned.supports_actions or not stream.actions)
            ]
            yield from (task for task in chain(*zip_longest(*columns)) if task is not None)

    def _algorithm_tasks(
        self, stream: PlannedStream, planned: PlannedAlgorithm, feedback: str, at: int
    ) -> Iterator[Task]:
        """Yield the tasks of one algorithm with one seed."""
        losses = planned.losses or contender(planned.algorithm).losses[:1]
        for loss, (settings, tuned) in product(losses, planned.settings_to_try(self.grids)):
            shuffle = stream.shuffle and not stream.actions
            task = Task(stream.title, planned.algorithm, feedback, loss, self.seeds[at], settings, shuffle=shuffle)
            if tuned is not None:
                task = task._replace(role=GRID, tuned=tuned)
            if external.library_of(task.algorithm):
                yield task  # without a bound, and without a command: `gaptron play` does not play it
                continue
            if not stream.actions and needs_radius(task):
                task = task._replace(radius=self.radius)
            if tuned is None:
                task = task._replace(bound=self.bounds == "all" or (self.bounds == "first" and at == 0))
            yield task._replace(
                command=action_command(stream.data, stream.reading, stream.preparing, task)
                if stream.actions
                else play_command(stream.data, stream.reading, stream.preparing, task, by_name=stream.by_name)
            )


def needs_radius(task: Task) -> bool:
    """Return whether the algorithm has settings for this task only if D is given."""
    if "radius" in task.settings:
        return False
    algorithm = load(task.algorithm)
    loss = next(loss for loss in algorithm.CARD.losses if loss.word == task.loss)
    graph = as_graph(task.feedback, 2)
    kind = Feedback.GRAPH if graph is not None else Feedback[task.feedback.upper()]
    problem = Problem(2, 1, kind, loss, norm=1.0, horizon=1000, graph=graph)
    for radius in (None, 1.0):
        try:
            algorithm.recommend(problem._replace(radius=radius), **task.settings)
        except (SettingError, InputError, TypeError):
            continue
        return radius is not None
    return False  # something else is wrong; the run will report it
