"""Numbers and findings of a comparison as words, the same on the page and on the terminal."""

from gaptron.experiments.summary import Field, Interval, Standing


def feedback(word: str) -> str:
    """The feedback, as it stands in a heading."""
    return {"full": "Full information", "bandit": "Bandit feedback"}.get(word, f"Graph feedback: {word}")


def percent(error: float) -> str:
    """An error rate in per cent: 12.34, with more digits where it is small."""
    return f"{100 * error:.2f}" if error >= 0.001 or error == 0 else f"{100 * error:.2g}"


def points(difference: Interval | None, sign: bool = True) -> str:
    """A difference of two error rates, in points of per cent."""
    if difference is None:
        return "no pair"
    mean = f"{100 * difference.mean:{'+' if sign else ''}.2f}"
    return mean if difference.half is None else f"{mean} ± {100 * difference.half:.2f}"


def span(found: Interval) -> str:
    """An error rate with its interval."""
    return percent(found.mean) if found.half is None else f"{percent(found.mean)} ± {100 * found.half:.2f}"


def several(n: int, noun: str) -> str:
    """1 seed, 5 seeds."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def headline(field: Field) -> str:
    """Who wins, by how much and how sure, in a sentence or three."""
    first, *rest = field.ranking
    name, total = field.names[first.entry], len(field.arenas)
    if not rest:
        return f"{name} alone was played: error {percent(first.error)}%."
    where = f"on {first.wins} of {several(total, 'stream')}" if total > 1 else f"on {field.places[field.arenas[0]]}"
    said = [f"{name} makes the fewest mistakes {where}"]
    if first.wins == 0 or (total == 1 and first.wins == 0):
        said = [f"{name} has the least error over all streams, though it is first on none of them"]
    said[0] += f", with an error of {percent(first.error)}%{' over all streams' if total > 1 else ''}; "
    said[0] += _gap(field, first, rest[0])
    if first.entry.tuned:
        best = next((s for s in rest if not s.entry.tuned), None)
        said.append(f"The setting of {name} was chosen in hindsight, stream by stream, which flatters it.")
        if best is not None and best is not rest[0]:
            said.append(f"The best that chose nothing in hindsight: {_gap(field, first, best)}")
    return " ".join(said)


def _gap(field: Field, first: Standing, other: Standing) -> str:
    name, gap = field.names[other.entry], other.behind
    if gap is None:
        return f"the next, {name}, shares no run with it."
    text = f"the next, {name}, is {points(gap, sign=False)} points behind"
    if gap.half is None:
        return f"{text} (one seed: no interval)."
    sure = f"95%, {several(gap.n, 'seed')}"
    return f"{text} ({sure})." if gap.clear else f"{text} ({sure}): too little to tell them apart."
