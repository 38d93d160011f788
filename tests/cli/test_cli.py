"""The command line, as users call it."""

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numba
import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from gaptron import GaptronError, Learner
from gaptron.algorithms import NAMES
from gaptron.cli import app, reading, settings
from gaptron.cli.progress import ProgressBar
from gaptron.report.paper import surrogate_gap
from gaptron.streams import prepare, source, synnonsep, synsep
from tests.streams import writers


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def fail(*words: str, stdin: str = "") -> str:
    """Return the error message of a command: one line, exit code 2, no traceback."""
    code = "from gaptron.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, input=stdin)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def flat(text: str) -> str:
    """Return the text without the line breaks that fit it into 80 columns."""
    return " ".join(text.split())


def account(*words: str) -> dict[str, object]:
    return json.loads(run("play", *words, "--json"))


def test_help_does_not_import_the_compiler():
    code = (
        "import sys\nfrom gaptron.cli import main\nsys.argv = ['gaptron', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.slow
def test_playing_a_text_file_imports_no_library_that_it_does_not_need(tmp_path):
    """Each takes tens of megabytes. numba.np.arraymath: all that compiles, once the code is on disk."""
    file = tmp_path / "rounds.svm"
    file.write_text("0 1:1.0\n1 2:1.0\n" * 20)
    code = (
        f"import sys\nfrom gaptron.cli import main\nsys.argv = ['gaptron', 'play', {str(file)!r}, '--no-bound']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = 'sklearn', 'joblib', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'scipy.optimize', 'scipy.stats'\n"
        "print('imported:', *(name for name in (*heavy, 'numba.np.arraymath') if name in sys.modules))"
    )
    for _ in range(2):  # the first may have to compile
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "40 rounds" in done.stdout
    assert done.stdout.rstrip().endswith("imported:")


def test_play_says_what_the_learner_says():
    stream = synsep(2000, seed=1)
    learner = Learner("gaptron", n_classes=9, loss="hinge", seed=5, horizon=2000)
    trace = learner.play(stream.X, stream.y)
    said = account("synsep:rounds=2000,seed=1", "-a", "gaptron", "--loss", "hinge", "--seed", "5")
    assert said["mistakes"] == trace.mistakes
    assert said["expected_mistakes"] == trace.expected_mistakes
    assert said["top_mistakes"] == trace.top_mistakes
    bound = learner.bound(stream.X, stream.y, trace)
    assert said["bound"]["value"] == pytest.approx(bound.value, rel=1e-6)
    assert said["bound"]["used"] == pytest.approx(trace.expected_mistakes / bound.value, rel=1e-6)
    assert said["settings"]["eta"] == learner.settings.eta


def test_the_summary_names_every_number():
    text = run("play", "synsep:rounds=500", "-a", "gaptron", "--verbose")
    for word in ("500 rounds", "mistakes", "expected mistakes", "top label", "bound", "Theorem 1", "eta=", "rounds/s"):
        assert word in text


def test_progress_prints_a_line_at_each_doubling_and_changes_nothing():
    lines = run("play", "synsep:rounds=1000", "--progress", "--no-bound").splitlines()
    rounds = [int(line.split()[0].replace(",", "")) for line in lines[1:12]]
    assert rounds == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
    total = json.loads(run("play", "synsep:rounds=1000", "--json"))["mistakes"]
    assert float(lines[11].split()[1]) == pytest.approx(total / 1000)


def test_recent_is_the_error_since_the_last_line():
    lines = run("play", "synnonsep:rounds=64", "-P", "-a", "perceptron", "--no-bound").splitlines()[1:8]
    rounds = np.array([float(line.split()[0]) for line in lines])
    average, recent = (np.array([float(line.split()[i]) for line in lines]) for i in (1, 2))
    mistakes = average * rounds
    assert np.diff(mistakes) / np.diff(rounds) == pytest.approx(recent[1:], abs=1e-3)


@pytest.mark.slow
def test_a_file_in_chunks_is_measured_for_whoever_needs_its_norm(tmp_path: Path):
    stream = synsep(700, seed=3)
    path = tmp_path / "a.svm"
    dump_svmlight_file(stream.X, stream.y, str(path), zero_based=False)
    for algorithm, norm in (("gaptron", stream.norm), ("perceptron", None)):
        whole, parts = (account(str(path), "-a", algorithm, *words) for words in ((), ("--chunk", "64")))
        assert parts["norm"] == whole["norm"] == norm
        assert parts["mistakes"] == whole["mistakes"] and parts["settings"] == whole["settings"]
    with path.open("a") as file:
        file.write("1 1:1 2:1 3:x 4:1\n")
    for algorithm in ("gaptron", "perceptron"):
        assert "line 701: '3:x' is not index:value" in fail("play", str(path), "-a", algorithm, "--chunk", "64")


def test_a_file_in_chunks_is_the_file(tmp_path: Path):
    stream = synsep(700, seed=3)
    path = tmp_path / "a.svm"
    dump_svmlight_file(stream.X, stream.y, str(path), zero_based=False)
    whole = account(str(path), "--unit-norm")
    parts = account(str(path), "--unit-norm", "--chunk", "64")
    assert parts["bound"] is None and "use --bound" in parts["why_no_bound"]
    assert parts["notes"] == ["classes and width found in a first pass over the file"]
    assert "unit norm" in whole["prepared"]
    for sums in ("certificate", "high_probability_bound"):
        assert parts[sums] == pytest.approx(whole[sums])
    other = {
        "bound",
        "why_no_bound",
        "notes",
        "rounds_per_second",
        "expected_mistakes",
        "high_probability_bound",
        "certificate",
    }
    assert {name: parts[name] for name in parts.keys() - other} == {name: whole[name] for name in whole.keys() - other}
    assert parts["expected_mistakes"] == pytest.approx(whole["expected_mistakes"])


@pytest.mark.parametrize("words", [("-a", "gaptron"), ("-a", "gaptron", "--log1p"), ("--limit", "50"), ()])
# The rows of VW text are as wide as its hashes, and the search for the best U takes its time.
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["a.svm", pytest.param("a.vw", marks=pytest.mark.slow), "a.csv", "a.svm.gz"])
def test_a_large_file_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words):
    X, y = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 3
    kind, *raw = (writers.table, "--raw") if name == "a.csv" else (writers.vw if name == "a.vw" else writers.svmlight,)
    path = str(writers.put(tmp_path, name, kind(X, y)))
    small = account(path, *words, *raw)
    monkeypatch.setattr(reading, "SMALL", 0)
    large = account(path, *words, *raw)
    assert small["bound"] is not None or "algorithm has no" in small["why_no_bound"]
    assert large["bound"] is None and "read in chunks: use --bound" in large["why_no_bound"]
    for same in ("mistakes", "norm", "horizon", "settings", "last_quarter", "classes", "confused", "n_features"):
        assert large[same] == small[same]
    assert account(path, *words, *raw, "--bound")["bound"] == small["bound"]
    assert account(path, *words, *raw, "--shuffle", "1")["bound"] is not None
    assert "--bound" not in str(account(path, *words, *raw, "--no-bound")["why_no_bound"]).replace("--no-bound", "")


