"""Features: how a caller declares the columns before the first example."""

from collections.abc import Iterable, Mapping
from typing import Any

from gaptron.data.values import whole
from gaptron.errors import SettingError
from gaptron.features.cells import AUTO, KINDS


class Features:
    """How examples by name are encoded. Columns that are left out are "auto".

    Args:
        columns: column → "number", "log" (a number of many orders of magnitude, whose logarithm is used), "word",
            "time", "ignore", or "auto" (its first value determines the kind).
        cross: pairs, or longer tuples, of columns that interact: each combination of their values is one more word. The
            parts of a time are named `when.hour`, `when.weekday` and `when.month`.
        most_words: how many words of one column get their own weight; later ones share `buckets`.
        buckets: how many weights of a column the other words share.

    Raises:
        SettingError: an argument is not of this form.
    """

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        *,
        cross: Iterable[Iterable[str]] = (),
        most_words: int = 65_536,
        buckets: int = 256,
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
        self.cross = _crosses(cross)
        self.most_words = whole("most_words", most_words)
        self.buckets = whole("buckets", buckets)

    def __repr__(self) -> str:
        return f"Features({self.columns!r}, cross={self.cross!r}, most_words={self.most_words}, buckets={self.buckets})"

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
            "cross": [list(names) for names in self.cross],
            "most_words": self.most_words,
            "buckets": self.buckets,
        }

    @classmethod
    def from_tree(cls, tree: Any) -> "Features":
        """Convert back from plain values, with the same checks as for any caller.

        Args:
            tree: what `as_tree` returned.

        Returns:
            The declaration.
        """
        return cls(dict(tree["columns"]), cross=tree["cross"], most_words=tree["most_words"], buckets=tree["buckets"])


def as_features(given: Any) -> Features:
    """Check a learner's `features=` argument."""
    if isinstance(given, Features):
        return given
    if given == AUTO:
        return Features()
    raise SettingError(f'features={given!r} must be "auto" or Features(...)')


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
