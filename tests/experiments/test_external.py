"""Classifiers of River and scikit-learn in a comparison: the same rounds, the loop of their own libraries."""

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from gaptron.errors import InputError, SettingError
from gaptron.experiments import external
from gaptron.experiments.backends import processes, serial
from gaptron.experiments.compare import Callbacks, compare, estimate
from gaptron.experiments.plan import PlannedAlgorithm
from gaptron.experiments.plan_file import parse
from gaptron.experiments.run_task import run_task
from gaptron.experiments.stream_cache import cache_stream, describe
from gaptron.experiments.task import Result, Task
from gaptron.report.compare import write as write_report
from gaptron.streams import Stream, prepare
from gaptron.streams.clicks import clicks
from tests.experiments.small import stream, timeless, write

pytest.importorskip("river", reason="River is not installed: pip install '.[river]'")

from river import base, drift, forest, linear_model, multiclass
from sklearn.linear_model import SGDClassifier

AMF, SGD = "river:forest.AMFClassifier", "sklearn:linear_model.SGDClassifier"
BINARY, ONE_VS_REST = "river:linear_model.LogisticRegression", "river:multiclass.OneVsRestClassifier"
TREES = {"n_estimators": 2}
TASK = Task("small", AMF, "full", "", 3, TREES)
PLAN = """
feedback = {feedback}
seeds = {seeds}
streams = ["{data}"]
algorithms = ["frugal-gaptron", {{ name = "river:forest.AMFClassifier", settings = {{ n_estimators = 2 }} }}]
"""


def small(rounds=80):
    """Rounds in which a third of the features is zero."""
    made = stream()
    X = made.X[:rounds].copy()
    X[np.abs(X) < 0.4 * X.std()] = 0.0
    return Stream.from_arrays(X, made.y[:rounds])


def play(made, task, folder):
    result = run_task(task, cache_stream(made, folder), task.version)
    assert result.ok, result.error
    return result


def mistakes(model, examples, labels):
    """What River's own loop counts; the first label before the model knows one."""
    wrong = 0
    for x, y in zip(examples, labels):
        predicted = model.predict_one(x)
        wrong += (labels.min() if predicted is None else predicted) != y
        model.learn_one(x, y)
    return wrong


class Recorder(base.Classifier):
    """Predicts what it is told to, and records how it is called."""

    def __init__(self, predictions=()):
        self.predictions = iter(predictions)
        self.calls = []

    @property
    def _multiclass(self):
        return True

    def predict_one(self, x):
        self.calls.append(("predict", x))
        return next(self.predictions)

    def learn_one(self, x, y):
        self.calls.append(("learn", x, y))


class Binary(Recorder):
    @property
    def _multiclass(self):
        return False


# --- playing ----------------------------------------------------------------------------------------------------


def test_a_model_predicts_and_then_learns_each_example_in_the_order_of_the_rounds():
    X, y = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]), np.array([2, 0, 1])
    model = Recorder([None, 2, np.int64(1)])
    trace, seconds = external.play(model, "river:x.Y", X, y, 3, np.array([1, 0, 2]))
    first, second, third = {0: 0.0, 1: 2.0}, {0: 1.0, 1: 0.0}, {0: 3.0, 1: 4.0}
    assert model.calls == [
        ("predict", first),
        ("learn", first, 0),
        ("predict", second),
        ("learn", second, 2),
        ("predict", third),
        ("learn", third, 1),
    ]
    assert trace.codes.tolist() == [0, 2, 1] and trace.mistakes == 0 and trace.top_mistakes == 0
    assert trace.expected_mistakes == 0.0 and seconds > 0.0


def test_a_sparse_example_is_a_dict_of_what_is_not_zero():
    X = sparse.csr_array(np.array([[0.0, 1.5, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, -1.0]]))
    model = Recorder([1, 1, 1])
    trace, _ = external.play(model, "river:x.Y", X, np.array([0, 1, 1]), 2, np.array([2, 0, 1]))
    assert [call[1] for call in model.calls[::2]] == [{0: 2.0, 2: -1.0}, {1: 1.5}, {}]
    assert trace.wrong.tolist() == [False, True, False] and trace.expected_mistakes == 1.0


