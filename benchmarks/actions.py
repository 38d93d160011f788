"""Compare learners on worlds of actions with features, as a share of the best expected reward over the whole run.

Vowpal Wabbit gets the same words and numbers as text, `shared |C ...` and `|A ... id`, with `-q CA`, and the same
rewards. MovieLens is read from a wheel of recbole 1.2.1, which contains ml-100k: a round is a user and ten films that
the user rated, and a film with the best rating earns 1.

    python benchmarks/actions.py --worlds news,ids --seeds 3 --learners advised-gaptron,squarecb
    python benchmarks/actions.py --vw --movielens recbole-1.2.1-py3-none-any.whl        (pip install vowpalwabbit)
    python benchmarks/actions.py --worlds choice --rounds 200000                         (certified rounds occur)

Every result is a line of JSON; `--results FILE` appends to a file and skips what it has, `--table FILE` prints a table.
"""

import argparse
import json
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gaptron import Learner
from gaptron.streams.action_worlds import WORLDS, ActionStream, Features, WorldRound, action_world, encoded, tokens

SEVEN = ("news", "cold", "prices", "taste", "ids", "choice", "movielens")
OURS: dict[str, dict[str, Any]] = {
    "advised-gaptron": {},
    "squarecb": {},
    "squarecb logistic c=1000": {"algorithm": "squarecb", "oracle": "logistic", "c": 1000.0},
    "epsilon-greedy": {},
    "frugal-gaptron": {},
}
# Setting → arguments, and the cost of a reward: 1 - r, or -r.
VW = {
    "squarecb": ("--squarecb", 1.0),
    "squarecb gamma_scale 1000": ("--squarecb --gamma_scale 1000", 1.0),
    "squarecb gamma_scale 1000, costs -1..0": ("--squarecb --gamma_scale 1000", 0.0),
    "regcbopt mellowness .01": ("--regcbopt --mellowness 0.01", 1.0),
    "regcbopt mellowness .001": ("--regcbopt --mellowness 0.001", 1.0),
    "epsilon .05": ("--epsilon 0.05", 1.0),
    "epsilon .01 -l 2": ("--epsilon 0.01 -l 2", 1.0),
    "bag 5": ("--bag 5", 1.0),
}


def play_ours(name: str, stream: ActionStream, seed: int) -> tuple[float, dict[str, float]]:
    """The share of the best, and the mean of the learner's notes."""
    learner = Learner(**{"algorithm": name, **OURS[name]}, actions=True, feedback="bandit", seed=seed)
    trace = learner.play(stream.rounds, rewards=stream.rewards)
    return stream.share(trace.labels), dict(zip(trace.note_names, trace.notes.mean(axis=0).round(4).tolist()))


def play_linucb(stream: ActionStream, alpha: float = 0.3) -> float:
    """LinUCB with shared weights and a diagonal precision."""
    rounds, d = stream.rounds, stream.rounds.width
    b, A, played = np.zeros(d), np.ones(d), []
    X = rounds.as_matrix()
    for t, start in enumerate(rounds.first[:-1]):
        Phi = X[start : rounds.first[t + 1]]
        at = int((Phi @ (b / A) + alpha * np.sqrt(Phi.multiply(Phi) @ (1.0 / A))).argmax())
        a, z = X.indptr[start + at], X.indptr[start + at + 1]
        i, v = X.indices[a:z], X.data[a:z]
        A[i] += v * v
        b[i] += stream.rewards[start + at] * v
        played.append(at)
    return stream.share(played)


def play_vw(name: str, stream: ActionStream, seed: int) -> float:
    """The share of the best of one setting of Vowpal Wabbit."""
    from vowpalwabbit import Workspace  # noqa: PLC0415  (extra `bench`)

    arguments, base = VW[name]
    vw = Workspace(f"--cb_explore_adf {arguments} -q CA --quiet --random_seed {seed} -b 20")
    rng, played = np.random.default_rng(seed), []
    for t, start in enumerate(stream.rounds.first[:-1]):
        lines = vw_lines(stream.contexts[t], stream.actions[t])
        p = np.array(vw.predict(lines))
        at = min(int(np.searchsorted(np.cumsum(p) / p.sum(), rng.random())), len(p) - 1)
        lines[1 + at] = f"0:{base - stream.rewards[start + at]:g}:{p[at] / p.sum():.6g} {lines[1 + at]}"
        vw.learn(lines)
        played.append(at)
    vw.finish()
    return stream.share(played)


def vw_lines(context: Features, actions: list[tuple[str, Features]]) -> list[str]:
    """One round as Vowpal Wabbit reads it."""

    def text(features: Features) -> str:
        return " ".join(f"{token}:{value:g}" if value != 1.0 else token for token, value in tokens(features))

    return [f"shared |C {text(context)}", *(f"|A {text(features)} {name}" for name, features in actions)]


