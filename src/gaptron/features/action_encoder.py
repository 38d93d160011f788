"""The encoder of rounds of named features: a context, and actions that are crossed with it.

Columns of the context and columns of the actions are apart: a "price" of both is two columns. They follow the rules of
`Encoder`. Beside them an action has

    a constant    1, if it has features
    its id        a word, which gets its place in the second round in which it is offered
    crosses       the product of each entry of the context and each entry of the action, constant included

and its row has norm 1. But for the id and missing values it is the product of two encoded examples, so that its length
hides the size of numbers no more than theirs does. A column that a context or an action does not have gives nothing;
one that it has without a value is missing, as in `Encoder`. All rows of a round are encoded by the rounds before it,
whatever their order.
"""

import functools
import hashlib
import importlib
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gaptron.data.actions import ActionExamples, Offer
from gaptron.data.examples import sealed
from gaptron.features.cells import AUTO, TIME, kind_of
from gaptron.features.columns import Account, Column, Dictionary, Key, Tracks
from gaptron.features.declaration import ALL_CROSSES, Features
from gaptron.features.encoder import Encoder, Mark, doubled
from gaptron.features.rounds import ActionRecord, ActionRecords
from gaptron.kernels.compile.specialize import specialize
from gaptron.types import Integers, Sparse, SparseRow

CONTEXT, ACTIONS = 0, 1  # the spaces of columns
MOST_WAITING = 65_536  # ids that were offered once
IDLE = 10_000  # rounds after which an id that was not offered loses its place; looked at once in as many rounds
MOST_ROUNDS = 1_024  # encoded at a time
Round = tuple[Any, Any, Any]  # ends, columns and values; the context is the first row


class ActionMark(NamedTuple):
    """A state of the encoder, to return to."""

    base: Mark
    pairs: int
    waiting: dict[int, None]
    offered: dict[str, int]
    free: list[int]
    ids: dict[Key, int]
    words: int
    shared: int


