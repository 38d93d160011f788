"""What a model's part of the log adds up to, for the page and for alerts. A pure fold, like the model itself."""

from typing import TypeVar

from msgspec import Struct, field

T = TypeVar("T")

WINDOW, CHANGES = 1000, 50
DELAYS = (1, 10, 60, 600, 3600, 86_400)  # seconds: the upper ends of all columns but the last


class Seen(Struct, array_like=True, gc=False):
    """A decision that was answered."""

    code: int
    wrong: float  # 1 - reward
    probability: float


class OfLabel(Struct, array_like=True, gc=False):
    """One label."""

    played: int = 0
    answered: int = 0
    wrong: float = 0.0


class Tally(Struct):
    """The sums."""

    decisions: int = 0
    answered: int = 0
    late: int = 0
    void: int = 0
    overridden: int = 0
    defaulted: int = 0
    agreed: int = 0  # apprentice: the caller played what we would have
    apprenticed: int = 0
    labels: list[OfLabel] = field(default_factory=list)
    delays: list[int] = field(default_factory=lambda: [0] * (len(DELAYS) + 1))
    recent: list[Seen] = field(default_factory=list)  # the last WINDOW of them count
    sure: list[float] = field(default_factory=list)  # the largest probability of recent decisions
    changes: list[tuple[int, str]] = field(default_factory=list)  # the last of them: time in µs, and words

    def changed(self, at: int, words: str) -> None:
        """A rule is another from now on."""
        self.changes = [*self.changes, (at, words)][-CHANGES:]

    def decided(self, code: int, sure: float | None, agreed: bool | None) -> None:
        """A decision was made; `sure`: the largest probability, where it was ours to draw."""
        self.decisions += 1
        self.labels[code].played += 1
        if sure is not None:
            _keep(self.sure, sure)
        if agreed is not None:
            self.apprenticed += 1
            self.agreed += agreed

    def answer(self, code: int, wrong: float, probability: float, delay: int | None) -> None:
        """It was answered, after so many µs; None: the wait was over."""
        if delay is None:
            self.defaulted += 1
        else:
            self.answered += 1
            self.labels[code].answered += 1
            self.labels[code].wrong += wrong
            self.delays[sum(delay >= 1_000_000 * end for end in DELAYS)] += 1
        _keep(self.recent, Seen(code, wrong, probability))


def _keep(window: list[T], value: T) -> None:
    window.append(value)
    if len(window) >= 2 * WINDOW:
        del window[:WINDOW]
