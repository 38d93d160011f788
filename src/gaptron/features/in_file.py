"""An encoder as plain values for the model file, and back. Every number of a file is checked."""

import itertools
from typing import Any

import numpy as np

from gaptron.data import state_tree
from gaptron.data.values import count
from gaptron.features.action_encoder import ACTIONS, MOST_WAITING, ActionEncoder
from gaptron.features.action_encoder import kernel as kernel_of_actions
from gaptron.features.cells import AUTO, IGNORE, KINDS, LOG, NUMBER, TIME
from gaptron.features.columns import TIME_WORDS, Column, Dictionary, Key
from gaptron.features.declaration import Features, as_features
from gaptron.features.encoder import Encoder, kernel
from gaptron.types import Integers

VALUES = {NUMBER: ("number",), LOG: ("number",), TIME: ("stamp", "sine", "cosine")}
FIELDS = ("features", "rows", "counts", "columns", "crosses")
FIELDS_OF_ACTIONS = (
    *("columns_of_actions", "pairs", "pair_places", "ids", "last_offered", "offered_once", "free", "freed"),
    *("freed_after", "shared"),
)
COUNTS = ("missing", "absent", "other_kind", "shared")


def as_tree(encoder: Encoder) -> dict[str, Any]:
    """Convert an encoder to plain values."""
    tree = {
        "features": encoder.features.as_tree(),
        "rows": encoder.rows,
        "counts": encoder._counts[: encoder._taken].copy(),
        "columns": [_column_tree(encoder, column) for column in encoder._columns.values()],
        "crosses": [_words_tree(encoder, cross) for cross in encoder._crosses],
    }
    if isinstance(encoder, ActionEncoder):
        tree["columns_of_actions"] = [_column_tree(encoder, column) for column in encoder._spaces[ACTIONS].values()]
        tree |= _actions_tree(encoder)
    return tree


def _actions_tree(encoder: ActionEncoder) -> dict[str, Any]:
    n = encoder._n_pairs
    last = [encoder._offered[name] for name in encoder.ids.places if isinstance(name, str)]
    return {
        "pairs": encoder._pairs[:n].copy(),
        "pair_places": encoder._pair_places[:n].copy(),
        "ids": _words_tree(encoder, encoder.ids),
        "last_offered": np.array(last, dtype=np.int64),
        "offered_once": np.array(list(encoder._waiting), dtype=np.int64),
        "free": np.array(encoder._free, dtype=np.int64),
        "freed": np.array(list(encoder.freed), dtype=np.int64),
        "freed_after": np.array(list(encoder.freed.values()), dtype=np.int64),
        "shared": encoder.shared,
    }


def _column_tree(encoder: Encoder, column: Column) -> dict[str, Any]:
    tracks = np.array(list(column.values.values()), dtype=np.int64)
    return {
        "name": column.name,
        "kind": column.kind,
        "first_row": column.first_row,
        "counts": [getattr(column, name) for name in COUNTS],
        "values": list(column.values),
        "places": encoder._places[tracks],
        "stats": encoder._stats[tracks],
        "words": [_words_tree(encoder, words) for words in column.dictionaries()],
    }


def _words_tree(encoder: Encoder, words: Dictionary) -> dict[str, Any]:
    texts = [key.encode("utf-8", "surrogatepass") for key in words.places if isinstance(key, str)]
    buckets = [key for key in words.places if isinstance(key, int)]
    return {
        "total": int(encoder._totals[words.track]),
        "texts": np.frombuffer(b"".join(texts), dtype=np.uint8).copy(),
        "ends": np.cumsum([0, *map(len, texts)], dtype=np.int64),
        "places": np.array([at for key, at in words.places.items() if isinstance(key, str)], dtype=np.int64),
        "buckets": np.array(buckets, dtype=np.int64),
        "bucket_places": np.array([words.places[key] for key in buckets], dtype=np.int64),
        "gap": words.places.get(None, -1),
    }


