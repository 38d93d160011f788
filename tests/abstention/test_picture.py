"""What the picture of the docs claims."""

import pytest

from gaptron.report.abstention import council, rates


def test_silence_pays_below_a_half_and_adahedge_does_not_look_at_the_price():
    models = council()
    cheap, dear, coin = (rates(models, "adahedge", cost) for cost in (0.05, 0.45, 0.55))
    assert cheap == dear
    assert cheap.wrong_if_answered < 0.6 * models.errors.min()
    assert dear.loss(0.45) < models.errors.min()
    assert coin.silent < 0.5 * cheap.silent
    # Neu and Zhivotovskiy's smaller step trusts later, so it keeps silent more.
    hedged = rates(models, "exponential-weights", 0.45)
    assert hedged.silent > 1.3 * dear.silent
    assert hedged.wrong_if_answered == pytest.approx(dear.wrong_if_answered, abs=0.01)
