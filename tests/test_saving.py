"""A learner in a file, in a copy, in a pickle: it goes on as if nothing had happened, or it is refused."""

import copy
import datetime
import gc
import json
import math
import pickle
import random
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import gaptron
from gaptron import Learner
from gaptron.errors import DecisionError, ModelFileError
from gaptron.kernels.compile.specialize import specialize
from gaptron.learner import model_file
from gaptron.learner.decision import FIRST_SWEEP
from gaptron.learner.engine import loop_module
from tests.conftest import needs_compiler, portrait, random_stream
from tests.models.record import FILE, FOLDER, KEPT
from tests.models.record import portrait as account

X, Y, K = random_stream(80)


def make(algorithm="frugal-gaptron", **more):
    given = {"norm": 4.0, "radius": 1.0, "horizon": 2000, "n_classes": K, "seed": 5, **more}
    return Learner(algorithm, **given)


def started(**more):
    learner = make(**more)
    learner.play(X[:40], Y[:40])
    return learner


def by_file(learner, path):
    learner.save(path)
    return Learner.load(path)


def by_copy(learner, _):
    return copy.deepcopy(learner)


def by_pickle(learner, _):
    return pickle.loads(pickle.dumps(learner))


WAYS = {"file": by_file, "copy": by_copy, "shallow": lambda learner, _: copy.copy(learner), "pickle": by_pickle}


@pytest.fixture(params=list(WAYS))
def again(request, tmp_path):
    """A function that gives the same learner again."""
    return lambda learner: WAYS[request.param](learner, tmp_path / "model.gaptron")


# --- going on ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [None, 4.0])
def test_before_the_first_round(again, norm):
    learner = make("gaptron", norm=norm, n_features=6 if norm else None)
    other = again(learner)
    assert portrait(other) == portrait(learner)
    np.testing.assert_array_equal(learner.play(X, Y).codes, other.play(X, Y).codes)
    assert portrait(other) == portrait(learner)


def test_a_measured_norm_stays_measured(again):
    learner = make("gaptron", norm=None)
    learner.play(X, Y)
    other = again(learner)
    assert other.problem == learner.problem and other.settings == learner.settings
    with pytest.raises(gaptron.InputError, match="measured on the first play"):
        other.play(9 * X, Y)


def test_the_two_are_strangers_from_then_on(again):
    learner = started()
    other = again(learner)
    before = portrait(learner)
    other.play(X[40:], Y[40:])
    assert portrait(learner) == before


def test_a_delay_ends_the_bound_after_loading_too(again):
    learner = make(feedback="bandit")
    first, second = learner.decide(X[0]), learner.decide(X[1])
    learner.learn(second, correct=False), learner.learn(first, correct=True)
    with pytest.raises(gaptron.NoBoundError, match="up to 1 decisions late"):
        _ = again(learner).certificate


def test_settings_named_by_the_user_keep_their_exact_values(again):
    learner = make("gaptron", eta=np.float32(0.1), gamma=np.float64(0.25), beta=None)
    learner.play(X[:40], Y[:40])
    other = again(learner)
    assert other._engine.overrides == learner._engine.overrides and repr(other.settings) == repr(learner.settings)


def test_a_learner_with_late_fields_before_its_first_decision(again):
    other = again(make(delay=2))
    assert portrait(other) == portrait(make(delay=2)) and other.pending == {}


REMEMBERS = {
    **{f"frugal {loss} {feedback}": {"loss": loss, "feedback": feedback}
       for loss in ("logistic", "hinge", "smooth-hinge") for feedback in ("full", "bandit")},
    "advised": {"algorithm": "advised-gaptron", "feedback": "bandit", "budget": 0.0},
}  # fmt: skip


@pytest.mark.parametrize("who", REMEMBERS)
def test_a_remembered_decision_is_learned_from_alike_though_labels_were_left_out(again, who):
    learner, feedback = started(delay=2, **REMEMBERS[who]), REMEMBERS[who]["feedback"]
    decisions = [learner.decide(X[40], available=[0, 2]), learner.decide(X[41])]
    other = again(learner)
    for who in (learner, other):
        waiting = who.pending
        for number in (42, 41):
            given = {"label": 2} if feedback == "full" else {"correct": waiting[number].label == 2}
            who.learn(waiting[number], **given)
    np.testing.assert_array_equal(other.weights, learner.weights)
    assert other.certificate == learner.certificate and len(decisions) == 2


