"""Off-policy evaluation: estimate the mistakes of a policy from decisions that another policy made and logged."""

from gaptron.offpolicy.action_decision_log import ActionDecisionLog
from gaptron.offpolicy.action_log import ActionLog
from gaptron.offpolicy.comparison_with_rule import max_excess_mistakes
from gaptron.offpolicy.decision_log import DecisionLog
from gaptron.offpolicy.estimates import Estimate
from gaptron.offpolicy.evaluate import evaluate_frozen, evaluate_learning, evaluate_policy, evaluate_uniform, replay
from gaptron.offpolicy.files import LOG_FORMATS, open_log, save_log
from gaptron.offpolicy.log import Log
from gaptron.offpolicy.obp import from_obp, to_obp
from gaptron.offpolicy.observed import observe
from gaptron.offpolicy.result import OffPolicyEstimate
from gaptron.offpolicy.simulate import record
from gaptron.streams.json_lines import DamagedLogWarning

__all__ = [
    "LOG_FORMATS",
    "ActionDecisionLog",
    "ActionLog",
    "DamagedLogWarning",
    "DecisionLog",
    "Estimate",
    "Log",
    "OffPolicyEstimate",
    "evaluate_frozen",
    "evaluate_learning",
    "evaluate_policy",
    "evaluate_uniform",
    "from_obp",
    "max_excess_mistakes",
    "observe",
    "open_log",
    "record",
    "replay",
    "save_log",
    "to_obp",
]
