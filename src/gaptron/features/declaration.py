"""Features: how a caller declares the columns before the first example."""

from collections.abc import Iterable, Mapping
from typing import Any

from gaptron.data.values import flag, whole
from gaptron.errors import SettingError
from gaptron.features.cells import AUTO, KINDS

ALL_CROSSES = "context*action"


class Features:
    """How examples by name are encoded. Columns that are left out are "auto".

    Args:
        columns: column → "number", "log" (a number of many orders of magnitude, whose logarithm is used), "word",
            "time", "ignore", or "auto" (its first value determines the kind).
        cross: pairs, or longer tuples, of columns that interact: each combination of their values is one more word. The
            parts of a time are named `when.hour`, `when.weekday` and `when.month`. With `actions=True` pairs (column of
            the context, column of the actions), whose values are multiplied. Left out, "context*action": all pairs; for
            labels there are none. `()` is none.
        most_words: how many words of one column get their own weight; later ones share `buckets`.
        buckets: how many weights of a column the other words share.
        ids: with `actions=True`: whether an action that is offered again gets its own weight, by its id. Left out,
            it does.
        most_crosses: with `actions=True`: how many crosses get their own weight; later ones share these.

    Raises:
        SettingError: an argument is not of this form.
    """

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        *,
        cross: Iterable[Iterable[str]] | str | None = None,
        most_words: int = 65_536,
        buckets: int = 256,
        ids: bool | None = None,
        most_crosses: int = 262_144,
    ) -> None:
        given = {} if columns is None else columns
        if not isinstance(given, Mapping):
            raise SettingError(f"columns={columns!r} must be a dictionary: column → kind")
        for name, kind in given.items():
            if not isinstance(name, str):
                raise SettingError(f"columns has the key {name!r}, but names of columns are strings")
            if kind not in KINDS:
                raise SettingError(f"column {name} cannot be {kind!r}; available: {', '.join(KINDS)}")
        self.columns = dict(given)
        self.cross = cross if cross is None or cross == ALL_CROSSES else _crosses(cross)
        self.most_words = whole("most_words", most_words)
        self.buckets = whole("buckets", buckets)
        self.ids = None if ids is None else flag("ids", ids)
        self.most_crosses = whole("most_crosses", most_crosses)

    @property
    def pairs(self) -> tuple[tuple[str, ...], ...]:
        """The columns that interact, where they are listed."""
        return () if self.cross is None or isinstance(self.cross, str) else self.cross

    def __repr__(self) -> str:
        sizes = f"most_words={self.most_words}, buckets={self.buckets}, most_crosses={self.most_crosses}"
        return f"Features({self.columns!r}, cross={self.cross!r}, ids={self.ids!r}, {sizes})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.as_tree() == other.as_tree()

    __hash__ = None  # type: ignore[assignment]  # its columns are a dictionary

    def as_tree(self) -> dict[str, Any]:
        """Convert to plain values, for a model file.

        Returns:
            The arguments by name.
        """
        return {
            "columns": [[name, kind] for name, kind in self.columns.items()],
            "cross": self.cross if self.cross is None or isinstance(self.cross, str) else list(map(list, self.cross)),
            "most_words": self.most_words,
            "buckets": self.buckets,
            "ids": self.ids,
            "most_crosses": self.most_crosses,
        }

    @classmethod
    def from_tree(cls, tree: Any) -> "Features":
        """Convert back from plain values, with the same checks as for any caller.

        Args:
            tree: what `as_tree` returned.

        Returns:
            The declaration.
        """
        rest = {name: tree[name] for name in ("cross", "most_words", "buckets", "ids", "most_crosses") if name in tree}
        return cls(dict(tree["columns"]), **rest)


def as_features(given: Any, *, actions: bool) -> Features:
    """Check a learner's `features=` argument; `actions`: every round of it brings its own actions."""
    if isinstance(given, str) and given == AUTO:
        return Features()
    if not isinstance(given, Features):
        raise SettingError(f'features={given!r} must be "auto" or Features(...)')
    if actions:
        if wrong := [names for names in given.pairs if len(names) != 2]:
            raise SettingError(f"cross has {wrong[0]}: with actions=True give (column of context, column of actions)")
    elif given.cross == ALL_CROSSES or given.ids is not None:
        raise SettingError(f"Features(cross={ALL_CROSSES!r}) and Features(ids=...) are for a learner with actions=True")
    return given


def _crosses(cross: Any) -> tuple[tuple[str, ...], ...]:
    wrong = SettingError(f"cross={cross!r} must list pairs of columns, such as [('hour', 'device')]")
    if isinstance(cross, str) or not isinstance(cross, Iterable):
        raise wrong
    crosses = []
    for names in cross:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise wrong
        group = tuple(names)
        if len(group) < 2 or not all(isinstance(name, str) for name in group) or len(set(group)) < len(group):
            raise wrong
        crosses.append(group)
    if len(set(crosses)) < len(crosses):
        raise SettingError(f"cross={cross!r} lists the same columns twice")
    return tuple(crosses)