def test_options_that_need_the_whole_stream_refuse_chunks(tmp_path: Path):
    path = str(writers.put(tmp_path, "a.csv", writers.table(np.eye(3), [0, 1, 2])))
    for option in (("--bound",), ("--shuffle", "1"), ("--raw", "--standardize")):
        assert "needs the whole stream in memory: omit --chunk" in fail("play", path, "--chunk", "2", *option)


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "SMALL", 0)
    monkeypatch.setattr(source, "CHUNK_BYTES", 1 << 15)
    peaks = []
    for copies in (4, 4, 24):  # once for what is imported; all of them longer than what is read ahead
        path = writers.put(
            tmp_path, "a.svm", "".join(f"{at % 3} {at % 7 + 1}:0.5 {at % 50 + 9}:1\n" for at in range(9000)) * copies
        )
        tracemalloc.start()
        account(str(path), "-a", "perceptron")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.3 * peaks[1]


def test_preparation_is_named_in_the_summary(tmp_path: Path):
    text = run("play", "digits", "--standardize", "--constant", "--unit-norm", "--shuffle", "3", "--limit", "300")
    for word in ("300 rounds", "65 features", "constant", "unit norm", "seed 3"):
        assert word in text


def test_the_default_carries_a_certificate():
    said = account("synnonsep:rounds=400")
    assert said["algorithm"] == "advised-gaptron" and said["certificate"]["level"] == pytest.approx(0.0, abs=1e-9)
    assert said["mistakes"] <= said["high_probability_bound"]["mistakes"]
    text = run("play", "synnonsep:rounds=400", "--feedback", "bandit", "--verbose")
    for word in ("certificate: Λ", "of rounds explored", "not informative yet", "without exploration"):
        assert word in text
    assert "stay below" not in text


