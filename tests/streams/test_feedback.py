"""Streams with available labels and rewards: synthetic clicks, and columns of tables."""

import numpy as np
import pandas as pd
import pytest

from gaptron import Learner
from gaptron.errors import InputError, StreamError
from gaptron.streams import open_stream, prepare
from gaptron.streams.clicks import clicks

TABLE = """a,b,label,paid,open
0.5,1,mail,0.3,mail|chat
1,0,chat,1,chat|phone
0.2,0.4,phone,0.5,phone| mail |chat
0.9,0.1,chat,0,chat
"""
AVAILABLE = [[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 0, 0]]  # chat, mail, phone


# --- click worlds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", ["near", "drifting", "sigmoid"])
@pytest.mark.parametrize("rate, labels", [(0.1, 10), (0.3, 5)])
def test_the_best_label_earns_at_the_named_rate_and_no_other_rule_does_better(world, rate, labels):
    s = clicks(40_000, seed=3, world=world, rate=rate, labels=labels)
    assert s.rewards.shape == (40_000, labels) and set(np.unique(s.rewards)) == {0.0, 1.0}
    np.testing.assert_allclose(s.norms, 1.0, atol=1e-12)
    best = s.rewards[np.arange(40_000), s.y]
    assert best.mean() == pytest.approx(rate, abs=5 * (rate / 40_000) ** 0.5)
    for other in (*(np.full(40_000, k) for k in range(labels)), (s.y + 1) % labels):
        assert s.rewards[np.arange(40_000), other].mean() < best.mean()
    right = s.rewards.sum(axis=1)
    assert (right == 0).any() and (right > 1).any()


def test_a_drifting_world_ends_as_another():
    """The first tenth's best labels, predicted from its examples by least squares, are not the last tenth's."""
    s = clicks(20_000, seed=1, world="drifting")
    still = clicks(20_000, seed=1)
    for stream, kept in ((s, False), (still, True)):
        rule = np.linalg.lstsq(stream.X[:2000], np.eye(10)[stream.y[:2000]], rcond=None)[0]
        early, late = (
            (stream.X[part] @ rule).argmax(axis=1) == stream.y[part] for part in (slice(2000), slice(-2000, None))
        )
        assert early.mean() > 0.4 and (late.mean() > 0.4) == kept


def test_the_same_seed_gives_the_same_world_by_name():
    one, two = (
        open_stream("clicks:rounds=50,seed=2,world=sigmoid,labels=3,features=4,rate=0.2"),
        clicks(50, 2, "sigmoid", 3, 4, 0.2),
    )
    np.testing.assert_array_equal(one.rewards, two.rewards)
    np.testing.assert_array_equal(one.X, two.X)
    assert (clicks(50, 3, "sigmoid", 3, 4, 0.2).rewards != two.rewards).any()


@pytest.mark.parametrize("words", ["world=flat", "rate=0", "rate=1", "labels=1", "features=0", "rounds=0"])
def test_unknown_worlds_and_bad_options_are_refused(words):
    with pytest.raises(InputError, match=words.split("=")[0]):
        open_stream(f"clicks:{words}")


def test_a_world_is_played_and_prepared_with_the_rewards_of_its_labels():
    s = clicks(400, seed=1)
    mixed = prepare(s, shuffle=5, limit=300, unit_norm=True, constant=True)
    order = np.random.default_rng(5).permutation(300)
    np.testing.assert_array_equal(mixed.rewards, s.rewards[:300][order])
    one, two = (Learner("squarecb", n_classes=10, feedback="bandit", norm=1.0, seed=1) for _ in range(2))
    trace = one.play(s)
    np.testing.assert_array_equal(trace.reward, s.rewards[np.arange(400), trace.codes])
    np.testing.assert_array_equal(two.play(s.X, rewards=s.rewards).codes, trace.codes)
    with pytest.raises(InputError, match="feedback='bandit'"):
        Learner("softmax", n_classes=10, norm=1.0).play(s)


# --- columns ------------------------------------------------------------------------------------------------------


