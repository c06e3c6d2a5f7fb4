"""Prints docs/reference/rights.md: every operation of the server, which rights it needs, and what
its answers contain, as the routes and tools declare it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import tgraph
from tgraph.extensions.server.access import RIGHTS_BY_CONTENT, Declaration
from tgraph.extensions.server.app import create_app
from tgraph.extensions.server.declared import list_operations
from tgraph.extensions.server.mcp_server import DECLARATIONS
from tgraph.extensions.server.rest.request_settings import ALLOWED
from tgraph.extensions.server.service import Service

HEAD = """# Rights

Made by `python docs/rights_table.py > docs/reference/rights.md`; a test keeps it current. A token
has rights, and collections that it is for. What an operation needs follows from what its answers
contain:

| an answer contains | which is | and takes the right |
|---|---|---|
{contents}

`tests/extensions/server/test_rights.py` asks every route with tokens of each right and looks into
the answers. No answer names a collection that the token is not for. An update by `/sparql` needs
`govern` too, and so does an upload with `reinstate`; a point in time that may be named by a
session needs `read`, and without it errors don't list the names that there are.

## Operations

| method | path | needs | contains |
|---|---|---|---|
"""
TOOLS = """
## Tools of agents (`/mcp`)

| tool | needs | contains |
|---|---|---|
"""
SETTINGS = """
## Settings of a request

The settings that a question may bring; no others are taken. What is built for everybody (contexts,
the tree of summaries) is built by the settings of the graph.

"""
MEANINGS = {
    "status": "counts, descriptions, pages to sign in: what is no secret",
    "collections": "the names and sizes of the collections that the token is for",
    "documents": "texts, titles, paths and quotes of documents",
    "knowledge": "entities, facts, decisions and generations",
    "sessions": "questions and answers of whomever, with their record",
    "jobs": "index jobs of whomever",
    "job": "the job that was begun or named by its id",
    "answer": "the answer to what was asked, with its quotes",
    "done": "that it was done",
}


def page() -> str:
    """Return the page."""
    contents = "\n".join(
        f"| {name} | {MEANINGS[name]} | {_format_names(rights)} |"
        for name, rights in RIGHTS_BY_CONTENT.items()
    )
    settings = ", ".join(f"`{name}`" for name in sorted(ALLOWED)) + ".\n"
    return "".join(
        (
            HEAD.format(contents=contents),
            *_operation_rows(),
            TOOLS,
            *_tool_rows(),
            SETTINGS,
            settings,
        )
    )


def _operation_rows() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        tgraph.open(Path(folder) / "g", create=True).close()
        operations = list(list_operations(create_app(Service(Path(folder) / "g")).routes))
    for operation in sorted(operations, key=lambda each: (each.path, each.method)):
        yield f"| {operation.method} | `{operation.path}` | {_format(operation.declaration)} |\n"


def _tool_rows() -> Iterator[str]:
    for name, declaration in DECLARATIONS.items():
        yield f"| `{name}` | {_format(declaration)} |\n"


def _format(declaration: Declaration) -> str:
    return f"{_format_names(declaration.rights)} | {', '.join(declaration.contents)}"


def _format_names(rights: tuple[str, ...]) -> str:
    return ", ".join(f"`{right}`" for right in rights) or "nothing"


def main() -> None:
    print(page(), end="")


if __name__ == "__main__":
    main()
