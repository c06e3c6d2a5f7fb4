"""The OpenAPI 3.1 document of the operations: what they take and answer, from the same values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from tgraph.engine.schemas import schemas
from tgraph.extensions.server.operations import NoParameters, Operation, Parameters
from tgraph.extensions.server.problems import PROBLEM
from tgraph.version import __version__

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457; detail and remedy are what the command line says.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "remedy": {"type": "string"},
        "exit_code": {"type": "integer"},
    },
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document (OpenAPI 3.1.0)."""
    components = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        described = _operation(operation, components)
        paths.setdefault(path, {})[operation.method.lower()] = described
    components.schemas["Problem"] = _PROBLEM
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tgraph",
            "version": __version__,
            "description": "Answers questions over documents, and proves every answer.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


EVENTS = "text/event-stream"
_EVENT = {
    "type": "object",
    "description": "Each event of the stream (server-sent events); its data is JSON.",
    "properties": {
        "data": {"type": "string", "contentMediaType": "application/json"},
        "event": {"type": "string"},
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
    "required": ["data"],
}


class _Schemas:
    """Schemas by name, those that they refer to beside them."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self._published = schemas()

    def of(self, answer: Any) -> Mapping[str, Any]:
        """The schema of an answer."""
        if isinstance(answer, str):
            found: dict[str, Any] = self._published[answer]
            return self._named(answer, found)
        if isinstance(answer, dict):
            return dict(answer)
        adapter: TypeAdapter[Any] = TypeAdapter(answer)
        schema = adapter.json_schema(mode="serialization")
        return self._named(str(schema.get("title", "")), schema)

    def taken(self, kind: type[Parameters]) -> Mapping[str, Any]:
        """The schema of a body."""
        return self._named(kind.__name__, kind.model_json_schema(mode="validation"))

    def _named(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        parts = {k: x for k, x in schema.items() if k not in ("$defs", "$schema")}
        definitions = schema.get("$defs", {})
        names = {part: self._free(part, found, name) for part, found in definitions.items()}
        for part, found in definitions.items():
            self.schemas[names[part]] = _moved(found, names)
        moved: dict[str, Any] = _moved(parts, names)
        if not name:
            return moved
        self.schemas[_camel(name)] = moved
        return {"$ref": f"#/components/schemas/{_camel(name)}"}

    def _free(self, part: str, found: Any, owner: str) -> str:
        known = self.schemas.get(part)
        same = known is None or json.dumps(known) == json.dumps(_moved(found, {}))
        return part if same else f"{_camel(owner)}.{part}"


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[-_\s]+", name))


def _moved(schema: Any, names: Mapping[str, str]) -> Any:
    """The schema with its references to where the parts are now."""
    if isinstance(schema, dict):
        return {
            key: _reference(x, names) if key == "$ref" else _moved(x, names)
            for key, x in schema.items()
        }
    return [_moved(each, names) for each in schema] if isinstance(schema, list) else schema


def _reference(target: Any, names: Mapping[str, str]) -> str:
    part = str(target).removeprefix("#/$defs/")
    return f"#/components/schemas/{names.get(part, part)}"


def _operation(operation: Operation, components: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"Needs the right `{operation.right}`.",
        "tags": list(operation.tags),
        "parameters": list(_parameters(operation)),
        "responses": _responses(operation, components),
    }
    if operation.body is not None:
        content = {"application/json": {"schema": components.taken(operation.body)}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.uploads:
        files = {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1}
        form = {"type": "object", "properties": {"file": files}, "required": ["file"]}
        described["requestBody"] = {
            "required": True,
            "content": {"multipart/form-data": {"schema": form}},
        }
    return described


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    for name in _PARAMETER.findall(operation.path):
        text = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": text}
    if operation.query is NoParameters:
        return
    schema: dict[str, Any] = operation.query.model_json_schema(mode="validation")
    required = schema.get("required", [])
    for name, found in schema["properties"].items():
        told = {key: x for key, x in found.items() if key != "title"}
        about = {"description": told.pop("description")} if "description" in told else {}
        yield {"name": name, "in": "query", "required": name in required, **about, "schema": told}


def _responses(operation: Operation, components: _Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if operation.answer is not None:
        content["application/json"] = {"schema": components.of(operation.answer)}
    for media in operation.media:
        content[media] = {"schema": _EVENT if media == EVENTS else {"type": "string"}}
    status = operation.status if content else 204
    done: dict[str, Any] = {"description": "Done."}
    if content:
        done["content"] = content
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    failed = {"description": "A problem.", "content": {PROBLEM: problem}}
    return {str(status): done, "4XX": failed, "5XX": failed}
