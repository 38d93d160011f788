"""What challengers cost: µs for a decision and its outcome, without a store, with 0, 1, 2 and 5 challengers."""

import time

import numpy as np

from gaptron.serve.events import ChallengerAdded, Created, Event, OutcomeRecorded
from gaptron.serve.model_state import Model
from gaptron.serve.schemas import DecisionRequest, NewChallenger, NewModel, Outcome

LABELS, FEATURES, WARM, ROUNDS = 10, 20, 500, 5000


def microseconds(algorithm: str, challengers: int) -> float:
    """Return the mean time of a decision and its outcome."""
    labels = [f"label-{k}" for k in range(LABELS)]
    model = Model(Created(NewModel(name="m", labels=labels, features=FEATURES, algorithm=algorithm), "0f" * 32))
    seq = 0
    for number in range(challengers):
        seq += 1
        added = ChallengerAdded(f"c{number}", NewChallenger(algorithm=algorithm, seed=number + 1))
        model.apply(Event(seq, "m", None, seq, added))
    rng = np.random.default_rng(0)
    start = 0.0
    for t in range(WARM + ROUNDS):
        if t == WARM:
            start = time.perf_counter()
        x = rng.standard_normal(FEATURES)
        decided = Event(seq + 1, "m", f"e{t}", seq + 1, model.decide(DecisionRequest(x=tuple(x.tolist())), f"e{t}", 0))
        model.apply(decided, check=False)
        outcome = Outcome(correct=decided.body.label == labels[int(x[0] > 0)])
        seq += 2
        model.apply(Event(seq, "m", f"e{t}", seq, OutcomeRecorded(outcome)), decided, check=False)
    return 1e6 * (time.perf_counter() - start) / ROUNDS


if __name__ == "__main__":
    for algorithm in ("advised-gaptron", "frugal-gaptron"):
        print(algorithm, *(f"{n}: {microseconds(algorithm, n):.0f} µs" for n in (0, 1, 2, 5)), sep="  ")
