"""What a page shows of a session: sentences with their places, sources at a glance, prompts, calls.

Prompts hold whole chunks, so that the prompts of one question can be half a megabyte. A page has
room for the beginning and the end of each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tgraph.answer.support import PROVEN
from tgraph.explain.render.answer import (
    DocumentName,
    by_document,
    find_verbatim_quote,
    is_extractive,
)
from tgraph.explain.render.markup import TextRun, runs_of
from tgraph.explain.trace.values import (
    Trace,
    TraceCall,
    TraceItem,
    TracePrompt,
    TraceQuotation,
    TraceSentence,
)
from tgraph.model import WitnessPlace

NumberedSentence = tuple[int, "ShownSentence"]

CONTEXT = 280
"""Characters of the page shown on each side of a quote."""
WORD = 40
"""Characters of the longest word that isn't cut there."""
MOST_QUOTED = 1200
"""Characters of a quote that are shown unasked; a click shows the rest of a whole chunk."""
MOST_ASKED = 3000
"""Characters of what a call was asked that a report shows."""
MOST_OF_ALL = 120_000
"""Characters that it shows of all calls together."""
MOST_ROWS = 200
"""Rows of a computed result that a page shows; the record has more."""
MOST_OF_PROMPT = 20_000
"""Characters of a prompt's own text that it shows."""

_GONE = {
    "erased": "The text was erased with a document.",
    "missing": "The graph does not have the text any more.",
    "left out": "The text was left out of this package.",
}

PageText = Callable[[str, int | None], str]
"""The stored text of a page of a document."""
Request = Callable[[TraceCall], tuple[str, str]]
"""What a call was asked, and whether that is kept, erased or missing."""


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """A cited place with surrounding text and its items; ``number`` counts through the report.

    The middle of a long quote is ``folded``, followed by ``ends``."""

    number: int
    cited: TraceQuotation
    before: str
    quote: str
    folded: str
    ends: str
    after: str
    items: tuple[TraceItem, ...]


@dataclass(frozen=True, slots=True)
class ShownWeight:
    """An influential item with its weight; ``share`` is the weight in per cent of the heaviest."""

    item: TraceItem
    weight: float
    share: int
    cited: bool


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """An answer sentence with its supporting places, without duplicates.

    ``depends_on`` holds influence analysis results, None without analysis. ``runs`` is the
    sentence with parsed markup if ``quoted``."""

    said: TraceSentence
    places: tuple[ShownPlace, ...]
    depends_on: tuple[ShownWeight, ...] | None
    quoted: bool
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True)
class Glance:
    """A summary figure for quick reading: ``good`` is None for neutral figures, ``to`` names
    the section with details."""

    name: str
    value: str
    detail: str = ""
    good: bool | None = None
    to: str = ""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text, or its beginning and end with ``left_out`` characters between; ``gone`` explains
    missing text, otherwise empty."""

    before: str
    left_out: int = 0
    after: str = ""
    gone: str = ""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call with its request text, None for requests without text."""

    call: TraceCall
    asked: ShownText | None


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """A prompt with its text."""

    prompt: TracePrompt
    text: ShownText


# --- sentences ---


def quoted_groups(
    sentences: Sequence[ShownSentence],
) -> list[tuple[DocumentName | None, list[NumberedSentence]]]:
    """Return numbered sentences grouped by document for a quoting answer; empty for answers in
    own words."""
    trace_sentences = [sentence.said for sentence in sentences]
    if not is_extractive(trace_sentences):
        return []
    return [
        (document, [(number, sentences[number - 1]) for number, _ in group])
        for document, group in by_document(trace_sentences)
    ]


