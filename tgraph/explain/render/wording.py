"""The parts of a trace in words, and the stages of a question as lines of text, for whoever watches
it being answered."""

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
from tgraph.rendering import flat, many, one_line, shortened
from tgraph.retrieve.text.lexical import FORMS, words

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
        v.session_iri(uuid): ("session", _session),
        v.retrieval_iri(uuid): ("retrieval", _retrieval),
        v.selection_iri(uuid): ("selection", _selection),
        v.answer_iri(uuid): ("answer", _answer),
    }
    name, lines = writers[stage]
    yield f"  [{name}] {stage}"
    for line in lines(trace):
        yield f"    {line}"


def _session(trace: Trace) -> Iterator[str]:
    yield f"Question: {flat(trace.question)}"
    yield f"Mode: {trace.mode}"
    if trace.filters_text:
        yield f"Filters: {flat(trace.filters_text)}"
    if trace.as_of:
        yield f"As of: {flat(knowledge_text(trace))}"
    yield f"Time: {trace.started}"


def _retrieval(trace: Trace) -> Iterator[str]:
    if trace.choice_text:
        yield f"Mode: {flat(trace.choice_text)}"
    for step in trace.step_answers:
        yield f"Step {step.number}: {shortened(flat(step.words), _MOST_QUOTE)}"
    if trace.concepts:
        yield f"Concepts: {flat(trace.concepts_text)}"
    if trace.matches:
        yield f"Entities: {matches_text(trace)}"
    if trace.actions is not None:
        yield f"Actions: {actions_text(trace.actions)}"
    yield f"Retrieved: {retrieved_text(trace)}"


def _selection(trace: Trace) -> Iterator[str]:
    yield from map_lines(trace)
    yield f"Selected: {len(trace.selected)}"
    for number, edge in enumerate(trace.selected, 1):
        yield f"{number}. {item_text(edge)}"
        yield f"   {', '.join(filter(None, [f'Score: {edge.score:.4f}', standing_text(edge)]))}"
        if edge.reasoning:
            yield f"   Reasoning: {flat(edge.reasoning)}"
        for place in edge.evidence:
            if place.quote:
                yield f"   “{shortened(plain_text(place), _MOST_QUOTE)}”"
            yield f"   {place_text(place)}"
        if edge.bridge is not None:
            yield f"   {bridge_text(edge.bridge)}"
    if trace.rejected:
        yield f"Not selected: {rejection_text(trace.rejected)}"


def _answer(trace: Trace) -> Iterator[str]:
    yield f"Document: {v.answer_text_iri(trace.explain_id.removeprefix(v.session_iri('')))}"
    if not trace.answer:  # it is being written
        return
    cited = sum(1 for sentence in trace.sentences if sentence.citations)
    yield f"Sentences: {len(trace.sentences)}, {cited} with citations"
    if trace.confidence_text:
        yield f"Confidence: {flat(trace.confidence_text)}"
    for reason, count in trace.dropped.items():
        yield f"Dropped: {reason} ({count})"


def way_lines(trace: Trace) -> Iterator[str]:
    """How an answer came about, a sentence for each step, for a reader who knows none of it."""
    if trace.choice:
        yield f"The mode {trace.mode} was chosen, because {flat(trace.choice)}."
    if trace.concepts:
        yield f"Taken from the question: {flat(trace.concepts_text)}."
    if trace.matches:
        named = [flat(match.label) for match in trace.matches]
        more = f" and {len(named) - _BEST} more" if len(named) > _BEST else ""
        yield f"It led to the entities {', '.join(named[:_BEST])}{more}."
    seen = [*trace.selected, *trace.rejected]
    if seen:
        ranked = f"; {kinds_text(seen)} came into question" if trace.rejected else ""
        yield f"Found in the documents: {retrieved_text(trace)}{ranked}."
        reasons = f" Not selected: {rejection_text(trace.rejected)}." if trace.rejected else ""
        yield f"Selected for the answer: {kinds_text(trace.selected) or 'nothing'}.{reasons}"
    if trace.sentences:
        places = [c for s in trace.sentences for c in s.citations]
        cited = sum(bool(s.citations) for s in trace.sentences)
        proven = f"{cited} of its {many(len(trace.sentences), 'sentence')}"
        documents = many(len({place.document for place in places}), "document")
        yield f"The answer was written from that: {proven} with quotes, of {documents}."


