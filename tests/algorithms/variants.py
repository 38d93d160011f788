"""Other settings of an algorithm that deserve the same tests as its defaults, and traits that some laws must know.

An algorithm that is in neither table has no variants and no traits.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gaptron.algorithms import load
from gaptron.types import Feedback, Loss

TRAITS = {
    "axes": "each feature has its own step size, so that rotating the features changes the run",
    "layout": "dense examples are learned from in another way than sparse ones",
    "label order": "numbers drawn in advance belong to the labels in their order: swapping two changes the run",
    "floor": "no label is drawn with a probability below γ/K",
    "mixture": "the scores are those of several rules together, not of `weights` (`Card.linear` is False)",
    "own row": "the scores count the example asked about as if it had been learned from",
    "sampler": "random numbers move the weights, and each round goes through the past again",
    "ties": "the first rounds tie, and rounding then separates equal labels in an order that depends on the layout",
}


class Variant(NamedTuple):
    """Settings other than the default."""

    settings: Mapping[str, Any]
    feedback: tuple[Feedback, ...] = ()  # for which feedback; empty: for each that the algorithm has
    losses: tuple[Loss, ...] = ()
    traits: frozenset[str] | None = None  # None: those of the algorithm


def _only(*traits: str) -> frozenset[str]:
    return frozenset(traits)


OF_ALGORITHM: dict[str, frozenset[str]] = {
    "advised-gaptron": _only("axes", "layout"),
    "aggregating": _only("sampler"),
    "arow": _only("axes"),
    "banditron": _only("floor"),
    "confidit": _only("axes"),
    "gaptron": _only("floor"),
    "hinge-lmc": _only("sampler"),
    "laplace": _only("axes"),
    "newtron": _only("axes"),
    "obama": _only("sampler"),
    "ons": _only("axes"),
    "randomized-decoding": _only("floor"),
    "second-order-perceptron": _only("axes", "own row"),
    "soba": _only("axes", "floor"),
}

VARIANTS: dict[str, dict[str, Variant]] = {
    "advised-gaptron": {
        "linear": Variant({"kernel": False}, traits=_only("axes", "mixture")),
    },
    "arow": {
        "full": Variant({"matrix": "full"}, traits=_only()),
        "drop": Variant({"update": "drop"}),
    },
    "confidit": {"full": Variant({"matrix": "full"}, traits=_only())},
    "epsilon-greedy": {"softmax": Variant({"oracle": "softmax"})},
    "gaptron": {
        "ball": Variant({"ball": 0.05}, (Feedback.FULL,)),
        "free": Variant({"radius": 0.1, "horizon": 10**9, "eta": 0.05}, (Feedback.BANDIT,), (Loss.LOGISTIC,)),
        "exploring": Variant({"ball": 0.05, "gamma": 0.2}, (Feedback.BANDIT,), (Loss.HINGE,)),
    },
    "laplace": {
        "full": Variant({"matrix": "full"}, traits=_only("ties")),
        "sample": Variant({"play": "sample"}, traits=_only("axes", "label order")),
    },
    "newtron": {"full": Variant({"matrix": "full"}, traits=_only("ties"))},
    "ons": {
        "full": Variant({"matrix": "full", "ball": 0.05}, traits=_only()),
        "sample": Variant({"play": "sample"}),
    },
    "perceptron": {
        "uniform": Variant({"update": "uniform"}),
        "proportional": Variant({"update": "proportional"}),
    },
    "randomized-decoding": {"ball": Variant({"ball": 0.05}, (Feedback.FULL,))},
    "second-order-perceptron": {"full": Variant({"matrix": "full"}, traits=_only())},
    "separable": {"kernel": Variant({"kernel": True, "support": 40}, traits=_only("mixture"))},
    "soba": {"full": Variant({"matrix": "full"}, traits=_only("floor"))},
    "softmax": {
        "decaying": Variant({"step": "decaying"}),
        "adaptive": Variant({"step": "adaptive", "radius": 0.3}),
        "adagrad": Variant({"step": "adagrad"}, traits=_only("axes")),
        "sample": Variant({"play": "sample"}),
    },
    "squarecb": {
        "logistic": Variant({"oracle": "logistic"}),
        "softmax": Variant({"oracle": "softmax"}),
        "adagrad": Variant({"oracle": "softmax", "steps": "adagrad"}, traits=_only("axes")),
    },
}


def variants_of(algorithm: str) -> dict[str, Variant]:
    """The variants of an algorithm, by name."""
    return VARIANTS.get(algorithm, {})


def traits_of(algorithm: str, variant: str = "") -> frozenset[str]:
    """The traits of an algorithm, or of one of its variants."""
    own = VARIANTS[algorithm][variant].traits if variant else None
    if own is not None:
        return own
    mixture = _only() if load(algorithm).CARD.linear else _only("mixture")
    return OF_ALGORITHM.get(algorithm, _only()) | mixture
