"""Online multiclass classification with guarantees you can see."""

from gaptron.errors import (
    DecisionError,
    GaptronError,
    InputError,
    ModelFileError,
    NoBoundError,
    SettingError,
    StreamError,
)
from gaptron.learner import Bound, Decision, Learner
from gaptron.trace import Curve, Trace
from gaptron.types import Certificate

__all__ = [
    "Bound",
    "Certificate",
    "Curve",
    "Decision",
    "DecisionError",
    "GaptronError",
    "InputError",
    "Learner",
    "ModelFileError",
    "NoBoundError",
    "SettingError",
    "StreamError",
    "Trace",
]
__version__ = "0.1.0"
