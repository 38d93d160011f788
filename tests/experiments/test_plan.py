"""Plans: the tasks they give, and errors that name file and line."""

import textwrap
from pathlib import Path

import pytest

from gaptron.algorithms import NAMES, load
from gaptron.errors import SettingError
from gaptron.experiments.compare import estimate
from gaptron.experiments.plan import needs_radius
from gaptron.experiments.plan_file import default_plan, parse, read_plan
from gaptron.experiments.stream_cache import describe
from gaptron.experiments.task import Task
from gaptron.types import Feedback, Problem
from tests.experiments.small import stream

SHIPPED = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))
HEAD = 'streams = ["iris"]\nalgorithms = ["gaptron"]\n'

WRONG = [
    (HEAD + "seeds = 0\n", 3, "seeds = 0"),
    (HEAD + "seeds = [1, 1]\n", 3, "distinct"),
    (HEAD + "seeds = [-1]\n", 3, "of at least 0"),
    (HEAD + "seeds = true\n", 3, "seeds = True"),
    (HEAD + 'feedback = "some"\n', 3, "unknown feedback 'some'; choose from: full, bandit, apple-tasting"),
    (HEAD + "feedback = []\n", 3, "a list of strings"),
    (HEAD + "\n# a remark\nspeed = 3\n", 5, "a plan has no 'speed'; it has: streams"),
    (HEAD + "bounds = 3\n", 3, "choose from: first, all, none"),
    (HEAD + "radius = -1\n", 3, "must be a positive number"),
    (HEAD + "grids = 1\n", 3, "must be true or false"),
    (HEAD + "[prepare]\nunit = true\n", 4, "[prepare] has no 'unit'"),
    (HEAD + "prepare = 3\n", 3, "must be a table"),
    ('algorithms = ["gaptron"]\n', None, "streams must be a list"),
    ('streams = ["iris"]\nalgorithms = []\n', 2, "algorithms must be a list"),
    ('streams = ["iris"]\nalgorithms = ["gaptron",\n  "magic"]\n', 3, "unknown name 'magic'"),
    ('streams = ["iris"]\nalgorithms = [3]\n', 2, "neither a name nor a table"),
    ('streams = ["iris",\n "iris"]\nalgorithms = ["gaptron"]\n', 1, "two streams are called 'iris'"),
    ('streams = ["iris"]\nfeedback = "full"\nalgorithms = [\n  "banditron"]\n', 4, "banditron supports bandit"),
    ('algorithms = ["gaptron"]\n[[streams]]\nname = "iris"\n', 2, 'needs data = "..."'),
    ('algorithms = ["gaptron"]\n[[streams]]\ndata = "a"\n[[streams]]\ndata = "b"\nlimit = "x"\n', 6, "a whole number"),
    ('algorithms = ["gaptron"]\n[[streams]]\ndata = "a"\nlimits = 3\n', 4, "a stream has no 'limits'"),
    (
        'streams = ["a"]\n[[algorithms]]\nname = "soba"\n[[algorithms]]\nname = "arow"\nsettings = { a = 1 }\n',
        6,
        "no setting 'a'",
    ),
    ('streams = ["a"]\n[[algorithms]]\nname = "soba"\ngrid = { gamma = 0.1 }\n', 4, "a list of numbers or strings"),
    (
        'streams = ["a"]\n[[algorithms]]\nname = "soba"\n\nloss = "logistic"\n',
        5,
        "unknown loss 'logistic'; choose from: hinge",
    ),
    ('streams = ["a"]\n[[algorithms]]\nloss = "hinge"\n', 2, 'needs name = "..."'),
    ("streams = [\n", 1, "(at end of document)"),
]


@pytest.mark.parametrize(("text", "line", "problem"), WRONG)
def test_an_error_names_the_file_and_the_line(text, line, problem):
    with pytest.raises(SettingError) as caught:
        parse(text, "my.toml")
    message = str(caught.value)
    assert problem in message
    assert message.startswith("my.toml: " if line is None or "at end" in problem else f"my.toml, line {line}: ")


def test_a_plan_that_does_not_exist():
    with pytest.raises(SettingError, match=r"none\.toml: cannot be read"):
        read_plan(Path("none.toml"))


def test_streams_feedback_algorithms_settings_and_seeds_are_crossed():
    plan = parse(
        textwrap.dedent("""
        seeds = [4, 7]
        streams = ["iris", { data = "wine", name = "grapes", shuffle = false, limit = 100 }]
        radius = 3

        [prepare]
        unit_norm = true

        [[algorithms]]
        name = "gaptron"
        loss = ["hinge", "logistic"]

        [[algorithms]]
        name = "banditron"
        grid = { gamma = [0.1, 0.2] }

        [[algorithms]]
        name = "perceptron"
        """),
        "p",
    )
    iris, wine = plan.streams
    assert dict(iris.preparing) == {"unit_norm": True} and iris.shuffle
    assert dict(wine.preparing) == {"unit_norm": True, "limit": 100} and not wine.shuffle and wine.title == "grapes"
    tasks = list(plan.tasks(wine))
    assert len(tasks) == 2 * (2 + 1) + 2 * (2 + 3)  # full: gaptron twice, perceptron; bandit: gaptron twice, 1 + 2
    assert {task.seed for task in tasks} == {4, 7} and {task.stream for task in tasks} == {"grapes"}
    tried = [(t.settings, t.role, t.tuned, t.bound) for t in tasks if t.algorithm == "banditron" and t.seed == 4]
    assert tried == [
        ({}, "published", None, True),
        ({"gamma": 0.1}, "grid", "gamma", False),
        ({"gamma": 0.2}, "grid", "gamma", False),
    ]
    assert {(t.feedback, t.radius) for t in tasks if t.algorithm == "gaptron"} == {("full", None), ("bandit", 3.0)}
    assert {t.bound for t in tasks if t.seed == 7} == {False}


