"""Every operation of the service: its path and endpoint, the role it needs, and the types of its bodies."""

from typing import Any

from gaptron.serve import aggregates, challenger_endpoints, endpoints, live, management, schemas
from gaptron.serve.operation import Operation
from gaptron.serve.personalizer import operations as personalizer

MODEL = "/v1/models/{model}"
DECISION = MODEL + "/decisions/{event_id}"
BODY = (400, 408, 413, 415, 422)  # problems with any request body
OBJECT = dict[str, Any]

OPERATIONS = (
    Operation("POST", MODEL + "/decisions", endpoints.decide, "decide", schemas.DecisionRequest,
              {201: schemas.Decision, 200: schemas.Decision}, (*BODY, 404)),
    Operation("GET", MODEL + "/decisions", live.list_decisions, "read", responses={200: schemas.LatestDecisions},
              problems=(404, 422),
              query=(("limit", ()), ("after", ()), ("label", ()), ("has_outcome", ("true", "false")))),
    Operation("POST", MODEL + "/preview", live.preview, "read", schemas.DecisionRequest,
              {200: schemas.Preview}, (*BODY, 404)),
    Operation("PUT", DECISION + "/outcome", endpoints.record_outcome, "feedback", schemas.Outcome,
              {200: schemas.OutcomeStatus}, (*BODY, 404, 409)),
    Operation("POST", MODEL + "/decisions/batch", endpoints.decide_batch, "decide", schemas.DecisionBatch,
              {200: schemas.DecisionResults}, (*BODY, 404)),
    Operation("POST", MODEL + "/outcomes", endpoints.record_outcomes, "feedback", schemas.OutcomeBatch,
              {200: schemas.OutcomeResults}, (*BODY, 404)),
    Operation("POST", DECISION + "/activate", endpoints.activate, "feedback",
              responses={204: None}, problems=(404, 422)),
    Operation("GET", DECISION, endpoints.get_decision, "read",
              responses={200: schemas.DecisionRecord}, problems=(404, 422)),
    Operation("GET", "/v1/models", endpoints.list_models, "read", responses={200: schemas.ModelList}),
    Operation("POST", "/v1/models", endpoints.create_model, "admin", schemas.NewModel,
              {201: schemas.ModelInfo}, (*BODY, 409)),
    Operation("GET", MODEL, endpoints.get_model, "read", responses={200: schemas.ModelInfo}, problems=(404,)),
    Operation("PUT", MODEL, management.put_model, "admin", schemas.ModelSpec,
              {201: schemas.ModelInfo, 200: schemas.ModelInfo}, (*BODY, 409)),
    Operation("PATCH", MODEL, endpoints.change_model, "admin", schemas.ModelChange,
              {200: schemas.ModelInfo}, (*BODY, 404)),
    Operation("DELETE", MODEL, management.delete_model, "admin", responses={204: None}, problems=(404,)),
    Operation("GET", MODEL + "/report", endpoints.get_report, "read",
              responses={200: schemas.Report}, problems=(404,)),
    Operation("GET", MODEL + "/events", endpoints.stream_reports, "read",
              responses={200: str}, problems=(404,), media_type="text/event-stream"),
    Operation("GET", MODEL + "/history", aggregates.get_history, "read", responses={200: schemas.ModelHistory},
              problems=(404, 422), query=(("step", aggregates.STEPS),)),
    Operation("GET", MODEL + "/segments", aggregates.get_segments, "read",
              responses={200: schemas.ModelSegments}, problems=(404,)),
    Operation("GET", MODEL + "/log", endpoints.export_log, "read", responses={200: str}, problems=(404, 422),
              query=(("format", ("jsonl", "dsjson")),), media_type="application/x-ndjson"),
    Operation("GET", MODEL + "/snapshot", endpoints.download_snapshot, "read",
              responses={200: str}, problems=(404,), media_type="application/octet-stream"),
    Operation("PUT", MODEL + "/challengers/{challenger}", challenger_endpoints.put_challenger, "admin",
              schemas.NewChallenger, {201: schemas.ChallengerInfo, 200: schemas.ChallengerInfo}, (*BODY, 404, 409)),
    Operation("DELETE", MODEL + "/challengers/{challenger}", challenger_endpoints.delete_challenger, "admin",
              responses={204: None}, problems=(404, 422)),
    Operation("GET", MODEL + "/challengers", challenger_endpoints.list_challengers, "read",
              responses={200: schemas.ChallengerList}, problems=(404,)),
    Operation("POST", MODEL + "/promote", challenger_endpoints.promote, "admin", schemas.Promotion,
              {200: schemas.ModelInfo}, (*BODY, 404)),
    Operation("POST", MODEL + "/import", challenger_endpoints.import_decisions, "admin", schemas.Import,
              {200: schemas.Imports}, (*BODY, 404)),
    Operation("POST", "/v1/keys", endpoints.create_key, "admin", schemas.NewKey, {201: schemas.CreatedKey}, BODY),
    Operation("GET", "/v1/keys", endpoints.list_keys, "admin", responses={200: schemas.KeyList}),
    Operation("DELETE", "/v1/keys/{key_id}", endpoints.revoke_key, "admin",
              responses={200: schemas.KeyInfo}, problems=(404, 409)),
    Operation("GET", "/metrics", endpoints.metrics, "read", responses={200: str}, media_type="text/plain"),
    Operation("GET", "/healthz", endpoints.health, responses={200: OBJECT}),
    Operation("GET", "/readyz", endpoints.ready, responses={200: OBJECT}, problems=(503,)),
    Operation("GET", "/openapi.json", endpoints.openapi_document, responses={200: OBJECT}),
    Operation("GET", "/api", endpoints.api_page, responses={200: str}, media_type="text/html"),
    Operation("GET", "/", endpoints.index_page, responses={200: str}, media_type="text/html"),
    Operation("GET", "/page/{file}", endpoints.page_file, responses={200: str}, problems=(404,), media_type="*/*"),
    *personalizer.OPERATIONS,
)  # fmt: skip
