"""The endpoints that create, replace and delete models, and a model's description.

The first line of a docstring is the summary of the operation in the OpenAPI document.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gaptron.serve.decisions import as_time
from gaptron.serve.model_state import Model
from gaptron.serve.problems import invalid
from gaptron.serve.requests import read_body, service_of
from gaptron.serve.responses import json_response
from gaptron.serve.schemas import ModelInfo, ModelSpec, NewModel

UNIFORM_DRAWS = (
    "{:g} % of the decisions are drawn uniformly (epsilon): without them, the log cannot evaluate another policy. "
    "PATCH changes epsilon."
)


async def put_model(request: Request) -> Response:
    """Create a model, unless it exists with the same specification.

    201 if it was created, 200 if it exists; 409 if it was created with another specification.
    """
    spec, name = await read_body(request, ModelSpec), request.path_params["model"]
    if spec.name not in (None, name):
        raise invalid(f"the path names the model {name!r}, the body {spec.name!r}: leave out name")
    fields = {field: getattr(spec, field) for field in ModelSpec.__struct_fields__}
    try:
        new = msgspec.convert(fields | {"name": name}, NewModel)
    except msgspec.ValidationError as problem:
        raise invalid(f"the model in the path: {problem}") from None
    model, created = await service_of(request).coordinator.ensure(new)
    return json_response(model_info(model), 201 if created else 200)


async def delete_model(request: Request) -> Response:
    """Delete a model. Its events remain in the log, and its name may be used again."""
    await service_of(request).coordinator.delete(request.path_params["model"])
    return Response(status_code=204)


def model_info(model: Model) -> ModelInfo:
    """Describe a model."""
    spec, epsilon = model.live_spec, model.adapter.epsilon
    return ModelInfo(
        name=spec.name,
        labels=list(model.adapter.labels),
        actions=spec.actions,
        feedback=spec.feedback,
        algorithm=model.adapter.learner.algorithm,
        features=model.adapter.features,
        use_features=spec.use_features,
        settings=spec.settings,
        seed=spec.seed,
        epsilon=epsilon,
        feedback_timeout=model.feedback_timeout,
        on_timeout=model.on_timeout,
        reward_range=spec.reward_range,
        mode=model.mode,
        decisions=model.tally.decisions,
        learned=model.version,
        state="live" if model.mode == "live" else "shadow",
        created_at=as_time(model.created_at),
        last_decision_at=None if model.last_decision_at is None else as_time(model.last_decision_at),
        retired=model.retired,
        display_names=model.display_names,
        notes=[UNIFORM_DRAWS.format(100.0 * epsilon)] if spec.feedback == "bandit" and epsilon else [],
    )
