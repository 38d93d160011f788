"""The one place that names the compiler and its flags; `cache` says where compiled code is kept."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.types as types
from numba.core.event import Listener, register, unregister
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import overload

from gaptron.kernels import cache
from gaptron.kernels.parts import PartCompiler, Whole

F = TypeVar("F", bound=Callable[..., Any])

# No compiled function makes an array, so none need count who holds those it is given (`_nrt`): the caller does. With
# wide tuples of arrays the counting took longer than the rest of a round (measured, sparse rows, d = 400, K = 9:
# Gaptron 540 ns a round with it, 320 without). A function that makes an array does not compile.
FLAGS = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
# A sum may be taken in another order, so that dot products use the vector unit. Nothing else is relaxed.
REORDER = {"fastmath": {"reassoc", "nsz", "contract"}}


if not os.environ.get("NUMBA_CACHE_DIR"):
    _folder = cache.cache_folder(Path(__file__).parents[1], numba.__version__)
    cache.use(_folder)
    numba.config.CACHE_DIR = str(_folder)


class _Teller(Listener):  # type: ignore[misc]
    """Says once that something is being compiled."""

    def __init__(self, say: Callable[[], None]) -> None:
        self.say: Callable[[], None] | None = say

    def on_start(self, event: Any) -> None:
        say, self.say = self.say, None
        if say is not None:
            say()

    def on_end(self, event: Any) -> None:
        pass


@contextlib.contextmanager
def when_compiling(say: Callable[[], None]) -> Iterator[None]:
    """Within, call `say` when the first function begins to be compiled: never, if all of them are in the cache."""
    teller = _Teller(say)
    register("numba:compile", teller)
    try:
        yield
    finally:
        unregister("numba:compile", teller)


def jit(function: F) -> F:
    """Compile a function, and keep the machine code on disk."""
    return _compiled(function, FLAGS)


def jit_reordered(function: F) -> F:
    """Compile a function whose sums may be taken in any order."""
    return _compiled(function, {**FLAGS, **REORDER})


def inner(function: F) -> F:
    """Compile a function that takes wide tuples of arrays.

    Compiled callers never call it, but have its code written in, because handing on such tuples takes time (measured on
    Advised Gaptron, bandit, d = 100, K = 10: 2.7 µs a round when called, 1.6 when written in).
    """
    return _compiled(function, FLAGS, inlined=True)


def _compiled(function: F, flags: dict[str, Any], *, inlined: bool = False) -> F:
    return function if numba.config.DISABLE_JIT else Whole(function, flags, inlined)


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
        chosen = choose(*kinds)
        return None if isinstance(chosen, Whole) else chosen

    class Called(AbstractTemplate):  # type: ignore[misc]
        """A body that is compiled on its own."""

        key = verb

        def generic(self, kinds: Any, named: Any) -> Any:
            chosen: Any = choose(*kinds)
            called = isinstance(chosen, Whole)
            return types.Dispatcher(chosen.part).get_call_type(self.context, kinds, named) if called else None

        def get_impl_key(self, signature: Any) -> Any:
            return choose(*signature.args).part.get_overload(signature.args)  # type: ignore[attr-defined]

    infer_global(verb, types.Function(Called))
    # Inlined, because passing tuples of arrays to a function costs more than many a verb's work (measured: a tenth
    # of a round). Not strict, because the bodies' annotations differ.
    options = {**FLAGS, "forceinline": True, "_nrt": view, "pipeline_class": PartCompiler, **flags}
    overload(verb, jit_options=options, strict=False, inline="always" if view else "never")(body)
    return verb  # type: ignore[return-value]


def by_rows(dense: F, sparse: F, **flags: Any) -> F:
    """A verb with a body for dense rows and one for sparse rows, told apart by its argument x or X."""
    at = next(i for i, name in enumerate(inspect.signature(dense).parameters) if name in ("x", "X"))
    return by_type(lambda *a: sparse if isinstance(a[at], (tuple, types.BaseTuple)) else dense, dense, **flags)


def by_precision(double: F, single: F) -> F:
    """A verb with a body for weights in double and one for weights in single precision, its first argument."""
    return by_type(lambda W, *_: single if str(W.dtype) == "float32" else double, double)


def class_name(settings: Any) -> str:
    """The name of a settings tuple's class, from the tuple or from its numba type."""
    known: type = settings.instance_class if isinstance(settings, types.Type) else type(settings)
    return known.__name__