def test_a_binary_model_gets_false_and_true():
    model = Binary([False, True])
    trace, _ = external.play(model, "river:x.Y", np.ones((2, 1)), np.array([0, 1]), 2, np.arange(2))
    assert [call[2] for call in model.calls[1::2]] == [False, True] and type(model.calls[1][2]) is bool
    assert trace.codes.tolist() == [0, 1]


@pytest.mark.parametrize("wrong", [3, -1, 0.5, "a"])
def test_a_prediction_that_is_not_a_label_is_an_error(wrong):
    with pytest.raises(InputError, match=r"river:x\.Y predicted .* in round 1, not a label from 0 to 2"):
        external.play(Recorder([wrong]), "river:x.Y", np.ones((1, 1)), np.array([0]), 3, np.arange(1))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_river_model_makes_the_mistakes_of_rivers_own_loop(layout, shuffle, tmp_path):
    made = small()
    given = Stream.from_arrays(layout(made.X), made.y)
    result = play(given, TASK._replace(shuffle=shuffle), tmp_path)
    ordered = prepare(made, shuffle=3) if shuffle else made
    examples = [{j: x for j, x in enumerate(row) if x or layout is np.asarray} for row in ordered.X.tolist()]
    expected = mistakes(forest.AMFClassifier(n_estimators=2, seed=3), examples, ordered.y)
    assert result.mistakes == result.expected_mistakes == result.top_mistakes == expected > 0
    assert result.curve["mistakes"][-1] == expected and result.curve["rounds"][-1] == 80 and result.seconds > 0
    assert (result.bound, result.certificate, result.observed) == (None, None, None)
    assert result.bound_reason == "no theorem: a model of another library"
    assert result.used["n_estimators"] == 2 and result.used["seed"] == 3 and result.used["step"] == 1.0
    assert Result.from_json(result.to_json()) == result


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_scikit_learn_model_learns_from_every_example(layout, tmp_path):
    made = small()
    task = TASK._replace(algorithm=SGD, settings={"alpha": 0.01}, shuffle=False)
    X = layout(made.X)
    result = play(Stream.from_arrays(X, made.y), task, tmp_path)
    model, wrong = SGDClassifier(alpha=0.01, random_state=3), 0
    for t in range(80):
        x, y = X[[t]], made.y[t : t + 1]
        wrong += (model.predict(x)[0] if t else 0) != y[0]
        model.partial_fit(x, y, classes=[0, 1, 2])
    assert result.mistakes == wrong > 0 and result.used["random_state"] == 3 and result.used["alpha"] == 0.01


def test_labels_of_any_type_give_the_same_result(tmp_path):
    made = small()
    expected = play(made, TASK, tmp_path).mistakes
    for words in (["ant", "bee", "cat"], [10, 20, 30]):
        y = np.array(words)[made.y]
        assert play(Stream.from_arrays(made.X, y, classes=words), TASK, tmp_path).mistakes == expected


def test_a_model_for_two_labels_needs_a_wrapper_for_three(tmp_path):
    made, task = small(), TASK._replace(algorithm=BINARY, settings={})
    refused = run_task(task, cache_stream(made, tmp_path), task.version)
    assert refused.error["message"] == (
        f'{BINARY} is for two labels, but the stream has 3: use {ONE_VS_REST} with the setting classifier = "{BINARY}"'
    )
    two = Stream.from_arrays(made.X, (made.y > 0).astype(int))
    result = play(two, task._replace(shuffle=False), tmp_path)
    examples = [dict(enumerate(row)) for row in two.X.tolist()]
    assert result.mistakes == mistakes(linear_model.LogisticRegression(), examples, two.y.astype(bool))
    wrapped = play(made, task._replace(algorithm=ONE_VS_REST, settings={"classifier": BINARY}, shuffle=False), tmp_path)
    model = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    assert wrapped.mistakes == mistakes(model, [dict(enumerate(row)) for row in made.X.tolist()], made.y)
    assert wrapped.used == {"classifier": BINARY}


