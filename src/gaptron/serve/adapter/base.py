"""What the adapters of both kinds of models share."""

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from gaptron.algorithms import load
from gaptron.data.values import MIN_PROPENSITY
from gaptron.errors import GaptronError, NoBoundError
from gaptron.kernels.simplex import draw
from gaptron.learner import Learner, model_file
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import Cells, DecisionRequest, NewModel, Outcome, SparseX
from gaptron.types import Vector

RESERVED = (
    "classes",
    "n_classes",
    "actions",
    "n_features",
    "feedback",
    "seed",
    "epsilon",
    "features",
    "self",
    "algorithm",
)


class NotFiniteError(GaptronError):
    """The learner's numbers overflowed: its settings do not fit its examples."""


class Scored(NamedTuple):
    """What a learner would draw from."""

    names: tuple[str, ...]  # of the labels or actions
    distribution: Vector
    order: list[int] | None  # of actions: their places by score


class Draw(NamedTuple):
    """What was drawn for a request."""

    played: str
    propensity: float
    distribution: tuple[float, ...]
    ranking: tuple[int, ...] | None  # of actions: the one played, then the others by score
    names: tuple[str, ...]  # of what the distribution is over

    def probability(self, name: str) -> float:
        """The probability of this label or action."""
        return self.distribution[self.names.index(name)]


