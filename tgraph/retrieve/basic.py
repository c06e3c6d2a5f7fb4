"""Basic retrieval: the chunks nearest to the question, in the order of their likeness."""

from __future__ import annotations

from tgraph.model import Candidate, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.chunks import chunk_evidence, chunk_item, chunk_tokens
from tgraph.retrieve.costs import cost_of
from tgraph.settings import BasicSearchSettings


class BasicRetriever:
    """The mode ``basic``: vector search over chunks."""

    mode = "basic"
    step = "VectorSearch"
    matches_entities = False

    def __init__(self, settings: BasicSearchSettings) -> None:
        self._settings = settings

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        vector = context.embed([in_conversation(question)])
        hits = context.vectors["chunk"].search(vector, self._settings.k)[0]
        evidence = chunk_evidence(context, [chunk for chunk, _ in hits])
        tokens = chunk_tokens(context, list(evidence))
        ranked = [(chunk, score) for chunk, score in hits if chunk in evidence]
        candidates = tuple(
            Candidate(
                chunk_item(evidence[chunk]),
                rank,
                max(0.0, score),
                evidence=(evidence[chunk],),
                reasons=(f"it is {score:.2f} similar in meaning to the question",),
                tokens=cost_of(chunk_item(evidence[chunk]), tokens.get(chunk)),
            )
            for rank, (chunk, score) in enumerate(ranked, 1)
        )
        return Retrieval(candidates, 0, len(candidates))


def in_conversation(question: Question) -> str:
    """What is searched for: the question, and the user's questions before it."""
    return "\n".join([question.text, *(turn.question for turn in reversed(question.history))])
