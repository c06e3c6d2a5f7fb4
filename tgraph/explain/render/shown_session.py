"""What a page shows of a session: sentences with their places, sources at a glance, prompts, calls.

Prompts hold whole chunks, so that the prompts of one question can be half a megabyte. A page has
room for the beginning and the end of each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tgraph.answer.support import PROVEN
from tgraph.explain.render.answer import Document, by_document, is_extractive, quoted
from tgraph.explain.render.markup import TextRun, runs_of
from tgraph.explain.trace.values import (
    Trace,
    TraceCall,
    TraceItem,
    TracePrompt,
    TraceQuotation,
    TraceSentence,
)

Numbered = tuple[int, "ShownSentence"]

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
MOST_OF_PROMPT = 20_000
"""Characters of a prompt's own text that it shows."""

_GONE = {
    "erased": "It was erased with the text of a document.",
    "missing": "The graph does not keep it any more.",
    "left out": "It was left out of this package.",
}

PageText = Callable[[str, int | None], str]
"""The stored text of a page of a document."""
Request = Callable[[TraceCall], tuple[str, str]]
"""What a call was asked, and whether that is kept, erased or missing."""


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """A cited place with what stands around it and the items that lead to it; ``number`` counts
    through the report. The middle of a long quote is ``folded``, and ``ends`` what follows it."""

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
    """What an answer or a sentence depends on, and by how much; ``share`` is the same in per cent
    of the heaviest."""

    item: TraceItem
    weight: float
    share: int
    cited: bool


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence of the answer with the places that prove it, each once.

    ``depends_on`` is what influence analysis found, None where there was none. ``runs`` is the
    sentence with its mark-up read, where it is ``quoted``.
    """

    said: TraceSentence
    places: tuple[ShownPlace, ...]
    depends_on: tuple[ShownWeight, ...] | None
    quoted: bool
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True)
class Glance:
    """A figure for a reader in a hurry: ``good`` is None where it is neither good nor bad, ``to``
    the section that has more."""

    name: str
    value: str
    detail: str = ""
    good: bool | None = None
    to: str = ""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text, or its beginning and end with ``left_out`` characters between them; ``gone`` says why
    there is none, and is empty where there is one."""

    before: str
    left_out: int = 0
    after: str = ""
    gone: str = ""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call with what it was asked, None where that is no text."""

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
) -> list[tuple[Document | None, list[Numbered]]]:
    """Of an answer that quotes its sentences by document; empty for one in its own words."""
    said = [sentence.said for sentence in sentences]
    if not is_extractive(said):
        return []
    return [
        (document, [(number, sentences[number - 1]) for number, _ in group])
        for document, group in by_document(said)
    ]


def shown_sentences(trace: Trace, page_text: PageText) -> list[ShownSentence]:
    items = {item.iri: item for item in trace.selected}
    found: list[ShownSentence] = []
    number = 0
    for sentence in trace.sentences:
        by_place: dict[tuple[str, int | None, int, int], list[TraceQuotation]] = {}
        for citation in sentence.citations:
            place = citation.document, citation.page, citation.start, citation.end
            by_place.setdefault(place, []).append(citation)
        shown = enumerate(by_place.values(), number + 1)
        places = tuple(_place(n, cited, items, page_text) for n, cited in shown)
        number += len(places)
        cited = quoted(sentence)
        read = tuple(runs_of(cited)) if cited else ()
        depends_on = _depends_on(trace, sentence)
        found.append(ShownSentence(sentence, places, depends_on, cited is not None, read))
    return found


def _place(
    number: int,
    cited: Sequence[TraceQuotation],
    items: Mapping[str, TraceItem],
    page_text: PageText,
) -> ShownPlace:
    first = cited[0]
    text = page_text(first.document, first.page)
    start, end = _around(text, first.start, first.end)
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


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """How far the context of a quote reaches: from a word's beginning to a word's end, where words
    are told apart and are not longer than any."""
    begun, done = max(0, start - CONTEXT), min(len(text), end + CONTEXT)
    if begun:
        spaces = (at for at in range(begun, min(begun + WORD, start)) if text[at].isspace())
        begun = next(spaces, begun)
    if done < len(text):
        spaces = (at for at in range(done, max(done - WORD, end), -1) if text[at - 1].isspace())
        done = next(spaces, done)
    return begun, done


def _ends(text: str, most: int, head: int) -> tuple[str, str, str]:
    """So much of the beginning of a text, what is between, and the end, so that both ends are
    ``most`` together; a text that is no longer is all beginning."""
    if len(text) <= most:
        return text, "", ""
    tail = len(text) - (most - head)
    return text[:head], text[head:tail], text[tail:]


# --- what matters ---


def at_a_glance(trace: Trace, sentences: Sequence[ShownSentence]) -> Iterator[Glance]:
    """The answer's proof in a few figures."""
    yield _share("Cited", sum(bool(s.places) for s in sentences), len(sentences), "sentences")
    if judged := [s.verdict for s in trace.sentences if s.verdict]:
        yield _verified(judged)
    if trace.influence:
        count = len(trace.influence.above)
        detail = f"of {len(trace.selected)} items have influence of their own"
        yield Glance("Depends on", str(count), detail, to="influence")
    if trace.selected:
        seen = len(trace.selected) + len(trace.rejected)
        to = "rejected" if trace.rejected else "selected"
        yield Glance("Selected", str(len(trace.selected)), f"of {seen} seen", to=to)
    documents = {c.document for s in trace.sentences for c in s.citations}
    if documents:
        yield Glance("Sources", str(len(documents)), "cited documents")


