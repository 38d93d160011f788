"""Tables of other libraries as columns."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from gaptron.features.tables import of_arrow

UTC = datetime.UTC
FIRST = datetime.datetime(1, 1, 1, tzinfo=UTC).timestamp()
LAST = datetime.datetime(9999, 12, 31, tzinfo=UTC).timestamp()
DAY = 86_400


@pytest.mark.parametrize(("unit", "per_day"), [("D", 1), ("s", DAY), ("ms", DAY * 10**3), ("us", DAY * 10**6)])
def test_times_are_clipped_to_the_calendar_of_python(unit, per_day):
    """The first and the last day stay; the instants before and after them are clipped."""
    first, last = int(FIRST) // DAY * per_day, int(LAST) // DAY * per_day + per_day - 1
    kind = pa.date32() if unit == "D" else pa.timestamp(unit)
    values = np.array([first - 1, first, first + 1, last - 1, last, last + 1])
    column = pa.array(values.astype(np.int32 if unit == "D" else np.int64)).view(kind)
    times = of_arrow(pa.table({"when": column})).block(0, 6)["when"]
    clipped = np.clip(values, first, last) / (per_day / DAY)
    np.testing.assert_allclose(times.stamps, clipped, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(times.months, [1, 1, 1, 12, 12, 12])
