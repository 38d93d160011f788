"""Feedback graphs: playing a label reveals the true label if there is an edge from the former to the latter."""

from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from gaptron.errors import SettingError
from gaptron.types import Feedback, Flags, Integers

WORDS = tuple(word.word for word in Feedback if word is not Feedback.GRAPH)


def apple_tasting(n_classes: int) -> Flags:
    """Two labels; only playing label 1 (eat the apple, read the mail) reveals the true label."""
    if n_classes != 2:
        raise SettingError(f"apple-tasting feedback is for two classes, not {n_classes}; use label-efficient for more")
    return np.array([[False, False], [True, True]])


def label_efficient(n_classes: int) -> Flags:
    """Only playing label 0 reveals the true label, and it always does."""
    graph = np.zeros((n_classes, n_classes), dtype=np.bool_)
    graph[0] = True
    return graph


GRAPHS = {"apple-tasting": apple_tasting, "label-efficient": label_efficient}


def as_graph(feedback: Any, n_classes: int) -> Flags | None:
    """The feedback graph of a name or a K × K matrix; None for full and bandit."""
    if isinstance(feedback, str):
        if feedback in GRAPHS:
            return GRAPHS[feedback](n_classes)
        if feedback not in WORDS:
            raise SettingError(f"unknown feedback {feedback!r}; available: {', '.join([*WORDS, *GRAPHS])}, or a graph")
        return None
    graph = cast(Any, feedback).toarray() if sp.issparse(feedback) else np.asarray(feedback)
    if graph.shape != (n_classes, n_classes):
        raise SettingError(f"a feedback graph on {n_classes} classes is {n_classes} × {n_classes}, not {graph.shape}")
    if graph.dtype != np.bool_ and not np.isin(graph, (0, 1)).all():
        raise SettingError("the entries of a feedback graph must be True and False (or 1 and 0)")
    graph = np.ascontiguousarray(graph.astype(np.bool_))
    if not graph.any(axis=0).all():
        never = int(np.flatnonzero(~graph.any(axis=0))[0])
        raise SettingError(f"no label reveals label {never} in this feedback graph: add an edge to it")
    return graph


def dominating_set(graph: Flags) -> Integers:
    """Labels that together reveal every label, chosen greedily (at most ln K times as many as needed)."""
    chosen: list[int] = []
    left = np.ones(len(graph), dtype=np.bool_)
    while left.any():
        gain = (graph & left).sum(axis=1)
        chosen.append(int(gain.argmax()))
        left &= ~graph[chosen[-1]]
    return np.array(chosen, dtype=np.int64)