class ActionEncoder(Encoder):
    """Turns rounds of named features into rows of numbers. Each is encoded by the rounds before it.

    Args:
        features: how the caller declared the columns.
    """

    def __init__(self, features: Features) -> None:
        self._value_groups = np.zeros(1, dtype=np.int64)
        self._word_groups = np.zeros(1, dtype=np.int64)
        super().__init__(features)
        self._take()  # the constant of actions
        self._pairs, self._pair_places, self._table = (np.zeros(8, np.int64), np.zeros(8, np.int64), new_table(16))
        self._n_pairs = 0
        self._encode: Any = None

    def _declare(self, features: Features) -> None:
        """Prepare the crosses and the ids. Declared columns are made when they occur, on whichever side."""
        self._spaces.append({})
        self._settled: list[set[str]] = [set(), set()]  # names of the columns whose kind is known
        every = features.cross is None or features.cross == ALL_CROSSES
        # Group 0 is crossed with nothing.
        self._groups: list[dict[str, int]] = [{}, {}]
        for names in features.pairs:
            for space, name in zip(self._groups, names):
                space.setdefault(name, 1 + len(space))
        rows, columns = (2 if every else 1 + len(space) for space in self._groups)
        self._allowed = np.zeros((rows, columns), dtype=np.bool_)
        self._allowed[1:, 1:] = every
        for one, other in features.pairs:
            self._allowed[self._groups[CONTEXT][one], self._groups[ACTIONS][other]] = True
        self._crosses_all = every
        self.ids = self._dictionary()
        self._set_word_group(self.ids, 0)
        self._has_ids = features.ids is not False
        self._waiting: dict[int, None] = {}  # hashes of ids that were offered once, the oldest first
        self._offered: dict[str, int] = {}  # id with a place → the last round that offered it
        self._free: list[int] = []  # places of ids that were retired
        self.shared = 0  # offers of ids that share a bucket
        self.freed: dict[int, int] = {}
        """Place of a retired id → after which round it was retired last."""

    @property
    def columns(self) -> list[Account]:
        """How each column is encoded."""
        named = zip(("context", "action"), self._spaces)
        found = [
            column.account()._replace(name=f"{space}.{column.name}")
            for space, columns in named
            for column in columns.values()
        ]
        none = 0, 0, 0
        if self._has_ids:
            found.append(Account("action id", "word", 0, self.ids.words, *none, self.shared))
        if self._allowed.any():
            found.append(Account("context*action", "cross", 0, self._n_pairs, *none, 0))
        return found

    # --- rounds -------------------------------------------------------------------------------------------------

    def encode_offer(self, given: ActionRecord, *, learn: bool) -> Offer:
        """Encode one round.

        Args:
            given: the checked round.
            learn: learn from it, so that it counts for the rounds after it.

        Returns:
            The actions that may be played, and the context.
        """
        ends, indices, entries = self._round(given, learn)
        split, K = ends[1], len(given.ids)
        for part in (indices, entries):
            part.flags.writeable = False
        rows = Sparse(sealed(ends[1:] - split), indices[split:], entries[split:])
        context = SparseRow(indices[:split], entries[:split])
        return Offer(rows, context, self.width, 1.0, np.arange(K), K)

    def encode_rounds(self, given: ActionRecords, *, learn: bool) -> ActionExamples:
        """Encode many rounds, with the same result as one by one.

        Args:
            given: the checked rounds.
            learn: learn from them, so that they count for the rounds after them.

        Returns:
            The encoded rounds.
        """
        rounds = [self._round(each, learn) for each in given]
        nothing = np.zeros(0, dtype=np.int32)
        counts = np.array([len(each.ids) for each in given], dtype=np.int64)
        own = [np.diff(ends) for ends, _, _ in rounds]
        lengths = np.concatenate([nothing, *(each[1:] for each in own)])
        shared = np.array([each[0] for each in own], dtype=np.int64)
        rows, contexts = (
            Sparse(
                sealed(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)),
                sealed(np.concatenate([nothing, *(columns[part(ends)] for ends, columns, _ in rounds)])),
                sealed(np.concatenate([np.zeros(0), *(values[part(ends)] for ends, _, values in rounds)])),
            )
            for sizes, part in ((lengths, lambda ends: slice(ends[1], None)), (shared, lambda ends: slice(0, ends[1])))
        )
        first = sealed(np.concatenate([[0], np.cumsum(counts)]))
        return ActionExamples(rows, self.width, first, np.ones(len(lengths)), contexts)

    def _round(self, given: ActionRecord, learn: bool) -> Round:
        """Encode one round as ends, columns and values of rows, first that of the context."""
        if learn:
            self._add_columns(CONTEXT, (given.context,))
            self._add_columns(ACTIONS, given.features)
        x, s, own_x, own_s = Tracks([], []), Tracks([], []), Tracks([], []), Tracks([], [])
        known = self._columns
        self._add_cells([(known[name], cell) for name, cell in given.context.items() if name in known], learn, x, s)
        x_ends, s_ends, known = [0], [0], self._spaces[ACTIONS]
        constants: list[int] = []
        for id_, cells in zip(given.ids, given.features):
            own = [(known[name], cell) for name, cell in cells.items() if name in known]
            self._add_cells(own, learn, own_x, own_s)
            if self._has_ids:
                self._add_id(str(id_), learn, own_s)
            constants.append(int(bool(cells)))
            x_ends.append(len(own_x.tracks))
            s_ends.append(len(own_s.tracks))
        if learn:
            self.rows += 1
        return self._encoded_round(x, s, own_x, own_s, (x_ends, s_ends, constants), learn)

    def _add_columns(self, space: int, rows: tuple[Any, ...]) -> None:
        """Make the columns that are new in these rows, and settle their kinds, before any of the rows is encoded."""
        columns, settled = self._spaces[space], self._settled[space]
        for cells in rows:
            if cells.keys() <= settled:
                continue
            for name, value in cells.items():
                column = columns.get(name)
                if column is None:
                    self._new_column(name, self.features.columns.get(name, AUTO), space)
                    column = columns[name]
                if column.kind == AUTO and value is not None:
                    self.settle(column, kind_of(value, False))
                if column.kind != AUTO:
                    settled.add(name)

    def _add_id(self, name: str, learn: bool, s: Tracks) -> None:
        """Encode the id of an action: nothing when it is offered for the first time."""
        place = self.ids.places.get(name)
        if place is None:
            hashed = id_hash(name)
            if hashed not in self._waiting:
                if learn:
                    self._waiting[hashed] = None
                    if len(self._waiting) > MOST_WAITING:
                        del self._waiting[next(iter(self._waiting))]
                return
            key = self.ids.key(name)
            if learn and key == name:
                del self._waiting[hashed]
                if self._free:
                    place = self._free.pop()
                    self.ids.take(key, place)
            self.shared += learn and key != name
            if place is None:
                place = self.place(self.ids, name, int(learn))
        if learn and name in self.ids.places:
            self._offered[name] = self.rows
        s.add(self.ids.track, place)

    def _encoded_round(
        self, x: Tracks, s: Tracks, own_x: Tracks, own_s: Tracks, shape: tuple[list[int], ...], learn: bool
    ) -> Round:
        verbs, K = kernel(), len(shape[-1])
        parts = (x.tracks, s.cells, s.tracks, own_x.tracks, own_s.cells, own_s.tracks, *shape)
        flat = np.array([n for part in parts for n in part], dtype=np.int64)
        stops = [0, *accumulate(map(len, parts))]
        values, places, words, own_values, own_places, own_words, *ends = (
            flat[start:stop] for start, stop in pairwise(stops)
        )
        context = verbs.Cells(np.array(x.cells, dtype=np.float64), values, places, words)
        actions = verbs.Cells(np.array(own_x.cells, dtype=np.float64), own_values, own_places, own_words)
        shared, own = len(values) + len(words), len(own_values) + len(own_words)
        raw = np.empty(shared, dtype=np.int64), np.empty(shared)
        most = 1 + shared + (own + K) * (1 + shared) + shared + own
        out = np.zeros(K + 2, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
        while True:
            groups = self._value_groups, self._word_groups
            known = verbs.Known(self._kinds, self._places, self._stats, self._totals, self._counts, *groups)
            crosses = verbs.Crosses(self._table, self._pairs, self._pair_places, self._allowed, int(self._crosses_all))
            used = np.array([self._taken, self._n_pairs])
            limit = self.features.most_crosses
            arguments = (context, actions, *ends, known, crosses, limit, used, learn, *raw, *out)
            if self._encode is None:
                self._encode = specialize(verbs.encode_round, *arguments)
            size = self._encode(*arguments)
            self._taken, self._n_pairs = used.tolist()
            if size != verbs.FULL:
                return out[0], out[1][:size].copy(), out[2][:size].copy()
            if self._taken >= len(self._counts):
                self._counts = doubled(self._counts)
            if self._n_pairs >= len(self._pairs):
                self._pairs, self._pair_places = doubled(self._pairs), doubled(self._pair_places)
                self.fill_table()

    def fill_table(self) -> None:
        """Enter all pairs into a new table, of which at most half is used."""
        self._table = new_table(1 << (2 * len(self._pairs) - 1).bit_length())
        kernel().fill_table(self._table, self._pairs, self._n_pairs)

    # --- groups of tracks -----------------------------------------------------------------------------------------

    def _group(self, space: int, name: str) -> int:
        return 1 if self._crosses_all else self._groups[space].get(name, 0)

    def _set_word_group(self, words: Dictionary, group: int) -> None:
        self._word_groups = _set(self._word_groups, words.track, group)

    def _new_column(self, name: str, kind: str, space: int = CONTEXT) -> None:
        super()._new_column(name, kind, space)
        self._set_word_group(self._spaces[space][name].words, self._group(space, name))

    def settle(self, column: Column, kind: str) -> None:
        """Fix the kind of a column, which its first value determines."""
        super().settle(column, kind)
        if kind == TIME:
            for part, words in column.parts.items():
                self._set_word_group(words, self._group(column.space, f"{column.name}.{part}"))

    def take_value(self, column: Column, name: str) -> int:
        """Return a new track for a number, with a new place."""
        track = super().take_value(column, name)
        self._value_groups = _set(self._value_groups, track, self._group(column.space, column.name))
        return track

    # --- ids that are not offered any more --------------------------------------------------------------------------

    def idle_ids(self) -> list[str]:
        """The ids to retire before the next round: every `IDLE` rounds those that were not offered in as many."""
        if self.rows == 0 or self.rows % IDLE:
            return []
        return [name for name, last in self._offered.items() if last <= self.rows - IDLE]

    def places_of(self, names: list[str]) -> Integers:
        """The places of ids."""
        return np.array([self.ids.places[name] for name in names], dtype=np.int64)

    def retire(self, names: list[str]) -> None:
        """Take the places of ids back. Later ids get them."""
        for name in names:
            place = self.ids.places.pop(name)
            self.ids.words -= 1
            self._totals[self.ids.track] -= self._counts[place]
            self._counts[place] = 0
            del self._offered[name]
            self._free.append(place)
            self.freed[place] = self.rows

    def freed_since(self, round: int) -> Integers:
        """The places that were freed after this round was decided."""
        return np.array([place for place, last in self.freed.items() if last >= round], dtype=np.int64)

    def rounds_to_retirement(self) -> int:
        """How many rounds can be encoded before ids may be retired."""
        return IDLE - self.rows % IDLE

    # --- marks ----------------------------------------------------------------------------------------------------

    def mark(self) -> ActionMark:  # type: ignore[override]
        """Return the current state, for `back_to`."""
        ids = dict(self.ids.places)
        copies = dict(self._waiting), dict(self._offered), list(self._free), ids, self.ids.words, self.shared
        return ActionMark(super().mark(), self._n_pairs, *copies)

    def back_to(self, mark: ActionMark) -> None:  # type: ignore[override]
        """Undo what was learned since `mark` returned this state. Ids must not have been retired since."""
        super().back_to(mark.base)
        self._n_pairs, self._waiting, self._offered, self._free = mark[1:5]
        self.ids.places, self.ids.words, self.shared = mark[5:]
        self._settled = [set(), set()]
        self.fill_table()


@functools.cache
def kernel() -> ModuleType:
    """The compiled functions, imported at first use so that `import gaptron` stays quick."""
    return importlib.import_module("gaptron.kernels.action_features")


def new_table(size: int) -> Integers:
    """An empty hash table."""
    return np.full(size, -1, dtype=np.int64)


def id_hash(name: str) -> int:
    """A hash of an id, the same on every machine."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _set(array: Integers, at: int, value: int) -> Integers:
    """Write a number, into an array twice as long if it has to be."""
    while at >= len(array):
        array = doubled(array)
    array[at] = value
    return array
