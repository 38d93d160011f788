"""The learner as the service uses it: two verbs, look and learn. Everything it needs of the library goes through here.

Looking changes nothing. Learning takes a decision as the log has it: the row is scored with the weights of today, only
the label and its probability are those of the draw. So no decision need be kept for its answer.
"""

import inspect
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gaptron import model_file
from gaptron.algorithms import load
from gaptron.errors import NoBoundError
from gaptron.kernels.simplex import draw
from gaptron.learner import DEFAULT, Learner
from gaptron.serve.problems import invalid
from gaptron.serve.words import MOST_FEATURES, DecisionRequest, NewModel, Outcome, SparseX
from gaptron.types import Vector

RESERVED = ("classes", "n_classes", "n_features", "feedback", "seed", "control", "features", "self", "algorithm")


def _takes(verb: Any, word: str) -> bool:
    return word in inspect.signature(verb).parameters


CAN_NAME = _takes(Learner.__init__, "features")
CAN_EXCLUDE = _takes(Learner.distribution, "among") and _takes(Learner.learn_logged, "among")
CAN_REWARD = _takes(Learner.learn_logged, "reward")


class Adapter:
    """One learner, made by a model's spec."""

    def __init__(self, spec: NewModel) -> None:
        for name in spec.settings:
            if name in RESERVED:
                raise invalid(f"settings: {name} has a place of its own in the request, or none")
        if spec.features == "auto" and not CAN_NAME:
            raise invalid('features: "auto" is not known to this version: give a number, and rows as x')
        algorithm = spec.algorithm or DEFAULT
        if load(algorithm).CARD.own_coin:
            raise invalid(f"{algorithm} learns from how it drew its label, which a log cannot say: use another one")
        named = {"features": "auto"} if spec.features == "auto" else {"n_features": spec.features}
        settings: dict[str, Any] = {**spec.settings, **named}
        self.feedback = spec.feedback
        self.takes_fractions = CAN_REWARD and bool(getattr(load(algorithm).CARD, "rewards", False))
        self.named = spec.features == "auto"
        self.width = spec.features if isinstance(spec.features, int) else None
        self.learner = Learner(
            algorithm,
            classes=list(spec.labels),
            feedback=spec.feedback,
            seed=spec.seed,
            control=spec.control,
            **settings,
        )
        self.codes: dict[str, int] = {}
        self._name_codes()

    def _name_codes(self) -> None:
        self.codes = {label: code for code, label in enumerate(self.learner.classes)}

    @property
    def labels(self) -> tuple[str, ...]:
        """In the order of distributions."""
        return self.learner.classes

    # --- looking ------------------------------------------------------------------------------------------------

    def look(self, request: DecisionRequest, u: float) -> tuple[int, Vector]:
        """The label that u draws, and what it is drawn from. Changes nothing."""
        more = {} if (among := self.among(request)) is None else {"among": [among]}  # one row, one list
        p = self.learner.distribution(self._rows(request), advice=self._advice(request), **more)[0]
        return int(draw(p, int(p.argmax()), u)), p

    def check(self, request: DecisionRequest) -> None:
        """Refuse what could not be learned from later: looking refuses all but rows longer than was promised."""
        if self.learner.problem.norm is not None:
            self.learner.check(self._rows(request))

    def among(self, request: DecisionRequest) -> list[str] | None:
        """The labels that are available, in their order; None: all."""
        if request.among is None and not request.exclude:
            return None
        wanted = set(self.labels if request.among is None else request.among)
        barred = set(request.exclude or ())
        for label in sorted(wanted | barred):
            self.code(label)
        left = [label for label in self.labels if label in wanted and label not in barred]
        if not left:
            raise invalid("no label is left to choose from")
        if len(left) == len(self.labels):
            return None
        if not CAN_EXCLUDE:
            raise invalid("among and exclude are not known to this version: every label must be available")
        return left

    def code(self, label: str) -> int:
        """The place of a label."""
        code = self.codes.get(label)
        if code is None:
            shown = ", ".join(self.labels[:5]) + (", ..." if len(self.labels) > 5 else "")
            raise invalid(f"{label!r} is not one of the {len(self.labels)} labels ({shown})")
        return code

    def width_of(self, request: DecisionRequest) -> int | None:
        """How wide the model's rows are from this request on."""
        if isinstance(request.x, tuple) and self.width is None:
            return len(request.x)
        return self.width

    def _rows(self, request: DecisionRequest) -> Any:
        """One row, as the learner takes it."""
        x = request.x
        if (x is None) == (request.features is None):
            raise invalid("give either x or features")
        if request.features is not None:
            if not self.named:
                raise invalid('this model takes rows as x: make it with "features": "auto" to give them by name')
            return [request.features]
        if self.named:
            raise invalid("this model takes features by name, not x")
        if isinstance(x, SparseX):
            if self.width is None:
                raise invalid('x is sparse and the model does not know its width: make it with "features": number')
            return _sparse(x, self.width)
        assert x is not None
        if self.width is not None and len(x) != self.width:
            raise invalid(f"x has {len(x)} numbers; the model has {self.width} features")
        return np.array([x])

    def _advice(self, request: DecisionRequest) -> Any:
        if request.advice is None:
            return None
        opinion = np.zeros(len(self.labels))
        for label, chance in request.advice.items():
            opinion[self.code(label)] = chance
        return opinion[None]

    # --- learning -----------------------------------------------------------------------------------------------

    def check_outcome(self, outcome: Outcome, request: DecisionRequest) -> None:
        """Refuse an answer in words that this model does not learn from."""
        given = [word for word in ("correct", "reward", "label", "void") if getattr(outcome, word) is not None]
        if len(given) != 1:
            raise invalid("say exactly one of correct, reward, label or void")
        if outcome.label is not None:
            self.code(outcome.label)
            if self.feedback == "full" and outcome.label not in (self.among(request) or self.labels):
                raise invalid(f"{outcome.label!r} cannot be the right label: it was not available")
        if outcome.played is not None:
            self.code(outcome.played)
        if outcome.reward is not None and self.feedback == "full":
            raise invalid("full information: say which label is right")
        if outcome.reward not in (None, 0.0, 1.0) and not self.takes_fractions:
            raise invalid(f"{self.learner.algorithm} learns from rewards of 0 and 1 only")
        if outcome.correct is False and self.feedback == "full":
            raise invalid("full information: say which label is right, not only that ours was wrong")

    def learn(self, request: DecisionRequest, label: str, probability: float, outcome: Outcome) -> None:
        """Learn from a decision and its answer, both of which were checked."""
        row = self._rows(request)
        x = row[0] if self.named else row
        more: dict[str, Any] = {} if (among := self.among(request)) is None else {"among": among}
        if self.feedback == "full":
            more["truth"] = label if outcome.correct else outcome.label
        elif outcome.reward is not None and outcome.reward not in (0.0, 1.0):
            more["reward"] = outcome.reward
        else:
            more["correct"] = right(outcome, label)
        self.learner.learn_logged(x, label, probability, advice=self._advice(request), **more)

    def grow(self, labels: list[str]) -> None:
        """Take in more labels."""
        self.learner.grow(classes=[*self.labels, *labels])
        self._name_codes()

    # --- what it says of itself ----------------------------------------------------------------------------------

    def certificate(self) -> str:
        """The bound it carries, or why there is none, in a sentence."""
        try:
            certificate = self.learner.certificate
        except NoBoundError as reason:
            return f"No certificate: {reason}."
        if certificate is None:
            return "No certificate: the algorithm has none, or nothing was learned yet."
        return f"Certificate: {certificate}"

    def heard(self) -> dict[str, float]:
        """Whose advice is heard, and how much; empty where there are no advisers."""
        advice = self.learner.advice
        return {} if advice is None else {name: float(weight) for name, weight in advice.heard.items()}

    # --- to keep ---------------------------------------------------------------------------------------------------

    def tree(self) -> Any:
        """All of the learner as plain values."""
        return self.learner.__getstate__()

    def restore(self, tree: Any) -> None:
        """Take up what `tree` said."""
        self.learner.__setstate__(tree)
        self._name_codes()

    def file(self) -> bytes:
        """The learner as the bytes of a model file, for `Learner.load`."""
        return model_file.packed(self.tree(), "snapshot")


