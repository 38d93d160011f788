"""The command that repeats one run of a comparison by itself."""

import shlex
from collections.abc import Mapping
from typing import Any

from gaptron.experiments.task import Task
from gaptron.streams.rows_by_name import is_table

FLAGS = {"unit_norm": "--unit-norm", "constant": "--constant", "log1p": "--log1p", "standardize": "--standardize"}
OPTIONS = {
    "format": "--format",
    "label": "--label",
    "reward": "--reward",
    "available": "--available",
    "n_features": "--features",
    "index_base": "--index-base",
    "limit": "--limit",
}


def play_command(
    data: str, reading: Mapping[str, Any], preparing: Mapping[str, Any], task: Task, *, by_name: bool = False
) -> str:
    """`gaptron play` with every option that fixes the result: reading, preparing, order, settings and draws."""
    options = {**reading, **preparing}
    words = ["gaptron", "play", data, "--algorithm", task.algorithm, "--feedback", task.feedback, "--loss", task.loss]
    for name, value in options.items():
        if name in OPTIONS and value is not None:
            words += [OPTIONS[name], str(value)]
        elif name in FLAGS and value:
            words.append(FLAGS[name])
    if is_table(data, options.get("format"), options.get("available")) and not by_name:
        words.append("--raw")  # a table's numbers as they are
    if options.get("header") is not None:
        words.append("--header" if options["header"] else "--no-header")
    if options.get("classes"):
        words.append("--classes=" + ",".join(map(str, options["classes"])))  # with =: a class may begin with -
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
        words.append("--bound")  # else a large file would be read as it is played
    return shlex.join(words)
