"""What a theorem says of a run: its number on the very stream that was played, and when it says nothing."""

import math
from typing import Any, NamedTuple

import numpy as np

from gaptron import comparator as comparators
from gaptron.algorithm import Algorithm, HasExcused, HasRoundedBound
from gaptron.errors import InputError
from gaptron.trace import Trace
from gaptron.types import Certificate, Comparator, Feedback, Flags, Integers, Matrix, Problem, Rounding


class Bound(NamedTuple):
    """A proved number beside a run."""

    value: float  # mistakes, in expectation over the learner's draws
    regret: float  # the part that is not the comparator's own loss
    comparator: Comparator
    U: Matrix
    theorem: str


def tightest(
    file: Algorithm,
    problem: Problem,
    settings: Any,
    certificate: Certificate | None,
    rounding: Rounding,
    X: Any,
    truth: Integers,
    trace: Trace | None,
) -> Bound:
    """The bound by the best rule U in hindsight."""
    # A certificate may choose U only if it does not itself depend on the draws.
    chooses = certificate is not None and not certificate.in_expectation

    def number(comparator: Comparator) -> float:
        if chooses and certificate is not None:
            return certificate.bound(comparator)
        return file.bound(problem, settings, comparator)

    radius = problem.radius or math.inf
    if math.isfinite(number(Comparator(0.0, 2 * (problem.radius or 1.0), len(truth)))):
        radius = math.inf  # the theorem is not only for ‖U‖ ≤ D
    silent = _excused(file, problem, trace)
    best = comparators.best(X, truth, problem.n_classes, problem.loss, number, radius=radius, excused=silent)
    return _bound(file, problem, settings, certificate, rounding, best.comparator, best.U)


def for_rule(
    file: Algorithm,
    problem: Problem,
    settings: Any,
    certificate: Certificate | None,
    rounding: Rounding,
    X: Any,
    truth: Integers,
    trace: Trace | None,
    U: Any,
) -> Bound:
    """The bound by a rule of the caller's own."""
    rule = np.asarray(U, dtype=np.float64)
    if rule.shape != (problem.n_classes, X.shape[1]) or not np.isfinite(rule).all():
        raise InputError(f"U must hold {problem.n_classes} × {X.shape[1]} finite numbers, a row for each class")
    losses, _ = comparators.losses(problem.loss, np.asarray(X @ rule.T), truth)
    silent = _excused(file, problem, trace)
    loss = float(losses.sum() if silent is None else losses[~silent].sum())
    comparator = Comparator(loss, float(np.linalg.norm(rule)), len(truth))
    return _bound(file, problem, settings, certificate, rounding, comparator, rule)


def _excused(file: Algorithm, problem: Problem, trace: Trace | None) -> Flags | None:
    # Under bandit feedback the mask depends on the draws and may not be looked at when U is chosen.
    if trace is None or problem.feedback is not Feedback.FULL or not isinstance(file, HasExcused):
        return None
    return file.excused(problem, trace.notes, trace.top == trace.truth)


def _bound(
    file: Algorithm,
    problem: Problem,
    settings: Any,
    certificate: Certificate | None,
    rounding: Rounding,
    comparator: Comparator,
    U: Matrix,
) -> Bound:
    if certificate is not None:
        proved = certificate.bound(comparator)
    elif isinstance(file, HasRoundedBound):
        proved = file.rounded_bound(problem, settings, comparator, rounding)
    else:
        proved = file.bound(problem, settings, comparator)
    return Bound(proved, proved - comparator.loss, comparator, U, file.theorem(problem, settings))