class Adapter:
    """A learner built from a model's specification."""

    choice = ""  # the field of an outcome that names what was right
    right = ""
    named: bool  # are features given by name?
    width: int | None  # the number of features, if they are numbers; None: not known yet

    def __init__(self, spec: NewModel, **problem: Any) -> None:
        for name in spec.settings:
            if name in RESERVED:
                raise invalid(f"settings: {name!r} is not a setting; use the field of the request that sets it")
        if spec.algorithm is not None and load(spec.algorithm).CARD.own_coin:
            raise invalid(f"{spec.algorithm} cannot learn from a log, only from its own draws: use another algorithm")
        self.feedback = spec.feedback
        self.width = spec.features if isinstance(spec.features, int) else None
        self.spec = spec
        self._use = None if spec.use_features is None else frozenset(spec.use_features)
        if self._use is not None and not self.named:
            raise invalid('use_features selects named features: create the model with "features": "auto"')
        self.learner = self._new_learner(self.features, epsilon=spec.epsilon or 0.0, **problem)

    def _new_learner(self, features: int | Literal["auto"] | None, **more: Any) -> Learner:
        """A learner that has learned nothing."""
        spec = self.spec
        examples: dict[str, Any] = {"features": "auto"} if features == "auto" else {"n_features": features}
        given = {"feedback": spec.feedback, "seed": spec.seed}
        arguments: dict[str, Any] = {**spec.settings, **given, **examples, **more}
        return Learner(spec.algorithm, **arguments)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the order of distributions; none if every decision brings its own actions."""
        return ()

    @property
    def epsilon(self) -> float:
        """The share of decisions drawn uniformly."""
        return self.learner.epsilon

    @property
    def _most(self) -> int:
        """The most labels or actions that a decision chooses between."""
        return len(self.labels)

    @property
    def is_settled(self) -> bool:
        """Is it known whether features are named, and how many numbers there are otherwise?"""
        return self.named or self.width is not None

    @property
    def features(self) -> int | Literal["auto"] | None:
        """How features are given, as in a specification; None: not known yet."""
        return "auto" if self.named else self.width

    # --- deciding -----------------------------------------------------------------------------------------------

    def decide(self, request: DecisionRequest, u: float) -> Draw:
        """Return what u draws. Changes nothing. Raises what `score` raises."""
        names, p, order = self.score(request)
        code = int(draw(p, int(p.argmax()), u))
        ranking = None if order is None else (code, *(place for place in order if place != code))
        return Draw(names[code], p.item(code), tuple(p.tolist()), ranking, names)

    def score(self, request: DecisionRequest) -> Scored:
        """Return the distribution that `decide` draws from. Changes nothing.

        What has a propensity below `MIN_PROPENSITY` is not played, so that every decision can be learned from and
        evaluated; the largest probability is increased instead.

        Raises:
            NotFiniteError: the learner has no distribution.
        """
        scored = self._score(request)
        p = scored.distribution
        if not np.isfinite(p).all():
            raise NotFiniteError("its state is not finite: create a new model with other settings or smaller features")
        top, rare = int(p.argmax()), p < MIN_PROPENSITY
        if p[rare].any():
            p[top] = min(p[top] + p[rare].sum(), 1.0)
            p[rare] = 0.0
        return scored

    def probability(self, request: DecisionRequest, name: str) -> float:
        """Return the probability with which `decide` would play this label or action. Changes nothing."""
        names, p, _ = self.score(request)
        return p.item(names.index(name)) if name in names else 0.0

    def _score(self, request: DecisionRequest) -> Scored:
        raise NotImplementedError

    def _used(self, cells: Cells) -> Cells:
        """The named features that the model uses."""
        return cells if self._use is None else {name: value for name, value in cells.items() if name in self._use}

    def check(self, request: DecisionRequest) -> None:
        """Refuse an example that could not be learned from, if `decide` accepts it."""

    def check_played(self, request: DecisionRequest) -> str:
        """Return what the caller played in shadow mode; refuse it if it could not be played."""
        played = request.played
        name = None if played is None else getattr(played, self.choice)
        if played is None or name is None or None not in (played.label, played.action):
            raise invalid(
                f'the model is in shadow mode: give "played", the {self.choice} you played and its propensity'
            )
        if name not in self._available(request):
            raise invalid(f"{name!r} was played, but it is not one of the available {self.choice}s")
        return str(name)

    def n_available(self, request: DecisionRequest) -> int:
        """How many labels or actions may be played?"""
        return len(set(self._available(request)))

    def _available(self, request: DecisionRequest) -> tuple[str, ...]:
        """The labels or actions that may be played."""
        raise NotImplementedError

    def features_after(self, request: DecisionRequest) -> int | Literal["auto"] | None:
        """How features are given after this request, which settles it if it is the first."""
        return self.features

    def settle(self, request: DecisionRequest) -> None:
        """Take from the first decision how features are given."""

    def is_sparse(self, request: DecisionRequest) -> bool:
        """Does the request have sparse numbers?"""
        return isinstance(request.x, SparseX)

    def size(self, request: DecisionRequest) -> int:
        """How many examples' features the request holds."""
        return 1

    # --- learning -----------------------------------------------------------------------------------------------

    def check_outcome(self, outcome: Outcome, request: DecisionRequest, played: str) -> None:
        """Refuse an outcome that this model cannot learn from."""
        given = [
            name for name in ("correct", "reward", "label", "action", "void") if getattr(outcome, name) is not None
        ]
        if len(given) != 1:
            raise invalid(f"give exactly one of correct, reward, {self.choice} or void")
        if given[0] in ("label", "action") and given[0] != self.choice:
            raise invalid(f"this model chooses {self.choice}s: give {self.choice}, not {given[0]}")
        if outcome.played is not None:
            self._check_known(outcome.played, request)
        if outcome.void:
            return
        right = outcome.label or outcome.action
        if self.feedback == "full" and not (outcome.correct or right is not None):
            raise invalid(f"with full-information feedback an outcome must name {self.right}: give {self.choice}")
        if right is not None:
            self._check_known(right, request)  # with bandit feedback, only whether it equals ours is learned from
        self._check_feedback(request, played, self._feedback(outcome, played))

    def _check_known(self, name: str, request: DecisionRequest) -> None:
        """Refuse an unknown label or action."""
        raise NotImplementedError

    def _check_feedback(self, request: DecisionRequest, played: str, feedback: dict[str, Any]) -> None:
        raise NotImplementedError

    def true_choice(self, outcome: Outcome, played: str) -> str | None:
        """The true label or right action, with full-information feedback."""
        return self._feedback(outcome, played).get("truth")

    def learn(self, request: DecisionRequest, played: str, propensity: float, outcome: Outcome) -> None:
        """Learn from a decision and its outcome; both have been checked."""
        self._learn(request, played, propensity, self._feedback(outcome, played))

    def _learn(self, request: DecisionRequest, played: str, propensity: float, feedback: dict[str, Any]) -> None:
        raise NotImplementedError

    def _feedback(self, outcome: Outcome, played: str) -> dict[str, Any]:
        """The outcome as arguments of `Learner.learn_logged`."""
        if self.feedback == "full":
            return {"truth": played if outcome.correct else outcome.label or outcome.action}
        if outcome.reward is not None and outcome.reward not in (0.0, 1.0):
            return {"reward": outcome.reward}
        return {"correct": is_correct(outcome, played)}

    def check_can_limit(self) -> None:
        """Refuse if the algorithm cannot leave labels out."""

    def grow(self, labels: list[str]) -> None:
        """Add labels."""
        raise NotImplementedError

    def change_epsilon(self, epsilon: float) -> None:
        """Change the share of decisions drawn uniformly."""
        self.learner.change_epsilon(epsilon)
        self._check_epsilon(self._most)

    def _check_epsilon(self, most: int) -> None:
        """Refuse an epsilon whose uniform draws among so many labels or actions would be too rare to be played."""
        least = most * MIN_PROPENSITY
        if 0.0 < self.epsilon < least:
            what = f"{most} {self.choice}s"
            raise invalid(f"epsilon={self.epsilon:g} is too small for {what}: use at least {least:g}, or 0")

    # --- report -------------------------------------------------------------------------------------------------

    def certificate(self) -> str:
        """Describe the learner's certificate, or why it has none."""
        try:
            certificate = self.learner.certificate
        except NoBoundError as reason:
            return f"No certificate: {reason}."
        if certificate is None:
            return "No certificate: the algorithm has none, or nothing has been learned yet."
        return f"Certificate: {certificate}"

    def expert_weights(self) -> dict[str, float]:
        """The weight of each expert; empty if the algorithm has no experts."""
        advice = self.learner.advice
        return {} if advice is None else {name: float(weight) for name, weight in advice.weights.items()}

    def tally_key(self, played: str) -> int | str:
        """Where the tally counts it: the code of a label, or the id of an action."""
        return played

    # --- saving -------------------------------------------------------------------------------------------------

    def tree(self) -> Any:
        """The complete state of the learner as plain values."""
        return self.learner.__getstate__()

    def restore(self, tree: Any) -> None:
        """Restore a state that `tree` returned."""
        self.learner.__setstate__(tree)
        self.named = tree["features"] is not None

    def file(self) -> bytes:
        """The learner as a model file, for `Learner.load`."""
        return model_file.packed(self.tree(), "snapshot")


