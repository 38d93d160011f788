"""What several commands share: options that read alike, reading them, and errors in the words of the command line."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import typer

PYTHON = {"n_classes": "--classes", "n_features": "--features"}  # arguments whose option has another name


def _shared(*words: str, **about: Any) -> Callable[..., Any]:
    """An option for `Annotated`: a function of the panel that a command's help shows it in."""
    return lambda panel=None: typer.Option(*words, **about, rich_help_panel=panel)


algorithm = _shared("--algorithm", "-a", help="See `gaptron algorithms`.")
loss = _shared(help="logistic, hinge or smooth-hinge.")
norm = _shared(help="Largest norm ‖x‖ of a row; by default measured.")
radius = _shared(help="Largest norm ‖U‖ of a rule to compare with; some algorithms need it.")
setting = _shared("--set", metavar="NAME=VALUE", help="Change a setting of the algorithm; may be repeated.")
seed = _shared(min=0, help="Seed of the learner's random draws.")
label = _shared(help="The label's column, by name or number.")
classes = _shared(help="All labels, separated by commas.")
features = _shared(min=1, help="Number of features.")
header = _shared(
    "--header/--no-header",
    help="Is the first line of a CSV or TSV file a header? By default as the lines below it show.",
)
constant = _shared("--constant", help="Append a feature of 1.")
log1p = _shared("--log1p", help="x → sign(x)·ln(1+|x|).")
standardize = _shared("--standardize", help="Columns to mean 0, deviation 1.")
as_json = _shared("--json", help="Print one JSON object instead of the summary.")


def read_column(text: str) -> str | int | None:
    """A column by its name or its number; None if none is given."""
    return int(text) if text.isdigit() else text or None


def read_classes(text: str) -> list[Any] | None:
    """The labels of --classes: numbers if all are numbers, else words; None if there are none."""
    if not text:
        return None
    labels = [word.strip() for word in text.split(",")]
    return [int(word) for word in labels] if all(word.lstrip("-").isdigit() for word in labels) else labels


def in_options(message: str, options: Mapping[str, str], settings: Iterable[str]) -> str:
    """An error of the library, which names arguments (radius=...), in the options of a command (--radius ...).

    Args:
        message: the error.
        options: the command's, by the name of the argument each stands for.
        settings: names that --set takes.
    """
    given = set(options.values())
    known = {name: option for name, option in {**PYTHON, **options}.items() if option in given}
    set_by_name = set(settings) - known.keys() if "--set" in given else set()

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2].strip("'")
        if name in known and value in ("True", "False"):
            return known[name] if value == "True" else known[name].replace("--", "--no-")
        if name in known:
            return f"{known[name]} {value}".rstrip()
        return f"--set {name}={value}" if name in set_by_name else match[0]

    return _meant(re.sub(r"(?<![\w-])([a-z]\w*)=('[^']*'|\.\.\.|[^\s,;:)]+|(?= ))", option, message))


def _meant(message: str) -> str:
    """An error about an unknown word, with the known one that is nearest."""
    unknown = re.search(r"unknown [\w ]+ '([^']+)'; there are: (.+)$", message)
    near = difflib.get_close_matches(unknown[1], unknown[2].split(", "), 1) if unknown else []
    return message if not near else message.replace("; there are:", f"; did you mean {near[0]}? There are:")
