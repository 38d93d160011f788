"""Worlds whose rounds bring their own actions."""

import numpy as np
import pytest

from gaptron import InputError, Learner
from gaptron.streams import action_world
from gaptron.streams.action_worlds import WORLDS, tokens


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_a_stream_of_rounds_with_known_rewards(name):
    stream = action_world(name, 300, seed=3)
    rounds = stream.rounds
    assert len(rounds) == len(stream.contexts) == len(stream.actions) == 300
    np.testing.assert_array_equal(rounds.counts, [len(actions) for actions in stream.actions])
    assert len(stream.expected) == len(stream.rewards) == rounds.first[-1]
    assert ((stream.rewards >= 0.0) & (stream.rewards <= 1.0)).all()
    spread = np.sqrt(np.mean((stream.rewards - stream.expected) ** 2) / len(stream.rewards))
    assert abs(np.mean(stream.rewards - stream.expected)) < 6.0 * spread  # rewards have the mean that is said
    for actions in stream.actions:
        assert len({name for name, _ in actions}) == len(actions)
    again, other = action_world(name, 300, seed=3), action_world(name, 300, seed=4)
    np.testing.assert_array_equal(again.rewards, stream.rewards)
    np.testing.assert_array_equal(again.rounds.as_matrix().data, rounds.as_matrix().data)
    assert len(other.rewards) != len(stream.rewards) or (other.expected != stream.expected).any()
    best = [stream.expected[a:b].argmax() for a, b in zip(rounds.first[:-1], rounds.first[1:])]
    assert stream.share(best) == pytest.approx(1.0)
    uniform = np.add.reduceat(stream.expected, rounds.first[:-1]) / rounds.counts
    assert 0.1 < uniform.sum() / stream.best() < 0.9


def test_the_rows_are_the_features_of_the_action_and_their_products_with_the_context():
    stream = action_world("prices", 5)
    context, (name, features) = dict(tokens(stream.contexts[0])), stream.actions[0][0]
    own = dict(tokens(features))
    values = [*own.values(), 1.0, *(a * c for a in own.values() for c in context.values())]
    row = stream.rounds.as_matrix()[[0]].data
    np.testing.assert_allclose(np.sort(row), np.sort(values))
    np.testing.assert_allclose(np.sort(stream.rounds[0].context.values), np.sort(list(context.values())))
    assert name.startswith("offer-")
    shared = set(stream.rounds[0].context.indices) & set(stream.rounds[0].rows.indices)
    assert not shared  # context columns are no action's


def test_one_action_is_right_in_choice_and_rewards_are_fractions_in_quotes():
    choice, quotes = action_world("choice", 200), action_world("quotes", 200)
    np.testing.assert_array_equal(np.add.reduceat(choice.rewards, choice.rounds.first[:-1]), 1.0)
    assert ((quotes.rewards > 0.0) & (quotes.rewards < 1.0)).any()


def test_bad_options_are_one_clear_error():
    for arguments, words in (
        (("moon",), "no world of actions 'moon'"),
        (("news", 0), "rounds"),
        (("news", 10**9), "rounds"),
        (("news", 10, -1), "seed"),
    ):
        with pytest.raises(InputError, match=words):
            action_world(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("news", 0.62), ("ids", 0.60), ("choice", 0.88), ("quotes", 0.80)])
def test_the_default_earns_its_share(name, least):
    shares = []
    for seed in range(3):
        stream = action_world(name, seed=seed)
        trace = Learner(actions=True, feedback="bandit", seed=seed).play(stream.rounds, rewards=stream.rewards)
        shares.append(stream.share(trace.labels))
    assert np.mean(shares) > least
