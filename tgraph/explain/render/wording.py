"""Wording of trace parts, and stages of a question as text lines, for anyone watching the
answering."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from tgraph import vocabulary as v
from tgraph.explain.render.markup import plain_text
from tgraph.explain.trace.bundle_reader import kind_of
from tgraph.explain.trace.values import (
    Trace,
    TraceAction,
    TraceBatch,
    TraceItem,
    TracePoint,
    TraceQuotation,
    TraceRating,
    TraceSentence,
)
from tgraph.index.sources import range_of_chunk
from tgraph.rendering import collapse_whitespace, format_count, one_line, shorten_text
from tgraph.retrieve.text.lexical import FORMS, words

_DETAILS = re.compile(r":| \(")
_MOST_QUOTE = 200
_MOST_LABEL = 100
_MOST_POINT = 160
_BEST = 5
_ORIGINS = 3
_LISTED = 8
_PLURALS = {"entity": "entities", "summary": "summaries"}


def stage_lines(trace: Trace, stage: str) -> Iterator[str]:
    """The lines about a stage (a session's, retrieval's, selection's or answer's IRI)."""
    uuid = trace.explain_id.removeprefix(v.session_iri(""))
    writers = {
        v.session_iri(uuid): ("session", _session_lines),
        v.retrieval_iri(uuid): ("retrieval", _retrieval_lines),
        v.selection_iri(uuid): ("selection", _selection_lines),
        v.answer_iri(uuid): ("answer", _answer_lines),
    }
    name, lines = writers[stage]
    yield f"  [{name}] {stage}"
    for line in lines(trace):
        yield f"    {line}"


def _session_lines(trace: Trace) -> Iterator[str]:
    yield f"Question: {collapse_whitespace(trace.question)}"
    yield f"Mode: {trace.mode}"
    if trace.filters_text:
        yield f"Filters: {collapse_whitespace(trace.filters_text)}"
    if trace.as_of:
        yield f"As of: {collapse_whitespace(knowledge_text(trace))}"
    yield f"Time: {trace.started}"


def _retrieval_lines(trace: Trace) -> Iterator[str]:
    if trace.choice_text:
        yield f"Mode: {collapse_whitespace(trace.choice_text)}"
    if trace.computed and trace.computed.sparql:
        yield f"Query: {collapse_whitespace(trace.computed.sparql)}"
    for step in trace.step_answers:
        yield f"Step {step.number}: {shorten_text(collapse_whitespace(step.words), _MOST_QUOTE)}"
    if trace.concepts:
        yield f"Concepts: {collapse_whitespace(trace.concepts_text)}"
    if trace.matches:
        yield f"Entities: {matches_text(trace)}"
    if trace.actions is not None:
        yield f"Actions: {actions_text(trace.actions)}"
    yield f"Retrieved: {retrieved_text(trace)}"


def _selection_lines(trace: Trace) -> Iterator[str]:
    yield from map_lines(trace)
    yield f"Selected: {len(trace.selected)}"
    for number, edge in enumerate(trace.selected, 1):
        yield f"{number}. {item_text(edge)}"
        score_name = trace.name_scores([edge])
        score = f"{score_name[:1].upper()}{score_name[1:]}: {edge.score:.4f}"
        yield f"   {', '.join(filter(None, [score, standing_text(edge)]))}"
        if edge.reasoning:
            yield f"   Reasoning: {collapse_whitespace(edge.reasoning)}"
        for place in edge.evidence:
            if place.quote:
                yield f"   “{shorten_text(plain_text(place), _MOST_QUOTE)}”"
            yield f"   {place_text(place)}"
        if edge.bridge is not None:
            yield f"   {bridge_text(edge.bridge)}"
    if trace.rejected:
        yield f"Not selected: {rejection_text(trace.rejected)}"


def _answer_lines(trace: Trace) -> Iterator[str]:
    yield f"Document: {v.answer_text_iri(trace.explain_id.removeprefix(v.session_iri('')))}"
    if not trace.answer:  # it is being written
        return
    cited = sum(1 for sentence in trace.sentences if sentence.citations)
    yield f"Sentences: {len(trace.sentences)}, {cited} with citations"
    if trace.confidence_text:
        yield f"Confidence: {collapse_whitespace(trace.confidence_text)}"
    for reason, count in trace.dropped.items():
        yield f"Dropped: {reason} ({count})"


def way_lines(trace: Trace) -> Iterator[str]:
    """Yield sentences explaining each step toward the answer, for readers without prior
    knowledge."""
    if trace.choice:
        yield f"The mode {trace.mode} was chosen, because {collapse_whitespace(trace.choice)}."
    if trace.concepts:
        yield f"Concepts of the question: {collapse_whitespace(trace.concepts_text)}."
    if trace.matches:
        entity_labels = [collapse_whitespace(match.label) for match in trace.matches]
        remainder = f" and {len(entity_labels) - _BEST} more" if len(entity_labels) > _BEST else ""
        yield f"Entities matched to the question: {', '.join(entity_labels[:_BEST])}{remainder}."
    candidates = [*trace.selected, *trace.rejected]
    if candidates:
        ranked = f"; {kinds_text(candidates)} became candidates" if trace.rejected else ""
        yield f"Found in the documents: {retrieved_text(trace)}{ranked}."
        reasons = f" Not selected: {rejection_text(trace.rejected)}." if trace.rejected else ""
        yield f"Selected for the answer: {kinds_text(trace.selected) or 'nothing'}.{reasons}"
    if trace.sentences:
        places = [c for s in trace.sentences for c in s.citations]
        cited = sum(bool(s.citations) for s in trace.sentences)
        proven = f"{cited} of its {format_count(len(trace.sentences), 'sentence')}"
        documents = format_count(len({place.document for place in places}), "document")
        yield f"Sentences with quotes: {proven}, from {documents}."


def map_lines(trace: Trace) -> Iterator[str]:
    """Yield text lines: report rating summary, then each report batch."""
    if trace.ratings:
        relevant = sum(rating.relevant for rating in trace.ratings)
        yield f"Rated: {format_count(len(trace.ratings), 'report')}, {relevant} relevant"
    for number, batch in enumerate(trace.batches, 1):
        yield batch_text(batch, number)


def batch_text(batch: TraceBatch, number: int) -> str:
    """A batch in words; ``number`` counts from 1."""
    outcome = "no usable reply" if batch.error else format_count(len(batch.points), "point")
    reports = format_count(len(batch.reports), "report")
    return f"Batch {number}: {reports}, {batch.tokens:,} tokens → {outcome}"


def point_text(point: TracePoint) -> str:
    """Return a point's score and text, plus the rejection reason if unused."""
    why = f"  (not used: {one_line(point.rejected)})" if point.rejected else ""
    return f"{point.score * 100:.0f}  {one_line(point.text, _MOST_POINT)}{why}"