def map_lines(trace: Trace) -> Iterator[str]:
    """The ratings and the batches of reports, as lines."""
    if trace.ratings:
        relevant = sum(rating.relevant for rating in trace.ratings)
        yield f"Rated: {many(len(trace.ratings), 'report')}, {relevant} relevant"
    for number, batch in enumerate(trace.batches, 1):
        yield batch_text(batch, number)


def batch_text(batch: TraceBatch, number: int) -> str:
    """A batch in words; ``number`` counts from 1."""
    said = "no reply that can be used" if batch.error else many(len(batch.points), "point")
    return f"Batch {number}: {many(len(batch.reports), 'report')}, {batch.tokens:,} tokens → {said}"


def point_text(point: TracePoint) -> str:
    """A point with its score in words, and why it is not used where it is not."""
    why = f"  (not used: {one_line(point.rejected)})" if point.rejected else ""
    return f"{point.score * 100:.0f}  {one_line(point.text, _MOST_POINT)}{why}"


def rating_text(rating: TraceRating) -> str:
    """A rating in words."""
    given = "?" if rating.score is None else f"{rating.score * _BEST:.0f}"
    verdict = "relevant" if rating.relevant else "not relevant"
    return f"level {rating.level}  {given} of {_BEST}, {verdict}: {one_line(rating.label)}"


def matches_text(trace: Trace) -> str:
    """The entities that the question led to, the best of them by name."""
    shown = [f"{flat(m.label)} ({m.method} {m.score:.2f})" for m in trace.matches[:_LISTED]]
    more = len(trace.matches) - len(shown)
    return f"{', '.join(shown)}{f' and {more} more' if more > 0 else ''}"


def item_text(item: TraceItem) -> str:
    """An edge by its labels; anything else by its kind and label."""
    if item.kind != "edge":
        return f"{item.kind}: {shortened(label_text(item), _MOST_LABEL)}"
    return f"{flat(item.subject_label)} — {relation_text(item)} — {flat(item.object_label)}"


def label_text(item: TraceItem) -> str:
    """What an item is called; of one that is a quote, such as a point, as that reads."""
    said = flat(item.label)
    quoted = next((place for place in item.evidence if flat(place.quote) == said), None)
    return said if quoted is None else plain_text(quoted)


_THIRD_PERSON = {"be": "is", "have": "has", "do": "does", "go": "goes"}
_HISSING = re.compile(r"(?:[sxz]|ch|sh)$")


def relation_text(item: TraceItem) -> str:
    """What an edge says of its subject, as one reads it: its verb is not left in the infinitive."""
    first, _, rest = flat(item.predicate_label).partition(" ")
    quotes = [place.quote for place in item.evidence]
    return " ".join(filter(None, (_third_person(first, quotes), rest)))


def _third_person(word: str, quotes: Sequence[str]) -> str:
    """A verb in the third person, where a quote has its past or its participle, which tell it from
    a noun; any other word as it is."""
    if word in _THIRD_PERSON:
        return _THIRD_PERSON[word]
    to_i = word.endswith("y") and word[-2:-1] not in set("aeiou")
    base = word[:-1] if to_i else word.removesuffix("e")
    past = {f"{base}{'i' if to_i else ''}ed", f"{base}ing", f"{word}ing"}
    past |= {f"{word}{word[-1:]}{ending}" for ending in ("ed", "ing")}
    said = {each for quote in quotes for each in words(quote)}
    if not (said & past or any(FORMS.get(each) == word for each in said)):
        return word
    return f"{base}ies" if to_i else f"{word}{'es' if _HISSING.search(word) else 's'}"


def kinds_text(items: Sequence[TraceItem]) -> str:
    """How many there are of each kind."""
    counts = Counter(item.kind for item in items)
    return ", ".join(many(n, kind, _PLURALS.get(kind, "")) for kind, n in counts.items())