def movielens(wheel: Path, n_rounds: int, seed: int) -> Iterator[WorldRound]:
    """Users in the order of time, each with ten films that the user rated."""

    def table(kind: str) -> list[list[str]]:
        text = files.read(f"recbole/dataset_example/ml-100k/ml-100k.{kind}").decode()
        return [line.split("\t") for line in text.strip().split("\n")[1:]]

    rng, shown, rated = np.random.default_rng(seed), 10, defaultdict(list)
    with zipfile.ZipFile(wheel) as files:
        users: dict[str, Features] = {
            user: {"age": str(int(age) // 10), "sex": sex, "job": job} for user, age, sex, job, *_ in table("user")
        }
        films: dict[str, Features] = {}
        for film, _, year, genres in table("item"):
            films[film] = {"decade": year[:3], **{f"is_{genre}": "yes" for genre in genres.split()}}
        ratings = sorted((float(at), user, film, float(rating)) for user, film, rating, at in table("inter"))
    for _, user, film, rating in ratings:
        rated[user].append((film, rating))
    able = [user for _, user, _, _ in ratings if len(rated[user]) >= shown]
    for at in np.sort(rng.choice(len(able), n_rounds, replace=n_rounds > len(able))):
        own = rated[able[at]]
        pick = rng.permutation(len(own))[:shown]
        rewards = np.array([float(own[i][1] >= 5.0) for i in pick])
        yield WorldRound(users[able[at]], [(f"film-{own[i][0]}", films[own[i][0]]) for i in pick], rewards, rewards)


def stream_of(world: str, seed: int, options: Any) -> ActionStream:
    if world != "movielens":
        return action_world(world, options.rounds, seed)
    return encoded(world, movielens(options.movielens, options.rounds, seed))


def measure(options: Any) -> None:
    results = Path(options.results) if options.results else None
    done = set()
    if results is not None and results.exists():
        lines = map(json.loads, results.read_text().splitlines())
        done = {(line["world"], line["seed"], line["rounds"], line["learner"]) for line in lines}
    learners = [*OURS, "linucb"] if options.learners is None else options.learners.split(",")
    learners = [*learners, *(f"vw {name}" for name in VW if options.vw)]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for world in options.worlds.split(","):
            wanted = [name for name in learners if (world, seed, options.rounds, name) not in done]
            if not wanted or (world == "movielens" and options.movielens is None):
                continue
            stream = stream_of(world, seed, options)
            for name in wanted:
                start, notes = time.process_time(), {}
                if name.startswith("vw "):
                    share = play_vw(name[3:], stream, seed)
                elif name == "linucb":
                    share = play_linucb(stream)
                else:
                    share, notes = play_ours(name, stream, seed)
                row = {
                    "world": world,
                    "seed": seed,
                    "rounds": options.rounds,
                    "learner": name,
                    "share": round(share, 4),
                }
                row |= {"share": round(share, 4), "seconds": round(time.process_time() - start, 2), "notes": notes}
                print(json.dumps(row), flush=True)
                if results is not None:
                    with results.open("a") as file:
                        file.write(json.dumps(row) + "\n")


def print_table(path: str) -> None:
    """The mean share of every learner in every world, and over the seven worlds."""
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in map(json.loads, Path(path).read_text().splitlines()):
        shares[row["learner"]][row["world"]].append(row["share"])
    worlds = [*SEVEN, *sorted({world for one in shares.values() for world in one} - set(SEVEN))]
    print("| |", " | ".join(worlds), "| mean of the seven |")
    print("|---" * (len(worlds) + 2) + "|")
    means = {name: {world: float(np.mean(s)) for world, s in one.items()} for name, one in shares.items()}

    def overall(name: str) -> float:
        return float(np.mean([means[name].get(world, np.nan) for world in SEVEN]))

    for name in sorted(means, key=lambda name: -np.nan_to_num(overall(name))):
        cells = [f"{means[name][world]:.3f}" if world in means[name] else "" for world in worlds]
        print(f"| {name} |", " | ".join(cells), f"| {overall(name):.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default=",".join([*WORLDS, "movielens"]))
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--learners", help="those of this library; default: all")
    parser.add_argument("--vw", action="store_true", help="also Vowpal Wabbit")
    parser.add_argument("--movielens", type=Path, metavar="WHEEL")
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--table", metavar="FILE")
    options = parser.parse_args()
    if options.table:
        print_table(options.table)
    else:
        measure(options)


if __name__ == "__main__":
    main()
