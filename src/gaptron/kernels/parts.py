"""Functions that Python calls, and what is made of them where a compiled function calls them: a part of it.

A part is not optimised by itself, and no machine code is made of it: its callers get its code written in, and that is
optimised there, as a whole. Done for each part as well it took two fifths of the time of compiling the default
learner, and what ran was no faster.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher

ENVIRONMENT = "_ZN08NumbaEnv"  # how the names begin that the compiler gives to what a function must know of Python


class Whole(CPUDispatcher):  # type: ignore[misc]
    """A function as Python calls it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], inlined: bool) -> None:
        super().__init__(function, targetoptions={**options, "nopython": True}, pipeline_class=WholeCompiler)
        self._cache = WholeCache(function)
        self._inlined = inlined

    @property
    def _numba_type_(self) -> Any:
        """What compiled functions find under its name."""
        return types.Dispatcher(self.part)

    @functools.cached_property
    def part(self) -> CPUDispatcher:
        """The same function as compiled functions call it."""
        whole = self.py_func
        function = FunctionType(whole.__code__, whole.__globals__, whole.__name__, None, whole.__closure__)
        function.__module__ = whole.__module__
        function.__qualname__ = f"{whole.__qualname__}.part"  # another name, another file in the cache
        options = {**self.targetoptions, "no_cpython_wrapper": True, "forceinline": self._inlined}
        part = CPUDispatcher(function, targetoptions=options, pipeline_class=PartCompiler)
        part.enable_caching()
        return part


class KnownFlags(Flags):  # type: ignore[misc]
    """The compiler's options for one function, written out once.

    The compiler looks them up for every call that it finds a type for, and each time wrote out all of them, set or
    not: a seventh of the time of compiling.
    """

    def __init__(self, copy_from: Flags | None = None) -> None:
        super().__init__(copy_from)
        self._set: dict[str, Any] | None = None
        self._all: dict[str, Any] = {}

    def values(self) -> dict[str, Any]:
        """Every option and what it is now."""
        if self._set != self._values:
            self._set, self._all = dict(self._values), super().values()
        return self._all

    def __hash__(self) -> int:
        return NAMES_OF_FLAGS

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


NAMES_OF_FLAGS = hash(Flags())  # the compiler's own hash is of the names alone


class WholeCache(FunctionCache):  # type: ignore[misc]
    """Where the machine code is kept of functions that Python calls."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types, or None. Nothing is made ready for compiling: that comes with compiling.

        It took four times as long as the loading, and 40 MB. What runs needs none of it, since it counts no references.
        """
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that Python calls; no compiled function does, for that has its part."""

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """For the disk: the machine code, and in place of the code for callers the names it defines."""
        functions, others = self._final_module.functions, self._final_module.global_variables
        names = [f'define void @"{each.name}"() {{ ret void }}' for each in functions if not each.is_declaration]
        names += [f'@"{each.name}" = global i8 0' for each in others if not each.is_declaration]
        code = llvm.parse_assembly("\n".join(names)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), code)


class WholeCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function that Python calls."""

    library: type[JITCodeLibrary] = WholeLibrary

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.state.flags = KnownFlags(self.state.flags)

    def define_pipelines(self) -> Any:
        """The usual steps, into a library of our own."""
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part, for its callers."""

    def _optimize_final_module(self) -> None:
        """What it calls is written in, and what that leaves over goes. Loops stay as they are."""
        codegen = self._codegen
        passes, builder = codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Keep the code for the callers. To the machine go the names alone that the compiler writes addresses to."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True
        code = self._get_module_for_linking()
        names = [str(each) for each in code.global_variables if each.name.startswith(ENVIRONMENT)]
        self._final_module = llvm.parse_assembly("\n".join(names))
        self._final_module.name = code.name
        super()._finalize_final_module()


class PartCompiler(WholeCompiler):
    """Compiles a part."""

    library = PartLibrary
