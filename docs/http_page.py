"""Generate the page of the HTTP interface from the OpenAPI document of the service and the sources of its types."""

import ast
import inspect
import textwrap
from typing import Any

from gaptron.serve import openapi, schemas
from gaptron.serve.personalizer import schemas as personalizer_schemas
from gaptron.serve.routes import OPERATIONS

TOPICS = {  # start of a path → heading, the most specific first
    "/v1/models/{model}/decisions": "Decisions and outcomes",
    "/v1/models/{model}/outcomes": "Decisions and outcomes",
    "/v1/models": "Models",
    "/v1/keys": "Keys",
    "/personalizer/v1.0": "Azure Personalizer",
    "/personalizer": None,  # the same with api-version
    "/m/": None,  # the same with the name of the model
}
OTHER = "The process and its pages"


def page() -> str:
    """The page: every operation by topic, then every type with its fields."""
    document = openapi.document(OPERATIONS)
    topics: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        heading = next((title for start, title in TOPICS.items() if path.startswith(start)), OTHER)
        if heading:
            topics.setdefault(heading, []).extend(_row(path, method, methods[method]) for method in methods)
    head = "| request | does | role | body | response |\n|---|---|---|---|---|\n"
    parts = [INTRODUCTION, *(f"## {title}\n\n{head}" + "\n".join(rows) + "\n" for title, rows in topics.items())]
    parts.append("## Types\n\nA field without a default is required in a request.\n")
    parts += [_type(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return "\n".join(parts)


INTRODUCTION = """# HTTP

With these requests you create models, ask for decisions and report outcomes. This page is generated from the OpenAPI
document of the service, which a running service has at `/openapi.json`; [decisions over HTTP](../how-to/serve.md)
explains the requests in the order in which you need them.

```bash
curl http://127.0.0.1:8717/openapi.json
```

Send a key as `Authorization: Bearer KEY`, if the service has [keys](../how-to/production.md). The column *role* is the
role that the key needs. Errors are `application/problem+json` (RFC 9457), the type [Problem](#problem).

The operations of Azure Personalizer also exist without `/v1.0`, for clients that send `api-version=...`, and below
`/m/MODEL`, which names the model. Their [differences](../how-to/coming-from-personalizer.md) have a page.
"""


def _row(path: str, method: str, operation: dict[str, Any]) -> str:
    role = operation.get("description", "").removeprefix("Role: ").removesuffix(".")
    request = operation.get("requestBody", {}).get("content", {}).values()
    responses = [
        f"{status}: {_schema_in(response.get('content', {}).values()) or 'no body'}"
        for status, response in operation["responses"].items()
        if status < "400"
    ]
    query = "".join(_query(one) for one in operation.get("parameters", []) if one["in"] == "query")
    summary = _text(operation["summary"])
    cells = [_address(method, path), summary + query, role, _schema_in(request), "<br>".join(responses)]
    return "| " + " | ".join(cells) + " |"


def _address(method: str, path: str) -> str:
    """Method and path; on narrow screens the line may break after a slash."""
    return f"<code>{method.upper()} {path.replace('/', '/<wbr>').removesuffix('<wbr>')}</code>"


def _query(parameter: dict[str, Any]) -> str:
    values = " or ".join(f"`{value}`" for value in parameter["schema"].get("enum", []))
    return f"<br>`?{parameter['name']}=`" + (f" {values}" if values else "")


def _schema_in(contents: Any) -> str:
    return next((_kind(content["schema"]) for content in contents), "")


def _type(name: str, schema: dict[str, Any]) -> str:
    words = _text(" ".join(schema.get("description", "").split()))
    notes, required = _comments(name), schema.get("required", [])
    rows = [
        f"| `{field}` | {_kind(kind)} | {_default(field, kind, required)} | {_text(notes.get(field, ''))} |"
        for field, kind in schema.get("properties", {}).items()
    ]
    if not rows:
        return f"### {name}\n\n{words}\n"
    return (
        f"### {name}\n\n{words}\n\n| field | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _default(field: str, kind: dict[str, Any], required: list[str]) -> str:
    if field in required:
        return ""
    default = kind.get("default")
    return "omitted" if default is None else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        kinds = [_kind(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return " or ".join(f"`{str(value).lower() if value is True else value}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        inner = schema.get("items") or next(iter(schema.get("prefixItems", [])), {})
        return f"list of {_kind(inner)}" + _limits(schema, "minItems", "maxItems")
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_kind(schema['additionalProperties'])}" + _limits(schema, "", "maxProperties")
    if kind == "string":
        return "string" + _limits(schema, "", "maxLength", " characters")
    return str(kind) + _limits(schema, "minimum", "maximum")


def _limits(schema: dict[str, Any], least: str, most: str, unit: str = "") -> str:
    low, high = schema.get(least), schema.get(most)
    if low is not None and high is not None:
        return f", {low:,} to {high:,}{unit}"
    if high is not None:
        return f", at most {high:,}{unit}"
    return f", at least {low:,}{unit}" if low else ""


def _text(words: str) -> str:
    parts = words.split("`")  # code stays as it is
    parts[::2] = [part.replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]]
    return "`".join(parts).replace("|", r"\|")


def _comments(name: str) -> dict[str, str]:
    """The string below each field of a type and of the types that it extends."""
    type_ = getattr(schemas, name, None) or getattr(personalizer_schemas, name, None)
    found: dict[str, str] = {}
    for one in reversed(inspect.getmro(type_)) if type_ else ():
        if one.__module__ not in (schemas.__name__, personalizer_schemas.__name__):
            continue
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        for field, below in zip(body.body, body.body[1:]):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                found[field.target.id] = " ".join(below.value.value.split())
    return found
