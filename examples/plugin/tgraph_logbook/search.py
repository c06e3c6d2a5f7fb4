"""The retriever of the mode ``verbatim``."""

from __future__ import annotations

import re

from tgraph.index.sources import standing_chunks, stored_chunk
from tgraph.model import Retrieval
from tgraph.retrieve.base import Context, Question, Retriever, Services
from tgraph.retrieve.candidates import assign_ranks, chunk_candidates
from tgraph.settings import Settings
from tgraph_logbook.mode import VerbatimSettings

_NAME = re.compile(r"\b[A-Z]\w+")


class VerbatimRetriever:
    """The first ``k`` chunks by the number of the question's names that stand in their text."""

    step = "WordSearch"
    matches_entities = False

    def __init__(self, settings: VerbatimSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        names = set(_NAME.findall(question.text))
        matches = []
        for _, chunk in standing_chunks(context.store):
            text = stored_chunk(context.store, context.texts, chunk).text
            if common := sorted(name for name in names if name in text):
                reason = f"it has the names {', '.join(common)}"
                matches.append((chunk, len(common) / len(names), (reason,)))
        matches.sort(key=lambda match: (-match[1], match[0]))
        candidates = assign_ranks(chunk_candidates(context, matches[: self._settings.k]))
        return Retrieval(candidates, 0, len(candidates))


def verbatim_retriever(settings: Settings, services: Services) -> Retriever:
    """Return the retriever of the mode, by the section ``verbatim`` of the settings."""
    section: VerbatimSettings = settings.verbatim  # type: ignore[attr-defined]
    return VerbatimRetriever(section)
