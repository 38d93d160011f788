"""Every path of the service: what it takes, what it answers, and who may use it. `web` and `openapi` both read this."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from gaptron.serve import words


class Path(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    handler: str  # the method of `web.Handlers`
    role: str | None  # of the key; None: everybody
    summary: str
    takes: Any = None
    gives: Mapping[int, Any] = MappingProxyType({})  # status → type
    problems: tuple[int, ...] = ()
    query: tuple[tuple[str, tuple[str, ...]], ...] = ()
    form: str = "application/json"


MODEL = "/v1/models/{model}"
ONE = MODEL + "/decisions/{event}"
TEXT = str

PATHS = (
    Path("POST", MODEL + "/decisions", "decide", "decide", "Decide: which label?",
         words.DecisionRequest, {201: words.DecisionAnswer, 200: words.DecisionAnswer}, (400, 404, 413, 415, 422)),
    Path("PUT", ONE + "/outcome", "answer", "answer", "Answer: how did the decision turn out?",
         words.Outcome, {200: words.OutcomeAnswer}, (400, 404, 409, 413, 415, 422)),
    Path("POST", MODEL + "/decisions/batch", "decide_many", "decide", "Many decisions, in one commit.",
         words.DecisionBatch, {200: words.DecisionResults}, (400, 404, 413, 415, 422)),
    Path("POST", MODEL + "/outcomes", "answer_many", "answer", "Many outcomes, in one commit.",
         words.OutcomeBatch, {200: words.OutcomeResults}, (400, 404, 413, 415, 422)),
    Path("GET", ONE, "show_decision", "read", "A decision and its outcome.",
         None, {200: words.DecisionShown}, (404, 422)),
    Path("GET", "/v1/models", "show_models", "read", "All models.", None, {200: words.ModelsShown}),
    Path("POST", "/v1/models", "create", "admin", "Make a model.",
         words.NewModel, {201: words.ModelShown}, (400, 409, 413, 415, 422)),
    Path("GET", MODEL, "show_model", "read", "A model.", None, {200: words.ModelShown}, (404,)),
    Path("PATCH", MODEL, "change", "admin", "Add labels; change wait, default or mode.",
         words.ChangedModel, {200: words.ModelShown}, (400, 404, 413, 415, 422)),
    Path("GET", MODEL + "/report", "report", "read", "How it is doing.", None, {200: words.Report}, (404,)),
    Path("GET", MODEL + "/events", "events", "read", "The report once a second, as server-sent events.",
         None, {200: TEXT}, (404,), form="text/event-stream"),
    Path("GET", MODEL + "/log", "log", "read", "The answered decisions, for `gaptron evaluate`.",
         None, {200: TEXT}, (404, 422), (("format", ("jsonl", "dsjson")),), "application/x-ndjson"),
    Path("GET", MODEL + "/snapshot", "snapshot", "read", "The learner as a file for `Learner.load`.",
         None, {200: TEXT}, (404,), form="application/octet-stream"),
    Path("POST", "/v1/keys", "add_key", "admin", "Make a key.",
         words.NewKey, {201: words.KeyMade}, (400, 413, 415, 422)),
    Path("GET", "/v1/keys", "show_keys", "admin", "All keys.", None, {200: words.KeysShown}),
    Path("DELETE", "/v1/keys/{key}", "revoke_key", "admin", "Revoke a key.",
         None, {200: words.KeyShown}, (404, 409)),
    Path("GET", "/metrics", "metrics", "read", "Numbers for Prometheus.", None, {200: TEXT}, form="text/plain"),
    Path("GET", "/healthz", "health", None, "Is the process alive?", None, {200: dict[str, Any]}),
    Path("GET", "/readyz", "ready", None, "Are requests answered?", None, {200: dict[str, Any]}, (503,)),
    Path("GET", "/openapi.json", "openapi", None, "This document.", None, {200: dict[str, Any]}),
    Path("GET", "/", "page", None, "The page.", None, {200: TEXT}, form="text/html"),
    Path("GET", "/api", "api", None, "This document for people.", None, {200: TEXT}, form="text/html"),
    Path("GET", "/page.js", "script", None, "The page's script.", None, {200: TEXT}, form="text/javascript"),
    Path("GET", "/favicon.svg", "icon", None, "The page's icon.", None, {200: TEXT}, form="image/svg+xml"),
    Path("GET", "/page.css", "style", None, "The page's style.", None, {200: TEXT}, form="text/css"),
)  # fmt: skip
