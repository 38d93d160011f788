"""The OpenAPI document, and a web page of it, generated from the operations and the types of their bodies."""

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from gaptron.serve.operation import Operation
from gaptron.serve.schemas import EVENT_ID_PATTERN, NAME_PATTERN
from gaptron.version import __version__

PARAMETERS = {
    "model": {"type": "string", "pattern": NAME_PATTERN},
    "event_id": {"type": "string", "pattern": EVENT_ID_PATTERN},
    "eventId": {"type": "string", "minLength": 1, "maxLength": 256},
    "challenger": {"type": "string", "pattern": NAME_PATTERN},
    "key_id": {"type": "string", "pattern": "^[0-9a-f]{12}$"},
    "file": {"type": "string"},
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document of these operations."""
    found = [type_ for one in operations for type_ in (one.body, *one.responses.values(), one.dialect.error)]
    types = [type_ for type_ in found if _is_schema(type_)]
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gaptron", "version": __version__, "license": {"name": "BSD-3-Clause"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "subscription_key": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
            },
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    names = [segment[1:-1] for segment in operation.path.split("/") if segment.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": PARAMETERS[name]} for name in names
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": "string"} | ({"enum": list(values)} if values else {})}
        for name, values in operation.query
    ]
    responses = {str(status): _content(type_, operation.media_type) for status, type_ in operation.responses.items()}
    problems = (*operation.problems, *((401, 403, 421, 429, 503) if operation.role else ()))
    dialect = operation.dialect
    responses |= {str(one): _content(dialect.error, dialect.error_media_type) for one in sorted(set(problems))}
    described: dict[str, Any] = {
        "operationId": operation.endpoint.__name__ + operation.variant,
        "summary": operation.summary,
        "responses": responses,
    }
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        body = {"schema": _schema(operation.body)}
        described["requestBody"] = {"required": True, "content": {"application/json": body}}
    if operation.role is not None:
        described["security"] = [{dialect.security: []}, {}]
        described["description"] = f"Role: {operation.role}."
    return described


def _content(type_: Any, media_type: str) -> dict[str, Any]:
    if type_ is None:
        return {"description": "Done; the response has no body."}
    description = (type_.__doc__ or "").split("\n")[0] if _is_schema(type_) else "The response."
    return {"description": description, "content": {media_type: {"schema": _schema(type_)}}}


def _schema(type_: Any) -> dict[str, Any]:
    if _is_schema(type_):
        return {"$ref": f"#/components/schemas/{type_.__name__}"}
    return {"type": "string"} if type_ is str else {"type": "object"}


def _is_schema(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def page(operations: Sequence[Operation]) -> str:
    """Return the document as a web page."""
    rows = "".join(
        f"<tr><td><code>{one.method}</code></td><td><code>{escape(one.path)}</code></td>"
        f"<td>{escape(one.summary)}</td><td>{one.role or ''}</td><td>{_link(one.body)}</td>"
        f"<td>{', '.join(dict.fromkeys(_link(type_) for type_ in one.responses.values()))}</td></tr>"
        for one in operations
    )
    schemas = document(operations)["components"]["schemas"]
    types = "".join(
        f'<h2 id="{name}">{name}</h2><p>{escape(schema.get("description", ""))}</p><pre>'
        f"{escape(msgspec.json.format(msgspec.json.encode(schema.get('properties', schema))).decode())}</pre>"
        for name, schema in sorted(schemas.items())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>gaptron: API</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="page/favicon.svg">'
        '<link rel="stylesheet" href="page/page.css"></head><body><main>'
        "<h1>API</h1><p>This page shows <a href='openapi.json'>openapi.json</a>. Errors are "
        "<code>application/problem+json</code> (RFC 9457). Send a key as <code>Authorization: Bearer</code>.</p>"
        "<div class='scroll' tabindex='0'><table><thead><tr><th>method</th><th>path</th><th>summary</th><th>role</th>"
        f"<th>request</th><th>response</th></tr></thead><tbody>{rows}</tbody></table></div>{types}</main></body></html>"
    )


def _link(type_: Any) -> str:
    return f'<a href="#{type_.__name__}">{type_.__name__}</a>' if _is_schema(type_) else ""