def test_a_grid_can_be_built_in_or_omitted():
    text = 'streams = ["iris"]\nfeedback = "bandit"\nseeds = 1\n'
    tuned = parse(text + 'algorithms = ["soba"]', "p")
    assert len(list(tuned.tasks(tuned.streams[0]))) == 1 + 15
    for words in ('algorithms = ["soba"]\ngrids = false', 'algorithms = [{ name = "soba", grid = false }]'):
        plan = parse(text + words, "p")
        assert len(list(plan.tasks(plan.streams[0]))) == 1
    fixed = parse(text + 'algorithms = [{ name = "soba", settings = { a = 3.0 } }]', "p")
    points = [task.settings for task in fixed.tasks(fixed.streams[0])]
    assert len(points) == 1 + 5 and all(point["a"] == 3.0 for point in points)


def test_workers_that_start_together_get_different_algorithms():
    plan = default_plan()
    first = [task.algorithm for task in plan.tasks(plan.streams[0])][:6]
    assert len(set(first)) == 6


@pytest.mark.parametrize("name", [name for name in NAMES if load(name).CARD.grid])
def test_every_point_of_a_grid_is_a_setting_its_algorithm_takes(name):
    file = load(name)
    for feedback in file.CARD.feedback:
        problem = Problem(2, 3, feedback, file.CARD.losses[0], norm=1.0, radius=10.0, horizon=1000)
        for setting, values in file.CARD.grid.items():
            for value in values:
                used = file.recommend(problem, **{setting: value})
                assert value in tuple(used), (setting, value)


def test_the_theorems_own_algorithms_are_not_tuned():
    family = ("advised-gaptron", "frugal-gaptron", "gaptron", "gappletron", "randomized-decoding", "perceptron")
    assert not any(load(name).CARD.grid for name in family)


def test_a_more_expensive_round_is_estimated_to_take_longer():
    cached = describe(stream(), Path())[0]
    plain = estimate(Task("s", "arow", "full", "hinge", 0, {}), cached)
    assert estimate(Task("s", "arow", "full", "hinge", 0, {}, bound=True), cached) > plain
    assert estimate(Task("s", "arow", "full", "hinge", 0, {"matrix": "full"}), cached) > plain
    few, many = (Task("s", "exp4", "bandit", "hinge", 0, {"experts": n}) for n in (10, 1000))
    assert estimate(many, cached) > 10 * estimate(few, cached)


@pytest.mark.parametrize(("feedback", "needed"), [("full", False), ("bandit", True)])
def test_which_algorithms_need_a_radius(feedback, needed):
    task = Task("s", "gaptron", feedback, "hinge", 0, {})
    assert needs_radius(task) is needed
    assert not needs_radius(task._replace(settings={"radius": 2.0}))
    assert not needs_radius(Task("s", "newtron", "bandit", "logistic", 0, {}))  # has a published one


def test_graph_feedback_is_for_algorithms_that_support_it():
    plan = parse('streams = ["iris"]\nfeedback = "label-efficient"\nalgorithms = ["gappletron"]\nseeds = 1', "p")
    assert [task.feedback for task in plan.tasks(plan.streams[0])] == ["label-efficient"]
    assert Feedback.GRAPH in load("gappletron").CARD.feedback


def test_a_stream_may_be_for_some_feedback_only():
    streams = 'streams = ["iris", { data = "wine", feedback = "bandit" }]\n'
    plan = parse(streams + 'algorithms = ["gaptron"]\nseeds = 1', "p")
    assert [[task.feedback for task in plan.tasks(s)] for s in plan.streams] == [["full", "bandit"], ["bandit"]]


def test_the_default_plan_is_what_it_says():
    plan = default_plan()
    assert len(plan.seeds) == 5 and plan.feedback == ("full", "bandit")
    assert {"synsep", "synnonsep", "digits"} <= {stream.title for stream in plan.streams}
    assert {"frugal-gaptron", "gaptron", "perceptron", "banditron"} <= {
        planned.algorithm for planned in plan.algorithms
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_plans_that_ship_are_plans(path):
    if "river:" in path.read_text():
        pytest.importorskip("river", reason="River is not installed: pip install '.[river]'")
    plan = read_plan(path)
    assert all(any(True for _ in plan.tasks(planned)) for planned in plan.streams)
