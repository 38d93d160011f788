"""The bodies of requests that import decisions, and what their responses mean."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gaptron.serve.schemas import MAX_BATCH, MAX_BODY_BYTES, Import, ImportedDecision, Imports, ModelInfo


def batches(decisions: Iterable[dict[str, Any]], prefix: str) -> Iterator[bytes]:
    """Yield the bodies of requests that import all decisions, whose ids are the prefix and their number."""
    lines: list[bytes] = []
    size = 0
    for number, decision in enumerate(decisions, 1):
        line = msgspec.json.encode({"event_id": f"{prefix}-{number}"} | decision)
        if lines and (len(lines) == MAX_BATCH or size + len(line) > MAX_BODY_BYTES // 2):
            yield _body(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield _body(lines)


def _body(lines: list[bytes]) -> bytes:
    return b'{"decisions":[%s]}' % b",".join(lines)


def decisions_in(body: bytes) -> list[ImportedDecision]:
    """Return the decisions of such a body."""
    return msgspec.json.decode(body, type=Import).decisions


def as_imports(response: dict[str, Any]) -> Imports:
    """Return the response of an import."""
    return msgspec.convert(response, Imports)


def as_model_info(response: dict[str, Any]) -> ModelInfo:
    """Return the description of a model, without the fields of later versions."""
    known = set(ModelInfo.__struct_fields__)
    return msgspec.convert({name: value for name, value in response.items() if name in known}, ModelInfo)
