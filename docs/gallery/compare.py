"""Compare algorithms on your own data

Compare three algorithms on a CSV file with five seeds. Every algorithm plays the same examples in the same order with
the same draws, so differences are taken seed by seed. From a terminal: `gaptron compare mine.csv -a
advised-gaptron,squarecb,banditron --feedback bandit`.

**Result:** read the intervals, not only the means. A difference whose interval excludes zero is unlikely to be
an effect of the seeds. `squarecb` is close here, without a proven bound. Plans and grids:
[compare](../how-to/compare.md).
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot

from gaptron.experiments.backends import serial
from gaptron.experiments.compare import compare
from gaptron.experiments.plan_file import parse
from gaptron.experiments.summary import summarize

# %% Write a table: four kinds of trees, six measurements.
rng = np.random.default_rng(1)
kinds = rng.choice(["ash", "elm", "oak", "yew"], 2000)
means = {kind: rng.normal(size=6) for kind in sorted(set(kinds))}
rows = [[*np.round(means[kind] + rng.normal(size=6), 3), kind] for kind in kinds]
Path("mine.csv").write_text("\n".join(",".join(map(str, row)) for row in [[*"abcdef", "tree"], *rows]))

# %% Play the plan. Every run is kept in the folder, and a second call would only read it.
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
(summary,) = summarize(compare(plan, Path("results"), serial))
(stream,) = summary.streams

# %% Print the ranking and draw the mistakes.
pyplot.style.use("tableau-colorblind10")
figure, axes = pyplot.subplots(figsize=(7, 3.4), layout="constrained")
for standing, style in zip(summary.ranking, ["-", "--", ":"]):
    runs = summary.runs[standing.variant, stream].values()
    error, behind = summary.error(standing.variant, stream), standing.behind
    print(f"{summary.names[standing.variant]:15} {error.mean:.1%} ± {error.half_width:.1%}", end="  ")
    print(f"behind the first by {behind.mean:.1%} ± {behind.half_width:.1%}" if behind.mean else "first")
    mean = np.mean([run.curve["mistakes"] for run in runs], axis=0)
    axes.plot(next(iter(runs)).curve["rounds"], mean, style, label=summary.names[standing.variant])
axes.set(xlabel="rounds", ylabel="mistakes so far, mean of 5 seeds")
axes.legend()
figure.savefig("compare.png", dpi=150)
