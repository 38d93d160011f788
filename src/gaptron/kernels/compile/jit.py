"""The only module that names the compiler and its flags; `cache` chooses where the compiled code is stored."""

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.types as types
from numba.core.event import Listener, register, unregister
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import overload

from gaptron.kernels.compile import cache

try:
    from gaptron.kernels.compile.parts import Entry, PartCompiler
except ImportError as problem:
    HAS_PARTS = False
    warnings.warn(
        f"gaptron compiles with plain numba.njit, which takes longer and gives slower code: {problem}. Results are the "
        "same. Install a version of numba that gaptron was tested with (see its requirements).",
        RuntimeWarning,
        stacklevel=2,
    )
else:
    HAS_PARTS = True

F = TypeVar("F", bound=Callable[..., Any])

FLAGS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
if HAS_PARTS:
    # No compiled function creates an array, so none has to count the references to the arrays that it is passed
    # (`_nrt`): the caller holds them. With wide tuples of arrays the counting took longer than the rest of a round
    # (measured, sparse, d = 400, K = 9: Gaptron 540 ns a round with it, 320 without). With this flag a function that
    # creates an array does not compile.
    FLAGS |= {"_nrt": False, "no_cfunc_wrapper": True}
# Sums may be taken in another order, so that dot products use vector instructions. Nothing else is relaxed.
REORDER = {"fastmath": {"reassoc", "nsz", "contract"}}
FUSE = {"fastmath": {"contract"}}  # multiply and add in one instruction
ACTIONS = ("ActionRows", "ActionRounds")  # the classes of the tuples of `types` that hold actions


if not os.environ.get("NUMBA_CACHE_DIR"):
    # Code that was compiled with and without parts is not interchangeable.
    _compiler = numba.__version__ if HAS_PARTS else f"{numba.__version__}-njit"
    _folder = cache.cache_folder(Path(__file__).parents[2], _compiler)
    cache.mark_used(_folder)
    numba.config.CACHE_DIR = str(_folder)


class _FirstCompilation(Listener):  # type: ignore[misc]
    """Calls a function at the first compilation."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def on_start(self, event: Any) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()

    def on_end(self, event: Any) -> None:
        pass


@contextlib.contextmanager
def when_compiling(callback: Callable[[], None]) -> Iterator[None]:
    """Call `callback` when the first function in this context is compiled; never, if all of them are in the cache."""
    listener = _FirstCompilation(callback)
    register("numba:compile", listener)
    try:
        yield
    finally:
        unregister("numba:compile", listener)


def jit(function: F) -> F:
    """Compile a function, and store the machine code on disk."""
    return _compiled(function, FLAGS)


def jit_reordered(function: F) -> F:
    """Compile a function whose sums may be taken in any order."""
    return _compiled(function, {**FLAGS, **REORDER})


def inner(function: F) -> F:
    """Compile a function that takes wide tuples of arrays, and inline it into compiled callers.

    Passing such tuples to a function takes time (measured on Advised Gaptron, bandit, d = 100, K = 10: 2.7 µs a round
    when called, 1.6 when inlined).
    """
    return _compiled(function, FLAGS, inlined=True)


def _compiled(function: F, flags: dict[str, Any], *, inlined: bool = False) -> F:
    if numba.config.DISABLE_JIT:
        return function
    if not HAS_PARTS:
        return numba.njit(cache=True, **flags)(function)  # type: ignore[no-any-return]
    return Entry(function, flags, inlined)


def by_type(choose: Callable[..., F], like: F, *, view: bool = False, **flags: Any) -> F:
    """Make a function whose body is chosen by the types of its arguments, compiled or not.

    Args:
        choose: returns one of several bodies with the signature of `like`. It gets the arguments when interpreted and
            their numba types when compiled.
        like: a function with the signature, the name and the docstring of the result.
        view: whether the function returns a part of an array that it was passed. It is then always inlined, because a
            function that counts no references may not return an array.
        flags: further options of the compiler.

    Returns:
        The function, for Python and for compiled callers.
    """

    @functools.wraps(like)
    def dispatched(*arguments: Any) -> Any:
        return choose(*arguments)(*arguments)

    if not HAS_PARTS:

        @functools.wraps(like)
        def plain_body(*kinds: Any) -> Any:
            chosen = choose(*kinds)
            return getattr(chosen, "py_func", chosen)

        overload(dispatched, jit_options={**FLAGS, **flags}, strict=False)(plain_body)
        return dispatched  # type: ignore[return-value]

    @functools.wraps(like)
    def body(*kinds: Any) -> Any:
        chosen = choose(*kinds)
        return None if isinstance(chosen, Entry) else chosen

    class CompiledBody(AbstractTemplate):  # type: ignore[misc]
        """The type of a call whose body is compiled on its own."""

        key = dispatched

        def generic(self, kinds: Any, named: Any) -> Any:
            chosen: Any = choose(*kinds)
            if not isinstance(chosen, Entry):
                return None
            return types.Dispatcher(chosen.part).get_call_type(self.context, kinds, named)

        def get_impl_key(self, signature: Any) -> Any:
            return choose(*signature.args).part.get_overload(signature.args)  # type: ignore[attr-defined]

    infer_global(dispatched, types.Function(CompiledBody))
    # Inlined, because passing tuples of arrays to a function costs more than the work of many kernels (measured: a
    # tenth of a round). Not strict, because the annotations of the bodies differ.
    options = {**FLAGS, "forceinline": True, "_nrt": view, "pipeline_class": PartCompiler, **flags}
    overload(dispatched, jit_options=options, strict=False, inline="always" if view else "never")(body)
    return dispatched  # type: ignore[return-value]


def by_rows(dense: F, sparse: F, actions: F | None = None, *, reorder: bool = False, view: bool = False) -> F:
    """Make a function with a body for dense and one for sparse examples, chosen by its argument x or X.

    Args:
        dense: the body for dense examples.
        sparse: the body for sparse examples.
        actions: the body for rounds that bring their own actions, dense or sparse; None: it is not for them.
        reorder: whether the sums of the dense body may be taken in another order. Those of the sparse body keep theirs:
            whether a loop over indices is vectorised depends on the caller it is inlined into and on the processor, and
            playing must give the same bits as deciding one by one.
        view: as for `by_type`.

    Returns:
        The function, for Python and for compiled callers.
    """
    at = next(i for i, name in enumerate(inspect.signature(dense).parameters) if name in ("x", "X"))
    ordered = _compiled(sparse, {**FLAGS, **FUSE}, inlined=True) if reorder else sparse
    flags: dict[str, Any] = REORDER if reorder else {}  # of the dense body; `ordered` has its own

    def choose(*arguments: Any) -> F:
        x = arguments[at]
        if not isinstance(x, (tuple, types.BaseTuple)):
            return dense
        return actions if actions is not None and class_name(x) in ACTIONS else ordered

    return by_type(choose, dense, view=view, **flags)


def class_name(settings: Any) -> str:
    """Return the name of a settings tuple's class, from the tuple or from its numba type."""
    known: type = settings.instance_class if isinstance(settings, types.Type) else type(settings)
    return known.__name__


def holds_sparse(X: Any) -> bool:
    """Return whether the rows of a tuple of actions are sparse, from the tuple or from its numba type."""
    rows = X[X.fields.index("rows")] if isinstance(X, types.Type) else X.rows
    return isinstance(rows, (tuple, types.BaseTuple))