def from_tree(tree: Any, width: int, *, actions: bool = False) -> Encoder:
    """Convert plain values back to an encoder.

    Args:
        tree: what `as_tree` returned, or what a file claims to be that.
        width: the width of the learner's weights.
        actions: whether it is an `ActionEncoder`.

    Returns:
        The encoder.

    Raises:
        ValueError: the tree is not one of an encoder of this width.
    """
    state_tree.check_words(tree, (*FIELDS, *(FIELDS_OF_ACTIONS if actions else ())), "features")
    declared = as_features(Features.from_tree(tree["features"]), actions=actions)
    encoder = ActionEncoder(declared) if actions else Encoder(declared)
    encoder.rows = count("features.rows", tree["rows"])
    counts = _whole_numbers(tree["counts"], "features.counts")
    if not 1 <= len(counts) <= max(width, encoder._taken):
        raise ValueError(f"features has {len(counts)} places, but the width is {width}")
    encoder._taken = len(counts)
    encoder._counts = np.concatenate([counts, np.zeros(max(width, encoder.width) - len(counts), dtype=np.int64)])
    taken: list[Integers] = [np.zeros(1, dtype=np.int64)]
    for column in _list(tree["columns"], "features.columns"):
        taken += _restore_column(encoder, column, 0)
    crosses = _list(tree["crosses"], "features.crosses")
    if len(crosses) != len(encoder._crosses):
        raise ValueError("features.crosses are not those declared")
    for cross, words in zip(encoder._crosses, crosses):
        taken += _restore_words(encoder, cross, words, counts_gaps=True)
    if isinstance(encoder, ActionEncoder):
        for column in _list(tree["columns_of_actions"], "features.columns_of_actions"):
            taken += _restore_column(encoder, column, ACTIONS)
        taken += _restore_actions(encoder, tree)
    if not np.array_equal(np.sort(np.concatenate(taken)), np.arange(len(counts))):
        raise ValueError("features has places that belong to no word or number, or to two")
    return encoder


def _restore_actions(encoder: ActionEncoder, tree: Any) -> list[Integers]:
    taken = _restore_words(encoder, encoder.ids, tree["ids"], counts_gaps=True)
    if not encoder._has_ids and taken[0].size:
        raise ValueError("features has ids, which were not declared")
    names = ("pairs", "pair_places", "last_offered", "offered_once", "free", "freed", "freed_after")
    pairs, places, last, once, free, freed, after = (_whole_numbers(tree[name], f"features.{name}") for name in names)
    n = len(pairs)
    if len(places) != n or n > encoder.features.most_crosses or len(np.unique(pairs)) < n:
        raise ValueError("features.pairs are not those of crosses")
    for part in (pairs >> 32, pairs & 0xFFFFFFFF, places, free, freed):
        if len(part) and not (part.min() >= 1 and part.max() < encoder._taken):
            raise ValueError("features has a cross or an id outside the row")
    if (encoder._counts[places] != kernel().FLAG).any() or encoder._counts[free].any():
        raise ValueError("features counts crosses, or ids that were retired")
    words = [name for name in encoder.ids.places if isinstance(name, str)]
    if len(last) != len(words) or len(once) > MOST_WAITING or len(np.unique(once)) < len(once):
        raise ValueError("features.last_offered or features.offered_once do not fit the ids")
    if len(freed) != len(after) or not set(free.tolist()) <= set(freed.tolist()) or len(np.unique(freed)) < len(freed):
        raise ValueError("features.freed does not fit the ids")
    encoder._offered = dict(zip(words, last.tolist()))
    encoder._waiting = dict.fromkeys(once.tolist())
    encoder._free, encoder.freed = free.tolist(), dict(zip(freed.tolist(), after.tolist()))
    encoder.shared = count("features.shared", tree["shared"])
    size = max(8, n)
    encoder._pairs, encoder._pair_places = np.zeros(size, np.int64), np.zeros(size, np.int64)
    encoder._pairs[:n], encoder._pair_places[:n], encoder._n_pairs = pairs, places, n
    encoder.fill_table()
    return [*taken, places, free, np.array([kernel_of_actions().CONSTANT])]


