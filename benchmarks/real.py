"""Error of an algorithm on real streams with the same preparation: mean over seeds, in per cent.

Dense columns are standardized, then get a constant 1 and unit norm; sparse counts are transformed by log1p and scaled
to unit norm, then get a constant 0.1 and unit norm again; pixels of mnist are divided by 255. The seed shuffles.
Full information counts expected mistakes, bandit feedback counts mistakes. The data are read from the folder given by
--data (see its INDEX.md); synsep and synnonsep are generated.

    python benchmarks/real.py --data FOLDER [--algorithm frugal-gaptron] [--streams usps,letter] [--seeds 3]
"""

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from gaptron import Learner
from gaptron.algorithms import load
from gaptron.streams import Stream, prepare, synnonsep, synsep

LIMITS = {"mnist": 30_000, "covtype": 100_000, "kdd99_10pct": 50_000}
STREAMS = (
    "synsep synnonsep usps pendigits letter satimage shuttle mnist covtype isolet1 segment optdigits news20 "
    "reuters_r8 reuters_r52 kdd99_10pct"
).split()


def loader(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("load", folder / "load.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stream(name: str, seed: int, data: ModuleType) -> Stream:
    if name in ("synsep", "synnonsep"):
        return prepare({"synsep": synsep, "synnonsep": synnonsep}[name](100_000, seed), constant=True, unit_norm=True)
    X, y, meta = data.load(name)
    order = np.random.default_rng(seed).permutation(len(y))[: LIMITS.get(name)]
    made = Stream.from_arrays(X[order], y[order], name=name)
    if name == "mnist":
        made = Stream.from_arrays(made.X / 255.0, y[order], name=name)
    if meta["kind"] == "dense":
        return prepare(made, standardize=name != "mnist", constant=True, unit_norm=True)
    made = prepare(made, log1p=True, unit_norm=True)
    rows = sp.hstack([made.X, np.full((made.n_rounds, 1), 0.1)], format="csr")
    return prepare(Stream.from_arrays(rows, y[order], name=name), unit_norm=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--algorithm", default="frugal-gaptron")
    arguments.add_argument("--streams", default=",".join(STREAMS))
    arguments.add_argument("--radius", type=float, default=1.0, help="D, for algorithms that need it")
    arguments.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the algorithm"
    )
    arguments.add_argument("--seeds", type=int, default=3)
    options = arguments.parse_args()
    data = loader(options.data)
    card = load(options.algorithm).CARD
    pairs = (pair.split("=") for pair in options.set)
    settings: dict[str, Any] = {name: float(value) if value[0].isdigit() else value for name, value in pairs}
    columns = [(feedback.word, loss.word) for feedback in card.feedback for loss in card.losses]
    print(
        f"{options.algorithm}, {options.seeds} seeds\n{'stream':<14}"
        + "".join(f"{f + ' ' + x:>21}" for f, x in columns)
    )
    for name in options.streams.split(","):
        errors = np.zeros((options.seeds, len(columns)))
        for seed in range(options.seeds):
            made = stream(name, seed, data)
            for i, (feedback, loss) in enumerate(columns):
                learner = Learner(
                    options.algorithm,
                    n_classes=made.n_classes,
                    feedback=feedback,
                    loss=loss,
                    radius=options.radius,
                    horizon=made.n_rounds,
                    seed=seed,
                    **settings,
                )
                trace = learner.play(made.X, made.y)
                wrong = trace.expected_mistakes if feedback == "full" else trace.mistakes
                errors[seed, i] = 100 * wrong / trace.rounds
        mean, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1) if options.seeds > 1 else errors[0] * 0
        print(f"{name:<14}" + "".join(f"{m:>14.1f} ± {s:<4.1f}" for m, s in zip(mean, spread, strict=True)), flush=True)


if __name__ == "__main__":
    main()
