"""The three forms of a log: there and back, and what is refused on the way."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from gaptron import Learner
from gaptron.errors import DecisionError, InputError, StreamError
from gaptron.offpolicy import DecisionLog, Log, from_obp, open_log, save_log, to_obp
from tests.offpolicy.worlds import same, some_log

NAMES = ["log.jsonl", "log.jsonl.gz", "log.ndjson.xz", "log.dsjson", "log.dsjson.bz2", "log.npz"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "classes", [("ant", "bee", "cat"), (7, 3, -5), ("1", "02", "1.0")], ids=["words", "numbers", "digits"]
)
def test_there_and_back(tmp_path, name, sparse, whole, classes):
    log = some_log(sparse=sparse, whole=whole, classes=classes)
    save_log(log, tmp_path / name)
    same(open_log(tmp_path / name), log)


@pytest.mark.parametrize("name", ["log.jsonl", "log.dsjson", "log.npz"])
def test_rewards_may_lie_between(tmp_path, name):
    log = some_log(fractional=True)
    save_log(log, tmp_path / name)
    same(open_log(tmp_path / name), log)


@pytest.mark.parametrize("name", ["log.jsonl", "log.dsjson", "log.npz"])
@pytest.mark.parametrize("whole", [False, True])
def test_labels_may_have_been_left_out(tmp_path, name, whole):
    log = some_log(left_out=True, whole=whole)
    assert (
        log.available is not None
        and not log.available.all()
        and log[3:5].available_at(1).tolist() == log.available[4].tolist()
    )
    save_log(log, tmp_path / name)
    same(open_log(tmp_path / name), log)


@pytest.mark.parametrize(
    "available, problem",
    [
        ([], "at least one label"),
        ("b", "at least one label"),
        (["b", 3], "3 in available does not have the type"),
        (["b", "d"], "'d' is not one of the 3 classes"),
        (["b", "c"], "label played was not available"),
        (["a", "b"], "positive probability of an unavailable label"),
    ],
)
def test_available_labels_that_do_not_fit_are_refused_by_line(tmp_path, available, problem):
    head = {"format": "gaptron-log", "version": 1, "classes": ["a", "b", "c"], "n_features": 1}
    line = {"x": [1], "label": "a", "propensity": 0.5, "reward": 1, "distribution": [0.5, 0.25, 0.25]}
    path = written(tmp_path / "log.jsonl", head, line, {**line, "available": available})
    with pytest.raises(StreamError, match=f"line 3: .*{problem}"):
        open_log(path)


def test_the_form_may_be_named(tmp_path):
    save_log(some_log(), tmp_path / "log", format="dsjson")
    same(open_log(tmp_path / "log", format="dsjson"), some_log())
    for call in (lambda: open_log(tmp_path / "log"), lambda: save_log(some_log(), tmp_path / "other")):
        with pytest.raises(StreamError, match="jsonl"):
            call()
    with pytest.raises(StreamError, match="already compressed"):
        save_log(some_log(), tmp_path / "log.npz.gz")
    with pytest.raises(StreamError, match="file not found"):
        open_log(tmp_path / "none.jsonl")
    with pytest.raises(StreamError, match="cannot be written"):
        save_log(some_log(), tmp_path / "no folder" / "log.jsonl")


def test_one_class_is_no_log():
    with pytest.raises(StreamError, match="at least two classes"):
        Log.from_arrays([[1.0]], [0], [1], [1], classes=[0])


def test_labels_a_file_cannot_give_back_are_refused(tmp_path):
    odd = some_log(classes=((1, 2), "a", 3.5))
    with pytest.raises(InputError, match="all strings or all integers"):
        save_log(odd, tmp_path / "log.jsonl")
    assert not (tmp_path / "log.jsonl").exists()


# --- our own form -------------------------------------------------------------------------------------------

HEAD = {"format": "gaptron-log", "version": 1, "classes": ["a", "b"], "n_features": 2}
LINE = {"x": [0.5, 1], "label": "a", "propensity": 0.5, "reward": 1}


def written(path, *lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


BAD_LINES = {
    "not-json": ("{", "not JSON"),
    "half-a-line": ('{"x": [0.5, 1], "label": "a", "prope', "not JSON"),
    "an-array": ("[1, 2]", "not a JSON object"),
    "deep": ("[" * 100_000, "not JSON"),
    "not-utf-8": ('{"x": "\udcff"}', "not JSON|x is not an array"),
    "propensity-0": ({**LINE, "propensity": 0}, "propensity 0 is not between 1e-06 and 1"),
    "propensity-tiny": ({**LINE, "propensity": 9e-7}, "propensity 9e-07 is not between 1e-06 and 1"),
    "propensity-negative": ({**LINE, "propensity": -0.5}, "propensity -0.5"),
    "propensity-above-1": ({**LINE, "propensity": 1.5}, "propensity 1.5"),
    "propensity-nan": (json.dumps(LINE).replace("0.5, 1", "1, 1").replace("0.5", "NaN"), "propensity nan"),
    "propensity-inf": ({**LINE, "propensity": float("inf")}, "propensity inf"),
    "propensity-word": ({**LINE, "propensity": "0.5"}, 'propensity is "0.5", not a number'),
    "propensity-true": ({**LINE, "propensity": True}, "propensity is true, not a number"),
    "propensity-null": ({**LINE, "propensity": None}, "propensity is null, not a number"),
    "propensity-huge": ({**LINE, "propensity": 10**400}, "too large"),
    "no-propensity": ({k: v for k, v in LINE.items() if k != "propensity"}, "field 'propensity' is missing"),
    "no-reward": ({k: v for k, v in LINE.items() if k != "reward"}, "field 'reward' is missing"),
    "no-label": ({k: v for k, v in LINE.items() if k != "label"}, "field 'label' is missing"),
    "no-x": ({k: v for k, v in LINE.items() if k != "x"}, "field 'x' is missing"),
    "reward-2": ({**LINE, "reward": 2}, r"reward 2 is not in \[0, 1\]"),
    "reward-negative": ({**LINE, "reward": -1}, "reward -1"),
    "label-unknown": ({**LINE, "label": "c"}, "'c' is not one of the 2 classes"),
    "label-of-another-kind": ({**LINE, "label": 1}, "type of the classes"),
    "twice": ('{"x": [0.5, 1], "label": "a", "propensity": 0.5, "propensity": 0.9, "reward": 1}', "appears twice"),
    "x-too-short": ({**LINE, "x": [1]}, "x has 1 entries, expected 2"),
    "x-nan": (json.dumps({**LINE, "x": [float("nan"), 1]}), "NaN or infinite"),
    "x-word": ({**LINE, "x": ["one", 1]}, "not a number"),
    "x-number": ({**LINE, "x": 3}, "x is not an array"),
    "x-of-two-kinds": ({**LINE, "x": {"0": 1}}, "use one of them"),
    "distribution-on-some": ({**LINE, "distribution": [0.5, 0.5]}, "on all lines or on none"),
    "another-log": ({**HEAD, "classes": ["a", "c"]}, "other labels or features than the first"),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, bad):
    line, said = BAD_LINES[bad]
    text = "".join(
        (entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in [HEAD, LINE, "", line, LINE]
    )
    path = tmp_path / "log.jsonl"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StreamError, match=said) as caught:
        open_log(path)
    assert caught.value.line == 4
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(StreamError, match=said):
        open_log(packed)


@pytest.mark.parametrize(
    ("distribution", "said"),
    [
        ([0.5, 0.6], "does not sum to 1"),
        ([1e308, 1e308], "does not sum to 1"),
        ([1.5, -0.5], "negative"),
        ([0.4, 0.6], "differs from the distribution"),
        ([0.5], "1 entries, expected 2"),
        ([float("nan"), 0.5], "NaN"),
    ],
)
def test_a_bad_distribution_is_named(tmp_path, distribution, said):
    good = {**LINE, "distribution": [0.5, 0.5]}
    path = written(tmp_path / "log.jsonl", HEAD, good, {**LINE, "distribution": distribution})
    with pytest.raises(StreamError, match=f"line 3.*{said}"):
        open_log(path)


@pytest.mark.parametrize("key", ["2", "-1", "01", "x", "1e0", "9" * 5000, "²"])
def test_a_bad_column_is_named(tmp_path, key):
    with pytest.raises(StreamError, match=r"line 2: feature .* is not one of 0..1"):
        open_log(written(tmp_path / "log.jsonl", HEAD, {**LINE, "x": {key: 1.0}}))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (LINE, "first line must be"),
        ({**HEAD, "version": 2}, "version 2"),
        ({**HEAD, "classes": ["a"]}, "at least two"),
        ({**HEAD, "classes": ["a", "a"]}, "twice"),
        ({**HEAD, "classes": ["a", 1]}, "all strings or all integers"),
        ({**HEAD, "n_features": 0}, "n_features"),
        ({**HEAD, "n_features": True}, "n_features"),
    ],
)
def test_a_bad_beginning_is_named(tmp_path, head, said):
    with pytest.raises(StreamError, match=f"line 1: .*{said}"):
        open_log(written(tmp_path / "log.jsonl", head, LINE))


@pytest.mark.parametrize("name", ["log.jsonl", "log.dsjson"])
@pytest.mark.parametrize("lines", [[], [""]])
def test_an_empty_file_is_not_a_log(tmp_path, name, lines):
    with pytest.raises(StreamError, match="contains no decisions"):
        open_log(written(tmp_path / name, *lines))


def test_a_beginning_alone_is_not_a_log(tmp_path):
    with pytest.raises(StreamError, match="contains no decisions"):
        open_log(written(tmp_path / "log.jsonl", HEAD))


def test_damaged_gz_is_named(tmp_path):
    save_log(some_log(), tmp_path / "log.jsonl.gz")
    data = bytearray((tmp_path / "log.jsonl.gz").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "log.jsonl.gz").write_bytes(data)
    with pytest.raises(StreamError, match="damaged"):
        open_log(tmp_path / "log.jsonl.gz")


def test_logs_may_stand_one_after_the_other_and_carry_more_fields(tmp_path):
    log = open_log(written(tmp_path / "log.jsonl", HEAD, LINE, HEAD, {**LINE, "reward": 0, "time": "noon"}))
    np.testing.assert_array_equal(log.reward, [1, 0])


# --- written as feedback arrives ----------------------------------------------------------------------


def learner(**more):
    given = {"classes": ["a", "b", "c"], "feedback": "bandit", "norm": 10.0, "seed": 1, **more}
    return Learner("squarecb", **given)


@pytest.mark.parametrize("name", ["live.jsonl", "live.jsonl.gz"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_decision_log_holds_what_was_decided(tmp_path, name, sparse):
    source, mine, decisions = some_log(sparse=sparse), learner(), []
    for half in (range(20), range(20, 40)):  # closed, and gone on with
        with DecisionLog(tmp_path / name) as log:
            for t in half:
                decision = mine.decide(source.example(t))
                decisions.append(decision)
                mine.learn(decision, correct=t % 3 == 0)
                log.write(decision, correct=t % 3 == 0)
    found = open_log(tmp_path / name)
    assert [found.classes[code] for code in found.codes] == [decision.label for decision in decisions]
    np.testing.assert_array_equal(found.propensity, [decision.propensity for decision in decisions])
    np.testing.assert_array_equal(found.distribution, [decision.distribution for decision in decisions])
    np.testing.assert_array_equal(found.reward, [float(t % 3 == 0) for t in range(40)])
    same(found, replace(found, examples=source.examples))


def test_a_decision_log_holds_rewards_and_what_was_available(tmp_path):
    mine, rows = learner(), some_log()
    with DecisionLog(tmp_path / "live.jsonl") as log:
        for t, available in enumerate((["a", "c"], None, ["b"])):
            decision = mine.decide(rows.example(t), available=available)
            mine.learn(decision, reward=0.25 * t)
            log.write(decision, reward=0.25 * t)
    found = open_log(tmp_path / "live.jsonl")
    np.testing.assert_array_equal(found.reward, [0, 0.25, 0.5])
    assert found.available.tolist() == [[True, False, True], [True, True, True], [False, True, False]]


def test_a_decision_log_refuses_what_would_spoil_it(tmp_path):
    path, row = tmp_path / "live.jsonl", some_log().example(0)
    decision = learner().decide(row)
    log = DecisionLog(path)
    for wrong in (2, 0.5, "yes", None):
        with pytest.raises(DecisionError, match="correct"):
            log.write(decision, correct=wrong)
    with pytest.raises(InputError, match="reward"):
        log.write(decision, reward=1.5)
    rare = replace(decision, propensity=9e-7)
    with pytest.raises(DecisionError, match=r"propensity 9e-07; a log holds those of at least 1e-06.*epsilon="):
        log.write(rare, correct=True)
    assert not path.exists()
    log.write(decision, correct=np.bool_(True))
    before = path.read_bytes()
    with pytest.raises(DecisionError, match="other labels or features"):
        log.write(learner(classes=["a", "b"]).decide(row), correct=True)
    log.close()
    with pytest.raises(DecisionError, match="closed"):
        log.write(decision, correct=True)
    with pytest.raises(StreamError, match="other labels or features"):
        DecisionLog(path).write(learner(classes=["a", "b"]).decide(row), correct=True)
    assert path.read_bytes() == before
    path.write_text("hello\n")
    with pytest.raises(StreamError, match="not JSON"):
        DecisionLog(path).write(decision, correct=True)
    with pytest.raises(InputError, match="all strings or all integers"):
        DecisionLog(tmp_path / "odd.jsonl").write(learner(classes=[0.5, 1.5]).decide(row), correct=True)
    assert not (tmp_path / "odd.jsonl").exists()


# --- Vowpal Wabbit's ----------------------------------------------------------------------------------------

EVENT = {
    "_label_cost": -1,
    "_label_probability": 0.8,
    "_label_Action": 2,
    "_labelIndex": 1,
    "a": [2, 1],
    "c": {"x": {"0": 1.0}, "_multi": [{"label": {"no": 1}}, {"label": {"yes": 1}}]},
    "p": [0.8, 0.2],
}


def event(**changes):
    return {key: value for key, value in {**EVENT, **changes}.items() if value is not ...}


BAD_EVENTS = {
    "propensity-0": (event(_label_probability=0, p=...), "propensity 0 is not between 1e-06 and 1"),
    "propensity-wrong": (event(_label_probability=0.5), "_label_probability is 0.5, but p starts with 0.8"),
    "propensity-nan": (json.dumps(event(p=...)).replace("0.8", "NaN"), "propensity nan"),
    "p-too-large": (event(p=[0.8, 0.8]), "does not sum to 1"),
    "p-too-short": (event(p=[0.8]), "p has 1 entries"),
    "cost-positive": (event(_label_cost=1), r"_label_cost 1 is not in \[-1, 0\]"),
    "action-0": (event(_label_Action=0), "_label_Action is 0, not one of 1..2"),
    "action-3": (event(_label_Action=3), "_label_Action is 3"),
    "action-is-not-the-first": (event(_label_Action=1), "a starts with 2"),
    "a-repeats": (event(a=[2, 2]), "each of the 2 actions"),
    "a-is-a-number": (event(a=3), "each of the 2 actions"),
    "no-c": (event(c=...), "field 'c' is missing"),
    "no-cost": (event(_label_cost=...), "field '_label_cost' is missing"),
    "no-actions": (event(c={"x": {"0": 1}}), "field '_multi' is missing"),
    "other-actions": (
        event(c={"x": {"0": 1}, "_multi": [{"label": {"no": 1}}, {"label": {"maybe": 1}}]}),
        "differ from those of the lines before",
    ),
    "names-for-numbers": (event(c={**EVENT["c"], "x": {"age": 1}}), "are numbered"),
}


@pytest.mark.parametrize("bad", BAD_EVENTS)
def test_a_bad_event_is_named(tmp_path, bad):
    line, said = BAD_EVENTS[bad]
    good = event() if "p" in (line if isinstance(line, dict) else json.loads(line)) else event(p=...)
    with pytest.raises(StreamError, match=f"line 2: .*{said}"):
        open_log(written(tmp_path / "log.dsjson", good, line))


def test_an_event_by_hand(tmp_path):
    log = open_log(written(tmp_path / "log.dsjson", EVENT), n_features=3)
    assert (log.classes, log.codes.tolist(), log.reward.tolist()) == (("no", "yes"), [1], [1.0])
    assert log.propensity.tolist() == [0.8]
    np.testing.assert_array_equal(log.distribution, [[0.2, 0.8]])
    np.testing.assert_array_equal(log.X.toarray(), [[1.0, 0.0, 0.0]])
    with pytest.raises(StreamError, match="line 2: feature 3 is outside n_features=3"):
        open_log(written(tmp_path / "log.dsjson", EVENT, event(c={**EVENT["c"], "x": {"3": 1}})), n_features=3)
    with pytest.raises(InputError, match="n_features= is only for dsjson"):
        open_log(written(tmp_path / "log.jsonl", HEAD, LINE), n_features=3)


def test_events_of_others_are_hashed(tmp_path):
    shared = {"User": {"age": 3.5, "city": "Bern", "member": True, "gone": None}, "tags": ["a", "b"], "_tag": "id"}
    c = {**shared, "_multi": [{"Article": {"id": 7}}, {"Article": {"id": 9}}]}
    log = open_log(written(tmp_path / "log.dsjson", event(c=c), event(c=c)), n_features=64)
    assert log.classes == (0, 1) and log.n_features == 64
    assert sorted(log.X.toarray()[0][log.X.toarray()[0] != 0].tolist()) == [1.0, 1.0, 1.0, 1.0, 3.5]
    np.testing.assert_array_equal(log.X.toarray()[0], log.X.toarray()[1])


def test_vowpal_wabbit_reads_it(tmp_path):
    """And finds the same estimate of its uniform first policy, where that can be seen: before it learned anything."""
    vw = pytest.importorskip("vowpalwabbit")
    log = some_log(T=30, classes=("ant", "bee", "cat"))
    save_log(log, tmp_path / "log.dsjson")
    options = f"--dsjson --cb_explore_adf --first 10000 -d {tmp_path / 'log.dsjson'} --quiet"
    workspace = vw.Workspace(options)
    assert workspace.get_weighted_examples() == 30
    uniform = -(log.reward / 3 / log.propensity).sum()
    assert workspace.get_sum_loss() == pytest.approx(uniform, rel=1e-5)
    workspace.finish()


# --- Open Bandit Pipeline's ---------------------------------------------------------------------------------


def test_the_arrays_are_those_the_pipeline_names():
    log = some_log(sparse=True)
    given = to_obp(log)
    assert given["n_rounds"] == 40 and given["n_actions"] == 3
    assert given["context"].shape == (40, 4) and given["pi_b"].shape == (40, 3, 1)
    np.testing.assert_array_equal(given["pi_b"][np.arange(40), given["action"], given["position"]], given["pscore"])
    same(from_obp(given), log)
    plain = from_obp({key: value for key, value in given.items() if key not in ("classes", "pi_b", "position")})
    assert plain.classes == (0, 1, 2) and plain.distribution is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pscore": None}, "missing: pscore"),
        ({"pscore": np.r_[0.0, np.ones(39)]}, "row 0: propensity 0"),
        ({"pscore": np.ones(3)}, "propensity does not have one entry for each"),
        ({"pscore": np.ones(40)}, "differs from the distribution"),
        ({"action": np.full(40, 3)}, "row 0: action 3"),
        ({"action": np.full(40, -1)}, "row 0: action -1"),
        ({"action": np.zeros(40)}, "one integer per round"),
        ({"reward": np.full(40, 5.0)}, "row 0: reward 5"),
        ({"reward": ["good"] * 40}, "reward must contain numbers"),
        ({"position": np.arange(40) % 3}, "several positions"),
        ({"n_actions": 1}, "n_actions"),
        ({"n_rounds": 41}, "n_rounds is 41"),
        ({"classes": ["a"]}, "classes names 1"),
        ({"classes": ["a", "b", "a"]}, "arrays: classes holds a label twice"),
        ({"classes": 3}, "one label for each action"),
        ({"n_actions": 2**62, "classes": None}, "n_actions is"),
        ({"reward": np.full(40, 1j)}, "reward must contain numbers"),
        ({"context": np.full((40, 4), np.nan)}, "row 0: a feature is NaN"),
        ({"context": np.ones(40)}, "two dimensions"),
        ({"context": np.ones((40, 0))}, "at least one column"),
        ({"pi_b": np.ones((40, 2))}, "shape"),
    ],
)
def test_bad_arrays_are_named(changes, said):
    with pytest.raises(StreamError, match=said):
        from_obp({**to_obp(some_log()), **changes})


def test_an_npz_of_something_else_is_named(tmp_path):
    np.savez(tmp_path / "log.npz", X=np.ones(3))
    with pytest.raises(StreamError, match="missing: n_actions, context"):
        open_log(tmp_path / "log.npz")
    (tmp_path / "log.npz").write_bytes(b"PK nonsense")
    with pytest.raises(StreamError, match=r"cannot be read as \.npz"):
        open_log(tmp_path / "log.npz")


def test_a_dense_form_refuses_what_would_not_fit():
    thin = some_log(sparse=True)
    wide = Log.from_arrays(type(thin.X)((40, 2**23)), [0] * 40, [1] * 40, [1] * 40, classes=[0, 1])
    with pytest.raises(InputError, match="too large"):
        to_obp(wide)
