"""A mode: chunks that have most of the question's names, letter for letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from tgraph.retrieve.modes.base import DocsRow, Mode, Section, Shared

if TYPE_CHECKING:
    from tgraph.retrieve.base import Retriever, Services
    from tgraph.settings import Settings


class VerbatimSettings(Section):
    """The section ``verbatim`` of tgraph.toml."""

    k: int = Field(5, ge=1, description="chunks retrieved")
    max_context_tokens: int = Field(8_000, ge=500, description="tokens of chunks in a prompt")


def _make_retriever(settings: Settings, services: Services) -> Retriever:
    from tgraph_logbook.search import verbatim_retriever

    return verbatim_retriever(settings, services)


VERBATIM = Mode(
    "verbatim",
    DocsRow("that name ships and people", "the chunks that have the same names", "1"),
    section="verbatim",
    settings=VerbatimSettings,
    retriever=_make_retriever,
    selecting=lambda own: Shared(own.max_context_tokens, {"chunk": 1.0}),
    method="verbatim",
    reads_text=True,
)