def test_bandit_runs_say_what_was_observed():
    words = ("synnonsep:rounds=400", "-a", "banditron", "--unit-norm")
    said, stream = account(*words), prepare(synnonsep(400), unit_norm=True)
    learner = Learner("banditron", n_classes=stream.n_classes, feedback="bandit", norm=stream.norm, horizon=400, seed=0)
    learner.play(stream.X, stream.y)
    proved = learner.observed
    assert said["observed"]["mistakes"] == said["mistakes"] == proved.mistakes
    assert said["observed"]["least_loss"] == proved.least_loss(20.0)
    assert said["observed"]["softmax"] == [proof._asdict() for proof in proved.softmax]
    text = flat(run("play", *words, "--verbose"))
    assert f"observed: {proved.sentence()}" in text and "about log loss, not mistakes" in text
    assert account(*words, "--no-observed")["observed"] is None
    assert account("synnonsep:rounds=400", "-a", "gaptron")["observed"] is None


def test_a_model_that_gained_labels_says_why_nothing_is_observed(tmp_path: Path):
    learner = Learner("banditron", classes=[1, 2], feedback="bandit", norm=1.0, horizon=9)
    learner.play([[1.0], [0.5]], [1, 2])
    learner.grow(classes=[1, 2, 3])
    learner.save(tmp_path / "model")
    (tmp_path / "more.csv").write_text("label,x\n1,0.5\n3,1\n")
    given = (str(tmp_path / "more.csv"), "--label", "label", "--load", str(tmp_path / "model"))
    assert "labels were added after round 2" in account(*given)["why_not_observed"]
    assert "observed: nothing; labels were added after round 2" in flat(run("play", *given, "--verbose"))


def test_an_overridden_setting_ends_the_bound_and_says_why():
    said = account("synsep:rounds=300", "-a", "gaptron", "--set", "eta=0.5")
    assert said["settings"]["eta"] == 0.5
    assert said["bound"] is None and "eta" in said["why_no_bound"]


@pytest.mark.slow
def test_bandit_only_algorithms_need_no_feedback_option():
    assert account("synsep:rounds=300", "-a", "banditron")["feedback"] == "bandit"


