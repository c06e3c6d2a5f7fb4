"""``tgraph serve``: the engine behind HTTP and MCP, for programs and people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.extensions import Extension

if TYPE_CHECKING:
    from click import Command


def _serve() -> Command:
    from tgraph.extensions.server.serve_commands import serve

    return serve


def _mcp() -> Command:
    from tgraph.extensions.server.serve_commands import mcp

    return mcp


def _tokens() -> Command:
    from tgraph.extensions.server.serve_commands import tokens

    return tokens


EXTENSION = Extension(name="server", commands={"serve": _serve, "mcp": _mcp, "tokens": _tokens})
