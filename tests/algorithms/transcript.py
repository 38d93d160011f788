"""What every case does on 60 rounds, as plain lists: run with the compiler and without, the two must agree."""

from typing import Any

import numba

from tests.algorithms.laws import cases
from tests.conftest import KINDS


def transcript() -> dict[str, Any]:
    book: dict[str, Any] = {"compiled": not numba.config.DISABLE_JIT}
    for case in cases():
        X, y, K = case.stream(120, seed=21)
        X, y = X[:60], y[:60]
        for kind in ("dense64", "csr"):
            learner = case.learner(K)
            trace = learner.play(KINDS[kind](X), y)
            book[f"{case}-{kind}"] = {
                "labels": trace.codes.tolist(),
                "top": trace.top.tolist(),
                "propensities": trace.truth_probability.tolist(),
                "weights": learner.weights.tolist(),
            }
    return book
