"""A stream larger than memory

A file is written and played in chunks of 500 examples, so no more than these are in memory. At the end of Monday the
learner is saved; on Tuesday it is loaded and continues with identical results, to the last bit.

**Result:** the error rate continues on Tuesday where it stopped on Monday. A `Tally` keeps the sums, so memory does not
grow with the stream.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot

from gaptron import Learner, Tally
from gaptron.streams import open_stream, prepare

# %% Write two files of 4,000 lines.
rng = np.random.default_rng(1)
centres = rng.normal(size=(10, 40))
for day in ("monday.csv", "tuesday.csv"):
    with open(day, "w") as file:
        for _ in range(8):  # eight chunks of 500 lines
            kinds = rng.integers(10, size=500)
            rows = centres[kinds] + 2.5 * rng.normal(size=(500, 40))
            file.writelines(",".join([*(f"{x:.4f}" for x in row), f"kind{k}\n"]) for row, k in zip(rows, kinds))
    print(f"{day}: {Path(day).stat().st_size / 1e6:.2f} MB")

# %% Play both in chunks, with the model saved in between.
learner, tally, largest, rounds, rates = None, Tally(), 0, [], []
for day in ("monday.csv", "tuesday.csv"):
    chunks = prepare(open_stream(day, chunk=500), unit_norm=True)
    learner = Learner.load("night.gaptron") if learner else Learner(n_classes=chunks.n_classes, seed=0)
    for X, y in chunks:
        trace = learner.play(X, y)
        tally.add(trace)
        largest = max(largest, X.nbytes)
        rounds.append(tally.rounds)
        rates.append(trace.expected_mistakes / trace.rounds)
    print(f"{day}: {tally.mistakes} mistakes in {tally.rounds} rounds so far")
    learner.save("night.gaptron")
print(f"largest chunk in memory: {largest / 1e6:.2f} MB; model: {Path('night.gaptron').stat().st_size / 1e3:.0f} kB")

# %% Draw the error of each chunk.
figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(rounds, rates, "o-")
axes.axvline(4000, linestyle=":", color="black")
axes.text(4050, max(rates), "saved, loaded, continued", va="top")
axes.set(xlabel="rounds", ylabel="expected mistakes per round, by chunk", ylim=0)
figure.savefig("stream.png", dpi=150)
