"""Format the numbers and findings of a comparison, for the page and the terminal."""

from gaptron.experiments.summary import Interval, Slope, Standing, Summary


def feedback_title(feedback: str) -> str:
    """Return the feedback as a heading."""
    return {"full": "Full information", "bandit": "Bandit feedback"}.get(feedback, f"Graph feedback: {feedback}")


def percent(error: float) -> str:
    """Format an error rate in per cent: 12.34, with more digits if it is small."""
    return f"{100 * error:.2f}" if error >= 0.001 or error == 0 else f"{100 * error:.2g}"


def points(difference: Interval | None, sign: bool = True) -> str:
    """Format a difference of two error rates in percentage points."""
    if difference is None:
        return "no common seed"
    mean = f"{100 * difference.mean:{'+' if sign else ''}.2f}"
    return mean if difference.half_width is None else f"{mean} ± {100 * difference.half_width:.2f}"


def with_interval(rate: Interval) -> str:
    """Format an error rate with its interval."""
    return percent(rate.mean) if rate.half_width is None else f"{percent(rate.mean)} ± {100 * rate.half_width:.2f}"


def slope(exponent: Slope) -> str:
    """Format an exponent with its standard error; never -0.00."""
    value = f"{round(exponent.value, 2) + 0.0:.2f}"
    return value if exponent.error is None else f"{value} ± {exponent.error:.2f}"


def plural(n: int, noun: str) -> str:
    """Format a count: 1 seed, 5 seeds."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def headline(summary: Summary) -> str:
    """State the winner, its lead and the uncertainty, in one to three sentences."""
    first, *rest = summary.ranking
    name, total = summary.names[first.variant], len(summary.streams)
    if not rest:
        return f"{name} is the only algorithm: error {percent(first.error)}%."
    error, everywhere = f"{percent(first.error)}%", " over all streams" if total > 1 else ""
    if first.wins:
        where = f"{first.wins} of {plural(total, 'stream')}" if total > 1 else summary.stream_names[summary.streams[0]]
        lead = f"{name} makes the fewest mistakes on {where}, with an error of {error}{everywhere}"
    else:
        lead = f"{name} has the smallest error{everywhere}, {error}, although it is first on none of them"
    second = next((standing for standing in rest if standing.variant.algorithm != first.variant.algorithm), rest[0])
    text = f"{lead}; the next, {_gap(summary, second)}"
    if first.variant.tuned:
        text += f" The setting of {name} was chosen in hindsight for each stream, which is an advantage."
        best = next((standing for standing in rest if not standing.variant.tuned), None)
        if best is not None and best is not second:
            text += f" The best algorithm without tuning, {_gap(summary, best)}"
    return text


def _gap(summary: Summary, other: Standing) -> str:
    name, gap = summary.names[other.variant], other.behind
    if gap is None:
        return f"{name}, has no seed in common with it."
    text = f"{name}, is {points(gap, sign=False)} points behind"
    if gap.half_width is None:
        why = "one seed" if gap.n == 1 else f"{gap.n} equal runs"
        return f"{text} ({why}: no interval)."
    level = f"95%, {plural(gap.n, 'seed')}"
    return f"{text} ({level})." if gap.excludes_zero else f"{text} ({level}), which is not significant."
