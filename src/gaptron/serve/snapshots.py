"""Snapshots: a model as bytes, so that a restart replays only the events after the newest one.

The container is that of model files: plain values under a checksum; reading one never runs code.
"""

from typing import Any

import msgspec

from gaptron.errors import ModelFileError
from gaptron.learner import model_file
from gaptron.serve import challengers
from gaptron.serve.challengers import Challenger, SavedChallenger
from gaptron.serve.events import Created
from gaptron.serve.model_state import Model, PendingDecision
from gaptron.serve.schemas import Mode, NewChallenger, OnTimeout
from gaptron.serve.tally import Tally


class State(msgspec.Struct):
    """Everything in a model except its learner."""

    created: Created
    feedback_timeout: float | None
    on_timeout: OnTimeout
    mode: Mode
    version: int
    seq: int
    width: int | None
    pending: list[PendingDecision]
    tally: Tally
    redacted_through: int = 0
    first_seq: int = 0
    created_at: int = 0
    last_decision_at: int | None = None
    retired: list[str] = []
    display_names: dict[str, str] = {}
    promoted: NewChallenger | None = None
    challengers: list[SavedChallenger] = []


def pack(model: Model, *, for_replica: bool = False) -> bytes:
    """Encode a model. A replica needs neither the pending decisions nor the counts nor the challengers.

    Raises:
        ModelFileError: the result cannot be decoded, because the learner's numbers are not finite.
    """
    kept = [] if for_replica else list(model.challengers.values())
    state = State(
        created=Created(model.spec, model.key),
        feedback_timeout=model.feedback_timeout,
        on_timeout=model.on_timeout,
        mode=model.mode,
        version=model.version,
        seq=model.seq,
        width=model.adapter.width,
        pending=[] if for_replica else sorted(model.pending.values(), key=lambda pending: pending.seq),
        tally=Tally() if for_replica else model.tally,
        redacted_through=model.redacted_through,
        first_seq=model.first_seq,
        created_at=model.created_at,
        last_decision_at=model.last_decision_at,
        retired=model.retired,
        display_names=model.display_names,
        promoted=model.promoted,
        challengers=[one.saved() for one in kept],
    )
    tree = {"model": msgspec.json.encode(state).decode(), "learner": model.adapter.tree()}
    if kept:
        tree["challengers"] = {one.name: one.tree() for one in kept}
    data = model_file.packed(tree, f"snapshot of {model.name}")
    unpack(data)  # nothing else shows that it can be read, and a snapshot that cannot be read is worth nothing
    return data


def broken_challengers(model: Model) -> dict[str, str]:
    """The challengers that could not be decoded from a snapshot, because their numbers are not finite, and why."""
    broken: dict[str, str] = {}
    for one in model.challengers.values():
        try:
            _restored(one.saved(), model, one.tree())
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            broken[one.name] = str(problem)
    return broken


def _restored(saved: SavedChallenger, model: Model, tree: Any) -> Challenger:
    return challengers.restored(saved, model.spec_of(saved.spec), tree)


def checksum(data: bytes) -> str:
    """Equal for models in the same state."""
    return model_file.checksum(data, "snapshot")


def unpack(data: bytes) -> Model:
    """Decode a model."""
    tree: Any = model_file.unpacked(data, "snapshot")
    try:
        state = msgspec.json.decode(tree["model"], type=State)
        model = Model(state.created)
        model.restore_promoted(state.promoted)
        model.adapter.restore(tree["learner"])
        model.adapter.width = state.width
        model.feedback_timeout, model.on_timeout, model.mode = state.feedback_timeout, state.on_timeout, state.mode
        model.version, model.seq, model.tally = state.version, state.seq, state.tally
        model.redacted_through = state.redacted_through
        model.first_seq, model.created_at = state.first_seq, state.created_at
        model.last_decision_at = state.last_decision_at
        model.retired, model.display_names = state.retired, state.display_names
        for saved in state.challengers:
            model.challengers[saved.name] = _restored(saved, model, tree["challengers"][saved.name])
        model.restore_pending(state.pending)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise ModelFileError("snapshot", f"not a model of this version: {problem}") from None
    return model
