"""Decisions that were logged, and what they say of learners that did not make them."""

from gaptron.logged.against import most_more
from gaptron.logged.decision_log import DecisionLog
from gaptron.logged.estimates import Estimate
from gaptron.logged.files import LOG_FORMATS, open_log, save_log
from gaptron.logged.judge import Verdict, judge, judge_policy, replay, teach
from gaptron.logged.lines import DamagedLogWarning
from gaptron.logged.log import Log
from gaptron.logged.obp import from_obp, to_obp
from gaptron.logged.observed import observe
from gaptron.logged.simulate import record

__all__ = [
    "LOG_FORMATS",
    "DamagedLogWarning",
    "DecisionLog",
    "Estimate",
    "Log",
    "Verdict",
    "from_obp",
    "judge",
    "judge_policy",
    "most_more",
    "observe",
    "open_log",
    "record",
    "replay",
    "save_log",
    "teach",
    "to_obp",
]
