"""Retrieval that finds new questions: an overview of the graph, or of the last turn."""

from __future__ import annotations

from tgraph.errors import UsageError
from tgraph.index.communities.communities import read_communities
from tgraph.model import EntityMatch, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import count_degrees, known_entities
from tgraph.retrieve.modes.local import LocalSearchSettings
from tgraph.retrieve.search.local import match_by_vector, retrieve_surroundings


class OverviewRetriever:
    """A retriever for finding new questions.

    Retrieval starts from the entities of the conversation's last turn or, before any turn, from
    the centres of the largest communities."""

    step = "ContextBuilding"
    matches_entities = True

    def __init__(self, settings: LocalSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        if question.history:
            *before, last = question.history
            last_turn = Question(f"{last.question} {last.answer}", tuple(before))
            matches, orders = match_by_vector(last_turn, self._settings, context)
        else:
            matches, orders = self._match_centres(context), ()
        if not matches:
            raise UsageError("There is nothing to ask about yet.", "Index documents first.")
        return retrieve_surroundings(matches, orders, self._settings, context)

    def _match_centres(self, context: Context) -> list[EntityMatch]:
        top = [c for c in read_communities(context.store) if c.parent is None]
        top.sort(key=lambda c: (-len(c.members), c.iri))
        chosen = []
        for community in top[: self._settings.top_k_entities]:
            links = count_degrees(context, community.members)
            chosen.append(min(links, key=lambda entity: (-links[entity], entity)))
        entities = known_entities(context, chosen)
        top_degree = max((entity.links for entity in entities.values()), default=1)
        return [
            EntityMatch(e.iri, e.label, "", round(e.links / max(top_degree, 1), 6), "centre")
            for e in entities.values()
        ]
