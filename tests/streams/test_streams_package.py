"""The public names of the package."""

import subprocess
import sys

from gaptron import streams


def test_names_are_sorted_and_real():
    assert streams.__all__ == sorted(streams.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(streams, name) for name in streams.__all__)


def test_importing_the_package_is_cheap():
    """Heavy readers are imported only by who needs them."""
    code = "import sys, gaptron.streams; print([m for m in ('sklearn', 'pyarrow', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
