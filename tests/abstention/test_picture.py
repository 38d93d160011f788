"""What the picture of the docs claims."""

import pytest

from gaptron.report.abstention import fit_experts, rates


def test_abstaining_pays_below_a_half_and_adahedge_ignores_the_cost():
    models = fit_experts()
    cheap, expensive, coin = (rates(models, "adahedge", cost) for cost in (0.05, 0.45, 0.55))
    assert cheap == expensive
    assert cheap.wrong_if_predicted < 0.6 * models.errors.min()
    assert expensive.loss(0.45) < models.errors.min()
    assert coin.abstained < 0.5 * cheap.abstained
    # Neu and Zhivotovskiy's smaller step trusts later, so it abstains more.
    hedged = rates(models, "exponential-weights", 0.45)
    assert hedged.abstained > 1.3 * expensive.abstained
    assert hedged.wrong_if_predicted == pytest.approx(expensive.wrong_if_predicted, abs=0.01)