def right(outcome: Outcome, label: str) -> bool:
    """Was the label right?"""
    if outcome.correct is not None:
        return outcome.correct
    if outcome.reward is not None:
        return outcome.reward == 1.0
    return outcome.label == label


def _sparse(x: SparseX, width: int) -> Any:
    if len(x.indices) != len(x.values):
        raise invalid(f"x has {len(x.indices)} indices but {len(x.values)} values")
    if len(set(x.indices)) != len(x.indices):
        raise invalid("x names a column twice")
    if any(at >= width for at in x.indices):
        raise invalid(f"x names column {max(x.indices)}; the model has {width} features, from 0")
    return csr_array((np.array(x.values), np.array(x.indices, dtype=np.int32), [0, len(x.indices)]), shape=(1, width))


def try_out(spec: NewModel, *, sparse: bool = False) -> None:
    """Look and learn once with a learner of this kind, so that all is compiled and what cannot work is refused."""
    adapter = Adapter(spec)
    if adapter.named:
        request = DecisionRequest(features={"warm": 1.0})
    elif sparse or (adapter.width or 0) > MOST_FEATURES:
        request = DecisionRequest(x=SparseX((0,), (0.0,)))
    else:
        request = DecisionRequest(x=(0.0,) * (adapter.width or 3))
    label = adapter.labels[0]
    outcome = Outcome(label=label) if spec.feedback == "full" else Outcome(correct=True)
    for _ in range(2):
        adapter.look(request, 0.5)
        adapter.learn(request, label, 1.0, outcome)
    adapter.look(request, 0.5)
