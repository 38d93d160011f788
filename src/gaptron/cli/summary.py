"""The summary of a run as plain values: mistakes, bound and certificate."""

import contextlib
from typing import TYPE_CHECKING, Any

from gaptron.cli.run_statistics import RunStatistics
from gaptron.cli.running import whole_stream

if TYPE_CHECKING:
    from gaptron import Features, Learner
    from gaptron.cli.opening import AnyStream, Opened
    from gaptron.learner.playing import Run

MAX_SECONDS = 2.0  # of playing, up to which other certificates are tried
DELTA = 0.05
LEVEL = 0.95


def summarize(opened: "Opened", run: "Run", statistics: RunStatistics, bound: bool | None) -> dict[str, Any]:
    """Return everything about a run as plain values.

    Args:
        opened: the learner and its stream, after the run.
        run: the result of playing.
        statistics: the counts of the run.
        bound: compute the bound? None: if the stream is in memory.
    """
    from gaptron.learner import describe  # noqa: PLC0415
    from gaptron.learner.playing import best_reward  # noqa: PLC0415
    from gaptron.streams import Stream  # noqa: PLC0415
    from gaptron.streams.tables import TableStream  # noqa: PLC0415
    from gaptron.theory.high_probability import any_time  # noqa: PLC0415
    from gaptron.theory.intervals import wilson  # noqa: PLC0415
    from gaptron.types import Feedback  # noqa: PLC0415

    learner, stream = opened.learner, opened.stream
    problem, tally = learner.problem, run.tally
    proved, no_bound = _bound(learner, stream, run, bound)
    observed, not_observed = describe.observed_by(learner)
    high_probability = None
    if problem.feedback is Feedback.FULL:
        mistakes = any_time(tally.expected_mistakes, tally.variance, DELTA)
        high_probability = {"mistakes": mistakes, "delta": DELTA}
    low, high = wilson(tally.mistakes / tally.rounds, tally.rounds, LEVEL)
    return {
        "stream": stream.name,
        "prepared": list(stream.prepared),
        "notes": list(stream.notes),
        "algorithm": learner.algorithm,
        "feedback": problem.feedback.word,
        "loss": problem.loss.word,
        "n_classes": problem.n_classes,
        "n_features": problem.n_features if learner.features is None else len(stream.columns or learner.features),
        "norm": problem.norm,
        "radius": problem.radius,
        "horizon": problem.horizon,
        "settings": describe.settings(learner),
        "rounds": tally.rounds,
        "mistakes": tally.mistakes,
        "error": {"rate": tally.mistakes / tally.rounds, "low": low, "high": high, "level": LEVEL},
        "expected_mistakes": tally.expected_mistakes,
        "top_mistakes": tally.top_mistakes,
        "reward": tally.reward if opened.has_rewards else None,
        "best_reward": best_reward(stream.rewards, stream.y) if isinstance(stream, Stream) else None,
        "rounds_per_second": tally.rounds / run.seconds if run.seconds else None,
        "high_probability_bound": high_probability,
        "certificate": describe.certificate(learner, tally, run.notes),
        "observed": observed,
        "why_not_observed": not_observed,
        "advice": None if learner.advice is None else learner.advice._asdict(),
        "bound": proved,
        "why_no_bound": no_bound,
        **statistics.as_values(),
        "label": stream.roles.label if isinstance(stream, TableStream) else None,
        "columns": None if learner.features is None else [column._asdict() for column in learner.features],
    }


def _bound(
    learner: "Learner", stream: "AnyStream", run: "Run", requested: bool | None
) -> tuple[dict[str, Any] | None, str | None]:
    from gaptron.learner import describe  # noqa: PLC0415
    from gaptron.learner.playing import labels_of  # noqa: PLC0415

    whole = whole_stream(stream)
    if requested is False:
        return None, "not computed (--no-bound)"
    if run.trace is None or whole is None:
        return None, "it needs the whole stream in memory, but the stream was read in chunks: use --bound (no --chunk)"
    return describe.bound(learner, whole.X, labels_of(learner, whole.y), run.trace)


def find_certificate(
    opened: "Opened", run: "Run", bound: dict[str, Any] | None, features: "Features", *, quiet: bool
) -> dict[str, Any] | None:
    """Find an algorithm with an informative bound where the bound of the run is not.

    Returns:
        The algorithm, its loss and bound; {} if none is informative; None if it was not searched for.
    """
    whole = whole_stream(opened.stream)
    if bound is None or bound["value"] < run.tally.rounds or whole is None or run.seconds > MAX_SECONDS:
        return None
    from rich.console import Console  # noqa: PLC0415

    from gaptron.experiments.best_certificate import best_certificate  # noqa: PLC0415

    declared = features if opened.encoded else None
    with contextlib.nullcontext() if quiet else Console(stderr=True).status("searching for an informative bound"):
        return best_certificate(opened.learner.problem, whole.X, whole.y, declared, whole.available) or {}