def test_saved_scores_of_unavailable_labels_stay_below_all_others(again):
    """Here every other score is negative: a 0 in their place, as in the file, would be the largest."""
    learner = started(delay=2, loss="hinge")
    low = np.flatnonzero(learner.scores(X[40:41])[0] < 0.0)
    assert len(low) == 2
    decision = learner.decide(X[40], available=low.tolist())
    other = again(learner)
    for who in (learner, other):
        who.learn(who.pending[41], label=low[1])
    np.testing.assert_array_equal(other.weights, learner.weights)
    assert decision.round == 41


def test_a_decision_saves_only_what_late_feedback_needs_of_it():
    for algorithm, delay, names in (
        ("gaptron", {}, None),
        ("advised-gaptron", {}, ["decision"]),
        ("advised-gaptron", {"delay": 2}, ["decision", "p", "a", "late"]),
        ("frugal-gaptron", {"delay": 2}, ["z", "p", "b", "now"]),
    ):
        learner = make(algorithm, feedback="bandit", **delay)
        _decision = learner.decide(X[0])
        saved = learner.__getstate__()["pending"]["saved_scratch"]
        assert saved == [] if names is None else list(saved[0]) == names


def test_nothing_a_learner_holds_is_left_out():
    """A new attribute belongs into the file, or into one of these lists with a reason."""
    learner = started()
    tree = learner.__getstate__()
    # By other names in the file (classes, norm_promised, pending, features), or of one call alone.
    elsewhere = {"_engine", "_classes", "_arguments", "_conditions", "_open", "_encoder", "_lock", "_interrupted"}
    assert set(vars(learner._conditions)) <= set(tree)
    assert {name.removeprefix("_") for name in set(vars(learner)) - elsewhere} <= set(tree)
    # The problem and the algorithm's name are the learner's part of the file; all else is made from the settings.
    made_anew = {
        "name",
        "algorithm",
        "problem",
        "round",
        "scratch",
        "last_scored_round",
        "_feedback",
        "_adopt_logged",
        "late_fields",
        "evidence_buffer",
        "_counted",
        "_reward",
        "_propensity",
        "_late_parts",
        "_buffers",
    }
    compiled = {"_score", "_commit_once", "_learn_once"}
    in_file = {"rng": "generator", "evidence": "observed"}
    held = (
        set(vars(learner._engine)) - made_anew - compiled - {"observes"}
    )  # the last is the learner's part of the file
    assert {in_file.get(name, name) for name in held} <= set(tree["engine"])
    # The label is known by its code, its probability by the distribution; owner and feedback by its being pending.
    assert set(gaptron.Decision.__dataclass_fields__) == {
        "label", "propensity", "round", "_code", "_x", "_p", "_u", "_advice", "_available", "_saved_scratch",
        "_learned", "_owner",
    }  # fmt: skip


def test_a_mixture_on_a_grid(tmp_path):
    """Whose state has other shapes than that of a mixture of chains."""
    learner = Learner("obama", feedback="bandit", n_classes=2, norm=4.0, radius=1.0, horizon=100, seed=0)
    learner.play(X[:20, :1], Y[:20] % 2)
    other = by_file(learner, tmp_path / "model")
    np.testing.assert_array_equal(
        learner.play(X[20:40, :1], Y[20:40] % 2).codes, other.play(X[20:40, :1], Y[20:40] % 2).codes
    )


# --- labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classes",
    [
        ["cat", "naïve ☃", "", "\0"],
        [-5, 2**70, 0, 3],
        [0.1, -0.0, math.inf, 5e-324],
        [True, False, 2, 3.5],
        ["", ("a", (1, None)), (), "()"],
        np.array(["x", "y", "z", "w"]),
        np.array([3, 1, 4, 9], dtype=np.uint8),
    ],
    ids=["texts", "ints", "floats", "flags", "tuples", "numpy-texts", "numpy-ints"],
)
def test_labels_come_back_as_they_were(classes, tmp_path):
    learner = make(n_classes=None, classes=classes)
    other = by_file(learner, tmp_path / "model")
    assert repr(other.classes) == repr(learner.classes)
    assert [type(label) for label in other.classes] == [type(label) for label in learner.classes]