def _restore_column(encoder: Encoder, tree: Any, space: int) -> list[Integers]:
    fields = ("name", "kind", "first_row", "counts", "values", "places", "stats", "words")
    state_tree.check_words(tree, fields, "features.columns")
    name, kind = tree["name"], tree["kind"]
    if type(name) is not str or kind not in KINDS:
        raise ValueError("features.columns has a column without a name or a kind")
    declared = encoder.features.columns.get(name, AUTO)
    if kind != declared and (declared != AUTO or kind in (IGNORE, LOG)):
        raise ValueError(f"column {name} is {kind}, but was declared {declared}")
    columns = encoder._spaces[space]
    if name not in columns:
        encoder._new_column(name, kind, space)
    column = columns[name]
    if column.values or len(column.words.places):
        raise ValueError(f"column {name} occurs twice")
    if column.kind == AUTO and kind != AUTO:
        encoder.settle(column, kind)
    column.first_row = count("first_row", tree["first_row"])
    for word, number in zip(COUNTS, _list(tree["counts"], "counts"), strict=True):
        setattr(column, word, count(word, number))
    values, places = _list(tree["values"], "values"), _whole_numbers(tree["places"], "places")
    stats = np.asarray(tree["stats"])
    if len(set(values)) < len(values) or not set(values) <= set(VALUES.get(kind, ())):
        raise ValueError(f"column {name} has values of another kind")
    if stats.dtype != np.float64 or stats.shape != (len(values), 7) or len(places) != len(values):
        raise ValueError(f"the numbers of column {name} are of the wrong shape")
    if not np.isfinite(stats).all() or (stats[:, kernel().IN_BOUNDS] < 0.0).any() or (abs(stats) > 1e300).any():
        raise ValueError(f"the numbers of column {name} are out of range")
    for at, value in enumerate(values):
        track = encoder.take_value(column, value)
        encoder._places[track] = places[at]
        encoder._stats[track] = stats[at]
    encoder._taken -= len(values)  # the tree has their places
    words = _list(tree["words"], "words")
    if len(words) != (1 + len(TIME_WORDS) if kind == TIME else 1):
        raise ValueError(f"column {name} has words of another kind")
    found = [places]
    for dictionary, part in zip(column.dictionaries(), words):
        gaps = column.counts_gaps or dictionary is not column.words
        found += _restore_words(encoder, dictionary, part, counts_gaps=gaps)
    return found


def _restore_words(encoder: Encoder, words: Dictionary, tree: Any, *, counts_gaps: bool) -> list[Integers]:
    arrays = ("texts", "ends", "places", "buckets", "bucket_places")
    state_tree.check_words(tree, ("total", *arrays, "gap"), "words")
    texts = tree["texts"]
    ends, places, buckets, shared = (_whole_numbers(tree[name], name) for name in arrays[1:])
    if not isinstance(texts, np.ndarray) or texts.dtype != np.uint8 or texts.ndim != 1:
        raise ValueError("texts are not bytes")
    if len(ends) != len(places) + 1 or ends[0] != 0 or ends[-1] != len(texts) or (np.diff(ends) < 0).any():
        raise ValueError("texts do not fit their ends")
    if len(buckets) != len(shared) or not ((buckets >= 0) & (buckets < encoder.features.buckets)).all():
        raise ValueError("buckets are out of range")
    if len(places) > encoder.features.most_words:
        raise ValueError("there are more words than most_words")
    data, stops = texts.tobytes(), ends.tolist()
    keys: list[Key] = [data[start:stop].decode("utf-8", "surrogatepass") for start, stop in itertools.pairwise(stops)]
    gap, every = tree["gap"], [places, shared]
    keys += buckets.tolist()
    if gap != -1:
        every.append(np.array([count("gap", gap)], dtype=np.int64))
        keys.append(None)
    at = np.concatenate(every)
    if at.size and not (at.min() >= 1 and at.max() < encoder._taken):
        raise ValueError("a word has a place outside the row")
    counted = encoder._counts[at]
    if gap != -1 and not counts_gaps:
        if counted[-1] != kernel().FLAG:
            raise ValueError("missing values are counted where they have the value 1")
        counted = counted[:-1]
    if (counted < 1).any() or counted.sum() != count("total", tree["total"]):
        raise ValueError("the counts of words do not add up")
    for key, place in zip(keys, at.tolist()):
        words.take(key, place)
    if len(words.places) < len(keys):
        raise ValueError("a word occurs twice")
    encoder._totals[words.track] = tree["total"]
    return every


def _whole_numbers(value: Any, name: str) -> Integers:
    array: Integers = state_tree.array_of(value, name)
    if array.dtype != np.int64:
        raise ValueError(f"{name} is of the wrong type")
    return array


def _list(value: Any, name: str) -> list[Any]:
    if type(value) is not list:
        raise ValueError(f"{name} is not a list")
    return value
