"""Reasons written without a model: why a candidate is selected or rejected, or a mode is chosen.

A session records the number of its wording (``tg:wording``; sessions of earlier releases have
none, and the first wording). A replay writes reasons in the wording of the recorded session, so
that both records have the same text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from tgraph.model import Candidate

FIRST_WORDING = 1
THIRD_WORDING = 3
"""The first wording with notes on the language of a question and on bearers of a name, in which a
row of a table is read by itself, and answers by its cells."""
WORDING = THIRD_WORDING
"""The wording of new records."""


class WordedReason(str):
    """A reason in the current wording; ``first`` is the text in the first wording."""

    __slots__ = ("first",)
    first: str

    def __new__(cls, text: str, first: str) -> Self:
        reason = super().__new__(cls, text)
        reason.first = first
        return reason


_TEXTS: Mapping[str, tuple[str, str]] = {
    # retrieval
    "chunk-words": (
        "it is number {rank} by the words that it shares with the question ({score:.2f})",
        "the chunk has rank {rank} by words shared with the question (BM25 score {score:.2f})",
    ),
    "chunk-similarity": (
        "it is {score:.2f} similar in meaning to the question",
        "the chunk has a cosine similarity of {score:.2f} to the question",
    ),
    "chunk-context-meaning": (
        "it is number {rank} by meaning ({score:.2f}) in its context",
        "the chunk in context has rank {rank} by cosine similarity ({score:.2f}) to the question",
    ),
    "chunk-context-words": (
        "it is number {rank} by words ({score:.2f}) in its context",
        "the chunk in context has rank {rank} by words shared with the question (BM25 score"
        " {score:.2f})",
    ),
    "chunk-reranked": (
        "it was ranked at {score:.2f}",
        "the reranker gives the chunk a score of {score:.2f}",
    ),
    "chunk-read-best": (
        "its sentences answer the question best",
        "sentences of the chunk rank highest as answers to the question",
    ),
    "chunk-walk": (
        "the walk comes to it over {names}",
        "the random walk reaches the chunk through {names}",
    ),
    "chunk-walk-others": (
        "the walk comes to it over another chunk's entities",
        "the random walk reaches the chunk through entities of another chunk",
    ),
    "chunk-named": ("the question names the title or the subject of the chunk",) * 2,
    "chunk-linked": ("a chunk that the question names mentions the subject of the chunk",) * 2,
    "chunk-of-entity": (
        "it names {label} and states {count} of the edges around it",
        "the chunk names {label} and states {count} of the edges of {label}",
    ),
    "chunk-entities": (
        "it speaks of {count} of the entities found",
        "the chunk names {count} of the retrieved entities",
    ),
    "chunk-edges": (
        "it states {count} of the edges found",
        "the chunk states {count} of the retrieved edges",
    ),
    "summary-similarity": (
        "the summary (level {level}) is {score:.2f} similar in meaning to the question",
        "the summary (level {level}) has a cosine similarity of {score:.2f} to the question",
    ),
    "report-frequency": (
        "its entities occur in {count} chunks",
        "the entities of the report occur in {count} chunks",
    ),
    "report-rating": (
        "it is rated {rating:g} of 10",
        "the report has an importance rating of {rating:g} out of 10",
    ),
    "report-similarity": (
        "it is {score:.2f} similar in meaning to the question put as an answer",
        "the report has a cosine similarity of {score:.2f} to a hypothetical answer to the"
        " question",
    ),
    "report-entities": (
        "its community has {count} of the entities",
        "the community of the report contains {count} of the entities matched to the question",
    ),
    "claim": ("it is a claim about {label}", "the claim is about {label}"),
    "entity": (
        "the question leads to {label}",
        "the entity {label} is matched to the question",
    ),
    "entity-name": ("it is called “{keyword}”", "the entity has the name “{keyword}”"),
    "entity-edge": (
        "an edge that is similar in meaning to “{keyword}” leads to it",
        "an edge similar in meaning to the keyword “{keyword}” starts or ends at the entity",
    ),
    "entity-similarity": (
        "it is {score:.2f} similar in meaning to “{keyword}”",
        "the entity has a cosine similarity of {score:.2f} to the keyword “{keyword}”",
    ),
    "edge-similarity": (
        "it is {score:.2f} similar in meaning to “{keyword}”",
        "the edge has a cosine similarity of {score:.2f} to the keyword “{keyword}”",
    ),
    "edge-of-entity": (
        "it is an edge of what the question names, and its ends have {count} relationships",
        "the edge belongs to an entity matched to the question, and the two entities of the edge"
        " have {count} relationships",
    ),
    "edge-between": (
        "it ties entities of the question",
        "the edge connects two entities matched to the question",
    ),
    "edge-outwards": (
        "it leads out of them",
        "the edge connects an entity matched to the question with another entity",
    ),
    "edge-degree": (
        "its ends have {rank} relationships",
        "the two entities of the edge have {rank} relationships",
    ),
    "edge-weight": ("its weight is {rank:g}", "the weight of the edge is {rank:g}"),
    "edge-chunks": ("{rank} chunks state it", "{rank} chunks state the edge"),
    "edge-hops": (
        "it lies {hops} hops from a matched entity",
        "the edge is {hops} hops away from an entity matched to the question",
    ),
    "edge-matched": (
        "it touches a matched entity",
        "the edge starts or ends at an entity matched to the question",
    ),
    # sentences
    "seed-similarity": (
        "a sentence of it is {score:.2f} similar in meaning to the question",
        "a sentence that states the edge has a cosine similarity of {score:.2f} to the question",
    ),
    "sentence-similarity": (
        "its sentence is {score:.2f} similar in meaning to the question",
        "the best sentence that states the edge has a cosine similarity of {score:.2f} to the"
        " question",
    ),
    "sentence-words": (
        "it shares the words {words}",
        "the sentence and the question share the words {words}",
    ),
    "sentence-leads": (
        "it tells of {name}, the bridge to another",
        "the sentence names {name} and leads to a sentence of another document about {name}",
    ),
    "sentence-follows": (
        "{name} is the bridge from another sentence",
        "a sentence of another document leads to the sentence through {name}",
    ),
    "sentence-antecedent": (
        "it names what the next sentences speak of",
        "the sentence names the entity that the following sentences describe",
    ),
    "read": (
        "the reader gives its sentence {probability:.0%} to answer",
        "the reader model estimates a probability of {probability:.0%} that the best sentence of"
        " the {kind} answers the question",
    ),
    "read-answer": (
        "the reader gives its sentence {probability:.0%} to answer, by “{answer}”",
        "the reader model estimates a probability of {probability:.0%} that the best sentence of"
        " the {kind} answers the question, with the answer “{answer}”",
    ),
    "step": ("it answers a step of the question", "a sentence answers a step of the question"),
    "part": ("it answers a part of the question", "a sentence answers a part of the question"),
    "mention": (
        "a sentence mentions “{subject}”, the best of its document",
        "a sentence mentions “{subject}”, the best sentence of the document on the subject",
    ),
    "authority": (
        "its source has an authority of {authority:g}",
        "the source document has an authority of {authority:g} on a scale from 0 to 1",
    ),
    # points
    "point-important": (
        "it tells of {title}, a report rated {rating:g} of 10",
        "the sentence belongs to the report on {title}, with an importance rating of {rating:g}"
        " out of 10",
    ),
    "point-words": (
        "its sentence, found by the report on {title}, shares {words} with the question",
        "the sentence belongs to the report on {title} and shares the words {words} with the"
        " question",
    ),
    "point-meaning": (
        "its sentence, found by the report on {title}, answers in meaning",
        "the sentence belongs to the report on {title} and is similar in meaning to the question",
    ),
    "point-counts": (
        "it counts what was read",
        "the point counts the documents or the sentences that were read",
    ),
    "point-reports": (
        "it answers {subject} from reports",
        "community reports answer {subject}",
    ),
    "point-local": (
        "it answers {subject} from a local search",
        "the results of a local search answer {subject}",
    ),
    "follow-up": (
        "answer that proposed it {parent:.2f} × relevance {relevance:.2f} × novelty {novelty:.2f}",
        "score {parent:.2f} of the answer that proposed the question × relevance {relevance:.2f}"
        " × novelty {novelty:.2f}",
    ),
    "rated-words": (
        "It has {share:.0%} of what the question names and is {cosine:.2f} similar in meaning.",
        "The report contains {share:.0%} of the weighted words of the question and has a cosine"
        " similarity of {cosine:.2f} to the question.",
    ),
    "rated-whole": (
        "The question is about the whole, and the report is rated {rating:g}.",
        "The question is about the documents as a whole, and the report has an importance rating"
        " of {rating:g} out of 10.",
    ),
    # witnesses of a computed answer, which no session of the first wording has
    "witness-rests": ("the result rests on the statement ({row})",) * 2,
    "witness-contradicts": ("the statement contradicts another value of {row}",) * 2,
    "witness-compared": ("the result was compared with the statement ({row})",) * 2,
    "witness-searched": ("the statement was searched and is not in the result ({row})",) * 2,
    # selection
    "map-score": (
        "Chosen because of its score in the map.",
        "Selected: the model rates the point as helpful for an answer.",
    ),
    # the form of a question
    "form": ("it {predicate}", "the question {predicate}"),
    "form-computed": ("the question asks for what a query computes ({likelihood:.2f})",) * 2,
    "form-unnamed": (
        "it names nothing that is known and asks for one thing",
        "the question names no entity of the graph and asks for one thing",
    ),
    # rejection
    "not-authoritative": (
        "not believed: its documents have an authority of 0",
        "the documents have no authority (an authority of 0 was set)",
    ),
    "not-read": (
        "not read: other sentences were ranked before it",
        "the reader model did not read the sentence (other sentences rank higher)",
    ),
    "selection-limit": (
        "over the edge limit",
        "the selection limit is reached ({limit} candidates are selected)",
    ),
    "score-share": (
        "not chosen: its score is below {share:.0%} of the best",
        "the score is too low ({score:.3f} is less than {share:.0%} of the best score {best:.3f})",
    ),
    "same-sentence": (
        "not chosen: two edges of the same sentence are selected already",
        "two edges of the same sentence are already selected",
    ),
    "model-unselected": ("not chosen by the model", "the model did not select the edge"),
    "budget": (
        "over the token budget",
        "the candidate does not fit into the token budget of the prompt",
    ),
    "budget-total": (
        "over the token budget ({budget:,})",
        "the candidate does not fit into the token budget ({budget:,} tokens in total)",
    ),
    "budget-kind": (
        "over the token budget of its kind ({budget:,})",
        "the candidate does not fit into the token budget for the kind {kind} ({budget:,} tokens)",
    ),
    "budget-share": (
        "its kind has no share of the token budget, and others left no room",
        "the kind {kind} has no share of the token budget, and other candidates leave no room",
    ),
    "budget-fold": (
        "over the token budget of its fold",
        "the report does not fit into the token budget of the reports that are read together",
    ),
    "points-unselected": (
        "none of its points was selected",
        "no point drawn from the report is selected",
    ),
    "no-point": ("no point was drawn from it", "no point was drawn from the report"),
    "uncited": (
        "cited by no answer on the way",
        "no answer to the question or to a follow-up question cites the candidate",
    ),
    "points-citing-unselected": (
        "none of the points that cite it was selected",
        "no point that cites the candidate is selected",
    ),
    "unhelpful": ("it does not help to answer", "the point does not help to answer the question"),
    "repeated": ("said by another point", "another point makes the same statement"),
    "sentence-limit": (
        "over the limit of sentences",
        "the limit of quoted sentences is reached ({limit} sentences)",
    ),
    "sentence-score": (
        "its score is below {share:.0%} of the best",
        "the score is too low ({score:.3f} is less than {share:.0%} of the best score {best:.3f})",
    ),
    "theme-unquoted": ("no sentence of it is quoted", "no sentence of the theme is quoted"),
}
"""The texts of each kind of reason: in the first wording, in the current wording."""


def explain(kind: str, /, **values: object) -> WordedReason:
    """Return the reason of a kind in ``_TEXTS``, filled in with values."""
    first, current = _TEXTS[kind]
    return WordedReason(current.format(**values), first.format(**values))


def extend_reason(reason: str, addition: str) -> WordedReason:
    """Return a reason with an addition that all wordings share."""
    return WordedReason(f"{reason}{addition}", f"{_in_first_wording(reason)}{addition}")


def join_reasons(reasons: Iterable[str], separator: str) -> WordedReason:
    """Return several reasons as one."""
    texts = list(reasons)
    return WordedReason(separator.join(texts), separator.join(map(_in_first_wording, texts)))


def explain_selection(reasons: Sequence[str]) -> WordedReason:
    """Return the reasoning of an item that was selected by rank or score."""
    *others, last = map(_in_first_wording, reasons or ("",))
    because = f"{', '.join(others)} and {last}" if others else last
    return WordedReason(f"Selected: {'; '.join(reasons)}.", f"Chosen because {because}.")


def explain_budgeted(reasons: Sequence[str]) -> WordedReason:
    """Return the reasoning of an item that was selected for a token budget."""
    because = " and ".join(map(_in_first_wording, reasons)) or "it was retrieved"
    why = "; ".join(reasons) or "the candidate was retrieved"
    return WordedReason(
        f"Selected within the token budget: {why}.", f"Within the budget; {because}."
    )


def parse_selection(reasoning: str) -> tuple[str, ...]:
    """Return the reasons in recorded reasoning as one text; empty for reasoning by a model."""
    for prefix in (
        *("Within the budget; ", "Chosen because "),
        *("Selected within the token budget: ", "Selected: "),
    ):
        if reasoning.startswith(prefix):
            return (reasoning.removeprefix(prefix).removesuffix("."),)
    return ()


def render_reason(reason: str, wording: int) -> str:
    """Return a reason in a wording; texts that are no ``WordedReason`` have one wording."""
    return _in_first_wording(reason) if wording == FIRST_WORDING else str(reason)


def _in_first_wording(reason: str) -> str:
    return reason.first if isinstance(reason, WordedReason) else reason


def render_reasons(candidates: Iterable[Candidate], wording: int) -> tuple[Candidate, ...]:
    """Return the candidates with all reasons in a wording."""
    return tuple(
        replace(c, reasons=tuple(render_reason(reason, wording) for reason in c.reasons))
        for c in candidates
    )


UNREAD = explain("not-read")
"""The reason of candidates whose sentences the reader model did not read."""

COUNTS = explain("point-counts")
"""The reason of a point that states how many documents there are, as no document does."""


def is_unread(reasons: Collection[str]) -> bool:
    """Return whether the reader model did not read a candidate, in any wording."""
    return UNREAD in reasons or UNREAD.first in reasons