@pytest.mark.parametrize(
    "odd",
    [datetime.date(2020, 1, 1), b"b", frozenset([1]), (np.int64(1), object())],
    ids=lambda odd: type(odd).__name__,
)
def test_other_labels_are_refused_by_name_and_copied_all_the_same(odd, tmp_path):
    learner = make(n_classes=None, classes=["a", "b", "c", odd])
    with pytest.raises(ModelFileError, match="a file stores text, numbers"):
        learner.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    assert copy.copy(learner).classes == learner.classes


# --- pending decisions ------------------------------------------------------------------------------------------


def test_decisions_are_pending_until_learned_forgotten_or_dropped():
    learner = started()
    one, two, three = (learner.decide(x) for x in X[40:43])
    assert learner.pending == {41: one, 42: two, 43: three}
    learner.learn(two, label=1)
    learner.forget(three)
    assert learner.pending == {41: one}
    for gone in (two, three):
        with pytest.raises(DecisionError, match=f"round {gone.round} was learned from already, or dropped"):
            learner.learn(gone, label=1)
        with pytest.raises(DecisionError):
            learner.forget(gone)
    with pytest.raises(DecisionError, match="another learner"):
        started().forget(one)
    del one
    gc.collect()
    assert learner.pending == {}


def test_dropped_decisions_take_no_memory():
    learner = started()
    kept = learner.decide(X[40])
    for _ in range(5 * FIRST_SWEEP):
        learner.decide(X[41])
    assert len(learner._open._waiting) <= FIRST_SWEEP + 1
    assert learner.pending == {41: kept}
    learner.learn(kept, label=0)


def test_decisions_of_a_file_wait_in_the_learner(again):
    learner = started()
    waiting = [learner.decide(x) for x in X[40:45]]
    other = again(learner)
    gc.collect()
    assert list(other.pending) == [41, 42, 43, 44, 45]
    for mine in reversed(waiting):
        theirs = other.pending[mine.round]
        assert repr(theirs) == repr(mine)
        np.testing.assert_array_equal(theirs.distribution, mine.distribution)
        with pytest.raises(DecisionError, match="another learner"):
            other.learn(mine, label=2)
        learner.learn(mine, label=2), other.learn(theirs, label=2)
        with pytest.raises(DecisionError, match="learned from already"):
            other.learn(theirs, label=2)
    assert other.pending == {} and portrait(other) == portrait(learner)


def test_saved_twice_they_are_still_there(tmp_path):
    learner = started()
    decision = learner.decide(X[40])
    other = by_file(by_file(learner, tmp_path / "one"), tmp_path / "two")
    other.learn(other.pending[decision.round], label=1)
    learner.learn(decision, label=1)
    assert portrait(other) == portrait(learner)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_decision_copied_with_its_learner_is_that_learners(copied):
    learner = started()
    closed, decision = learner.decide(X[40]), learner.decide(X[41])
    learner.learn(closed, label=0)
    past, theirs, other = copied((closed, decision, learner))
    assert theirs is other.pending[42] and past.round == 41 and past.label == closed.label
    other.learn(theirs, label=1), learner.learn(decision, label=1)
    assert portrait(other) == portrait(learner)
    with pytest.raises(DecisionError, match="learned from already"):
        other.learn(past, label=0)
    with pytest.raises(DecisionError, match="another learner"):
        learner.learn(past, label=0)


@needs_compiler
def test_a_round_is_called_as_compiled():
    """The short way past the dispatcher, which costs more than the round."""
    learner = started()
    learner.learn(learner.decide(X[40]), label=0)
    engine, loop = learner._engine, loop_module()
    assert engine._score is not loop.score and engine._learn_once is not loop.learn_once
    codes, propensities = np.arange(5), np.linspace(0.1, 0.9, 5)
    assert specialize(loop.trail_of, codes, propensities, 3)(codes, propensities, 3) == loop.trail_of(
        codes, propensities, 3
    )


# --- damage -----------------------------------------------------------------------------------------------------