def rating_text(rating: TraceRating) -> str:
    """Return a report rating as text."""
    rating_score = "?" if rating.score is None else f"{rating.score * _BEST:.0f}"
    verdict = "relevant" if rating.relevant else "not relevant"
    return f"level {rating.level}  {rating_score} of {_BEST}, {verdict}: {one_line(rating.label)}"


def matches_text(trace: Trace) -> str:
    """Return matched entities of the question as text, naming the best matches."""
    match_texts = [
        f"{collapse_whitespace(m.label)} ({m.method} {m.score:.2f})"
        for m in trace.matches[:_LISTED]
    ]
    remaining = len(trace.matches) - len(match_texts)
    return f"{', '.join(match_texts)}{f' and {remaining} more' if remaining > 0 else ''}"


def item_text(item: TraceItem) -> str:
    """Return edge labels, or kind and label of any other item."""
    if item.kind != "edge":
        return f"{item.kind}: {shorten_text(label_text(item), _MOST_LABEL)}"
    subject, obj = map(collapse_whitespace, (item.subject_label, item.object_label))
    return f"{subject} — {relation_text(item)} — {obj}"


def label_text(item: TraceItem) -> str:
    """Return the item label; if the label is a quote, such as a point, return the quote as
    plain text."""
    label = collapse_whitespace(item.label)
    quoted = next(
        (place for place in item.evidence if collapse_whitespace(place.quote) == label), None
    )
    return label if quoted is None else plain_text(quoted)


_THIRD_PERSON = {"be": "is", "have": "has", "do": "does", "go": "goes"}
_HISSING = re.compile(r"(?:[sxz]|ch|sh)$")


def relation_text(item: TraceItem) -> str:
    """Return an edge's predicate as readable text, verb in third person instead of infinitive."""
    first, _, remaining_words = collapse_whitespace(item.predicate_label).partition(" ")
    quotes = [place.quote for place in item.evidence]
    return " ".join(filter(None, (_third_person(first, quotes), remaining_words)))


def _third_person(word: str, quotes: Sequence[str]) -> str:
    """Return a verb in the third person if a quote contains its past form or participle, as
    proof against a noun; return any other word unchanged."""
    if word in _THIRD_PERSON:
        return _THIRD_PERSON[word]
    to_i = word.endswith("y") and word[-2:-1] not in set("aeiou")
    base = word[:-1] if to_i else word.removesuffix("e")
    past = {f"{base}{'i' if to_i else ''}ed", f"{base}ing", f"{word}ing"}
    past |= {f"{word}{word[-1:]}{ending}" for ending in ("ed", "ing")}
    quote_words = {quote_word for quote in quotes for quote_word in words(quote)}
    if not (quote_words & past or any(FORMS.get(quote_word) == word for quote_word in quote_words)):
        return word
    return f"{base}ies" if to_i else f"{word}{'es' if _HISSING.search(word) else 's'}"


def kinds_text(items: Sequence[TraceItem]) -> str:
    """Return item counts by kind, as text."""
    counts = Counter(item.kind for item in items)
    return ", ".join(format_count(n, kind, _PLURALS.get(kind, "")) for kind, n in counts.items())