def opened(path, text=TABLE, **more):
    path.write_text(text)
    return open_stream(path, **more)


@pytest.mark.parametrize("many", [1, 400], ids=["cell by cell", "by Arrow"])
@pytest.mark.parametrize("chunk", [None, 3])
def test_columns_of_rewards_and_available_labels(tmp_path, many, chunk):
    head, *lines = TABLE.splitlines(keepends=True)
    s = opened(tmp_path / "a.csv", head + "".join(lines) * many, reward="paid", available="open", chunk=chunk)
    parts = [s] if chunk is None else list(s.streams())
    assert s.classes == ("chat", "mail", "phone") and s.n_features == 2
    np.testing.assert_array_equal(np.vstack([p.rewards for p in parts]), np.tile([[0.3], [1], [0.5], [0]], (many, 1)))
    np.testing.assert_array_equal(
        np.vstack([p.available for p in parts]), np.tile(np.array(AVAILABLE, dtype=bool), (many, 1))
    )
    assert parts[0].columns == ("a", "b")


def test_columns_by_number_without_a_header(tmp_path):
    text = TABLE.partition("\n")[2]
    s = opened(tmp_path / "a.csv", text, label=2, reward=3, available=4)
    np.testing.assert_array_equal(s.available, np.array(AVAILABLE, dtype=bool))
    np.testing.assert_array_equal(s.X, [[0.5, 1], [1, 0], [0.2, 0.4], [0.9, 0.1]])


def test_labels_that_are_only_ever_available_are_classes(tmp_path):
    s = opened(tmp_path / "a.csv", TABLE.replace("phone,", "chat,"), available="open", reward="paid")
    assert s.classes == ("chat", "mail", "phone")


@pytest.mark.parametrize("lists", [False, True])
def test_columns_of_parquet(tmp_path, lists):
    groups = [["mail", "chat"], ["chat", "phone"], ["phone", "mail", "chat"], ["chat"]]
    frame = pd.DataFrame(
        {"a": [0.5, 1, 0.2, 0.9], "label": ["mail", "chat", "phone", "chat"], "paid": [0.3, 1, 0.5, 0]}
    )
    frame["open"] = groups if lists else ["|".join(group) for group in groups]
    frame.to_parquet(tmp_path / "a.parquet")
    s = open_stream(tmp_path / "a.parquet", reward="paid", available="open", label="label")
    np.testing.assert_array_equal(s.available, np.array(AVAILABLE, dtype=bool))
    np.testing.assert_array_equal(s.rewards[:, 0], [0.3, 1, 0.5, 0])
    assert s.n_features == 1


@pytest.mark.parametrize(
    "text, more, problem",
    [
        (TABLE.replace("0.3", "1.3"), {}, "line 2: reward 1.3 is not in"),
        (TABLE.replace("0.3", "nan"), {}, "line 2: reward nan is not in"),
        (TABLE.replace("0.3", "much"), {}, "line 2: column paid: 'much' is not a number"),
        (TABLE.replace("mail|chat\n", "\n"), {}, "line 2: no label is available"),
        (
            TABLE.replace("chat|phone", "chat|fax"),
            {"classes": ["mail", "chat", "phone"]},
            "line 3: available label fax",
        ),
        (TABLE, {"reward": "price"}, "reward='price' is not one of the columns"),
        (TABLE, {"reward": "label"}, "three different columns"),
        (TABLE.replace("label", "paid"), {"label": 2}, "both named paid: choose the reward by its number"),
    ],
)
def test_columns_that_do_not_fit_are_refused_by_line(tmp_path, text, more, problem):
    with pytest.raises(StreamError, match=problem):
        opened(tmp_path / "a.csv", text, **{"reward": "paid", "available": "open", **more})


def test_other_formats_have_no_columns(tmp_path):
    with pytest.raises(StreamError, match="available= names a column, but svmlight files have no columns"):
        opened(tmp_path / "a.svm", "1 1:2\n0 2:1\n", available="open")
