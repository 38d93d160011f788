"""The learner, and its parts: engine, decisions, traces, model file."""

from gaptron.learner.learner import DEFAULT as DEFAULT
from gaptron.learner.learner import Learner as Learner
