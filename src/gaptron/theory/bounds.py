"""The bound of a theorem on the stream that was played."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gaptron.algorithms.protocol import AnyAlgorithm, HasExcused
from gaptron.data.actions import ActionExamples
from gaptron.errors import InputError
from gaptron.theory import comparator as comparators
from gaptron.types import Certificate, Comparator, Feedback, Flags, Integers, Matrix, Problem

if TYPE_CHECKING:
    from gaptron.learner.trace import Trace


class Bound(NamedTuple):
    """A bound on the expected mistakes of a run."""

    value: float  # mistakes, in expectation over the learner's draws
    regret: float  # value minus the loss of the comparator
    comparator: Comparator
    U: Matrix
    theorem: str


def tightest(
    algorithm: AnyAlgorithm,
    problem: Problem,
    settings: Any,
    certificate: Certificate | None,
    X: Any,
    truth: Integers,
    trace: "Trace | None",
) -> Bound:
    """The smallest bound over all rules U.

    Args:
        algorithm: the algorithm that was played.
        problem: the problem.
        settings: the settings.
        certificate: the certificate of the run, or None.
        X: the examples.
        truth: the true labels as codes.
        trace: the trace of the run, to leave out rounds that the bound excuses; or None.

    Returns:
        The bound and its U.
    """
    # U may be chosen by the certificate only if the certificate does not depend on the draws.
    chooses = certificate is not None and not certificate.in_expectation

    def number(comparator: Comparator) -> float:
        if chooses and certificate is not None:
            return certificate.bound(comparator)
        return algorithm.bound(problem, settings, comparator)

    radius = problem.radius or math.inf
    if math.isfinite(number(Comparator(0.0, 2 * (problem.radius or 1.0), len(truth), len(truth), 1))):
        radius = math.inf  # the theorem is not only for ‖U‖ ≤ D
    excused = _excused(algorithm, problem, trace)
    best = comparators.best(X, truth, problem.n_classes, problem.loss, number, radius=radius, excused=excused)
    return _bound(algorithm, problem, settings, certificate, best.comparator, best.U)


def for_rule(
    algorithm: AnyAlgorithm,
    problem: Problem,
    settings: Any,
    certificate: Certificate | None,
    X: Any,
    truth: Integers,
    trace: "Trace | None",
    U: Any,
) -> Bound:
    """The bound for a given rule U, K × d; the other arguments are those of `tightest`."""
    rule = np.asarray(U, dtype=np.float64)
    if isinstance(X, ActionExamples):
        if rule.shape not in ((X.width,), (1, X.width)) or not np.isfinite(rule).all():
            raise InputError(f"U must be {X.width} finite numbers, one per feature of an action")
        rule = rule.reshape(1, -1)
        comparator = comparators.of_actions(X, truth, rule)
        return _bound(algorithm, problem, settings, certificate, comparator, rule)
    if rule.shape != (problem.n_classes, X.shape[1]) or not np.isfinite(rule).all():
        raise InputError(f"U must be {problem.n_classes} × {X.shape[1]} finite numbers, one row per class")
    losses, _ = comparators.losses(problem.loss, np.asarray(X @ rule.T), truth)
    excused = _excused(algorithm, problem, trace)
    loss = float(losses.sum() if excused is None else losses[~excused].sum())
    comparator = Comparator(loss, float(np.linalg.norm(rule)), len(truth))
    return _bound(algorithm, problem, settings, certificate, comparator, rule)


def _excused(algorithm: AnyAlgorithm, problem: Problem, trace: "Trace | None") -> Flags | None:
    # Under bandit feedback the mask depends on the draws and must not influence the choice of U.
    if trace is None or problem.feedback is not Feedback.FULL or not isinstance(algorithm, HasExcused):
        return None
    return algorithm.excused(problem, trace.notes, trace.top == trace.truth)


def _bound(
    algorithm: AnyAlgorithm,
    problem: Problem,
    settings: Any,
    certificate: Certificate | None,
    comparator: Comparator,
    U: Matrix,
) -> Bound:
    if certificate is not None:
        proved = certificate.bound(comparator)
    else:
        proved = algorithm.bound(problem, settings, comparator)
    return Bound(proved, proved - comparator.loss, comparator, U, algorithm.theorem(problem, settings))