def standing_text(item: TraceItem) -> str:
    """Its rank, the hop of an edge or the cost of anything else, and what it was weighed by."""
    parts = [f"rank {item.rank}"] if item.rank else []
    if item.kind == "edge":
        parts.append(f"hop {item.hop}")
    if item.tokens:
        parts.append(f"{item.tokens} tokens")
    if item.authority != 1:
        parts.append(f"authority {item.authority:g}")
    return ", ".join(parts)


def retrieved_text(trace: Trace) -> str:
    """How much was retrieved."""
    item = "other item" if trace.edge_count else "item"
    counts = [(trace.edge_count, "edge"), (trace.item_count, item)]
    return " and ".join(many(n, what) for n, what in counts if n) or "nothing"


def place_text(place: TraceQuotation) -> str:
    """Where in which document."""
    page = f" on page {place.page}" if place.page is not None else ""
    path = f"  {flat(place.path)}" if place.path else ""
    start, end = range_of_chunk(place.chunk)
    where = f"characters {place.start}–{place.end} (chunk {start}–{end})"
    return f"{where}{page} of {flat(place.title)}{path}"


class HasOrigin(Protocol):
    """What an imported graph may say the origin of."""

    @property
    def graph(self) -> str: ...
    @property
    def sources(self) -> tuple[str, ...]: ...


def origin_text(stated: HasOrigin) -> str:
    """Where an imported graph has a statement from; empty where it doesn't say."""
    parts = [f"in the graph {flat(stated.graph)}"] if stated.graph else []
    if stated.sources:
        more = len(stated.sources) - _ORIGINS
        named = ", ".join(map(flat, stated.sources[:_ORIGINS]))
        parts.append(f"derived from {named}{f' and {more} more' if more > 0 else ''}")
    return f"by the file: {'; '.join(parts)}" if parts else ""


def bridge_text(place: TraceQuotation) -> str:
    """The place that leads to an item."""
    return f"Bridge: “{shortened(plain_text(place), _MOST_QUOTE)}” ({flat(place.title)})"


def verdict_text(sentence: TraceSentence) -> str:
    """The verdict of the last verification."""
    lost = f", lost at: {sentence.lost_at}" if sentence.lost_at else ""
    return f"{sentence.verdict}{lost}"


def way_text(place: TraceQuotation) -> str:
    """What leads down to the place, each thing by its kind and label."""
    pairs = zip(place.via, place.way, strict=True)
    return " › ".join(
        f"{kind_of(iri)} “{shortened(flat(label), _MOST_LABEL)}”" for iri, label in pairs
    )


def rejection_text(rejected: Sequence[TraceItem]) -> str:
    """How many were not selected, by reason."""
    counts = Counter(item.reasoning.partition(":")[0] or "no reason" for item in rejected)
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())


def actions_text(root: TraceAction) -> str:
    """How many questions were asked on the way, and how many were not, by the limit."""
    everything = list(_all(root))
    asked = sum(action.status != "pruned" for action in everything)
    reasons = [action.reason for action in everything if action.status == "pruned"]
    alike = "nearly the same as another"
    counts = Counter(alike if reason.startswith("nearly") else reason for reason in reasons)
    pruned = ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
    return f"{asked} carried out" + (f", not asked: {pruned}" if pruned else "")


def _all(action: TraceAction) -> Iterator[TraceAction]:
    yield action
    for child in action.children:
        yield from _all(child)


def knowledge_text(trace: Trace) -> str:
    """Which knowledge was asked; as of what, where that was said, and since when there was it."""
    told = f"knowledge of generation {trace.generation}"
    if not trace.as_of:
        return told
    since = f" of {clock(trace.published)} UTC" if trace.published else ""
    return f"{told}{since}, asked as of {trace.as_of}"


def agents_text(trace: Trace) -> str:
    """Who did the steps, each once."""
    return ", ".join(dict.fromkeys(agent for step in trace.steps for agent in step.agents))


def clock(time: str) -> str:
    """An xsd:dateTime to the second, as a person reads it."""
    return time[:19].replace("T", " ")


def seconds(started: str, ended: str) -> str:
    """How many seconds lie between two xsd:dateTime; empty where one of them is."""
    if not started or not ended:
        return ""
    begun, done = datetime.fromisoformat(started), datetime.fromisoformat(ended)
    return f"{(done - begun).total_seconds():.2f}"
