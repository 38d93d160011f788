"""The endpoints for what decisions earned over time, and for each value of a feature."""

from starlette.requests import Request
from starlette.responses import Response

from gaptron.serve.history import Points
from gaptron.serve.model_state import Model
from gaptron.serve.problems import invalid
from gaptron.serve.requests import service_of
from gaptron.serve.responses import json_response
from gaptron.serve.schemas import HistoryPoint, ModelHistory, ModelSegments, Segment, SegmentValue

STEPS = ("hour", "day")


async def get_history(request: Request) -> Response:
    """Return the error rate of each hour or each day, by the time of the decision."""
    step = request.query_params.get("step", "hour")
    history = _model(request).tally.history
    if step == "hour":
        return json_response(ModelHistory(step="hour", points=_points(history.hours)))
    if step == "day":
        return json_response(ModelHistory(step="day", points=_points(history.days)))
    raise invalid(f"step must be one of {', '.join(STEPS)}")


def _points(points: Points) -> list[HistoryPoint]:
    return [HistoryPoint(start=start, **point.rates()) for start, point in points.items()]


async def get_segments(request: Request) -> Response:
    """Return the error rate for each value of the named features that have few values."""
    tally = _model(request).tally
    segments = [
        Segment(feature=name, of_action=of_action, values=[SegmentValue(**one) for one in values])
        for found, of_action in ((tally.segments, False), (tally.action_segments, True))
        for name, values in found.rates()
    ]
    return json_response(ModelSegments(segments=segments))


def _model(request: Request) -> Model:
    return service_of(request).coordinator.model(request.path_params["model"])