@pytest.mark.parametrize("name", ["available", "rewards"])
def test_a_stream_of_a_bandit_is_refused(name, tmp_path):
    made = clicks(50, seed=2, labels=4)
    if name == "available":
        made = replace(made, rewards=None, available=np.ones((50, 4), dtype=bool))
    result = run_task(TASK, cache_stream(made, tmp_path), TASK.version)
    assert result.error["message"] == f"{AMF} cannot play a stream with {name}: remove it from the stream"


# --- making a model ---------------------------------------------------------------------------------------------


def test_a_model_gets_the_seed_of_its_task_unless_it_has_one():
    assert external.make(AMF, {}, 7).seed == 7
    assert external.make(AMF, {"seed": 1}, 7).seed == 1
    assert external.make(SGD, {}, 7).random_state == 7
    inside = external.make("river:ensemble.ADWINBaggingClassifier", {"model": AMF}, 7)
    assert inside.seed == 7 and inside.models[0].seed == 7
    assert not hasattr(external.make("river:naive_bayes.GaussianNB", {}, 7), "seed")


def test_a_setting_may_name_an_object_of_the_library():
    made = external.make("river:forest.ARFClassifier", {"n_models": 1, "drift_detector": "river:drift.NoDrift"}, 0)
    assert isinstance(made.drift_detector, drift.NoDrift)


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        ("river:forest.AMF", {}, r"river:forest.AMF does not exist; classifiers in river.forest: AMFClassifier, ARF"),
        ("river:forest.ARFRegressor", {}, "is not a classifier with learn_one; classifiers in river.forest: AMF"),
        ("river:base.Classifier", {}, "cannot be made with settings {}: Can't instantiate abstract class"),
        ("river:optim.SGD", {}, "is not a classifier with learn_one; classifiers in river.optim: none"),
        ("river:forst.AMFClassifier", {}, "cannot be imported .*; a name is river:forest.AMFClassifier"),
        ("river:AMFClassifier", {}, "must name a module and a class, such as river:forest.AMFClassifier"),
        ("river:", {}, "must name a module and a class"),
        (AMF, {"trees": 3}, "cannot be made with settings {'trees': 3}: .*unexpected keyword argument 'trees'"),
        (ONE_VS_REST, {}, "cannot be made with settings {}: .*missing 1 required positional argument: 'classifier'"),
        (ONE_VS_REST, {"classifier": "river:forest.AMF"}, "river:forest.AMF does not exist"),
        ("sklearn:svm.SVC", {}, "is not a classifier with partial_fit; classifiers in sklearn.svm: none"),
        ("sklearn:linear_model.SGDRegressor", {}, "not a classifier with partial_fit; .*, SGDClassifier"),
    ],
)
def test_what_cannot_be_made_is_one_clear_error(name, settings, problem):
    with pytest.raises(SettingError, match=problem):
        PlannedAlgorithm(name, settings=settings)


def test_a_missing_library_names_what_to_install(monkeypatch, tmp_path):
    cached, version = cache_stream(small(), tmp_path), TASK.version
    for module in [module for module in sys.modules if module.partition(".")[0] == "river"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingError, match=re.escape(f"{AMF} needs River: pip install '.[river]'")):
        PlannedAlgorithm(AMF)
    assert "needs River" in run_task(TASK, cached, version).error["message"]  # a worker without it


def test_a_worker_with_another_version_of_the_library_refuses_the_task(tmp_path):
    made_by = TASK.version.replace("river ", "river 0.0.")
    assert made_by != TASK.version
    assert f"made by {made_by}" in run_task(TASK, cache_stream(small(), tmp_path), made_by).error["message"]


# --- plans and results ------------------------------------------------------------------------------------------