def test_a_bound_above_the_rounds_is_called_not_informative():
    given = ("synsep:rounds=300", "-a", "gaptron", "--feedback", "bandit", "--radius", "10")
    text = run("play", *given, "--bound")
    assert "not informative yet" in text
    shares = [float(share) for share in re.findall(r"([\d.]+)%", text)]
    assert account(*given)["bound"]["value"] > 300 and max(shares) <= 100.0


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuchfile.svm"], "nosuchfile.svm"),
        (["synsep", "-a", "nosuch"], "unknown algorithm"),
        (["synsep", "-a", "river:forest.X"], "play it with gaptron compare synsep -a river:forest.X"),
        (["synsep", "--set", "eta"], "NAME=VALUE"),
        (["synsep", "--set", "speed=1"], "no setting 'speed'"),
        (["synsep", "--loss", "squared"], "unknown loss"),
        (["synsep:rounds=50", "-a", "gaptron", "--feedback", "bandit"], "radius"),
        (["synsep:rounds=50", "-a", "perceptron", "--feedback", "bandit"], "perceptron takes feedback full"),
        (["synsep:rounds=50", "--norm", "1"], "above the norm"),
    ],
)
def test_a_mistake_gets_one_clear_line(words: list[str], message: str):
    text = fail("play", *words)
    assert message in text
    assert text.startswith("gaptron: ") and text.count("\n") == 1


def test_a_malformed_line_is_named(tmp_path: Path):
    path = tmp_path / "bad.svm"
    path.write_text("1 1:0.5 2:1\n2 1:0.1\n1 1:oops\n")
    assert "line 3" in fail("play", str(path))


def test_standard_input_in_chunks():
    code = "from gaptron.cli import main; main()"
    words = ["play", "-", "--classes", "1,2", "--features", "3", "--chunk", "2", "--norm", "2", "--json"]
    text = "1 1:1\n2 2:1\n1 1:1 3:0.5\n2 2:1\n2 2:0.5\n"
    done = subprocess.run([sys.executable, "-c", code, *words], input=text, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rounds"] == 5


@pytest.mark.slow
def test_standard_input_is_read_in_chunks_when_possible():
    text = "1 1:1\n2 2:1\n1 1:1 3:0.5\n2 2:1\n2 2:0.5\n"
    words = ("play", "-", "-a", "gaptron", "--classes", "1,2", "--features", "3", "--json")
    for more, played in (
        ((), False),
        (("--norm", "2"), True),
        (("--unit-norm",), True),
        (("--norm", "2", "--bound"), False),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "gaptron", *words, *more], input=text, capture_output=True, text=True, check=True
        )
        said = json.loads(done.stdout)
        assert said["rounds"] == 5 and (said["bound"] is None) == played, more


def test_chunks_of_standard_input_need_a_norm():
    words = ("play", "-", "-a", "gaptron", "--chunk", "1", "--classes", "1,2", "--features", "2")
    assert "standard input can be read only once" in fail(*words, stdin="1 1:0.5\n2 1:0.1\n")


def on_a_terminal(*words: str) -> str:
    """What a command writes to standard error, which is a terminal."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-m", "gaptron", *words], stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while more := os.read(ours, 1 << 16):
                text += more
    os.close(ours)
    assert process.returncode == 0, text
    return text.decode()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no such terminals here")
def test_a_terminal_shows_how_far_it_is(tmp_path: Path):
    path = str(writers.put(tmp_path, "a.svm", writers.svmlight(np.eye(300), np.arange(300) % 3)))
    assert "2.9 kB of 2.9 kB" in on_a_terminal("play", path, "--chunk", "10", "-a", "perceptron")
    assert "300 of 300 rounds" in on_a_terminal("play", path, "-a", "perceptron")
    for option in ("--json", "--progress"):
        assert on_a_terminal("play", path, "-a", "perceptron", "--no-bound", option) == ""


def test_the_bar_shows_compiling_then_progress():
    bar = ProgressBar(FakeBar(), 100)
    with bar.compiling():
        numba.njit(lambda x: x + 1)(1)
    numba.njit(lambda x: x + 2)(1)
    bar.read(50)
    bar.start_playing(7, in_memory=True)
    bar.played(3)
    compiled = [] if numba.config.DISABLE_JIT else ["compiling, once"]
    assert bar._bar.shown == [*compiled, "reading 50 bytes of 100 bytes", "playing 3 of 7 rounds"]


class FakeBar:
    """Records what a progress bar would show."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def add_task(self, word: str, total: None, count: str) -> int:
        return 0

    def update(self, task: int, description: str, count: str = "", **more: object) -> None:
        self.shown.append(f"{description} {count}".strip())


