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

import gaptron
from gaptron import Learner, model_file
from gaptron.errors import DecisionError, ModelFileError
from gaptron.learner import _direct, _loop
from gaptron.logged import record, teach
from gaptron.pending import FIRST_SWEEP
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
    learner = make()
    first, second = learner.decide(X[0]), learner.decide(X[1])
    learner.learn(second, label=0), learner.learn(first, label=0)
    with pytest.raises(gaptron.NoBoundError, match="up to 1 decisions late"):
        _ = again(learner).certificate


def test_settings_named_by_the_user_keep_their_exact_types(again):
    learner = make("gaptron", eta=np.float32(0.1), gamma=np.float64(0.25), beta=None)
    learner.play(X[:40], Y[:40])
    other = again(learner)
    assert repr(other._given) == repr(learner._given) and repr(other.settings) == repr(learner.settings)


def test_nothing_a_learner_holds_is_left_out():
    """A new attribute belongs into the file, or into this list with a reason."""
    derived = {"_file", "_shown", "_decide_once", "_learn_once", "_classes", "_problem", "_rng", "_open"}
    stored = {f"_{name}" for name in started().__getstate__()} | {"algorithm", "_promised"}
    assert set(vars(started())) - derived <= stored
    assert set(gaptron.Decision.__dataclass_fields__) == {
        "label", "probability", "round", "_code", "_x", "_sheet", "_owner",
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
        [None, ("a", (1, None)), (), "()"],
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


def test_decisions_are_pending_until_answered_given_up_or_dropped():
    learner = started()
    one, two, three = (learner.decide(x) for x in X[40:43])
    assert learner.pending == {41: one, 42: two, 43: three}
    learner.learn(two, label=1)
    learner.forget(three)
    assert learner.pending == {41: one}
    for gone in (two, three):
        with pytest.raises(DecisionError, match=f"round {gone.round} has been answered already, or given up"):
            learner.learn(gone, label=1)
        with pytest.raises(DecisionError):
            learner.forget(gone)
    with pytest.raises(DecisionError, match="another learner"):
        started().forget(one)
    del one
    gc.collect()
    assert learner.pending == {}


def test_decisions_nobody_holds_take_no_room():
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
        with pytest.raises(DecisionError, match="answered already"):
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
    with pytest.raises(DecisionError, match="answered already"):
        other.learn(past, label=0)
    with pytest.raises(DecisionError, match="another learner"):
        learner.learn(past, label=0)


@needs_compiler
def test_a_round_is_called_as_compiled():
    """The short way past the dispatcher, which costs more than the round."""
    learner = started()
    learner.learn(learner.decide(X[40]), label=0)
    assert learner._decide_once is not _loop().decide_once and learner._learn_once is not _loop().learn_once
    verb = _loop().sqnorms
    out = np.empty(80)
    _direct(verb, X, out)(X, out)
    np.testing.assert_allclose(out, (X**2).sum(axis=1))


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
    "an algorithm that is no word": change("algorithm", to=("gaptron",)),
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
    "a negative norm": change("norm", to=-1.0),
    "an endless norm": change("norm", to=math.inf),
    "a norm in words": change("norm", to="long"),
    "an unknown setting": change("given", to={"speed": 1.0}),
    "a parameter as setting": change("given", to={"classes": [1, 2]}),
    "settings of another kind": change("settings", to={"gamma": 0.1}),
    "a setting of another type": change("settings", "delay", to=0.5),
    "a setting that is a tree": change("settings", "scale", to=[1.0]),
    "no settings but a state": change("settings", to=None),
    "sparse": change("sparse", to=True),
    "state as a list": change("state", to=[1.0]),
    "a field less": lambda tree: tree["state"].pop("r"),
    "a field more": lambda tree: tree["state"].update(more=1),
    "weights of another shape": change("state", "W", to=lambda W: W.T.copy()),
    "weights of another type": change("state", "W", to=lambda W: W.astype(np.float32)),
    "weights as a number": change("state", "W", to=0.0),
    "another generator": change("generator", "bit_generator", to="MT19937"),
    "a generator without state": change("generator", "state", to={}),
    "a generator with words": change("generator", "state", "inc", to="1"),
    "a generator beyond its bits": change("generator", "state", "state", to=-1),
    "a negative count": change("decided", to=-1),
    "a count that is a flag": change("late", to=True),
    "more learned than decided": change("learned", to=10**6),
    "an endless row": change("longest", to="long"),
    "pending as a number": change("pending", to=3),
    "a round that was not": change("pending", 0, "round", to=99),
    "round zero": change("pending", 0, "round", to=0),
    "a round twice": change("pending", 1, "round", to=41),
    "a label that is not": change("pending", 0, "code", to=4),
    "a negative label": change("pending", 0, "code", to=-1),
    "a short row": change("pending", 0, "row", to=lambda x: x[:3]),
    "a row with holes": change("pending", 0, "row", to=lambda x: {"indices": np.arange(6), "values": x}),
    "a short sheet": change("pending", 0, "sheet", "p", to=lambda p: p[:2]),
    "no sheet": change("pending", 0, "sheet", to=None),
}