def test_a_model_plays_with_full_information_only():
    plan = parse(PLAN.format(feedback='["full", "bandit"]', seeds=2, data="iris"), "p")
    tasks = [task for task in plan.tasks(plan.streams[0]) if task.algorithm == AMF]
    assert [(task.feedback, task.seed, task.settings) for task in tasks] == [("full", 0, TREES), ("full", 1, TREES)]
    assert not any(task.bound or task.command or task.radius for task in tasks)
    with pytest.raises(SettingError, match=f"{AMF} supports full feedback, but the plan has bandit"):
        parse(PLAN.format(feedback='"bandit"', seeds=2, data="iris").replace('"frugal-gaptron", ', ""), "p")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('name = "river:forest.AMF"', "river:forest.AMF does not exist"),
        (f'name = "{AMF}"\nsettings = {{ trees = 3 }}', f"{AMF} has no setting 'trees'; it has: n_estimators, step"),
        (f'name = "{AMF}"\ngrid = {{ trees = [3] }}', f"{AMF} has no setting 'trees'"),
        (f'name = "{AMF}"\nloss = "hinge"', "an external model has no 'loss'; it has: name, feedback, settings, grid"),
        (f'name = "{ONE_VS_REST}"', "missing 1 required positional argument: 'classifier'"),
        ('name = "rivers:forest.AMF"', "unknown name 'rivers:forest.AMF'; choose from: .*, river:forest.AMFClassifier"),
    ],
)
def test_a_mistake_in_a_plan_names_its_line(entry, problem):
    with pytest.raises(SettingError, match=rf"p, line {3 + entry.count(chr(10))}: .*{problem}"):
        parse(f'streams = ["iris"]\n[[algorithms]]\n{entry}\n', "p")


def test_a_grid_of_a_model_is_tried_like_any_other(tmp_path):
    entry = f'{{ name = "{AMF}", grid = {{ n_estimators = [1, 2] }} }}'
    plan = parse(f'streams = ["{write(tmp_path)}"]\nseeds = 1\nfeedback = "full"\nalgorithms = [{entry}]', "p")
    results = compare(plan, tmp_path / "out", serial)
    assert [(r.role, r.used["n_estimators"]) for r in results] == [("published", 10), ("grid", 1), ("grid", 2)]


def test_a_model_plays_a_table_as_encoded_in_the_order_of_the_seed(tmp_path):
    rows = [f"{'phone' if n % 3 else 'desk'},{n % 7},{'yes' if n % 3 else 'no'}" for n in range(60)]
    (tmp_path / "t.csv").write_text("device,age,clicked\n" + "\n".join(rows) + "\n")
    stream = f'{{ data = "{tmp_path / "t.csv"}", label = "clicked", by_name = true }}'
    entry = f'{{ name = "{AMF}", settings = {{ n_estimators = 2 }} }}'
    plan = parse(f'streams = [{stream}]\nseeds = 2\nfeedback = "full"\nalgorithms = [{entry}]', "p")
    results = compare(plan, tmp_path / "out", serial)
    assert [result.ok for result in results] == [True, True]
    for result in results:
        encoded = plan.streams[0].open(result.seed)
        starts = zip(encoded.X.indptr[:-1], encoded.X.indptr[1:])
        examples = [dict(zip(encoded.X.indices[a:b].tolist(), encoded.X.data[a:b].tolist())) for a, b in starts]
        model = forest.AMFClassifier(n_estimators=2, seed=result.seed)
        assert result.mistakes == mistakes(model, examples, encoded.y)


@pytest.mark.slow
def test_processes_find_the_same_and_known_results_are_not_run_again(tmp_path):
    plan = partial(parse, name="p")
    text = partial(PLAN.format, feedback='"full"', data=write(tmp_path))
    expected = compare(plan(text(seeds=2)), tmp_path / "serial", serial)
    assert all(result.ok for result in expected) and expected[1].mistakes != expected[3].mistakes
    ran = []
    callbacks = Callbacks(on_result=ran.append)
    compare(plan(text(seeds=1)), tmp_path / "two", partial(processes, n=2), callbacks)
    assert len(ran) == 2
    assert timeless(compare(plan(text(seeds=2)), tmp_path / "two", partial(processes, n=2), callbacks)) == timeless(
        expected
    )
    assert len(ran) == 4


def test_the_report_says_that_a_model_has_no_theorem(tmp_path):
    results = compare(parse(PLAN.format(feedback='"full"', seeds=1, data=write(tmp_path)), "p"), tmp_path, serial)
    page = write_report(results, tmp_path).read_text()
    assert "no theorem: a model of another library" in page and AMF in page
    assert "no command: repeat the comparison with this seed" in page


def test_an_estimate_does_not_load_the_library():
    cached = describe(stream(), Path())[0]
    assert estimate(TASK, cached) > 0.0