CALLS = (
    "a,b,label,paid,open\n"
    + "0.5,1,mail,0.3,mail|chat\n1,0,chat,1,chat|phone\n0.2,0.4,phone,0.5,phone|mail|chat\n" * 20
)


def test_columns_of_rewards_and_available_labels(tmp_path: Path):
    (tmp_path / "calls.csv").write_text(CALLS)
    words = (str(tmp_path / "calls.csv"), "-a", "squarecb", "--norm", "2", "--reward", "paid", "--available", "open")
    said = account(*words)
    X = np.tile([[0.5, 1], [1, 0], [0.2, 0.4]], (20, 1))
    learner = Learner("squarecb", classes=["chat", "mail", "phone"], feedback="bandit", norm=2.0, seed=0, horizon=60)
    groups = [["mail", "chat"], ["chat", "phone"], ["phone", "mail", "chat"]] * 20
    trace = learner.play(X, ["mail", "chat", "phone"] * 20, available=groups, rewards=[0.3, 1.0, 0.5] * 20)
    assert said["mistakes"] == trace.mistakes and said["reward"] == trace.reward.sum() > 0
    assert said["why_no_bound"].startswith("some rewards were fractions") and said["best_reward"] is None
    assert account(*words, "--chunk", "7")["reward"] == pytest.approx(trace.reward.sum())
    assert f"\nreward {said['reward']:>16,.1f}" in run("play", *words)


def test_a_click_world_says_what_share_of_the_best_was_earned():
    words = ("clicks:rounds=500", "-a", "squarecb", "--constant", "--unit-norm")
    said = account(*words)
    assert 0 < said["reward"] < said["best_reward"] and said["mistakes"] == 500 - said["reward"]
    assert f"{said['reward'] / said['best_reward']:.1%} of the best" in run("play", *words)
    assert run("play", *words, "--progress").count("\n") > 10


def test_algorithms_lists_them_all():
    text = run("algorithms")
    assert all(name in text for name in NAMES)
    assert "`gaptron compare` also plays classifiers of River and scikit-learn:\nriver:forest.AMFClassifier" in text


def test_paper_prints_its_tables_and_draws_its_figure(tmp_path: Path):
    path = tmp_path / "one.svg"
    text = run("paper", "--figure", str(path), "--classes", "4")
    assert path.read_text().lstrip().startswith("<?xml")
    assert "Theorem 6" in text and "K = 4" in text


def test_figure_1_shows_what_the_paper_says():
    z = np.linspace(-1, 1.2, 2201)
    plain, mapped, loss = surrogate_gap(z)
    above = z[plain > loss + 1e-12]
    assert above.min() == pytest.approx(-0.125, abs=2e-3) and above.max() == pytest.approx(0.0, abs=2e-3)
    assert (mapped <= loss + 1e-12).all()


def _table(path: Path, stream, rows: slice, names: list[str]) -> str:
    X, y = stream.X[rows].toarray(), stream.y[rows]
    lines = [",".join([*map(str, x), names[code]]) for x, code in zip(X.tolist(), y)]
    path.write_text("\n".join([",".join([*(f"x{j}" for j in range(X.shape[1])), "label"]), *lines]) + "\n")
    return str(path)


def test_save_and_load_go_on_as_one_run_would(tmp_path: Path):
    """The second file lacks a class: the model's labels count, not the file's."""
    stream, names = synsep(120, seed=1), list("abcdefghi")
    late = np.flatnonzero(stream.y[60:] != stream.y[60]) + 60
    first = _table(tmp_path / "first.csv", stream, slice(0, 60), names)
    second = _table(tmp_path / "second.csv", stream, late, names)
    model = str(tmp_path / "model.gaptron")
    classes = ("--classes", ",".join(names))
    account(first, "--save", model, "--norm", "10", "--no-bound", *classes)
    said = account(second, "--load", model, "--save", model)
    learner = Learner(classes=names, norm=10.0, seed=0)
    learner.play(stream.X[:60].toarray(), [names[code] for code in stream.y[:60]])
    trace = learner.play(stream.X[late].toarray(), [names[code] for code in stream.y[late]])
    assert said["mistakes"] == trace.mistakes and "60 rounds" not in said["why_no_bound"]
    loaded = Learner.load(model)
    assert loaded.classes == tuple(names) and loaded.rounds == learner.rounds
    np.testing.assert_array_equal(loaded.weights, learner.weights)