def is_correct(outcome: Outcome, played: str) -> bool:
    """Was what was played correct?"""
    if outcome.correct is not None:
        return outcome.correct
    if outcome.reward is not None:
        return outcome.reward == 1.0
    return (outcome.label or outcome.action) == played


def check_numbers(x: tuple[float, ...] | SparseX, width: int | None) -> None:
    """Refuse numbers that are not those of an example with `width` features."""
    if not isinstance(x, SparseX):
        if width is not None and len(x) != width:
            raise invalid(f"x has length {len(x)}; the number of features of this model is {width}")
        return
    if width is None:
        raise invalid('a sparse x needs the number of features: create the model with "features": number')
    if len(x.indices) != len(x.values):
        raise invalid(f"x has {len(x.indices)} indices but {len(x.values)} values")
    if len(set(x.indices)) != len(x.indices):
        raise invalid("x contains an index twice")
    if any(index >= width for index in x.indices):
        raise invalid(f"x contains index {max(x.indices)}; indices of this model are below {width}")


def as_matrix(rows: list[Any], width: int | None) -> Any:
    """Return rows of numbers, all sparse or none, as a matrix."""
    if not isinstance(rows[0], SparseX):
        return np.array(rows)
    assert width is not None  # otherwise `check_numbers` refused them
    ends = np.cumsum([0, *(len(x.indices) for x in rows)])
    values = np.array([value for x in rows for value in x.values], dtype=np.float64)
    indices = np.array([index for x in rows for index in x.indices], dtype=np.int32)
    return csr_array((values, indices, ends), shape=(len(rows), width))
