"""The OpenAPI document, and a page of it for people; made of the same types that requests are read with."""

from html import escape
from typing import Any

import msgspec

from gaptron.serve.routes import PATHS, Path
from gaptron.serve.words import Problem
from gaptron.version import __version__

PARAMETERS = {
    "model": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$"},
    "event": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
    "key": {"type": "string", "pattern": "^[0-9a-f]{12}$"},
}


def document() -> dict[str, Any]:
    """The whole of it."""
    types = [kind for path in PATHS for kind in (path.takes, *path.gives.values()) if _is_named(kind)]
    _, components = msgspec.json.schema_components([*types, Problem], ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for path in PATHS:
        paths.setdefault(path.path, {})[path.method.lower()] = _operation(path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gaptron", "version": __version__, "license": {"name": "BSD-3-Clause"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(path: Path) -> dict[str, Any]:
    named = [part[1:-1] for part in path.path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": PARAMETERS[name]} for name in named
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": "string", "enum": list(among)}} for name, among in path.query
    ]
    answers = {str(status): _content(kind, path.form) for status, kind in path.gives.items()}
    refused = (*path.problems, *((401, 403, 421, 429, 503) if path.role else ()))
    answers |= {str(status): _content(Problem, "application/problem+json") for status in sorted(set(refused))}
    operation: dict[str, Any] = {"operationId": path.handler, "summary": path.summary, "responses": answers}
    if parameters:
        operation["parameters"] = parameters
    if path.takes is not None:
        body = {"schema": _schema(path.takes)}
        operation["requestBody"] = {"required": True, "content": {"application/json": body}}
    if path.role is not None:
        operation["security"] = [{"key": []}, {}]
        operation["description"] = f"Role: {path.role}."
    return operation


def _content(kind: Any, form: str) -> dict[str, Any]:
    return {
        "description": (kind.__doc__ or "").split("\n")[0] or "It worked.",
        "content": {form: {"schema": _schema(kind)}},
    }


def _schema(kind: Any) -> dict[str, Any]:
    if _is_named(kind):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    return {"type": "string"} if kind is str else {"type": "object"}


def _is_named(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def page() -> str:
    """The document for people."""
    rows = "".join(
        f"<tr><td><code>{path.method}</code></td><td><code>{escape(path.path)}</code></td>"
        f"<td>{escape(path.summary)}</td><td>{path.role or ''}</td><td>{_link(path.takes)}</td>"
        f"<td>{', '.join(dict.fromkeys(_link(kind) for kind in path.gives.values()))}</td></tr>"
        for path in PATHS
    )
    schemas = document()["components"]["schemas"]
    types = "".join(
        f'<h2 id="{name}">{name}</h2><p>{escape(schema.get("description", ""))}</p><pre>'
        f"{escape(msgspec.json.format(msgspec.json.encode(schema.get('properties', schema))).decode())}</pre>"
        for name, schema in sorted(schemas.items())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>gaptron: API</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="favicon.svg">'
        '<link rel="stylesheet" href="page.css"></head><body><main>'
        "<h1>API</h1><p>The same as <a href='openapi.json'>openapi.json</a>. Errors are "
        "<code>application/problem+json</code> (RFC 9457). A key goes into <code>Authorization: Bearer</code>.</p>"
        "<div class='scroll' tabindex='0'><table><thead><tr><th>method</th><th>path</th><th></th><th>role</th>"
        f"<th>takes</th><th>gives</th></tr></thead><tbody>{rows}</tbody></table></div>{types}</main></body></html>"
    )


def _link(kind: Any) -> str:
    return f'<a href="#{kind.__name__}">{kind.__name__}</a>' if _is_named(kind) else ""
