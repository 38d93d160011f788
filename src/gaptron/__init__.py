"""Online multiclass classification with guarantees you can see."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from gaptron.abstention import ABSTAIN, Abstainer, experts_from
from gaptron.bounds import Bound
from gaptron.decision import Decision
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
from gaptron.features import Features
from gaptron.learner import Learner
from gaptron.trace import Curve, Tally, Trace
from gaptron.types import Certificate, Count, Observed, Proof, Rounding
from gaptron.version import __version__ as __version__

if _TYPE_CHECKING:
    from gaptron.adapters.estimator import OnlineClassifier

__all__ = [
    "ABSTAIN",
    "Abstainer",
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
    "Rounding",
    "SettingError",
    "StreamError",
    "Tally",
    "Trace",
    "experts_from",
]


def __getattr__(name: str) -> object:
    """scikit-learn is slow to import, so it is left asleep until its estimator is asked for."""
    if name != "OnlineClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gaptron.adapters.estimator import OnlineClassifier  # noqa: PLC0415

    return OnlineClassifier


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
