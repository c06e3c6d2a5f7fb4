"""The report of a session: one HTML file that shows the proof and carries the record.

It needs no network and works without JavaScript. Everything in it comes from documents, models or
users, so the template escapes all of it; a content security policy forbids it to load anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tgraph.explain.picture import Picture
from tgraph.explain.pictures import NARROW, WIDE, figures, svg
from tgraph.explain.report_calls import Request, shown_calls, shown_prompts
from tgraph.explain.safety import UNSAFE, safe
from tgraph.explain.stages import item_text, verdict_text
from tgraph.explain.traced import Trace, TracedEvidence, TracedItem, TracedSentence
from tgraph.resources import data
from tgraph.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

CONTEXT = 280
"""Characters of the page shown on each side of a quote."""
MOST_QUOTED = 1200
"""Characters of a quote that are shown unasked; a click shows the rest of a whole chunk."""


@dataclass(frozen=True, slots=True)
class ShownItem:
    """What was selected and leads to a place, in words."""

    kind: str
    label: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """A cited place with what stands around it; ``number`` counts through the report. The middle
    of a long quote is ``folded``, and ``ends`` what follows it."""

    number: int
    title: str
    path: str
    page: int | None
    start: int
    end: int
    before: str
    quote: str
    folded: str
    ends: str
    after: str
    cut_before: bool
    cut_after: bool
    way: tuple[str, ...]
    items: tuple[ShownItem, ...]


@dataclass(frozen=True, slots=True)
class ShownWeight:
    """What an answer or a sentence depends on, in words, and by how much; ``share`` is the same in
    per cent of the heaviest."""

    weight: float
    share: int
    kind: str
    label: str
    cited: bool


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence of the answer with the places that prove it, each once.

    ``verdict`` is that of the last verification, in words, and ``supported`` whether it is a good
    one; ``depends_on`` is what influence analysis found. They are empty and None where there was
    none.
    """

    text: str
    places: tuple[ShownPlace, ...]
    verdict: str = ""
    supported: bool = False
    depends_on: tuple[ShownWeight, ...] | None = None


@dataclass(frozen=True, slots=True)
class Glance:
    """A figure for a reader in a hurry: ``good`` is None where it is neither good nor bad, ``to``
    the section that has more."""

    name: str
    value: str
    detail: str = ""
    good: bool | None = None
    to: str = ""


def to_html(
    trace: Trace,
    record: bytes,
    picture: Picture,
    page_text: Callable[[str, int | None], str],
    request: Request,
) -> str:
    """The report. ``record`` is the session as TriG, ``picture`` how its answer came about;
    ``page_text`` gives the stored text of a page of a document, ``request`` what a call was
    asked."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_visible)
    template = environment.from_string(data("report.html").read_text("utf-8"))
    sentences = _sentences(trace, page_text)
    agents = dict.fromkeys(agent for step in trace.steps for agent in step.agents)
    shown = [place for sentence in sentences for place in sentence.places]
    return template.render(
        trace=trace,
        sentences=sentences,
        influential=_influential(trace),
        idle=_idle(trace),
        glance=_glance(trace, sentences),
        uses=_uses(trace),
        prompts=shown_prompts(trace),
        calls=shown_calls(trace, request),
        sources=list(dict.fromkeys((place.title, place.path) for place in shown)),
        agents=", ".join(agents),
        started=trace.started[:19].replace("T", " "),
        took=_took(trace.started, trace.ended),
        words=item_text,
        seconds=_seconds,
        pictures=[  # tgraph's own, with all words of others escaped
            (frame.name, [Markup(svg([one], frame).decode()) for one in figures(picture, frame)])  # noqa: S704
            for frame in (WIDE, NARROW)
        ],
        record=Markup(in_script(record.decode())),  # noqa: S704
        version=__version__,
    )


def in_script(trig: str) -> str:
    """TriG that can't end the script element which carries it, nor begin a comment there.

    ``</``, ``<!`` and control characters stand in literals only, where an escape means the same
    character.
    """
    harmless = UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04X}", trig)
    return harmless.replace("</", "\\u003C/").replace("<!", "\\u003C!")


def _visible(said: object) -> object:
    """What the template prints, with control characters shown; markup is safe by now."""
    return safe(said) if isinstance(said, str) and not hasattr(said, "__html__") else said


def _sentences(trace: Trace, page_text: Callable[[str, int | None], str]) -> list[ShownSentence]:
    items = {item.iri: item for item in trace.selected}
    found: list[ShownSentence] = []
    number = 0
    for sentence in trace.sentences:
        by_place: dict[tuple[str, int | None, int, int], list[TracedEvidence]] = {}
        for citation in sentence.citations:
            place = citation.document, citation.page, citation.start, citation.end
            by_place.setdefault(place, []).append(citation)
        places = []
        for cited in by_place.values():
            number += 1
            places.append(_place(number, cited, items, page_text))
        found.append(
            ShownSentence(
                text=sentence.text,
                places=tuple(places),
                verdict=verdict_text(sentence) if sentence.verdict else "",
                supported=sentence.verdict == "supported",
                depends_on=_depends_on(trace, sentence),
            )
        )
    return found


def _glance(trace: Trace, sentences: Sequence[ShownSentence]) -> list[Glance]:
    """The answer's proof in a few figures; nothing where there is no answer."""
    if not sentences:
        return []
    cited, judged = sum(bool(s.places) for s in sentences), [s for s in sentences if s.verdict]
    found = [
        Glance(
            "Cited",
            f"{cited} of {len(sentences)}",
            "sentences",
            cited == len(sentences),
            "evidence",
        )
    ]
    if judged:
        good = sum(s.supported for s in judged)
        found.append(
            Glance(
                "Verified",
                f"{good} of {len(judged)}",
                "sentences supported",
                good == len(judged),
                "evidence",
            )
        )
    if trace.influence:
        count = len(trace.influence.above)
        detail = f"of {len(trace.selected)} items have influence of their own"
        found.append(Glance("Depends on", str(count), detail, to="influence"))
    if trace.selected:
        seen = len(trace.selected) + len(trace.rejected)
        to = "rejected" if trace.rejected else "selected"
        found.append(Glance("Selected", str(len(trace.selected)), f"of {seen} seen", to=to))
    documents = {c.document for s in trace.sentences for c in s.citations}
    if documents:
        found.append(Glance("Sources", str(len(documents)), "cited documents"))
    return found