def test_load_refuses_what_would_make_another_learner(tmp_path: Path):
    model = tmp_path / "model.gaptron"
    Learner(n_classes=2, norm=1.0).save(model)
    for words, problem in [
        (("synsep", "--load", str(model), "--seed", "1"), "omit --seed"),
        (("synsep", "--load", str(model), "-a", "gaptron"), "omit --algorithm"),
        (("synsep:rounds=10", "--load", str(model)), "are not those of synsep"),
        (("synsep", "--load", __file__), "not a gaptron model file"),
        (("synsep", "--save", str(tmp_path / "nowhere" / "model")), "no such folder"),
    ]:
        with pytest.raises(GaptronError, match=problem):
            run("play", *words)


def test_settings_with_named_values_are_shown_by_name():
    words = account("synsep:rounds=50", "-a", "squarecb", "--set", "steps=adagrad", "--no-bound")["settings"]
    assert (words["steps"], words["oracle"], words["weighting"]) == ("adagrad", "squared", "gap")
    assert "steps=constant" in run("play", "synsep:rounds=50", "-a", "squarecb", "--no-bound", "-v")


def test_a_setting_can_be_true_or_false():
    assert settings.read(["kernel=false", "support=10", "play=top"]) == {"kernel": False, "support": 10, "play": "top"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["synsep:rounds=50", "-a", "gaptron", "--feedback", "bandit"], "needs --radius ... (D ≥ ‖U‖)"),
        (["synsep:rounds=50", "-a", "gaptron", "--set", "eta=-1"], "--set eta=-1.0 must be"),
        (["synsep:rounds=50", "-a", "softmax", "--set", "step=long"], "--set step=long must be one of"),
    ],
)
def test_errors_name_options(words: list[str], message: str):
    text = fail("play", *words)
    assert message in text, text


@pytest.mark.parametrize("command", ["algorithms", "paper"])
def test_eighty_columns_are_enough(command: str):
    """On a terminal of 80 columns no line is longer and no word is broken."""
    environment = {**os.environ, "COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "gaptron", command], capture_output=True, text=True, check=True, env=environment
    )
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
    assert max(map(len, lines)) <= 80
    if command == "algorithms":
        assert set(NAMES) <= set(lines)
        assert "  regret, bandit  O(‖U‖² √(KT))" in lines


def test_help_is_in_plain_words():
    for command in ([], ["play"], ["compare"], ["results"], ["paper"]):
        text = run(*command, "--help")
        assert "Say which" not in text and "cannot do without" not in text


def test_errors_name_options_and_suggest_similar_names(tmp_path):
    assert "unknown algorithm 'gaptorn'; did you mean gaptron? Available: " in fail("play", "synsep", "-a", "gaptorn")
    (tmp_path / "a.csv").write_text("0,1,2\n" + "3,4,5\n" * 5)
    assert "choose --header or --no-header" in fail("play", str(tmp_path / "a.csv"))
    (tmp_path / "a.xyz").write_text("?")
    assert "set --format to one of csv" in fail("play", str(tmp_path / "a.xyz"))


def test_no_option_is_explained_twice():
    """Options that several commands have in the same words are in one place, `cli/options.py`."""
    said = [
        word.value.value
        for path in Path(settings.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "help" and isinstance(word.value, ast.Constant)
    ]
    assert len(said) > 50 and len(said) == len(set(said))
