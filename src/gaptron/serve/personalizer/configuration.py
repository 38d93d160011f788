"""The configuration of a model as Personalizer's service configuration, and changes to it."""

import re
from typing import Any

from gaptron.serve.model_state import Model
from gaptron.serve.personalizer.schemas import ServiceConfiguration
from gaptron.serve.problems import invalid
from gaptron.serve.schemas import MAX_TIMEOUT, MIN_TIMEOUT, ModelChange

DURATION = r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
SECONDS = (86_400.0, 3600.0, 60.0, 1.0)


def of_model(model: Model, keep_days: float | None) -> ServiceConfiguration:
    """Describe a model."""
    timeout = model.feedback_timeout
    return ServiceConfiguration(
        reward_wait_time=None if timeout is None else duration(timeout),
        default_reward=-1.0 if model.spec.reward_range == "-1..1" else 0.0,
        exploration_percentage=model.adapter.epsilon,
        log_retention_days=-1 if keep_days is None else int(keep_days),
        learning_mode="Online" if model.mode == "live" else "Apprentice",
    )


def change(body: dict[str, Any], now: ServiceConfiguration) -> ModelChange | None:
    """Return the change that Personalizer's configuration asks for; None if it asks for none.

    Fields that are not part of our configuration are ignored if they are null or false.
    """
    found = ModelChange()
    for name, value in body.items():
        shown = getattr(now, _FIELDS[name]) if name in _FIELDS else None
        if value == shown or (name not in _FIELDS and not value):
            continue
        if name == "rewardWaitTime":
            seconds = _seconds(value)
            if duration(seconds) != shown:
                found.feedback_timeout = seconds
        elif name == "learningMode" and value in ("Online", "Apprentice"):
            found.mode = "live" if value == "Online" else "shadow"
        elif name == "explorationPercentage" and type(value) in (float, int) and 0.0 <= value < 1.0:
            found.epsilon = float(value)
        else:
            wanted = f"{name} cannot be changed to {str(value)[:100]!r}"
            possible = "rewardWaitTime, explorationPercentage (0 to 1) and learningMode (Online, Apprentice)"
            raise invalid(f"{wanted}: only {possible} can be changed")
    return None if found == ModelChange() else found


_FIELDS = dict(zip(ServiceConfiguration.__struct_encode_fields__, ServiceConfiguration.__struct_fields__))


def duration(seconds: float) -> str:
    """Format seconds as an ISO 8601 duration."""
    return f"PT{seconds:.6f}".rstrip("0").rstrip(".") + "S"


def _seconds(value: Any) -> float:
    found = re.fullmatch(DURATION, value) if isinstance(value, str) else None
    seconds = sum(float(part or 0) * unit for part, unit in zip(found.groups(), SECONDS)) if found is not None else 0.0
    if not MIN_TIMEOUT <= seconds <= MAX_TIMEOUT:
        raise invalid(f"rewardWaitTime is {str(value)[:100]!r}: give a duration from PT5S to P7D")
    return seconds