def test_a_thousand_truncations_and_flipped_bits(tmp_path):
    learner = started()
    decision = learner.decide(X[40])
    path, rng = tmp_path / "model", random.Random(0)
    learner.save(path)
    whole = path.read_bytes()
    for n in range(1000):
        data = bytearray(whole)
        if n % 2:
            del data[rng.randrange(1, len(data)) :]
        for _ in range(0 if n % 4 == 1 else rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        if data == whole:
            continue  # a bit flipped twice
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match="model: "):
            Learner.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError, match="damaged"):
        Learner.load(path)
    path.write_bytes(whole)
    assert list(Learner.load(path).pending) == [decision.round]


def change(*keys, to):
    """The tree with one thing changed."""

    def apply(tree):
        at = tree
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to(at[keys[-1]]) if callable(to) else to

    return apply


HOSTILE = {
    "no tree": lambda tree: tree.clear(),
    "unknown algorithm": change("algorithm", to="os.system"),
    "a module's name": change("algorithm", to="../learner"),
    "an algorithm that is not a string": change("algorithm", to=("gaptron",)),
    "another algorithm": change("algorithm", to="gaptron"),
    "one class": change("classes", to=["a"]),
    "a class twice": change("classes", to=[0, 1, 1, 2]),
    "more classes": change("classes", to=[0, 1, 2, 3, 4]),
    "classes as a number": change("classes", to=10**12),
    "classes as a word": change("classes", to="abcd"),
    "many features": change("n_features", to=10**12),
    "more features": change("n_features", to=10**6),
    "half a feature": change("n_features", to=6.5),
    "no features": change("n_features", to=0),
    "unknown feedback": change("feedback", to="none"),
    "a graph": change("feedback", to=np.ones((4, 4), dtype=bool)),
    "a negative norm": change("engine", "norm", to=-1.0),
    "an endless norm": change("engine", "norm", to=math.inf),
    "a norm in words": change("engine", "norm", to="long"),
    "an unknown setting": change("engine", "overrides", to={"speed": 1.0}),
    "a parameter as setting": change("engine", "overrides", to={"classes": [1, 2]}),
    "a setting that was not given": change("engine", "settings", "scale", to=2.0),
    "a given setting that is not used": change("engine", "overrides", to={"scale": 2.0}),
    "settings of another kind": change("engine", "settings", to={"gamma": 0.1}),
    "a setting of another type": change("engine", "settings", "delay", to=0.5),
    "a setting that is a tree": change("engine", "settings", "scale", to=[1.0]),
    "no settings but a state": change("engine", "settings", to=None),
    "sparse": change("engine", "sparse", to=True),
    "state as a list": change("engine", "state", to=[1.0]),
    "a field less": lambda tree: tree["engine"]["state"].pop("total"),
    "a field more": lambda tree: tree["engine"]["state"].update(more=1),
    "a number less": lambda tree: tree["engine"]["state"]["total"].pop("level"),
    "a number more": lambda tree: tree["engine"]["state"]["total"].update(more=1.0),
    "a number in words": change("engine", "state", "total", "level", to="0.5"),
    "a number that is none": change("engine", "state", "total", "level", to=math.nan),
    "an endless number": change("engine", "state", "total", "square", to=math.inf),
    "weights of another shape": change("engine", "state", "W", to=lambda W: W.T.copy()),
    "weights of another type": change("engine", "state", "W", to=lambda W: W.astype(np.float32)),
    "weights as a number": change("engine", "state", "W", to=0.0),
    "weights that are none": lambda tree: tree["engine"]["state"]["W"].__setitem__((0, 0), math.nan),
    "endless weights": lambda tree: tree["engine"]["state"]["W"].__setitem__((0, 0), -math.inf),
    "another generator": change("engine", "generator", "bit_generator", to="MT19937"),
    "a generator without state": change("engine", "generator", "state", to={}),
    "a generator with words": change("engine", "generator", "state", "inc", to="1"),
    "a generator beyond its bits": change("engine", "generator", "state", "state", to=-1),
    "a negative count": change("engine", "count", "decided", to=-1),
    "a count with a fraction": change("engine", "count", "decided", to=41.0),
    "a count beyond its bits": change("engine", "count", "decided", to=2**63),
    "a count that is a flag": change("late", to=True),
    "more learned than decided": change("engine", "count", "learned", to=10**6),
    "no count": change("engine", "count", to=None),
    "an endless row": change("longest", to="long"),
    "pending as a number": change("pending", to=3),
    "pending without rows": lambda tree: tree["pending"].pop("rows"),
    "rounds as a number": change("pending", "round", to=41),
    "rounds with a fraction": change("pending", "round", to=np.array([41.0, 42.0])),
    "a round that was not": change("pending", "round", to=np.array([41, 99])),
    "the next round": change("pending", "round", to=np.array([41, 43])),
    "round zero": change("pending", "round", to=np.array([0, 41])),
    "a round twice": change("pending", "round", to=np.array([41, 41])),
    "a label that is not": change("pending", "code", to=np.array([0, 4])),
    "a negative label": change("pending", "code", to=np.array([-1, 0])),
    "a negative label that could be drawn": lambda tree: tree["pending"].update(
        code=np.array([-1, 0]), drawn_from=np.full_like(tree["pending"]["drawn_from"], 0.25)
    ),
    "advice that nobody takes": change("pending", "advice", to=np.ones_like),
    "a count past all counting": change("engine", "count", "decided", to=2**62),
    "a label too few": change("pending", "code", to=np.array([0])),
    "a label drawn with probability zero": change("pending", "drawn_from", to=np.zeros_like),
    "a probability above one": change("pending", "drawn_from", to=lambda P: P + 1.0),
    "a probability that is not a number": change("pending", "drawn_from", to=lambda P: P * math.nan),
    "a probability missing": change("pending", "drawn_from", to=lambda P: P[:, :3].copy()),
    "a draw beyond one": change("pending", "drawn_with", to=np.ones_like),
    "advice below zero": change("pending", "advice", to=lambda a: a - 1.0),
    "a row too few": change("pending", "rows", "indptr", to=lambda at: at[:2].copy()),
    "rows that end beyond their numbers": change("pending", "rows", "indptr", to=lambda at: at + np.array([0, 0, 1])),
    "rows that go back": change("pending", "rows", "indptr", to=lambda at: at[[0, 2, 1]]),
    "a column that is not": change("pending", "rows", "indices", to=lambda at: np.where(at == at.max(), 6, at)),
    "a negative column": change("pending", "rows", "indices", to=lambda at: at - 1),
    "columns of another type": change("pending", "rows", "indices", to=lambda at: at.astype(np.float64)),
    "a row that is not a number": change("pending", "rows", "values", to=lambda x: x * math.nan),
    "a sheet nobody needs": change("pending", "saved_scratch", to=[{}, {}]),
}


