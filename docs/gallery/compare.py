"""Compare algorithms on your own data

A CSV file of yours, three algorithms, five seeds: every algorithm sees the same rows in the same order with the same
draws, so that differences are taken seed by seed. The same from a terminal: `gaptron compare mine.csv -a
advised-gaptron,squarecb,banditron --feedback bandit`.

**Look at** the intervals, not only at the means: a difference whose interval leaves zero out is more than the luck of
five seeds. `squarecb` comes close here, and without a proof. Plans, grids and what is fair: [compare](../compare.md).
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot

from gaptron.experiments.compare import compare
from gaptron.experiments.engines import serial
from gaptron.experiments.plan_file import parse
from gaptron.experiments.summary import fields

rng = np.random.default_rng(1)
kinds = rng.choice(["ash", "elm", "oak", "yew"], 2000)
means = {kind: rng.normal(size=6) for kind in sorted(set(kinds))}
rows = [[*np.round(means[kind] + rng.normal(size=6), 3), kind] for kind in kinds]
Path("mine.csv").write_text("\n".join(",".join(map(str, row)) for row in [[*"abcdef", "tree"], *rows]))

plan = parse(
    """
    algorithms = ["advised-gaptron", "squarecb", "banditron"]
    feedback = ["bandit"]
    seeds = 5
    grids = false
    streams = [{ data = "mine.csv", label = "tree", constant = true, unit_norm = true }]
    """,
    "my plan",
)
(field,) = fields(compare(plan, Path("results"), serial))
(stream,) = field.arenas

pyplot.style.use("tableau-colorblind10")
figure, axes = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
for standing, style in zip(field.ranking, ["-", "--", ":"]):
    runs = field.runs[standing.variant, stream].values()
    error, behind = field.error(standing.variant, stream), standing.behind
    print(f"{field.names[standing.variant]:15} {error.mean:.1%} ± {error.half:.1%}", end="  ")
    print(f"behind the first by {behind.mean:.1%} ± {behind.half:.1%}" if behind.mean else "first")
    mean = np.mean([run.curve["mistakes"] for run in runs], axis=0)
    axes.plot(next(iter(runs)).curve["rounds"], mean, style, label=field.names[standing.variant])
axes.set(xlabel="rounds", ylabel="mistakes so far, mean of 5 seeds")
axes.legend()
figure.savefig("compare.png", dpi=150)
