"""Options that several commands share, their parsing, and errors in terms of options."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import typer

DEFAULT_ALGORITHM = "advised-gaptron"
OPTION_NAMES = {"n_classes": "--classes", "n_features": "--features"}  # of arguments with another name in Python


def panel(title: str) -> Callable[..., Any]:
    """Return `typer.Option` for the options under this title of a command's help."""
    return partial(typer.Option, rich_help_panel=title)


def _shared(*names: str, **arguments: Any) -> Callable[..., Any]:
    """Return a function from the panel of a command's help to the option for `Annotated`."""
    return lambda option=typer.Option: option(*names, **arguments)


algorithm = _shared("--algorithm", "-a", help="The algorithm; `gaptron algorithms` lists them.")
loss = _shared(help="The loss: logistic, hinge or smooth-hinge.")
norm = _shared(help="Largest norm ‖x‖ of an example; measured by default.")
radius = _shared(help="Largest norm ‖U‖ of the comparator; some algorithms need it.")
setting = _shared("--set", metavar="NAME=VALUE", help="Set a parameter of the algorithm; may be repeated.")
seed = _shared(min=0, help="Seed of the learner's random draws.")
label = _shared(help="The label column, by name or number.")
classes = _shared(help="All labels, separated by commas.")
features = _shared(min=1, help="Number of features.")
header = _shared(
    "--header/--no-header",
    help="Whether the first line of a CSV or TSV file is a header; detected by default.",
)
skip_damaged = _shared("--skip-damaged", help="Skip lines that cannot be read, and list them.")
separator = _shared(
    metavar="CHARACTER",
    help="What separates the cells of a CSV or TSV file, as in ';' or tab; detected by default.",
)
decimal = _shared(metavar="CHARACTER", help="The decimal separator of a CSV or TSV file: . (the default) or a comma.")
dates = _shared(
    metavar="ORDER",
    help="day-first or month-first, for dates such as 03/04/2026; by default as the other dates of the file show.",
)
encoding = _shared(
    help="The encoding of a CSV or TSV file, such as cp1252; by default UTF-8, or UTF-16 after its mark."
)
constant = _shared("--constant", help="Append a constant feature of 1.")
log1p = _shared("--log1p", help="Transform features: x → sign(x)·ln(1+|x|).")
standardize = _shared("--standardize", help="Scale columns to mean 0 and standard deviation 1.")
as_json = _shared("--json", help="Print one JSON object instead of the summary.")


def read_column(text: str) -> str | int | None:
    """Parse a column name or number; None if there is none."""
    return int(text) if text.isdigit() else text or None


def read_text_options(separator: str, decimal: str, dates: str, encoding: str) -> dict[str, str | None]:
    """Parse how a text table is written; None: not given. A tab may be written as a word."""
    separator = "\t" if separator in ("tab", "\\t") else separator
    given = {"separator": separator, "decimal": decimal, "dates": dates, "encoding": encoding}
    return {name: value or None for name, value in given.items()}


def read_classes(text: str) -> list[Any] | None:
    """Parse --classes: numbers if all labels are numbers, otherwise text; None if there are none."""
    if not text:
        return None
    labels = [label.strip() for label in text.split(",")]
    return [int(label) for label in labels] if all(label.lstrip("-").isdigit() for label in labels) else labels


def in_options(message: str, options: Mapping[str, str], settings: Iterable[str]) -> str:
    """Translate an error of the library, which names arguments (radius=...), into options of a command (--radius ...).

    Args:
        message: the error.
        options: the command's options, by the name of their argument.
        settings: names of settings, which become --set NAME=VALUE.
    """
    names = set(options.values())
    known = {name: option for name, option in {**OPTION_NAMES, **options}.items() if option in names}
    set_by_name = set(settings) - known.keys() if "--set" in names else set()

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2].strip("'")
        if name in known and value in ("True", "False"):
            return known[name] if value == "True" else known[name].replace("--", "--no-")
        if name in known:
            return f"{known[name]} {value}".rstrip()
        return f"--set {name}={value}" if name in set_by_name else match[0]

    return _with_suggestion(re.sub(r"(?<![\w-])([a-z]\w*)=('[^']*'|\.\.\.|[^\s,;:)]+|(?= ))", option, message))


def _with_suggestion(message: str) -> str:
    """Add the most similar known name to an error about an unknown one."""
    unknown = re.search(r"unknown [\w ]+ '([^']+)'; available: (.+)$", message)
    near = difflib.get_close_matches(unknown[1], unknown[2].split(", "), 1) if unknown else []
    return message if not near else message.replace("; available:", f"; did you mean {near[0]}? Available:")
