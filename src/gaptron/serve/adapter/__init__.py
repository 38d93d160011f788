"""The learner as the service uses it: decide and learn. Only this package uses the library's learner.

Deciding changes nothing. Learning takes a decision from the log: the example, or the round of actions, is scored with
the current weights, only what was played and its propensity are those of the draw. Nothing of the learner is stored for
a pending decision.
"""

from gaptron.serve.adapter.actions import ActionAdapter
from gaptron.serve.adapter.base import Adapter, Draw, NotFiniteError, is_correct
from gaptron.serve.adapter.labels import LabelAdapter
from gaptron.serve.schemas import MAX_FEATURES, NewModel

__all__ = ["Adapter", "Draw", "NotFiniteError", "adapter_of", "is_correct", "try_out"]


def adapter_of(spec: NewModel) -> Adapter:
    """Return a new learner of a model's specification."""
    return ActionAdapter(spec) if spec.actions else LabelAdapter(spec)


def try_out(spec: NewModel, *, sparse: bool = False) -> None:
    """Compile what a learner of this kind needs to decide and learn, and refuse what cannot work."""
    adapter = adapter_of(spec)
    adapter.learner.warm_up(sparse=sparse or (adapter.width or 0) > MAX_FEATURES, play=False)
