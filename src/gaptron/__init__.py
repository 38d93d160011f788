"""Online multiclass classification with guarantees that are computed as it learns."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from gaptron.abstention import ABSTAIN, Abstainer, experts_from
from gaptron.data.actions import ActionExamples
from gaptron.errors import (
    DecisionError,
    GaptronError,
    InputError,
    InUseError,
    ModelFileError,
    NoBoundError,
    OutlierWarning,
    SettingError,
    StreamError,
)
from gaptron.features import ActionRecords, Features
from gaptron.learner import Learner
from gaptron.learner.action_decision import ActionDecision
from gaptron.learner.action_trace import ActionTrace
from gaptron.learner.decision import Decision
from gaptron.learner.trace import Curve, Tally, Trace
from gaptron.theory.bounds import Bound
from gaptron.types import Certificate, Count, Observed, Proof
from gaptron.version import __version__ as __version__

if _TYPE_CHECKING:
    from gaptron.adapters.sklearn import OnlineClassifier

__all__ = [
    "ABSTAIN",
    "Abstainer",
    "ActionDecision",
    "ActionExamples",
    "ActionRecords",
    "ActionTrace",
    "Bound",
    "Certificate",
    "Count",
    "Curve",
    "Decision",
    "DecisionError",
    "Features",
    "GaptronError",
    "InUseError",
    "InputError",
    "Learner",
    "ModelFileError",
    "NoBoundError",
    "Observed",
    "OnlineClassifier",
    "OutlierWarning",
    "Proof",
    "SettingError",
    "StreamError",
    "Tally",
    "Trace",
    "experts_from",
]


def __getattr__(name: str) -> object:
    """Import `OnlineClassifier` at first use, because scikit-learn is slow to import."""
    if name != "OnlineClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gaptron.adapters.sklearn import OnlineClassifier  # noqa: PLC0415

    return OnlineClassifier


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
