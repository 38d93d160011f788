"""Measure the online encoder: its error compared with the same data prepared in hindsight, and with other libraries.

    python benchmarks/tables.py numbers [--rounds 5000] [--seeds 2]     dense sets of GAPTRON_DATA, raw
    python benchmarks/tables.py tables [--rounds 5000] FOLDER           CSV files with words and missing values

`numbers`: the same examples as raw numbers with features="auto"; standardized in hindsight, with a constant and of unit
norm; and raw with unit norm. `tables`: the table with named columns; one-hot encoded and standardized in hindsight;
scikit-learn's ColumnTransformer (in hindsight) + SGDClassifier; River's pipeline. Every learner makes one pass; errors
are in percent.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("numbers", "tables"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "numbers":
        numbers(arguments.rounds, arguments.seeds)
    else:
        tables(arguments.folder, arguments.rounds)


if __name__ == "__main__":
    main()
