"""The one place that names the compiler and its flags.

numba's disk cache looks only at the file of the function it compiled, not at the files of what that
function calls: edit a verb, and a cached caller would go on running the old one. So the cache lives in
a folder named by a hash of every source that is compiled; another text, another folder, and stale code
cannot be met.
"""

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.types as types
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])

# No compiled function makes an array, so none need count who holds those it is given (`_nrt`): the caller does. With
# wide tuples of arrays the counting took longer than the rest of a round (measured, sparse rows, d = 400, K = 9:
# Gaptron 540 ns a round with it, 320 without). A function that makes an array does not compile.
FLAGS = {"error_model": "numpy", "nogil": True, "_nrt": False}
# A sum may be taken in another order, so that dot products use the vector unit. Nothing else is relaxed.
REORDER = {"fastmath": {"reassoc", "nsz", "contract"}}


COMPILED = ("types.py", "kernels/**/*.py", "algorithms/**/*.py", "abstention/*.py")


def fingerprint(package: Path) -> str:
    """A hash of every source file that is compiled."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in COMPILED for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder(package: Path) -> Path:
    """Where compiled code of exactly these sources lives, in the user's own cache directory."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gaptron" / f"numba-{numba.__version__}-{fingerprint(package)}"


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(cache_folder(Path(__file__).parents[1]))


def jit(function: F) -> F:
    """Compile a function, and keep the machine code on disk."""
    compiled: F = numba.njit(cache=True, **FLAGS)(function)
    return compiled


def jit_reordered(function: F) -> F:
    """Compile a function whose sums may be taken in any order."""
    compiled: F = numba.njit(cache=True, **FLAGS, **REORDER)(function)
    return compiled


lean, lean_reordered = jit, jit_reordered


def by_type(choose: Callable[..., F], like: F, *, view: bool = False, **flags: Any) -> F:
    """A verb whose body is chosen by the types of its arguments, compiled or not.

    `choose` gets the arguments themselves when interpreted and their numba types when compiled, and
    returns one of several bodies with the signature of `like`. A verb that answers with a part of an array it was
    given (`view`) is written into its callers, because a function that counts no references may not return one.
    """

    @functools.wraps(like)
    def verb(*arguments: Any) -> Any:
        return choose(*arguments)(*arguments)

    @functools.wraps(like)
    def body(*kinds: Any) -> Any:
        return choose(*kinds)

    # Inlined, because passing tuples of arrays to a function costs more than many a verb's work (measured: a tenth
    # of a round). Not strict, because the bodies' annotations differ.
    options = {**FLAGS, "forceinline": True, "_nrt": view, **flags}
    overload(verb, jit_options=options, strict=False, inline="always" if view else "never")(body)
    return verb  # type: ignore[return-value]


def by_rows(dense: F, sparse: F, **flags: Any) -> F:
    """A verb with a body for dense rows and one for sparse rows, told apart by its argument x or X."""
    at = next(i for i, name in enumerate(inspect.signature(dense).parameters) if name in ("x", "X"))
    return by_type(lambda *a: sparse if isinstance(a[at], (tuple, types.BaseTuple)) else dense, dense, **flags)


def class_name(settings: Any) -> str:
    """The name of a settings tuple's class, from the tuple or from its numba type."""
    known: type = settings.instance_class if isinstance(settings, types.Type) else type(settings)
    return known.__name__
