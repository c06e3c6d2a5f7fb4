"""What proposes questions: the centres of the collection, or of the conversation about it.

It is a mode like the others, which is not asked for by name but by a command of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.retrieve.modes.base import Mode, Row, Selecting, Services, Shared

if TYPE_CHECKING:
    from tgraph.retrieve.base import Retriever
    from tgraph.settings import Settings


def _retriever(settings: Settings, services: Services) -> Retriever:
    from tgraph.retrieve.overview import OverviewRetriever

    return OverviewRetriever(settings.local_search)


def _selecting(settings: Settings) -> Selecting:
    shares = {"report": 0.2, "graph": 0.6, "chunk": 0.2}
    return Shared(settings.local_search.max_context_tokens, shares)


SUGGEST = Mode(
    "suggest",
    Row("that are still to be found", "what stands at the centre", "1"),
    beneath=("local_search",),
    retriever=_retriever,
    selecting=_selecting,
    orders="tgraph.retrieve.modes.local_orders:local_orders",
)
