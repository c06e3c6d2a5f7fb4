"""tgraph answers questions over a body of documents and proves every answer.

import tgraph

with tgraph.open("my-graph", create=True) as kg:
    kg.index(["docs/"])
    answer = kg.ask("What was the War on Terror?")
    print(answer.text, answer.session)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tgraph.rendering import RENDERERS
from tgraph.version import __version__ as __version__

if TYPE_CHECKING:
    from tgraph.engine.collections import (
        copy_collection,
        create_collection,
        delete_collection,
        list_collections,
        rename_collection,
    )
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.graph import open_graph as open
    from tgraph.engine.settings_file import init_graph
    from tgraph.errors import TgraphError
    from tgraph.model import (
        Answer,
        Citation,
        GraphRagResponse,
        Selected,
        Sentence,
        Source,
        Turn,
    )
    from tgraph.retrieve.filters import Filters

__all__ = [
    "Answer",
    "Citation",
    "Filters",
    "GraphRagResponse",
    "KnowledgeGraph",
    "Selected",
    "Sentence",
    "Source",
    "TgraphError",
    "Turn",
    "copy_collection",
    "create_collection",
    "delete_collection",
    "init_graph",
    "list_collections",
    "open",
    "rename_collection",
]


def _render_for_notebook(value: object) -> str:
    from tgraph.explain.render.templates import render_notebook

    return render_notebook(value)


RENDERERS["notebook"] = _render_for_notebook

_HOMES = {
    "Filters": ("tgraph.retrieve.filters", "Filters"),
    "KnowledgeGraph": ("tgraph.engine.graph", "KnowledgeGraph"),
    "TgraphError": ("tgraph.errors", "TgraphError"),
    "open": ("tgraph.engine.graph", "open_graph"),
    "init_graph": ("tgraph.engine.settings_file", "init_graph"),
    **{
        name: ("tgraph.engine.collections", name)
        for name in (
            "copy_collection",
            "create_collection",
            "delete_collection",
            "list_collections",
            "rename_collection",
        )
    },
}


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that importing tgraph costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES.get(name, ("tgraph.model", name))
    return getattr(import_module(module), attribute)
