"""A model as bytes and back, so that a restart need not fold the whole log.

The container is that of model files: plain values under a checksum, nothing is ever run.
"""

from typing import Any

import msgspec

from gaptron import model_file
from gaptron.errors import ModelFileError
from gaptron.serve.entries import Created
from gaptron.serve.fold import Model, Waiting
from gaptron.serve.tally import Tally
from gaptron.serve.words import Default, Mode


class Kept(msgspec.Struct):
    """All of a model but its learner."""

    created: Created
    wait: float | None
    default: Default
    mode: Mode
    version: int
    seq: int
    width: int | None
    waiting: list[Waiting]
    tally: Tally
    forgotten: int = 0


def packed(model: Model, *, to_decide: bool = False) -> bytes:
    """A model as bytes. `to_decide`: only what decisions need, without those that wait and without its sums."""
    waiting = [] if to_decide else sorted(model.waiting.values(), key=lambda held: held.seq)
    kept = Kept(
        Created(model.spec, model.key),
        model.wait,
        model.default,
        model.mode,
        model.version,
        model.seq,
        model.adapter.width,
        waiting,
        Tally() if to_decide else model.tally,
        model.forgotten,
    )
    tree = {"model": msgspec.json.encode(kept).decode(), "learner": model.adapter.tree()}
    return model_file.packed(tree, f"snapshot of {model.name}")


def checksum(data: bytes) -> str:
    """Equal for models that go on in the same way."""
    return model_file.checksum(data, "snapshot")


def unpacked(data: bytes) -> Model:
    """The model in the bytes."""
    tree: Any = model_file.unpacked(data, "snapshot")
    try:
        kept = msgspec.json.decode(tree["model"], type=Kept)
        model = Model(kept.created)
        model.adapter.restore(tree["learner"])
        model.adapter.width = kept.width
        model.wait, model.default, model.mode = kept.wait, kept.default, kept.mode
        model.version, model.seq, model.tally = kept.version, kept.seq, kept.tally
        model.forgotten = kept.forgotten
        model.restore(kept.waiting)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        raise ModelFileError("snapshot", f"it holds no model of this version: {problem}") from None
    return model