def _uses(trace: Trace) -> dict[str, list[int]]:
    """The numbers of the sentences that cite a selection, by its IRI."""
    found: dict[str, list[int]] = {}
    for number, sentence in enumerate(trace.sentences, 1):
        for selection in sentence.edge_selections:
            found.setdefault(selection, []).append(number)
    return found


def _idle(trace: Trace) -> list[str]:
    """What is cited, and has no influence of its own."""
    found = trace.influence
    if found is None:
        return []
    cited = {s for sentence in trace.sentences for s in sentence.edge_selections}
    return [
        item.words
        for item in trace.selected
        if item.iri in cited and item.iri in found.weights and item.iri not in found.above
    ]


def _influential(trace: Trace) -> tuple[ShownWeight, ...]:
    """What the answer as a whole depends on, the heaviest first."""
    found = trace.influence
    if found is None:
        return ()
    cited = {s for sentence in trace.sentences for s in sentence.edge_selections}
    return _weights(trace, {iri: found.weights[iri] for iri in found.above}, cited)


def _depends_on(trace: Trace, sentence: TracedSentence) -> tuple[ShownWeight, ...] | None:
    found = trace.influence
    if found is None:
        return None
    return _weights(trace, found.sentences.get(sentence.iri, {}), set(sentence.edge_selections))


def _weights(
    trace: Trace, weights: Mapping[str, float], cited: Collection[str]
) -> tuple[ShownWeight, ...]:
    items = {item.iri: item for item in trace.selected}
    most = max(weights.values(), default=0.0)
    return tuple(
        ShownWeight(
            weight,
            round(100 * max(weight, 0.0) / most) if most > 0 else 0,
            items[iri].kind,
            items[iri].words,
            iri in cited,
        )
        for iri, weight in weights.items()
        if iri in items
    )


def _place(
    number: int,
    cited: Sequence[TracedEvidence],
    items: Mapping[str, TracedItem],
    page_text: Callable[[str, int | None], str],
) -> ShownPlace:
    first = cited[0]
    text = page_text(first.document, first.page)
    start, end = max(0, first.start - CONTEXT), min(len(text), first.end + CONTEXT)
    chosen = dict.fromkeys(c.edge_selection for c in cited if c.edge_selection in items)
    quote, folded, ends = _folded(first.quote)
    return ShownPlace(
        number=number,
        title=first.title,
        path=first.path,
        page=first.page,
        start=first.start,
        end=first.end,
        before=text[start : first.start].lstrip() if start else text[: first.start],
        quote=quote,
        folded=folded,
        ends=ends,
        after=text[first.end : end].rstrip(),
        cut_before=start > 0,
        cut_after=end < len(text),
        way=first.way,
        items=tuple(
            ShownItem(items[iri].kind, items[iri].words, items[iri].reasoning) for iri in chosen
        ),
    )


def _folded(quote: str) -> tuple[str, str, str]:
    """The beginning of a quote, what is folded of it, and its end; together they are the quote."""
    if len(quote) <= MOST_QUOTED:
        return quote, "", ""
    head, tail = MOST_QUOTED * 3 // 4, len(quote) - MOST_QUOTED // 4
    return quote[:head], quote[head:tail], quote[tail:]


def _took(started: str, ended: str) -> str:
    seconds = _seconds(started, ended)
    return f"{seconds} s" if seconds else ""


def _seconds(started: str, ended: str) -> str:
    if not started or not ended:
        return ""
    begun, done = datetime.fromisoformat(started), datetime.fromisoformat(ended)
    return f"{(done - begun).total_seconds():.2f}"