@pytest.mark.parametrize("harm", HOSTILE.values(), ids=list(HOSTILE))
def test_a_file_with_a_right_checksum_and_a_wrong_content(harm, tmp_path):
    learner = started()
    _waiting = [learner.decide(X[40]), learner.decide(X[41])]
    learner.save(tmp_path / "model")
    tree = model_file.read(tmp_path / "model")
    harm(tree)
    model_file.write(tmp_path / "model", tree)
    with pytest.raises(ModelFileError, match="it holds no learner of this version"):
        Learner.load(tmp_path / "model")


@pytest.mark.parametrize(
    "harm",
    [
        lambda state: state["span"].__setitem__(0, 10**6),
        lambda state: state["span"].__setitem__(1, -1),
        lambda state: state["span"].__setitem__(2, len(state["values"]) + 1),
        lambda state: state["place"].__setitem__((0, 1), 10**9),
        lambda state: state["place"].__setitem__((0, 0), -1),
        lambda state: state["place"].__setitem__((0, 1), 3),
        lambda state: state["y"].__setitem__(0, K),
    ],
    ids=["oldest", "count", "free", "end", "begin", "short", "label"],
)
def test_a_history_that_points_outside_itself(harm, tmp_path):
    learner = make("hinge-lmc", feedback="bandit", memory=8)
    learner.play(X[:10], Y[:10])
    learner.save(tmp_path / "model")
    tree = model_file.read(tmp_path / "model")
    assert tree["state"]["span"][1] > 0
    harm(tree["state"])
    model_file.write(tmp_path / "model", tree)
    with pytest.raises(ModelFileError, match="points outside its array"):
        Learner.load(tmp_path / "model")


@pytest.mark.parametrize("indices", [[0, 6], [-1, 2], [2, 2], [3, 1]])
def test_a_sparse_row_that_points_outside_itself(indices, tmp_path):
    path = tmp_path / "model"
    shutil.copy(FOLDER / "graph.gaptron", path)
    tree = model_file.read(path)
    tree["pending"][0]["row"] = {"indices": np.array(indices, dtype=np.int32), "values": np.ones(2)}
    model_file.write(path, tree)
    with pytest.raises(ModelFileError, match="row holds a column outside"):
        Learner.load(path)


@pytest.mark.parametrize("size", [-1.0, 6.0, math.nan, math.inf])
def test_a_support_that_is_larger_than_its_room(size, tmp_path):
    learner = make("separable", feedback="bandit", kernel=True, support=5)
    learner.play(X[:3], Y[:3])
    learner.save(tmp_path / "model")
    tree = model_file.read(tmp_path / "model")
    tree["state"]["size"][0] = size
    model_file.write(tmp_path / "model", tree)
    with pytest.raises(ModelFileError, match="size points outside"):
        Learner.load(tmp_path / "model")


# --- files of earlier days --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", json.loads(FILE.read_text()))
def test_files_that_were_kept_are_read(name):
    learner = Learner.load(FOLDER / f"{name}.gaptron")
    assert account(learner) == json.loads(FILE.read_text())[name]


def test_every_kept_learner_has_its_file():
    assert set(KEPT) <= set(json.loads(FILE.read_text())) == {path.stem for path in FOLDER.glob("*.gaptron")}


def test_grown_and_taught_learners_say_so_after_loading(again):
    grown = started()
    grown.grow(classes=range(K + 1))
    with pytest.raises(gaptron.NoBoundError, match="labels were added"):
        _ = again(grown).certificate
    taught = started(feedback="bandit")
    teach(taught, record(make(feedback="bandit", seed=6), X, Y))
    with pytest.raises(gaptron.NoBoundError, match="taught by decisions"):
        _ = again(taught).certificate


def test_a_decision_waits_while_features_are_added(again):
    learner = make(n_classes=K, feedback="bandit")
    learner.play(X[:40], Y[:40])
    waiting = learner.decide(X[40])
    learner.grow(n_features=X.shape[1] + 2)
    other = again(learner)
    learner.learn(waiting, correct=True)
    other.learn(other.pending[41], correct=True)
    assert portrait(other) == portrait(learner)
