"""A learner's random generator.

Data made by `np.random.default_rng(0)` and a learner with seed 0 would share their random numbers if the learner used
the same generator. The data would then depend on the draws: no theorem holds, and there are too few mistakes. A second
number, which users do not choose by accident, is therefore added to the seed.
"""

from typing import Any

import numpy as np

from gaptron.errors import SettingError

DRAWS = 0x6761_7074


def generator(seed: Any) -> np.random.Generator:
    """Return the generator of a seed; None takes a seed from the operating system."""
    if seed is None:
        return np.random.default_rng()
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise SettingError(f"seed={seed!r} must be a whole number of at least 0, or None")
    return np.random.default_rng([int(seed), DRAWS])
