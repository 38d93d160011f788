"""What several commands share in reading their options, and errors in the words of the command line."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

PYTHON = {"n_classes": "--classes", "n_features": "--features"}  # arguments whose option has another name


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
