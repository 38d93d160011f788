"""Measure the online encoder: its error compared with the same data prepared in hindsight, and with other libraries.

    python benchmarks/tables.py numbers [--rounds 5000] [--seeds 2]     dense sets of GAPTRON_DATA, raw
    python benchmarks/tables.py tables [--rounds 5000] FOLDER           CSV files with words and missing values
    python benchmarks/tables.py kernel [--rounds 5000] [--seeds 2] [--only NAME,NAME] FOLDER

`numbers`: the same examples as raw numbers with features="auto"; standardized in hindsight, with a constant and of unit
norm; and raw with unit norm. `tables`: the table with named columns; one-hot encoded and standardized in hindsight;
scikit-learn's ColumnTransformer (in hindsight) + SGDClassifier; River's pipeline. `kernel`: dense sets as raw numbers,
a generated table and those of the folder, shuffled, with features="auto", without and with the kernel expert, and
the change with its standard error. Every learner makes one pass; errors are in percent.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from river import compose, linear_model, preprocessing
from river import stats as river_stats
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gaptron import Features, Learner
from gaptron.streams import Stream, open_stream, prepare
from gaptron.streams.tables import open_table

DENSE = (
    "glass vowel libras yeast segment digits dna optdigits satimage usps pendigits letter avila texture "
    "shuttle gasdrift mfeat_factors sleep"
).split()
LABELS = {
    "VerbAgg": ("resp", ("r2",)),
    "Males": ("occupation", ()),
    "Hdma": ("deny", ()),
    "OFP": ("hlth", ()),
    "Bundesliga": ("HomeGoals", ("AwayGoals",)),
    "flchain": ("chapter", ()),
}
NAMED = "glass vowel segment satimage letter pendigits avila digits".split()  # dense sets for `kernel`
FEEDBACKS = ("full", "bandit")


def error(trace: Any) -> float:
    return 100.0 * float(trace.mistakes) / float(trace.rounds)


def numbers(rounds: int, seeds: int) -> None:
    print(
        f"{'set':<16}"
        + "".join(f"{name + ' ' + f[0]:>12}" for f in FEEDBACKS for name in ("auto", "hindsight", "unit"))
    )
    rows = []
    for name in DENSE:
        line = []
        for feedback in FEEDBACKS:
            for way in ("auto", "hindsight", "unit"):
                line.append(np.mean([_numbers(name, rounds, seed, feedback, way) for seed in range(seeds)]))
        rows.append(line)
        print(f"{name:<16}" + "".join(f"{value:>12.2f}" for value in line), flush=True)
    print(f"{'mean':<16}" + "".join(f"{value:>12.2f}" for value in np.mean(rows, axis=0)))


def _numbers(name: str, rounds: int, seed: int, feedback: str, way: str) -> float:
    stream = open_stream(name)
    if sparse.issparse(stream.X):
        stream = Stream.from_arrays(stream.X.toarray(), stream.y)
    ready = prepare(prepare(stream, shuffle=seed), limit=rounds)
    common = {"n_classes": ready.n_classes, "feedback": feedback, "seed": seed, "horizon": ready.n_rounds}
    if way == "auto":
        return error(Learner(features="auto", **common).play(ready.X, ready.y))
    extra = {"standardize": True, "constant": True} if way == "hindsight" else {"constant": True}
    return error(Learner(**common).play(prepare(ready, unit_norm=True, **extra)))


def tables(folder: Path, rounds: int) -> None:
    ways = ("auto", "auto bandit", "hindsight", "sklearn", "river", "majority")
    print(f"{'table':<12}" + "".join(f"{way:>14}" for way in ways))
    for name, (label, leaks) in LABELS.items():
        line = _table(folder / f"{name}.csv", label, leaks, rounds)
        print(f"{name:<12}" + "".join(f"{line[way]:>14.2f}" for way in ways), flush=True)


def _table(path: Path, label: str, leaks: tuple[str, ...], rounds: int) -> dict[str, float]:
    source = open_table(path, label=label, limit=rounds)
    table, y, *_ = source.whole
    found = {}
    for feedback in FEEDBACKS:
        learner = Learner(
            n_classes=source.n_classes,
            features=Features(dict.fromkeys(leaks, "ignore")),
            feedback=feedback,
            horizon=len(y),
            seed=0,
        )
        found["auto" if feedback == "full" else "auto bandit"] = error(learner.play(table, y))
    frame = pd.read_csv(path, nrows=rounds).drop(columns=[label, *leaks])
    frame = frame.drop(columns=[c for c in frame.columns if c.startswith("Unnamed")])
    words = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c])]
    plain = [c for c in frame.columns if c not in words]
    encode = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), plain),
            ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        ]
    )
    X = np.hstack([encode.fit_transform(frame), np.ones((len(frame), 1))])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    hindsight = Learner(n_classes=source.n_classes, horizon=len(y), seed=0)
    found["hindsight"] = error(hindsight.play(unit, y))
    found["sklearn"] = _one_pass(SGDClassifier(loss="log_loss", random_state=0), X, y)
    found["river"] = _river(frame, plain, words, y)
    found["majority"] = 100.0 * (1.0 - np.bincount(y).max() / len(y))
    return found


def _one_pass(model: Any, X: Any, y: Any) -> float:
    wrong, classes = 0, np.unique(y)
    for start in range(len(y)):
        part = slice(start, start + 1)
        wrong += start > 0 and int(model.predict(X[part])[0] != y[start])
        model.partial_fit(X[part], y[part], classes=classes)
    return 100.0 * wrong / len(y)


def _river(frame: Any, plain: list[str], words: list[str], y: Any) -> float:
    scale = compose.Select(*plain) | preprocessing.StatImputer(*((c, river_stats.Mean()) for c in plain))
    model = (
        (scale | preprocessing.StandardScaler()) + (compose.Select(*words) | preprocessing.OneHotEncoder())
    ) | linear_model.SoftmaxRegression()
    wrong = 0
    for x, label in zip(frame.to_dict("records"), y.tolist()):
        row = {k: (None if isinstance(v, float) and v != v else v) for k, v in x.items()}
        wrong += model.predict_one(row) != label
        model.learn_one(row, label)
    return 100.0 * wrong / len(y)


def kernel(folder: Path, rounds: int, seeds: int, only: list[str]) -> None:
    print("| stream |" + " without | with | change ± s.e. | worse in |" * 2 + "\n|---|" + "---:|" * 8)
    means = []
    for name in only or [*NAMED, "diamonds-like", *LABELS]:
        line = []
        for feedback in FEEDBACKS:
            found = np.array([_with_and_without(name, folder, rounds, seed, feedback) for seed in range(seeds)])
            change = found[:, 1] - found[:, 0]
            line += [*found.mean(axis=0), change.mean(), change.std(ddof=1) / seeds**0.5, (change > 0).sum()]
        means.append(line)
        print(f"| {name} |" + _cells(line[:5]) + _cells(line[5:]), flush=True)
    mean = np.mean(means, axis=0)
    print("| mean |" + "".join(f" {mean[i]:.2f} | {mean[i + 1]:.2f} | {mean[i + 2]:+.2f} | |" for i in (0, 5)))


def _cells(line: list[float]) -> str:
    return " {:.2f} | {:.2f} | {:+.2f} ± {:.2f} | {:.0f} |".format(*line)


def _with_and_without(name: str, folder: Path, rounds: int, seed: int, feedback: str) -> list[float]:
    X, y, n_classes, leaks = _shuffled(name, folder, rounds, seed)
    declared = Features(dict.fromkeys(leaks, "ignore")) if leaks else "auto"
    common: dict[str, Any] = {"n_classes": n_classes, "feedback": feedback, "seed": seed, "horizon": len(y)}
    return [error(Learner(features=declared, kernel=wanted, **common).play(X, y)) for wanted in (False, True)]


def _shuffled(name: str, folder: Path, rounds: int, seed: int) -> tuple[Any, Any, int, tuple[str, ...]]:
    """Return examples, codes of their labels, K and the columns that give the label away."""
    if name in LABELS:
        label, leaks = LABELS[name]
        frame = pd.read_csv(folder / f"{name}.csv").dropna(subset=[label]).sample(frac=1.0, random_state=seed)[:rounds]
        y = frame.pop(label).astype("category").cat.codes.to_numpy()
        return frame, y, int(y.max()) + 1, leaks
    if name == "diamonds-like":
        return *_offers(rounds, seed), 5, ()
    stream = prepare(prepare(open_stream(name), shuffle=seed), limit=rounds)
    return stream.X.toarray() if sparse.issparse(stream.X) else stream.X, stream.y, stream.n_classes, ()


def _offers(rounds: int, seed: int) -> tuple[Any, Any]:
    """Return offers of stones: five grades of the price, from very good to very high for weight, cut and colour."""
    rng = np.random.default_rng(seed)
    carat = np.exp(rng.normal(-0.4, 0.6, rounds))
    cut, colour = rng.integers(5, size=rounds), rng.integers(7, size=rounds)
    excess = rng.normal(0.0, 0.4, rounds)
    price = np.exp(7.8 + 1.7 * np.log(carat) + 0.08 * cut - 0.1 * colour + excess)
    cuts, colours = np.array("fair good fine premium ideal".split()), np.array(list("DEFGHIJ"))
    table = {"price": price.round(), "carat": carat.round(2), "cut": cuts[cut], "colour": colours[colour]}
    return pd.DataFrame(table), np.searchsorted([-0.34, -0.1, 0.1, 0.34], excess)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("numbers", "tables", "kernel"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", type=lambda names: names.split(","), default=[], help="streams of `kernel`")
    arguments = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    if arguments.what == "numbers":
        numbers(arguments.rounds, arguments.seeds)
    elif arguments.what == "kernel":
        kernel(arguments.folder, arguments.rounds, arguments.seeds, arguments.only)
    else:
        tables(arguments.folder, arguments.rounds)


if __name__ == "__main__":
    main()