def harmed(learner, path, harm):
    """A file with a right checksum and a wrong content."""
    learner.save(path)
    tree = model_file.read(path)
    harm(tree)
    model_file.write(path, tree)
    return path


@pytest.mark.parametrize("harm", HOSTILE.values(), ids=list(HOSTILE))
def test_a_file_with_a_right_checksum_and_a_wrong_content(harm, tmp_path):
    learner = started()
    _waiting = [learner.decide(X[40]), learner.decide(X[41])]
    with pytest.raises(ModelFileError, match="it does not hold a learner of this version"):
        Learner.load(harmed(learner, tmp_path / "model", harm))


KEPT_BADLY = {
    "as a number": change("pending", "saved_scratch", to=2),
    "one too few": lambda tree: tree["pending"]["saved_scratch"].pop(),
    "nothing": change("pending", "saved_scratch", 0, to=None),
    "no scratch": lambda tree: tree["pending"]["saved_scratch"][0].pop("p"),
    "too short": change("pending", "saved_scratch", 0, "z", to=lambda z: z[:2].copy()),
    "no number": change("pending", "saved_scratch", 0, "p", to=lambda p: p * math.nan),
    "an endless number": change("pending", "saved_scratch", 1, "now", "step", to=math.inf),
}


@pytest.mark.parametrize("harm", KEPT_BADLY.values(), ids=list(KEPT_BADLY))
def test_a_decision_whose_own_scores_are_damaged(harm, tmp_path):
    learner = started(delay=2)
    _waiting = [learner.decide(X[40]), learner.decide(X[41])]
    with pytest.raises(ModelFileError, match="it does not hold a learner of this version"):
        Learner.load(harmed(learner, tmp_path / "model", harm))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (change("span", "first", to=10**6), "span points outside"),
        (change("span", "count", to=9), "span points outside"),
        (change("span", "count", to=-1), "is not a count"),
        (lambda state: state["span"].update(free=len(state["values"]) + 1), "span points outside"),
        (lambda state: state["end"].__setitem__(0, 10**9), "example outside its buffer"),
        (lambda state: state["begin"].__setitem__(0, -1), "example outside its buffer"),
        (lambda state: state["end"].__setitem__(0, 3), "example outside its buffer"),
        (lambda state: (state["begin"].__setitem__(0, 0), state["end"].__setitem__(0, 7)), "example of more than 6"),
        (lambda state: state["y"].__setitem__(0, K), "label outside"),
        (lambda state: state["y"].__setitem__(0, -1), "label outside"),
    ],
    ids=["oldest", "count", "negative", "free", "end", "begin", "short", "long", "label", "negative label"],
)
def test_a_history_that_points_outside_itself(harm, message, tmp_path):
    learner = make("hinge-lmc", feedback="bandit", memory=8)
    learner.play(X[:10], Y[:10])
    assert learner._engine.state.span[0].count > 0
    with pytest.raises(ModelFileError, match=message):
        Learner.load(harmed(learner, tmp_path / "model", lambda tree: harm(tree["engine"]["state"])))


