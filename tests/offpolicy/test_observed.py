"""What the feedback in a log proves about linear rules."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from typer.testing import CliRunner

from gaptron import InputError
from gaptron.cli import app
from gaptron.cli.evaluate import _observed
from gaptron.offpolicy import Log, observe, observed, save_log
from tests.offpolicy.worlds import some_log


def parts(log, U):
    """The part of U's loss that the feedback reveals: on hits by softmax, on all rounds by the binary question."""
    X = log.X.toarray() if sp.issparse(log.X) else log.X
    Z, each, right = X @ U.T, np.arange(log.n_rounds), log.reward == 1.0
    hits = -log_softmax(Z, axis=1)[each, log.codes][right].sum() / np.log(2)
    z = np.where(right, 1.0, -1.0) * Z[each, log.codes]
    return hits, np.logaddexp(0.0, -z).sum() / np.log(2)


def check(said, log, rng):
    for size in (0.0, 0.1, 1.0, 5.0, 30.0):
        for _ in range(5):
            U = size * rng.normal(size=(log.n_classes, log.n_features))
            square = float((U**2).sum()) * said.norm**2
            for proofs, shown in zip((said.softmax, said.one_vs_all), parts(log, U)):
                assert all(proof.level <= shown + proof.price * square + 1e-9 for proof in proofs)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_it_holds_for_every_rule_and_is_tighter_than_one_pass(sparse, scale):
    log = some_log(300, sparse=sparse, seed=4)
    log = Log.from_arrays(log.X * scale, log.codes, log.reward, log.propensity, classes=range(3))
    said, quick = observe(log), observe(log, search=False)
    rng = np.random.default_rng(0)
    check(said, log, rng)
    check(quick, log, rng)
    assert said.mistakes == quick.mistakes == np.count_nonzero(log.reward == 0.0)
    assert said.norm == pytest.approx(quick.norm) and said.rounds == 300
    for radius in (1.0, 5.0, 20.0):
        assert said.least_loss(radius) >= quick.least_loss(radius) - 1e-6
        assert said.cost(radius / said.norm) <= quick.cost(radius / said.norm) + 1e-6


def test_a_search_that_stops_at_once_costs_tightness_and_never_truth(monkeypatch):
    log = some_log(200, seed=1)
    best = observe(log)
    monkeypatch.setattr(observed, "STEPS", 2)
    hasty = observe(log)
    check(hasty, log, np.random.default_rng(1))
    for early, late in zip(hasty.softmax + hasty.one_vs_all, best.softmax + best.one_vs_all):
        assert early.level <= late.level + 1e-3  # `late` itself is within this of the minimum
    assert any(early.level < late.level - 0.01 for early, late in zip(hasty.softmax, best.softmax))


@pytest.mark.parametrize("price", [0.01, 1.0, 32.0])
def test_the_level_of_a_search_that_never_starts_is_exact_for_a_parabola(price, monkeypatch):
    """5 + c‖v - a‖² is 2c-strongly convex and no more: value - ‖gradient‖²/(4c) is its minimum 5, from any point."""
    a = np.array([[3.0, -1.0]])

    def parabola(v):
        return 5.0 + price * float(np.sum((v - a.ravel()) ** 2)), 2.0 * price * (v - a.ravel())

    monkeypatch.setattr(observed, "STEPS", 0)
    V, level = observed._least(parabola, np.zeros((1, 2)), price)
    assert not np.allclose(V, a)
    assert level == pytest.approx(5.0)
    assert observed._least(lambda v: (parabola(v)[0] - 9.0, parabola(v)[1]), np.zeros((1, 2)), price)[1] == 0.0


def test_logs_of_nothing_but_zeros_hits_or_misses():
    for X in (np.zeros((20, 2)), np.ones((20, 2))):
        for reward in (np.ones(20), np.zeros(20)):
            log = Log.from_arrays(X, np.arange(20) % 2, reward, np.ones(20), classes=[0, 1])
            check(observe(log), log, np.random.default_rng(2))
            check(observe(log, search=False), log, np.random.default_rng(2))


def test_rewards_between_are_refused():
    with pytest.raises(InputError, match="only rewards of 1"):
        observe(some_log(fractional=True))


# --- the command ------------------------------------------------------------------------------------------------


def evaluate(*words):
    result = CliRunner().invoke(app, ["evaluate", *words, "-a", "squarecb"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "log.jsonl"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) / 2
    truth = (X @ rng.normal(size=(3, 3))).argmax(axis=1)
    labels = np.where(rng.random(900) < 0.6, truth, rng.integers(3, size=900))
    save_log(Log.from_arrays(X, labels, labels == truth, np.full(900, 0.5), classes=range(3)), place)
    return str(place), X, labels, truth


def test_evaluate_says_it_in_words_and_numbers(path):
    place, X, labels, truth = path
    said = json.loads(evaluate(place, "--json"))["observed"]
    log = Log.from_arrays(X, labels, labels == truth, np.full(900, 0.5), classes=range(3))
    proved = observe(log)
    assert said["least_loss"] == pytest.approx(proved.least_loss(20.0), rel=1e-6)
    assert said["mistakes"] == proved.mistakes and len(said["softmax"]) == len(proved.softmax)
    text = " ".join(evaluate(place).split())
    assert f"observed in the log: {said['sentence']}" in text
    assert "only correct one; a bound on log loss, not on mistakes" in text
    assert "observed" not in evaluate(place, "--no-observed")


def test_a_log_with_rewards_between_has_a_reason_and_no_number():
    said = _observed(some_log(fractional=True), True)
    assert said["observed"] is None and "only rewards of 1 (correct) and 0 (wrong)" in said["observed_unavailable"]
