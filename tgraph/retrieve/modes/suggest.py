"""Question suggestions: central entities of the collection, or of the conversation about the
collection.

Suggesting is a mode like the others, but invoked by a separate command instead of a mode name."""

from __future__ import annotations

from tgraph.retrieve.modes.base import DocsRow, Mode, Shared

_SHARES = {"report": 0.2, "graph": 0.6, "chunk": 0.2}

SUGGEST = Mode(
    "suggest",
    DocsRow("that are still to be found", "what stands at the centre", "1"),
    beneath=("local_search",),
    selecting=lambda own: Shared(own.max_context_tokens, _SHARES),
)
