"""Skip the type dispatch of a compiled function. This module does not import the compiler."""

from typing import Any


def specialize(function: Any, *arguments: Any) -> Any:
    """Compile a function for the types of these arguments.

    A compiled function inspects the type of each argument at each call, including every field of every tuple; for one
    round that takes longer than the round.

    Args:
        function: a compiled function, or a Python function where the compiler is off.
        arguments: arguments of the types that it will be called with.

    Returns:
        The machine code for these types, which must not be called with others; or the Python function.
    """
    if not hasattr(function, "typeof_pyval"):
        return function
    return function.compile(tuple(map(function.typeof_pyval, arguments)))
