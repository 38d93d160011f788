"""The key header of Personalizer, its errors, and the model of a request whose path names none."""

import re

from starlette.responses import Response

from gaptron.serve.operation import Dialect
from gaptron.serve.personalizer.schemas import ErrorResponse, PersonalizerError
from gaptron.serve.problems import TITLES, RefusedError
from gaptron.serve.responses import JSON, json_response, retry_headers
from gaptron.serve.service import Service
from gaptron.serve.store import Key

KEY_HEADER = "Ocp-Apim-Subscription-Key"
STATUSES = {422: 400}  # Personalizer's clients know BadRequest only
CODES = {404: "ResourceNotFound"}
PATH = r"(?:/m/[^/]+)?/personalizer/(?:v1\.[01]/)?([^/]*)"
LOG = "GET /v1/models/MODEL/log?format=dsjson"
INSTEAD = {  # of paths that are not served
    "multislot": "multi-slot events are never deferred, and need not be activated",
    "configurations": "GET /v1/models/MODEL shows the configuration, PATCH changes it; there is no learning policy",
    "model": "GET /v1/models/MODEL/snapshot is the model, as a file of gaptron",
    "logs": f"{LOG} is the log",
    "evaluations": f"run `gaptron evaluate` on the log, {LOG}",
    "featureImportances": f"there are none; compare algorithms with `gaptron evaluate` on the log, {LOG}",
}


def error_response(refusal: RefusedError) -> Response:
    """A refusal as Personalizer's clients read it."""
    status = STATUSES.get(refusal.status, refusal.status)
    if refusal.kind == "event-id-reused":
        status = 409
    detail = f"send the header {KEY_HEADER} with a key made by `gaptron keys add`" if status == 401 else refusal.detail
    error = PersonalizerError(CODES.get(status, TITLES[status].replace(" ", "")), detail)
    return json_response(ErrorResponse(error), status, retry_headers(refusal))


def is_path(path: str) -> bool:
    """Is it a path of Personalizer, served or not?"""
    return re.match(PATH, path) is not None


def instead(path: str) -> str:
    """What to use in place of a path that is not served."""
    found = re.match(PATH, path)
    return f": {INSTEAD[found[1]]}" if found is not None and found[1] in INSTEAD else ""


def default_model(service: Service, key: Key | None) -> str | None:
    """The model of the key, or else the only one with actions; None if there is not exactly one."""
    if key is not None and key.model is not None:
        return key.model
    names = [name for name, model in service.decisions.models.items() if model.spec.actions]
    return names[0] if len(names) == 1 and not service.quarantined else None


PERSONALIZER = Dialect(
    error=ErrorResponse,
    error_media_type=JSON,
    error_response=error_response,
    security="subscription_key",
    key_header=KEY_HEADER,
    default_model=default_model,
)
