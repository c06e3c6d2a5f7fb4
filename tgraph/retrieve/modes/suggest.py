"""What proposes questions: the centres of the collection, or of the conversation about it.

It is a mode like the others, which is not asked for by name but by a command of its own.
"""

from __future__ import annotations

from tgraph.retrieve.modes.base import DocsRow, Mode, Shared

_SHARES = {"report": 0.2, "graph": 0.6, "chunk": 0.2}

SUGGEST = Mode(
    "suggest",
    DocsRow("that are still to be found", "what stands at the centre", "1"),
    beneath=("local_search",),
    selecting=lambda own: Shared(own.max_context_tokens, _SHARES),
)