def standing_text(item: TraceItem) -> str:
    """Return an item's rank, edge hop or token cost, and source authority, as text."""
    parts = [f"rank {item.rank}"] if item.rank else []
    if item.kind == "edge":
        parts.append(f"hop {item.hop}")
    if item.tokens:
        parts.append(f"{item.tokens} tokens")
    if item.authority != 1:
        parts.append(f"authority {item.authority:g}")
    return ", ".join(parts)


def retrieved_text(trace: Trace) -> str:
    """Return the number of retrieved edges and other items, as text."""
    item = "other item" if trace.edge_count else "item"
    counts = [(trace.edge_count, "edge"), (trace.item_count, item)]
    return " and ".join(format_count(n, noun) for n, noun in counts if n) or "nothing"


def place_text(place: TraceQuotation) -> str:
    """Return a quotation's position, page, document title and path as text."""
    page = f" on page {place.page}" if place.page is not None else ""
    path = f"  {collapse_whitespace(place.path)}" if place.path else ""
    start, end = range_of_chunk(place.chunk)
    where = f"characters {place.start}–{place.end} (chunk {start}–{end})"
    return f"{where}{page} of {collapse_whitespace(place.title)}{path}"


class HasOrigin(Protocol):
    """Items with an origin stated by an imported graph."""

    @property
    def graph(self) -> str: ...
    @property
    def sources(self) -> tuple[str, ...]: ...


def origin_text(stated: HasOrigin) -> str:
    """Return a statement's origin according to an imported graph.

    The text is blank if the graph states no origin."""
    parts = [f"in the graph {collapse_whitespace(stated.graph)}"] if stated.graph else []
    if stated.sources:
        remaining = len(stated.sources) - _ORIGINS
        source_names = ", ".join(map(collapse_whitespace, stated.sources[:_ORIGINS]))
        parts.append(
            f"derived from {source_names}{f' and {remaining} more' if remaining > 0 else ''}"
        )
    return f"by the file: {'; '.join(parts)}" if parts else ""


def bridge_text(place: TraceQuotation) -> str:
    """Return the quotation leading to an item, as a bridge line."""
    quote = shorten_text(plain_text(place), _MOST_QUOTE)
    return f"Bridge: “{quote}” ({collapse_whitespace(place.title)})"


def verdict_text(sentence: TraceSentence) -> str:
    """Return a sentence's verdict from the latest verification."""
    lost = f", lost at: {sentence.lost_at}" if sentence.lost_at else ""
    return f"{sentence.verdict}{lost}"


def judged_text(trace: Trace) -> str:
    """Return the latest verification's verdict on the answer as a whole; blank without one."""
    judged = trace.judged
    return f"answer {judged.verdict}: {one_line(judged.reason)}" if judged else ""


def way_text(place: TraceQuotation) -> str:
    """Return items leading down to a quotation, by kind and label."""
    pairs = zip(place.via, place.way, strict=True)
    return " › ".join(
        f"{kind_of(iri)} “{shorten_text(collapse_whitespace(label), _MOST_LABEL)}”"
        for iri, label in pairs
    )


def rejection_text(rejected: Sequence[TraceItem]) -> str:
    """Return rejected item counts by reason, without the details after a colon or in brackets."""
    counts = Counter(_DETAILS.split(item.reasoning)[0] or "no reason" for item in rejected)
    return ", ".join(f"{count} ({reason})" for reason, count in counts.most_common())


def actions_text(root: TraceAction) -> str:
    """Return counts of questions carried out and questions pruned by limits."""
    everything = list(_walk_actions(root))
    answered_count = sum(action.status != "pruned" for action in everything)
    reasons = [action.reason for action in everything if action.status == "pruned"]
    alike = "nearly the same as another"
    counts = Counter(alike if reason.startswith("nearly") else reason for reason in reasons)
    pruned = ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
    return f"{answered_count} carried out" + (f", not asked: {pruned}" if pruned else "")


def _walk_actions(action: TraceAction) -> Iterator[TraceAction]:
    yield action
    for child in action.children:
        yield from _walk_actions(child)


def knowledge_text(trace: Trace) -> str:
    """Return the generation queried, plus its publication time and point in time if requested."""
    generation_text = f"knowledge of generation {trace.generation}"
    if not trace.as_of:
        return generation_text
    since = f" of {format_clock(trace.published)} UTC" if trace.published else ""
    return f"{generation_text}{since}, asked as of {trace.as_of}"


def agents_text(trace: Trace) -> str:
    """Return distinct agents of all steps."""
    return ", ".join(dict.fromkeys(agent for step in trace.steps for agent in step.agents))


def format_clock(time: str) -> str:
    """Return an xsd:dateTime in readable form, precise to the second."""
    return time[:19].replace("T", " ")


def elapsed_seconds(started: str, ended: str) -> str:
    """Return seconds between two xsd:dateTime values.

    The text is blank if either value is blank."""
    if not started or not ended:
        return ""
    begun, finish = datetime.fromisoformat(started), datetime.fromisoformat(ended)
    return f"{(finish - begun).total_seconds():.2f}"