def _share(name: str, some: int, of: int, detail: str) -> Glance:
    return Glance(name, f"{some} of {of}", detail, some == of, "evidence")


def _verified(verdicts: Sequence[str]) -> Glance:
    """How many sentences are proven; where none was judged by more than its words, that is said."""
    proven = sum(verdict in PROVEN for verdict in verdicts)
    if "quoted" in verdicts and "supported" not in verdicts:
        return _share("Quoted", proven, len(verdicts), "sentences, word for word")
    return _share("Verified", proven, len(verdicts), "sentences supported")


def uses_of(trace: Trace) -> dict[str, list[int]]:
    """The numbers of the sentences that cite a selection, by its IRI."""
    found: dict[str, list[int]] = {}
    for number, sentence in enumerate(trace.sentences, 1):
        for selection in sentence.edge_selections:
            found.setdefault(selection, []).append(number)
    return found


def idle_items(trace: Trace) -> list[TraceItem]:
    """What is cited, and has no influence of its own."""
    found, cited = trace.influence, uses_of(trace)
    return [
        item
        for item in trace.selected
        if found and item.iri in cited and item.iri in found.weights and item.iri not in found.above
    ]


def influential_items(trace: Trace) -> tuple[ShownWeight, ...]:
    """What the answer as a whole depends on, the heaviest first."""
    if (found := trace.influence) is None:
        return ()
    return _weights(trace, {iri: found.weights[iri] for iri in found.above}, uses_of(trace))


def _depends_on(trace: Trace, sentence: TraceSentence) -> tuple[ShownWeight, ...] | None:
    if (found := trace.influence) is None:
        return None
    return _weights(trace, found.sentences.get(sentence.iri, {}), sentence.edge_selections)


def _weights(
    trace: Trace, weights: Mapping[str, float], cited: Collection[str]
) -> tuple[ShownWeight, ...]:
    items = {item.iri: item for item in trace.selected}
    most = max(weights.values(), default=0.0)
    known = {iri: weight for iri, weight in weights.items() if iri in items}
    shares = [round(100 * max(w, 0.0) / most) if most > 0 else 0 for w in known.values()]
    return tuple(
        ShownWeight(items[iri], weight, share, iri in cited)
        for (iri, weight), share in zip(known.items(), shares, strict=True)
    )


# --- prompts and calls ---


def shown_prompts(trace: Trace) -> list[ShownPrompt]:
    """The prompts of the session by name."""
    return [ShownPrompt(p, _shown(p.text, p.state, MOST_OF_PROMPT)) for p in trace.prompts]


def shown_calls(trace: Trace, request: Request) -> list[ShownCall]:
    """The calls in their order; those for which there is no room any more show nothing."""
    room, found = MOST_OF_ALL, []
    for call in trace.calls:
        asked = None
        if call.prompt:
            text, state = request(call)
            asked = _shown(text, state, min(MOST_ASKED, room))
            room -= len(asked.before) + len(asked.after)
        found.append(ShownCall(call, asked))
    return found


def _shown(text: str, state: str, most: int) -> ShownText:
    if state != "kept":
        return ShownText("", gone=_GONE[state])
    before, between, after = _ends(text, most, most * 2 // 3)
    return ShownText(before, len(between), after)