def shown_sentences(trace: Trace, page_text: PageText) -> list[ShownSentence]:
    items = {item.iri: item for item in trace.selected}
    report_sentences: list[ShownSentence] = []
    number = 0
    for sentence in trace.sentences:
        by_place: dict[tuple[str, int | None, int, int], list[TraceQuotation]] = {}
        for citation in sentence.citations:
            place = citation.document, citation.page, citation.start, citation.end
            by_place.setdefault(place, []).append(citation)
        numbered_places = enumerate(by_place.values(), number + 1)
        places = tuple(_place(n, cited, items, page_text) for n, cited in numbered_places)
        number += len(places)
        cited = find_verbatim_quote(sentence)
        read = tuple(runs_of(cited)) if cited else ()
        depends_on = _depends_on(trace, sentence)
        report_sentences.append(
            ShownSentence(sentence, places, depends_on, cited is not None, read)
        )
    return report_sentences


def _place(
    number: int,
    cited: Sequence[TraceQuotation],
    items: Mapping[str, TraceItem],
    page_text: PageText,
) -> ShownPlace:
    first = cited[0]
    text = page_text(first.document, first.page)
    start, end = _find_context_range(text, first.start, first.end)
    chosen = dict.fromkeys(c.edge_selection for c in cited if c.edge_selection in items)
    quote, folded, ends = _ends(first.quote, MOST_QUOTED, MOST_QUOTED * 3 // 4)
    return ShownPlace(
        number=number,
        cited=first,
        before=f"… {text[start : first.start].lstrip()}" if start else text[: first.start],
        quote=quote,
        folded=folded,
        ends=ends,
        after=text[first.end : end].rstrip() + (" …" if end < len(text) else ""),
        items=tuple(items[iri] for iri in chosen),
    )


def _find_context_range(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the context range around a quote, extended to word boundaries unless words exceed
    the length limit."""
    begun, stop = max(0, start - CONTEXT), min(len(text), end + CONTEXT)
    if begun:
        spaces = (at for at in range(begun, min(begun + WORD, start)) if text[at].isspace())
        begun = next(spaces, begun)
    if stop < len(text):
        spaces = (at for at in range(stop, max(stop - WORD, end), -1) if text[at - 1].isspace())
        stop = next(spaces, stop)
    return begun, stop


def _ends(text: str, most: int, head: int) -> tuple[str, str, str]:
    """Return beginning, middle and end of a text, with beginning and end ``most`` characters
    together; a shorter text is all beginning."""
    if len(text) <= most:
        return text, "", ""
    tail = len(text) - (most - head)
    return text[:head], text[head:tail], text[tail:]


# --- a computed result ---


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of a computed result: its cells, the numbers of the places that a page shows of it, and
    those of its places that no sentence cites."""

    cells: tuple[str, ...]
    numbers: tuple[int, ...]
    places: tuple[WitnessPlace, ...]


def shown_rows(trace: Trace, sentences: Sequence[ShownSentence]) -> list[ShownRow]:
    """Return the first rows of a computed result; none where nothing was computed."""
    cited = {
        (place.cited.document, place.cited.page, place.cited.start, place.cited.end): place.number
        for sentence in reversed(sentences)
        for place in sentence.places
    }
    rows = []
    for row in trace.computed.rows[:MOST_ROWS] if trace.computed else ():
        places = dict.fromkeys(w.place for w in row.witnesses if w.place is not None)
        keys = {place: (place.document, place.page, place.start, place.end) for place in places}
        numbers = {cited[key] for key in keys.values() if key in cited}
        uncited = tuple(place for place, key in keys.items() if key not in cited)
        cells = tuple(cell.text for cell in row.cells)
        rows.append(ShownRow(cells, tuple(sorted(numbers)), uncited))
    return rows


# --- what matters ---


def at_a_glance(trace: Trace, sentences: Sequence[ShownSentence]) -> Iterator[Glance]:
    """Yield summary figures of the answer's proof."""
    yield _share("Cited", sum(bool(s.places) for s in sentences), len(sentences), "sentences")
    if judged := [s.verdict for s in trace.sentences if s.verdict]:
        yield _verification_glance(judged)
    if trace.judged is not None:
        yield Glance(
            "Answer",
            trace.judged.verdict,
            trace.judged.reason,
            trace.judged.verdict != "unsupported",
            "evidence",
        )
    if trace.influence:
        count = len(trace.influence.above)
        detail = f"of {len(trace.selected)} items have influence of their own"
        yield Glance("Depends on", str(count), detail, to="influence")
    if trace.selected:
        candidate_count = len(trace.selected) + len(trace.rejected)
        to = "rejected" if trace.rejected else "selected"
        yield Glance("Selected", str(len(trace.selected)), f"of {candidate_count} seen", to=to)
    documents = {c.document for s in trace.sentences for c in s.citations}
    if documents:
        yield Glance("Sources", str(len(documents)), "cited documents")


def _share(name: str, some: int, of: int, detail: str) -> Glance:
    return Glance(name, f"{some} of {of}", detail, some == of, "evidence")


def _verification_glance(verdicts: Sequence[str]) -> Glance:
    """Return the share of proven sentences, labelled as quoted if no sentence was judged beyond
    word comparison."""
    proven = sum(verdict in PROVEN for verdict in verdicts)
    if "quoted" in verdicts and "supported" not in verdicts:
        return _share("Quoted", proven, len(verdicts), "sentences, word for word")
    return _share("Verified", proven, len(verdicts), "sentences supported")


def uses_of(trace: Trace) -> dict[str, list[int]]:
    """Return sentence numbers by cited selection IRI."""
    numbers: dict[str, list[int]] = {}
    for number, sentence in enumerate(trace.sentences, 1):
        for selection in sentence.edge_selections:
            numbers.setdefault(selection, []).append(number)
    return numbers


def idle_items(trace: Trace) -> list[TraceItem]:
    """Return cited items without influence."""
    influence, cited = trace.influence, uses_of(trace)
    return [
        item
        for item in trace.selected
        if influence
        and item.iri in cited
        and item.iri in influence.weights
        and item.iri not in influence.above
    ]


def influential_items(trace: Trace) -> tuple[ShownWeight, ...]:
    """Return items influencing the answer, heaviest first."""
    if (influence := trace.influence) is None:
        return ()
    return _weights(trace, {iri: influence.weights[iri] for iri in influence.above}, uses_of(trace))


def _depends_on(trace: Trace, sentence: TraceSentence) -> tuple[ShownWeight, ...] | None:
    if (influence := trace.influence) is None:
        return None
    return _weights(trace, influence.sentences.get(sentence.iri, {}), sentence.edge_selections)


def _weights(
    trace: Trace, weights: Mapping[str, float], cited: Collection[str]
) -> tuple[ShownWeight, ...]:
    items = {item.iri: item for item in trace.selected}
    largest = max(weights.values(), default=0.0)
    item_weights = {iri: weight for iri, weight in weights.items() if iri in items}
    shares = [
        round(100 * max(w, 0.0) / largest) if largest > 0 else 0 for w in item_weights.values()
    ]
    return tuple(
        ShownWeight(items[iri], weight, share, iri in cited)
        for (iri, weight), share in zip(item_weights.items(), shares, strict=True)
    )


# --- prompts and calls ---


def shown_prompts(trace: Trace) -> list[ShownPrompt]:
    """Return session prompts with shortened texts, sorted by name."""
    return [ShownPrompt(p, _shorten_text(p.text, p.state, MOST_OF_PROMPT)) for p in trace.prompts]


def shown_calls(trace: Trace, request: Request) -> list[ShownCall]:
    """Return calls in order; calls beyond the space limit show no text."""
    room, report_calls = MOST_OF_ALL, []
    for call in trace.calls:
        request_text = None
        if call.prompt:
            text, state = request(call)
            request_text = _shorten_text(text, state, min(MOST_ASKED, room))
            room -= len(request_text.before) + len(request_text.after)
        report_calls.append(ShownCall(call, request_text))
    return report_calls


def _shorten_text(text: str, state: str, most: int) -> ShownText:
    if state != "kept":
        return ShownText("", gone=_GONE[state])
    before, between, after = _ends(text, most, most * 2 // 3)
    return ShownText(before, len(between), after)
