"""A learner's own randomness.

Data made by `np.random.default_rng(0)` and a learner of seed 0 would share their numbers if the learner used the same
generator, and then the data foresee its draws: no theorem holds, and mistakes are too few. So a second number, which
nobody uses by accident, stands beside the seed.
"""

from typing import Any

import numpy as np

from gaptron.errors import SettingError

DRAWS = 0x6761_7074


def generator(seed: Any) -> np.random.Generator:
    """The draws of this seed; None takes a fresh one from the system."""
    if seed is None:
        return np.random.default_rng()
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise SettingError(f"seed={seed!r} must be a whole number of at least 0, or None")
    return np.random.default_rng([int(seed), DRAWS])
