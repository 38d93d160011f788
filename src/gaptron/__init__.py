"""Online multiclass classification with guarantees you can see."""

from gaptron.abstention import ABSTAIN, Abstainer, experts_from
from gaptron.errors import DecisionError, GaptronError, InputError, NoBoundError, SettingError, StreamError
from gaptron.learner import Bound, Decision, Learner
from gaptron.trace import Curve, Trace
from gaptron.types import Certificate

__all__ = [
    "ABSTAIN",
    "Abstainer",
    "Bound",
    "Certificate",
    "Curve",
    "Decision",
    "DecisionError",
    "GaptronError",
    "InputError",
    "Learner",
    "NoBoundError",
    "SettingError",
    "StreamError",
    "Trace",
    "experts_from",
]
__version__ = "0.1.0"
