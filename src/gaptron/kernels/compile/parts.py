"""Compile functions that Python calls (entries), and functions that only compiled code calls (parts).

A part is typed and stored on disk, but it is not optimised by itself and no machine code is generated for it: the code
is inlined into the entries, and an entry is optimised as a whole. Optimising every part as well took two fifths of the
time to compile the default learner, and the result was not faster.

This module builds on private names of numba. Importing it raises ImportError where one of them is missing, and `jit`
then falls back to `numba.njit`.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher

ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the symbols that hold the Python objects which a function refers to
HOOKS = {  # what the classes below override or call
    FunctionCache: "_guard_against_spurious_io_errors _load_overload load_overload",
    JITCodeLibrary: "_finalize_dynamic_globals _finalize_final_module _get_compiled_object _get_module_for_linking "
    "_optimize_final_module _verify_declare_only_symbols enable_object_caching serialize_using_object_code",
    CPUCodegen: "_module_pass_manager",
    Compiler: "define_pipelines",
    Flags: "values",
    CPUDispatcher: "_numba_type_ enable_caching get_overload",
}

for _owner, _names in HOOKS.items():
    for _name in _names.split():
        if not hasattr(_owner, _name):
            raise ImportError(f"numba {numba.__version__} has no {_owner.__name__}.{_name}")


class Entry(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], inlined: bool) -> None:
        super().__init__(function, targetoptions={**options, "nopython": True}, pipeline_class=EntryCompiler)
        self._cache = EntryCache(function)
        self._inlined = inlined

    @property
    def _numba_type_(self) -> Any:
        """The type that compiled callers see: they call the part."""
        return types.Dispatcher(self.part)

    @functools.cached_property
    def part(self) -> CPUDispatcher:
        """The same function for compiled callers."""
        entry = self.py_func
        function = FunctionType(entry.__code__, entry.__globals__, entry.__name__, None, entry.__closure__)
        function.__module__ = entry.__module__
        function.__qualname__ = f"{entry.__qualname__}.part"  # another name gives another file in the cache
        options = {**self.targetoptions, "no_cpython_wrapper": True, "forceinline": self._inlined}
        part = CPUDispatcher(function, targetoptions=options, pipeline_class=PartCompiler)
        part.enable_caching()
        return part


class KnownFlags(Flags):  # type: ignore[misc]
    """The compiler's options for one function, with a cached `values`.

    The compiler reads the options for every call that it types. Building the dictionary each time took a seventh of
    the time to compile.
    """

    def __init__(self, copy_from: Flags | None = None) -> None:
        super().__init__(copy_from)
        self._set: dict[str, Any] | None = None
        self._all: dict[str, Any] = {}

    def values(self) -> dict[str, Any]:
        """Return every option with its current value."""
        if self._set != self._values:
            self._set, self._all = dict(self._values), super().values()
        return self._all

    def __hash__(self) -> int:
        return HASH_OF_FLAGS

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


HASH_OF_FLAGS = hash(Flags())  # numba hashes the names of the options only, so all are equal


class EntryCache(FunctionCache):  # type: ignore[misc]
    """The disk cache of an entry."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load what was compiled for these types, or None, without initialising the compiler.

        numba's version initialises it first, which took four times as long as the loading, and 40 MB. Code that counts
        no references needs none of it.
        """
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class EntryLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of an entry. Compiled functions never link to it; they link to its part."""

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code, and instead of the bitcode for callers only the names that it defines."""
        functions, variables = self._final_module.functions, self._final_module.global_variables
        names = [f'define void @"{each.name}"() {{ ret void }}' for each in functions if not each.is_declaration]
        names += [f'@"{each.name}" = global i8 0' for each in variables if not each.is_declaration]
        bitcode = llvm.parse_assembly("\n".join(names)).as_bitcode()
        return self.name, "object", (self._get_compiled_object(), bitcode)


class EntryCompiler(Compiler):  # type: ignore[misc]
    """Compiles an entry."""

    library: type[JITCodeLibrary] = EntryLibrary

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.flags = KnownFlags(self.state.flags)

    def define_pipelines(self) -> Any:
        """Return numba's pipelines, with `library` as the code library."""
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part, for its callers."""

    def _optimize_final_module(self) -> None:
        """Inline the calls and remove dead code; leave the loops alone."""
        codegen = self._codegen
        passes, builder = codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=codegen._opt_level, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Keep the bitcode for callers; generate machine code only for the symbols that numba writes addresses to."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True
        bitcode = self._get_module_for_linking()
        names = [str(each) for each in bitcode.global_variables if each.name.startswith(ENVIRONMENT)]
        self._final_module = llvm.parse_assembly("\n".join(names))
        self._final_module.name = bitcode.name
        super()._finalize_final_module()


class PartCompiler(EntryCompiler):
    """Compiles a part."""

    library = PartLibrary
