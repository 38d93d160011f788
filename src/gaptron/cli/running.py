"""Play a stream and report on the way: statistics, predictions, a line at every doubling of the rounds."""

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from gaptron.cli.predictions import Write
from gaptron.cli.progress import ProgressBar
from gaptron.cli.run_statistics import RunStatistics

if TYPE_CHECKING:
    from gaptron import Learner
    from gaptron.cli.opening import AnyStream
    from gaptron.learner.playing import Run
    from gaptron.learner.trace import Trace
    from gaptron.streams import Stream
    from gaptron.streams.rounds import Rounds


def run(
    learner: "Learner",
    stream: "AnyStream",
    statistics: RunStatistics,
    *,
    write: Write | None,
    bar: ProgressBar,
    doublings: bool,
    keep_trace: bool,
) -> "Run":
    """Play the whole stream.

    Args:
        learner: the learner.
        stream: the stream, whose classes are the learner's.
        statistics: counts every chunk.
        write: writes the labels of every round.
        bar: shows the progress.
        doublings: print a line when the number of rounds has doubled?
        keep_trace: keep the trace, if the stream is in memory?
    """
    from gaptron.learner.playing import play_chunks  # noqa: PLC0415

    table = _Doublings() if doublings else None

    def on_chunk(trace: "Trace") -> None:
        statistics.add(trace)
        if write is not None:
            write(_predictions(trace, statistics.classes))
        if table is not None:
            table.add(trace)

    in_memory = whole_stream(stream) is not None
    bar.start_playing(stream.n_rounds, in_memory)
    with bar.compiling():
        result = play_chunks(
            learner,
            _chunks(stream, doublings),
            keep_trace=keep_trace and in_memory,
            progress=bar.played,
            on_chunk=on_chunk,
        )
    if table is not None:
        table.close()
    return result


def whole_stream(stream: "AnyStream") -> "Rounds | None":
    """Return all rounds of a stream in memory; None if it is read in chunks."""
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.streams.rounds import Rounds  # noqa: PLC0415

    if isinstance(stream, Stream):
        return Rounds(stream.X, stream.y, stream.available, stream.rewards)
    whole: Rounds | None = getattr(stream, "whole", None)
    return whole


def _predictions(trace: "Trace", classes: Any) -> dict[str, Any]:
    codes = {"truth": trace.truth, "label": trace.codes, "top": trace.top}
    labels: dict[str, Any] = {name: [classes[code] for code in column] for name, column in codes.items()}
    return labels | {"probability of the truth": trace.truth_probability.tolist()}


class _Doublings:
    """Prints a line when the number of rounds has doubled."""

    def __init__(self) -> None:
        from gaptron.learner.trace import Tally  # noqa: PLC0415

        self.total, self.recent, self.next_line = Tally(), Tally(), 1
        typer.echo(f"{'rounds':>12} {'average':>9} {'recent':>9} {'expected':>9} {'top':>9}")

    def add(self, trace: "Trace") -> None:
        self.total.add(trace)
        self.recent.add(trace)
        if self.total.rounds >= self.next_line:
            self._line()
            self.next_line = 2 * self.total.rounds

    def close(self) -> None:
        if self.recent.rounds:
            self._line()

    def _line(self) -> None:
        numbers = (
            self.total.mistakes / self.total.rounds,
            self.recent.mistakes / self.recent.rounds,
            self.total.expected_mistakes / self.total.rounds,
            self.total.top_mistakes / self.total.rounds,
        )
        typer.echo(f"{self.total.rounds:>12,} " + " ".join(f"{number:>9.5f}" for number in numbers))
        self.recent = type(self.recent)()


def _chunks(stream: "AnyStream", doublings: bool) -> "Iterator[Rounds]":
    """Yield the stream in the chunks in which it is read, which `doublings` also splits at 1, 2, 4, ... rounds."""
    played, split = 0, 1
    for rounds, take in _readers(stream):
        start = 0
        while doublings and start < rounds and split - played < rounds - start:
            stop = start + split - played
            yield take(slice(start, stop))
            played, start, split = split, stop, 2 * split
        if start < rounds:
            yield take(slice(start, None))
            played += rounds - start


def _readers(stream: "AnyStream") -> "Iterator[tuple[int, Callable[[slice], Rounds]]]":
    """Yield for each chunk that is read its number of rounds, and a function that selects some of them."""
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.streams.rounds import Rounds  # noqa: PLC0415
    from gaptron.streams.tables import TableStream  # noqa: PLC0415

    if isinstance(stream, TableStream):
        for read in stream:
            yield len(read.y), lambda rounds, read=read: read.part(read.X[rounds], rounds)  # type: ignore[misc]
        return

    def take(chunk: "Stream", rounds: slice) -> Rounds:
        chunk = chunk if rounds == slice(0, None) else chunk.take(rounds)
        return Rounds(chunk.checked, chunk.y, chunk.available, chunk.rewards)

    for chunk in [stream] if isinstance(stream, Stream) else stream.streams():
        yield chunk.n_rounds, functools.partial(take, chunk)
