"""Numbers and findings of a comparison as words, the same on the page and on the terminal."""

from gaptron.experiments.summary import Field, Interval, Slope, Standing


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


def span(rate: Interval) -> str:
    """An error rate with its interval."""
    return percent(rate.mean) if rate.half is None else f"{percent(rate.mean)} ± {100 * rate.half:.2f}"


def slope(exponent: Slope) -> str:
    """An exponent with its standard error; never -0.00."""
    value = f"{round(exponent.value, 2) + 0.0:.2f}"
    return value if exponent.error is None else f"{value} ± {exponent.error:.2f}"


def several(n: int, noun: str) -> str:
    """1 seed, 5 seeds."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def headline(field: Field) -> str:
    """Who wins, by how much and how sure, in a sentence or three."""
    first, *rest = field.ranking
    name, total = field.names[first.variant], len(field.arenas)
    if not rest:
        return f"{name} alone was played: error {percent(first.error)}%."
    error, everywhere = f"{percent(first.error)}%", " over all streams" if total > 1 else ""
    where = f"on {first.wins} of {several(total, 'stream')}" if total > 1 else f"on {field.places[field.arenas[0]]}"
    if first.wins:
        lead = f"{name} makes the fewest mistakes {where}, with an error of {error}{everywhere}"
    else:
        lead = f"{name} has the least error{everywhere}, {error}, though it is first on none of them"
    rival = next((standing for standing in rest if standing.variant.algorithm != first.variant.algorithm), rest[0])
    text = f"{lead}; the next, {_gap(field, rival)}"
    if first.variant.tuned:
        text += f" The setting of {name} was chosen in hindsight, stream by stream, which flatters it."
        best = next((standing for standing in rest if not standing.variant.tuned), None)
        if best is not None and best is not rival:
            text += f" The best that chose nothing in hindsight, {_gap(field, best)}"
    return text


def _gap(field: Field, other: Standing) -> str:
    name, gap = field.names[other.variant], other.behind
    if gap is None:
        return f"{name}, shares no run with it."
    text = f"{name}, is {points(gap, sign=False)} points behind"
    if gap.half is None:
        return f"{text} (one seed: no interval)."
    sure = f"95%, {several(gap.n, 'seed')}"
    return f"{text} ({sure})." if gap.clear else f"{text} ({sure}): too little to tell them apart."
