"""What decisions earned, hour by hour for two weeks and day by day for three years (UTC).

A decision and its outcome count in the hour and the day of the decision, whenever the outcome arrives.
"""

from msgspec import Struct, field

from gaptron.serve.performance import Performance

HOUR, DAY = 3_600_000_000, 86_400_000_000  # µs
HOURS_KEPT, DAYS_KEPT = 14 * DAY, 3 * 366 * DAY
Points = dict[int, Performance]  # by the time when the hour or the day begins, in ascending order


class History(Struct):
    """The performance in each hour and each day that had a decision."""

    hours: Points = field(default_factory=dict)
    days: Points = field(default_factory=dict)

    def decided(self, at: int) -> None:
        """Count a decision at this time, which is not before that of the last one."""
        _point(self.hours, at - at % HOUR, HOURS_KEPT).decisions += 1
        _point(self.days, at - at % DAY, DAYS_KEPT).decisions += 1

    def learned(self, at: int, error: float) -> None:
        """Count a decision that was made at this time as learned from, unless its hour or day is no longer kept."""
        for point in (self.hours.get(at - at % HOUR), self.days.get(at - at % DAY)):
            if point is not None:
                point.learned(error)


def _point(points: Points, start: int, kept: int) -> Performance:
    """The point that begins at this time; a new one ends those that are too old."""
    point = points.get(start)
    if point is None:
        point = points[start] = Performance()
        while (oldest := next(iter(points))) <= start - kept:
            del points[oldest]
    return point
