"""The names that `import gaptron` gives, and the modules that it does not import."""

import subprocess
import sys

import pytest

import gaptron


def test_the_names_are_sorted_and_are_all_there_is():
    assert gaptron.__all__ == sorted(gaptron.__all__)
    public = {name: getattr(gaptron, name) for name in dir(gaptron) if not name.startswith("_")}
    assert set(gaptron.__all__) == {name for name, thing in public.items() if not isinstance(thing, type(sys))}


def test_every_name_is_documented():
    for name in gaptron.__all__:
        assert getattr(gaptron, name).__doc__


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "code",
    [
        "import gaptron; dir(gaptron)",
        "import gaptron; gaptron.Learner; gaptron.Trace",
        "from gaptron import Learner; help(Learner)",
    ],
)
@pytest.mark.parametrize("heavy", ["numba", "matplotlib", "sklearn", "river"])
def test_importing_wakes_no_heavy_library(code, heavy):
    check = f"{code}\nimport sys\nassert {heavy!r} not in sys.modules, 'woken'"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_what_sleeps_wakes_when_asked():
    assert gaptron.OnlineClassifier is gaptron.OnlineClassifier
    with pytest.raises(AttributeError, match="no attribute 'Offline'"):
        _ = gaptron.Offline
    check = "import sys; sys.modules['river'] = None\nimport gaptron.river"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert "pip install '.[river]'" in run.stderr


def test_the_version_is_the_packages():
    from importlib.metadata import version  # noqa: PLC0415

    assert gaptron.__version__ == version("gaptron")