@pytest.mark.sample(1)
@pytest.mark.parametrize("column", [6, -1, 2**31 - 1])
def test_a_sparse_history_that_points_outside_itself(column, tmp_path):
    learner = make("hinge-lmc", feedback="bandit", memory=8)
    learner.play(sp.csr_matrix(X[:10]), Y[:10])
    assert learner._engine.sparse and learner._engine.state.span[0].count > 0

    def harm(tree):
        tree["engine"]["state"]["indices"][3] = column

    with pytest.raises(ModelFileError, match=r"feature outside 0\.\.5"):
        Learner.load(harmed(learner, tmp_path / "model", harm))


@pytest.mark.parametrize("indices", [[0, 6], [-1, 2], [2, 2], [3, 1]])
def test_a_sparse_row_that_points_outside_itself(indices, tmp_path):
    path = tmp_path / "model"
    shutil.copy(FOLDER / "graph.gaptron", path)
    tree = model_file.read(path)
    tree["pending"]["rows"] = {"indptr": np.array([0, 2]), "indices": np.array(indices), "values": np.ones(2)}
    model_file.write(path, tree)
    with pytest.raises(ModelFileError, match=r"rows holds a column (outside|twice)"):
        Learner.load(path)


@pytest.mark.parametrize("size", [-1, 6, 3.0])
def test_a_support_that_is_larger_than_its_buffer(size, tmp_path):
    learner = make("separable", feedback="bandit", kernel=True, support=5)
    learner.play(X[:3], Y[:3])
    harm = change("engine", "state", "size", "rows", to=size)
    with pytest.raises(ModelFileError, match=r"not a count|is above"):
        Learner.load(harmed(learner, tmp_path / "model", harm))


# --- files of earlier days --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", json.loads(FILE.read_text()))
def test_files_that_were_kept_are_read(name):
    learner = Learner.load(FOLDER / f"{name}.gaptron")
    assert account(learner) == json.loads(FILE.read_text())[name]


def test_every_kept_learner_has_its_file():
    assert set(KEPT) <= set(json.loads(FILE.read_text())) == {path.stem for path in FOLDER.glob("*.gaptron")}


def test_grown_and_off_policy_learners_report_it_after_loading(again):
    grown = started()
    grown.grow(classes=range(K + 1))
    with pytest.raises(gaptron.NoBoundError, match="labels were added"):
        _ = again(grown).certificate
    off_policy = started(feedback="bandit")
    off_policy.learn_logged(X[40], 1, 0.5, correct=False)
    with pytest.raises(gaptron.NoBoundError, match="learned from logged decisions"):
        _ = again(off_policy).certificate


def test_a_decision_waits_while_features_are_added(again):
    learner = make(n_classes=K, feedback="bandit")
    learner.play(X[:40], Y[:40])
    waiting = learner.decide(X[40])
    learner.grow(n_features=X.shape[1] + 2)
    other = again(learner)
    learner.learn(waiting, correct=True)
    other.learn(other.pending[41], correct=True)
    assert portrait(other) == portrait(learner)
