"""The `gaptron play` command that repeats one run of a comparison."""

import shlex
from collections.abc import Mapping
from typing import Any

from gaptron.experiments.task import Task
from gaptron.streams.tables import is_table

FLAGS = {"unit_norm": "--unit-norm", "constant": "--constant", "log1p": "--log1p", "standardize": "--standardize"}
OPTIONS = {
    "format": "--format",
    "label": "--label",
    "reward": "--reward",
    "available": "--available",
    "n_features": "--features",
    "index_base": "--index-base",
    "separator": "--separator",
    "decimal": "--decimal",
    "dates": "--dates",
    "encoding": "--encoding",
    "limit": "--limit",
}


def play_command(
    data: str, reading: Mapping[str, Any], preparing: Mapping[str, Any], task: Task, *, by_name: bool = False
) -> str:
    """Return the `gaptron play` command with every option that determines the result of a task.

    Args:
        data: the file or the name of the stream.
        reading: the options of `open_stream`.
        preparing: the options of `prepare`.
        task: the task to repeat.
        by_name: whether the columns of the table are encoded, as `gaptron play` does by default.

    Returns:
        The command, quoted for a shell.
    """
    options = {**reading, **preparing}
    words = ["gaptron", "play", data, "--algorithm", task.algorithm, "--feedback", task.feedback, "--loss", task.loss]
    for name, value in options.items():
        if name in OPTIONS and value is not None:
            words += [OPTIONS[name], str(value)]
        elif name in FLAGS and value:
            words.append(FLAGS[name])
    if is_table(data, options.get("format"), options.get("available")) and not by_name:
        words.append("--raw")  # the table's numbers are not encoded
    if options.get("header") is not None:
        words.append("--header" if options["header"] else "--no-header")
    if options.get("classes"):
        words.append("--classes=" + ",".join(map(str, options["classes"])))  # with =, because a class may start with -
    settings = {"radius": task.radius, **task.settings}
    if settings["radius"] is not None:
        words += ["--radius", repr(settings["radius"])]
    for name, value in settings.items():
        if name != "radius":
            words += ["--set", f"{name}={value}"]
    if task.shuffle:
        words += ["--shuffle", str(task.seed)]
    words += ["--seed", str(task.seed)]
    if not task.bound:
        words.append("--no-bound")
    elif not task.shuffle:
        words.append("--bound")  # otherwise a large file would be read in chunks, without a bound
    return shlex.join(words)


def action_command(data: str, reading: Mapping[str, Any], preparing: Mapping[str, Any], task: Task) -> str:
    """Return the `gaptron play --actions` command with every option that determines the result of a task.

    Args:
        data: the file or the name of the world.
        reading: the options of `open_actions`.
        preparing: the number of rounds, `limit`.
        task: the task to repeat.

    Returns:
        The command, quoted for a shell.
    """
    words = ["gaptron", "play", data, "--actions", "--algorithm", task.algorithm, "--feedback", task.feedback]
    for name, value in {**reading, **preparing}.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    for name, value in task.settings.items():
        words += ["--set", f"{name}={value}"]
    return shlex.join([*words, "--seed", str(task.seed), "--bound" if task.bound else "--no-bound"])
