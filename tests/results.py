"""Results made by hand: what the tests of the summary and of the report begin from."""

from typing import Any

from gaptron.experiments.task import FAILED, GRID, OK, PUBLISHED, Result

CURVE = (10, 20, 50, 100, 200, 500, 1000)


def result(algorithm: str, stream: str = "s", seed: int = 0, rate: float = 0.1, **changes: Any) -> Result:
    """A run of 1000 rounds that errs at a rate; its expected mistakes are half a mistake more."""
    mistakes = round(1000 * rate)
    said = {
        "key": f"{algorithm} {stream} {seed} {sorted(changes.items(), key=str)}",
        "status": OK,
        "stream": stream,
        "algorithm": algorithm,
        "feedback": "bandit",
        "loss": "logistic",
        "seed": seed,
        "version": "0.1.0+feed",
        "data": f"hash of {stream}",
        "rounds": 1000,
        "n_classes": 4,
        "n_features": 7,
        "mistakes": mistakes,
        "expected_mistakes": mistakes + 0.5,
        "top_mistakes": mistakes // 2,
        "curve": {
            "rounds": [float(t) for t in CURVE],
            "mistakes": [mistakes * (t / 1000) ** 0.5 for t in CURVE],
            "expected": [(mistakes + 0.5) * t / 1000 for t in CURVE],
        },
        "seconds": 0.002,
        "observed": {"least_loss": 12.5, "radius": 20.0},
    }
    return Result(**{**said, **changes})


def grid(algorithm: str, value: float, parameter: str = "gamma", **changes: Any) -> Result:
    """A run of a grid."""
    return result(algorithm, role=GRID, tuned=parameter, settings={parameter: value}, **changes)


def failure(algorithm: str, **changes: Any) -> Result:
    """A run that failed: no results."""
    nothing = dict.fromkeys(("mistakes", "expected_mistakes", "top_mistakes", "curve", "seconds"))
    error = {"type": "MemoryError", "message": "no memory for W", "traceback": "Traceback"}
    return result(algorithm, status=FAILED, error=error, **nothing, **changes)


def many(
    streams: list[str], algorithms: list[str], seeds: int, tuned: tuple[str, ...] = (), **rest: Any
) -> list[Result]:
    """Everybody everywhere, each a little worse than the one before; bandit feedback unless the rest says otherwise."""
    found = []
    for s, stream in enumerate(streams):
        for a, name in enumerate(algorithms):
            for seed in range(seeds):
                rate = 0.05 + 0.01 * s + 0.02 * a + 0.001 * ((seed * (a + 1)) % 3)
                bound = {"value": 1000 * rate * (3 if a % 2 else 30), "theorem": "Theorem 1", "regret": 1.0}
                place = {"stream": stream, "seed": seed, **rest}
                kept = {"role": PUBLISHED, "bound": bound, "used": {"gamma": 0.03}}
                found.append(result(name, rate=rate, **place, **kept))
                if name in tuned:
                    found += [grid(name, g, rate=rate * (0.9 + 3 * abs(g - 0.1)), **place) for g in (0.01, 0.1, 0.5)]
    return found
