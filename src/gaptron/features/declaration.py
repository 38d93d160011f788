"""Features: what a caller says about the columns of rows before the first one is seen."""

from collections.abc import Iterable, Mapping
from typing import Any

from gaptron.errors import SettingError
from gaptron.features.cells import AUTO, KINDS
from gaptron.given_values import whole


class Features:
    """How rows of named values become rows of numbers; every column left out is found as it comes.

    Args:
        columns: column → "number", "log" (a number of many sizes: its logarithm is taken), "word", "time", "ignore", or
            "auto" (its first value says what it is).
        cross: pairs, or longer tuples, of columns whose values matter together: each combination is one more word. The
            parts of a time are called `when.hour`, `when.weekday` and `when.month`.
        most_words: words of one column that get a place of their own; those that come later share `buckets`.
        buckets: places of a column for the words beyond.
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
                raise SettingError(f"columns names {name!r}, and the name of a column is a text")
            if kind not in KINDS:
                raise SettingError(f"column {name} cannot be {kind!r}; there are: {', '.join(KINDS)}")
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
        """All of it as plain values."""
        return {
            "columns": [[name, kind] for name, kind in self.columns.items()],
            "cross": [list(names) for names in self.cross],
            "most_words": self.most_words,
            "buckets": self.buckets,
        }

    @classmethod
    def from_tree(cls, tree: Any) -> "Features":
        """What `as_tree` made, through the same checks as everybody."""
        return cls(dict(tree["columns"]), cross=tree["cross"], most_words=tree["most_words"], buckets=tree["buckets"])


def as_features(given: Any) -> Features:
    """What a learner's `features=` says."""
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
