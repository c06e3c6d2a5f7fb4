"""Overview retrieval: what stands at the centre of a collection, or of a conversation about it."""

from __future__ import annotations

from dataclasses import replace

from tgraph.errors import UsageError
from tgraph.index.communities import read_communities
from tgraph.model import EntityMatch, Retrieval, Turn
from tgraph.retrieve.base import Context, Question, Retriever, Services
from tgraph.retrieve.entities import degree, known_entities
from tgraph.retrieve.local import around, match_by_vector
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.settings import Settings


class OverviewRetriever:
    """For questions that are still to be found: around the entities that the conversation was
    about, or, before it has begun, around the centres of the largest communities."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, settings: LocalSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        matches = (
            match_by_vector(_said(question.history), self._settings, context)
            if question.history
            else self._centres(context)
        )
        if not matches:
            raise UsageError("There is nothing to ask about yet.", "Index documents first.")
        return around(matches, self._settings, context)

    def _centres(self, context: Context) -> list[EntityMatch]:
        top = [c for c in read_communities(context.store) if c.parent is None]
        top.sort(key=lambda c: (-len(c.members), c.iri))
        chosen = []
        for community in top[: self._settings.top_k_entities]:
            links = {entity: degree(context, entity) for entity in community.members}
            chosen.append(min(links, key=lambda entity: (-links[entity], entity)))
        known = known_entities(context, chosen)
        most = max((entity.links for entity in known.values()), default=1)
        return [
            EntityMatch(e.iri, e.label, "", round(e.links / max(most, 1), 6), "centre")
            for e in known.values()
        ]


def _said(history: tuple[Turn, ...]) -> Question:
    last = history[-1]
    return replace(Question(f"{last.question} {last.answer}"), history=history[:-1])


def overview_retriever(settings: Settings, services: Services) -> Retriever:
    """The retriever of what proposes questions."""
    return OverviewRetriever(settings.local_search)
