"""The endpoints of challengers, and of importing decisions of other logs.

The first line of a docstring is the summary of the operation in the OpenAPI document.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gaptron.errors import InputError, SettingError
from gaptron.serve import imports
from gaptron.serve.challenger_report import ChallengerFacts, challenger_info
from gaptron.serve.challengers import MAX_CHALLENGERS
from gaptron.serve.events import ChallengerAdded, ChallengerRemoved, Promoted
from gaptron.serve.management import model_info
from gaptron.serve.model_state import Model
from gaptron.serve.problems import RefusedError, invalid, not_found
from gaptron.serve.requests import read_body, service_of
from gaptron.serve.responses import json_response
from gaptron.serve.schemas import ChallengerInfo, ChallengerList, Import, Name, NewChallenger, Promotion

FORMER = "former"  # the name of the challenger that was live before a promotion


async def put_challenger(request: Request) -> Response:
    """Add a challenger: it learns from the outcomes from now on. 200 if it exists already."""
    body, coordinator = await read_body(request, NewChallenger), service_of(request).coordinator
    name, model = _challenger_name(request), coordinator.model(request.path_params["model"])
    if _existing(model, name, body):
        return json_response(_info(model, name))
    await coordinator.try_out(model.spec_of(body))
    model = coordinator.model(model.name)  # again: it may have changed meanwhile
    if _existing(model, name, body):
        return json_response(_info(model, name))
    try:
        model.new_challenger(name, body, 0)
    except (InputError, SettingError) as problem:
        raise invalid(str(problem)) from None
    await coordinator.record(model, ChallengerAdded(name, body))
    return json_response(_info(model, name), 201)


def _existing(model: Model, name: str, spec: NewChallenger) -> bool:
    """Does it exist already? Refuse another specification, and one challenger too many."""
    known = model.challengers.get(name)
    if known is not None and known.spec != spec:
        detail = f"challenger {name!r} exists with another specification: remove it first, or use another name"
        raise RefusedError(409, "already-exists", detail)
    if known is None and len(model.challengers) >= MAX_CHALLENGERS:
        names = ", ".join(model.challengers)
        raise RefusedError(
            409, "too-many-challengers", f"a model has at most {MAX_CHALLENGERS} challengers: remove one of {names}"
        )
    return known is not None


async def delete_challenger(request: Request) -> Response:
    """Remove a challenger."""
    coordinator, name = service_of(request).coordinator, _challenger_name(request)
    model = coordinator.model(request.path_params["model"])
    _check_exists(model, name)
    await coordinator.record(model, ChallengerRemoved(name))
    return Response(status_code=204)


async def import_decisions(request: Request) -> Response:
    """Learn from decisions of another log. A decision whose event is known is not imported again."""
    body, coordinator = await read_body(request, Import), service_of(request).coordinator
    return json_response(await imports.import_decisions(coordinator, request.path_params["model"], body.decisions))


async def list_challengers(request: Request) -> Response:
    """List the challengers of a model, each compared with what was played."""
    model = service_of(request).coordinator.model(request.path_params["model"])
    return json_response(ChallengerList([_info(model, name) for name in model.challengers]))


async def promote(request: Request) -> Response:
    """Make a challenger live. The former live policy becomes a challenger; all evidence begins at this time."""
    body, coordinator = await read_body(request, Promotion), service_of(request).coordinator
    model = coordinator.model(request.path_params["model"])
    _check_exists(model, body.challenger)
    stopped = model.challengers[body.challenger].stopped
    if stopped is not None:
        raise invalid(f"challenger {body.challenger!r} has stopped: {stopped}")
    await coordinator.record(model, Promoted(body.challenger, _former_name(model, body.challenger)))
    return json_response(model_info(model))


def _former_name(model: Model, promoted: str) -> str:
    """A name that no challenger has when one of them is live."""
    names = [FORMER, *(f"{FORMER}-{number}" for number in range(2, MAX_CHALLENGERS + 2))]
    return next(name for name in names if name == promoted or name not in model.challengers)


def _check_exists(model: Model, name: str) -> None:
    if name not in model.challengers:
        known = ", ".join(model.challengers) or "none"
        raise not_found(f"model {model.name!r} has no challenger {name!r}; its challengers: {known}")


def _challenger_name(request: Request) -> str:
    try:
        return msgspec.convert(request.path_params["challenger"], Name)
    except msgspec.ValidationError as problem:
        raise invalid(f"the name of the challenger: {problem}") from None


def _info(model: Model, name: str) -> ChallengerInfo:
    return challenger_info(ChallengerFacts(model.challengers[name]))
