"""Personalizer's operations under both versions of its paths, each also for a model that the path names."""

from collections.abc import Iterator
from typing import Any

from gaptron.serve.operation import Operation
from gaptron.serve.personalizer import endpoints, schemas
from gaptron.serve.personalizer.dialect import PERSONALIZER

BODY = (400, 408, 413, 415)  # problems with any request body
API_VERSION = (("api-version", ("2022-09-01-preview",)),)


# fmt: off
def _under(prefix: str) -> Iterator[Operation]:
    event, settings = prefix + "/events/{eventId}", prefix + "/configurations/service"
    yield Operation("POST", prefix + "/rank", endpoints.rank, "decide", schemas.RankRequest,
                    {201: schemas.RankResponse}, (*BODY, 404, 409))
    yield Operation("POST", event + "/reward", endpoints.reward, "feedback", schemas.RewardRequest,
                    {204: None}, (*BODY, 404))
    yield Operation("POST", event + "/activate", endpoints.activate_event, "feedback",
                    responses={204: None}, problems=(404,))
    yield Operation("POST", prefix + "/multislot/rank", endpoints.rank_slots, "decide", schemas.MultiSlotRankRequest,
                    {201: schemas.MultiSlotRankResponse}, (*BODY, 404, 409))
    yield Operation("POST", prefix + "/multislot/events/{eventId}/reward", endpoints.reward_slots, "feedback",
                    schemas.MultiSlotRewardRequest, {204: None}, (*BODY, 404))
    yield Operation("GET", settings, endpoints.get_configuration, "read",
                    responses={200: schemas.ServiceConfiguration}, problems=(404,))
    yield Operation("PUT", settings, endpoints.change_configuration, "admin", dict[str, Any],
                    {200: schemas.ServiceConfiguration}, (*BODY, 404))
# fmt: on


OPERATIONS = tuple(
    operation._replace(dialect=PERSONALIZER, query=query, variant=variant + of_model)
    for model, of_model in (("", ""), ("/m/{model}", "_of_model"))
    for path, variant, query in (("/personalizer/v1.0", "_v1", ()), ("/personalizer", "", API_VERSION))
    for operation in _under(model + path)
)
