"""The values that flow through tgraph, from a file on disk to an answer with its proof.

IRIs are plain strings, RDF terms are pyoxigraph's. Every ``start`` and ``end`` counts Unicode code
points in the stored text of a page, or of the document where its format has no pages; ``end`` is
exclusive, so ``text[start:end]`` is the quote.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.rendering import brief, render

Object = NamedNode | Literal
CitationKind = Choice["edge", "chunk", "report", "summary"]
ItemKind = Choice["chunk", "report", "entity", "claim", "point", "summary"]


# --- documents ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page: its text, its level (1 is the highest) and where it starts."""

    text: str
    level: int
    start: int


@dataclass(frozen=True, slots=True)
class Page:
    """The stored text of a page, or of a document whose format has none (``number`` None)."""

    number: int | None
    text: str
    headings: tuple[Heading, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A document's content: its identity is the SHA-256 of its bytes, whatever it is called."""

    sha256: str
    title: str
    media_type: str
    pages: tuple[Page, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def iri(self) -> str:
        return v.document_iri(self.sha256)

    def page_iri(self, page: Page) -> str:
        """What the page's chunks derive from: the page, or the document if it has no pages."""
        return self.iri if page.number is None else v.page_iri(self.sha256, page.number)


SegmentKind = Choice[
    "prose",  # a paragraph, or the part of one
    "item",  # an item of a list
    "row",  # a row of a table, or a field such as "Author: Charles Dickens"
    "code",  # a block of code, its lines kept
    "heading",
    "display",  # a line set apart that states nothing: a caption, the head of a table
    "reference",  # an entry of a bibliography
    "navigation",  # contents, menus, lists of links
    "licence",
]


TextSpan = tuple[int, int]


class Inline(NamedTuple):
    """Mark-up inside a block (CommonMark's inlines), in the coordinates of the page: emphasis, a
    link, an image, code, an element of HTML, an escaped character.

    ``start`` and ``end`` are those of all of it, the content stands between ``content_start`` and
    ``content_end``; of code and of what stands for a character the content is empty, since a part
    of it reads otherwise. ``outer`` is the place among the segment's inlines of the one that it is
    in, -1 where it is in none.
    """

    start: int
    content_start: int
    content_end: int
    end: int
    outer: int = -1


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a page that is read as one: a paragraph, a list item, a row, a block of code.

    ``text`` is what a reader sees of ``page[start:end]``: without mark-up, white space collapsed
    (code keeps its lines), a row as ``Column: value; Column: value``. ``offsets[i]`` is where
    character ``i`` of it stands in the page, and never decreases; what the reading adds (a column's
    name) has the place of what it belongs to. ``headings`` are those that it stands under, the
    highest first; ``lead`` is the sentence that leads its list, table or code in, and the item
    that it is part of. ``pairs`` says of a row where each column's name and value stand in
    ``text``. ``inlines`` is its mark-up in the order of where it starts: nested, never crossed.
    """

    kind: SegmentKind
    start: int
    end: int
    text: str
    offsets: array[int] = field(hash=False, repr=False)
    headings: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    pairs: tuple[tuple[TextSpan, TextSpan], ...] = ()
    inlines: tuple[Inline, ...] = field(default=(), hash=False, repr=False)

    @property
    def context(self) -> tuple[str, ...]:
        """What the segment stands under: headings, then what leads it in."""
        return (*self.headings, *self.lead)

    def clip(self, start: int, end: int) -> Segment:
        """The segment of ``text[start:end]`` alone, which must not be empty."""
        first, last = self.locate(start, end)
        first = self.start if start == 0 else first
        last = self.end if end == len(self.text) else last
        within = tuple(
            ((key[0] - start, key[1] - start), (value[0] - start, min(value[1], end) - start))
            for key, value in self.pairs
            if start <= key[0] and value[0] < end
        )
        return replace(
            self,
            start=first,
            end=last,
            text=self.text[start:end],
            offsets=self.offsets[start:end],
            pairs=within,
        )

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]``, which must not be empty, stands in the page, so that the quote
        is well-formed: with each of the inlines whole that it shares more with than content."""
        return self.whole(self.offsets[start], self.offsets[end - 1] + 1)

    def whole(self, first: int, last: int) -> tuple[int, int]:
        """A stretch of the page with each of the inlines whole that it shares more with than
        content; such a stretch is never larger for a part of it."""
        for innermost in (self._inline_at(first), self._inline_at(last - 1)):
            number = innermost
            while number >= 0:
                each = self.inlines[number]
                if each.content_start <= first and last <= each.content_end:
                    break
                first, last = min(first, each.start), max(last, each.end)
                number = each.outer
        return first, last

    def _inline_at(self, position: int) -> int:
        """The innermost of the inlines that the position of the page is in, by its place; or -1."""
        number = bisect_right(self.inlines, position, key=_inline_start) - 1
        while number >= 0 and self.inlines[number].end <= position:
            number = self.inlines[number].outer
        return number

    def fit(self, start: int, end: int, low: int, high: int) -> TextSpan:
        """Of ``text[start:end]`` what stands in ``page[low:high]`` with its inlines whole: of one
        that is cut, what is in it or what is outside, whichever is longer. It may be empty."""
        start, end = max(start, self.find(low)), min(end, self.find(high))
        while start < end:
            first, last = self.locate(start, end)
            if low <= first and last <= high:
                break
            cut = next(i for i in self.inlines if i.start == first < low or i.end == last > high)
            opens, inside, closes, after = map(self.find, cut[:4])
            parts = ((start, opens), (max(start, inside), min(end, closes)), (after, end))
            start, end = max(parts, key=lambda part: part[1] - part[0])
        return start, end

    def find(self, position: int) -> int:
        """The first character of ``text`` at or after a position of the page."""
        return bisect_left(self.offsets, position)


def _inline_start(inline: Inline) -> int:
    return inline.start


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a page: ``page_text[start:end] == text``, always.

    ``segments`` is what of the page's segments lies in it; a chunk that was read from a store comes
    without.
    """

    sha256: str
    page: int | None
    index: int
    start: int
    end: int
    text: str
    tokens: int
    headings: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = field(default=(), compare=False, repr=False)
    preface: str = field(default="", compare=False, repr=False)
    """What of its document's metadata stands before it where a model reads it."""

    @property
    def iri(self) -> str:
        return v.chunk_iri(self.sha256, self.page, self.start, self.end)


def well_formed(
    segments: Sequence[Segment], start: int, end: int, low: int, high: int
) -> tuple[int, int]:
    """A stretch of the page that the segments are of with its inlines whole, as ``Segment.whole``,
    as far as they are in ``page[low:high]``, which it is in."""
    at = bisect_right(segments, start, key=_segment_end)
    while at < len(segments) and segments[at].start < end:
        each = segments[at]
        first, last = each.whole(max(start, each.start), min(end, each.end))
        start, end = max(min(start, first), low), min(max(end, last), high)
        at += 1
    return start, end


def _segment_end(segment: Segment) -> int:
    return segment.end


# --- what an extractor finds in a chunk ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """Where a chunk says something, in the coordinates of the page."""

    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity as a chunk names it. ``span`` is its (first) mention, None where none was given.

    A graph may give it an ``iri`` (else it is minted from the name), its ``classes`` by IRI, what
    it is the ``same`` as by IRI, and a ``graph``, the named one that says so.
    """

    name: str
    type: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    span: Span | None = None
    iri: str = ""
    classes: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    graph: str = ""


@dataclass(frozen=True, slots=True)
class ExtractedRelationship:
    """A statement as a chunk makes it.

    ``object`` is the name of an entity, or a typed literal for an attribute. ``span`` is the
    supporting quote: the sentence, or the part of it, that says so. ``strength`` is 1 to 10.
    A graph names entities and relations by IRI (a ``NamedNode``; ``label`` is the relation's); it
    may say so in a named ``graph``, and name the ``sources`` of the statement, by IRI.
    """

    subject: str | NamedNode
    predicate: str | NamedNode
    object: str | NamedNode | Literal
    description: str = ""
    keywords: tuple[str, ...] = ()
    strength: float = 5.0
    span: Span | None = None
    label: str = ""
    graph: str = ""
    sources: tuple[str, ...] = ()


ClaimStatus = Choice["TRUE", "FALSE", "SUSPECTED"]


@dataclass(frozen=True, slots=True)
class ExtractedClaim:
    """What a chunk claims of an entity (GraphRAG's covariate): who, what sort, whether it holds.

    ``object`` is the name of an entity, empty where the claim is about nobody else; the dates are
    ``xsd:date``, ``xsd:dateTime``, ``xsd:gYearMonth`` or ``xsd:gYear`` literals, as exact as the
    text is, None where none is said. ``span`` is the supporting quote. A graph may give the IRIs of
    whom it is about (else they are minted from the names).
    """

    subject: str
    object: str
    type: str
    status: ClaimStatus
    description: str
    started: Literal | None = None
    ended: Literal | None = None
    span: Span | None = None
    subject_iri: str = ""
    object_iri: str = ""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A sentence, in the coordinates of the page, and the entities of the extraction that it names,
    by their places in it, in the order of first mention. ``paragraph`` counts within the chunk."""

    start: int
    end: int
    entities: tuple[int, ...]
    paragraph: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything that one extractor found in one chunk, and what it had to drop, by reason.

    ``sentences`` are of an extractor that states no relationships by itself: what is worth knowing
    follows from how often things are named together in the whole collection.
    """

    chunk: str
    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]
    reply_hash: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    claims: tuple[ExtractedClaim, ...] = ()
    sentences: tuple[Occurrence, ...] = ()


# --- who did it ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agent:
    """A software, embedded method, model or person that a record names as responsible.

    ``kind`` is ``software``, ``method`` (the embedded default), ``model`` or ``person``, whom only
    a setting can name. One model at two providers (a package or the URL of a server) is two agents.
    """

    kind: Choice["software", "method", "model", "person"]
    name: str
    version: str = ""
    provider: str = ""

    @property
    def iri(self) -> str:
        provider = self.provider if self.kind == "model" else ""
        return v.agent_iri(self.kind, self.name, self.version, provider)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it was used: a PROV plan whose identity is the hash of its text."""

    name: str
    text: str
    sha256: str

    @property
    def iri(self) -> str:
        return v.prompt_iri(self.name, self.sha256)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a step or a session cost: tokens as the server counted them, and the number of calls.

    ``reasoning_tokens`` are those of the output that the model thought with.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            self.reasoning_tokens + other.reasoning_tokens,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class StepUsage:
    """What a step's calls for one purpose cost. Those answered from the cache, or by what ships
    with tgraph, are asked for and cost nothing.

    ``purpose`` is the name of the prompt, or else of the kind of call: embedding, reading, ...
    ``asked`` counts the calls on record, ``calls`` the calls that a server answered.
    """

    step: str
    purpose: str
    asked: int
    calls: int
    input_tokens: int
    output_tokens: int


# --- communities --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Community:
    """Entities that belong together, by IRI, and the edges between them.

    ``level`` 0 is the coarsest; ``parent`` is the community of the level before that contains this
    one, None at level 0; ``children`` are those of the next level.
    """

    iri: str
    level: int
    members: tuple[str, ...]
    edges: tuple[str, ...]
    parent: str | None = None
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One insight of a report, with what it cites of what the report was made from, by IRI."""

    iri: str
    summary: str
    explanation: str
    cites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """What a community is about. ``rating`` is its importance from 0 to 10."""

    iri: str
    community: str
    level: int
    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        """The whole report as Markdown."""
        parts = [f"# {self.title}", self.summary]
        parts += [f"## {finding.summary}\n\n{finding.explanation}" for finding in self.findings]
        return "\n\n".join(parts)


# --- the graph as a question sees it ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """A relationship of the knowledge graph with the labels that people and models read."""

    subject: NamedNode
    predicate: NamedNode
    object: Object
    subject_label: str
    predicate_label: str
    object_label: str
    weight: float = 1.0
    description: str = ""

    @property
    def iri(self) -> str:
        return v.edge_iri(self.subject, self.predicate, self.object)

    @property
    def kind(self) -> Choice["edge"]:
        return "edge"

    @property
    def labels(self) -> tuple[str, str, str]:
        return self.subject_label, self.predicate_label, self.object_label

    @property
    def named_terms(self) -> dict[str, str]:
        """The terms as texts and their labels, by name: subject, subject_label, predicate...; the
        object is an IRI, or a literal as an N-Triples term."""
        value = self.object.value if isinstance(self.object, NamedNode) else str(self.object)
        return {
            "subject": self.subject.value,
            "subject_label": self.subject_label,
            "predicate": self.predicate.value,
            "predicate_label": self.predicate_label,
            "object": value,
            "object_label": self.object_label,
        }

    @property
    def text(self) -> str:
        return " ".join(self.labels)


@dataclass(frozen=True, slots=True)
class Item:
    """What an answer can rest on beside an edge; ``text`` is what a model is shown of it.

    A point is what a model or a method drew from reports on the way to an answer. ``preface`` is
    what of its document's metadata stands before a chunk.
    """

    kind: ItemKind
    iri: str
    label: str
    text: str
    preface: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place that states something: immutable, with the exact characters and where they stand.

    ``statement`` is the edge, entity or claim that it is for, or the chunk itself. ``via`` leads
    from an item down to it, by IRI; it is empty where the item's own evidence is meant.
    ``relevance`` is how well it answers the question at hand (0 to 1), where that was measured.
    ``by_hand`` is whether a person stated it, not a document.
    """

    iri: str
    statement: str
    chunk: str
    document: str
    title: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str
    strength: float = 5.0
    via: tuple[str, ...] = ()
    relevance: float | None = None
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as knowledge holds it, with the standing evidence for it, first places first.

    ``subject`` and ``object`` are entities by their canonical IRIs; ``object`` is empty where the
    claim is about nobody else. ``statement`` of its evidence is the claim's IRI.
    """

    iri: str
    subject: str
    subject_label: str
    object: str
    object_label: str
    type: str
    status: ClaimStatus
    description: str
    started: Literal | None = None
    ended: Literal | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What retrieval considered: its rank (from 1), score and, of an edge, hops from a seed entity.

    ``tokens`` is what it costs in a prompt, where the mode has a budget; ``bridge`` the IRI of the
    evidence, in another document, that names what this one speaks of, where they answer together;
    ``authority`` what its sources were weighed by (the best of them), 1 unless a person decided.
    """

    item: Edge | Item
    rank: int
    score: float
    hop: int = 0
    evidence: tuple[Evidence, ...] = ()
    reasons: tuple[str, ...] = ()
    tokens: int | None = None
    bridge: str = ""
    authority: float = 1.0

    @property
    def edge(self) -> Edge:
        """The edge. ``TypeError`` where the item is none."""
        if not isinstance(self.item, Edge):
            raise TypeError(f"{self.item.iri} is a {self.item.kind}, not an edge")
        return self.item


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """An entity that a concept of the question led to; ``method`` is name, vector,
    edge or centre (of a community)."""

    entity: str
    label: str
    concept: str
    score: float
    method: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the documents answer a question, judged from the sentences that answer best.

    ``confidence`` is the probability that they do (0 to 1), ``answer`` the likeliest answer in a
    few words and ``place`` where it stands; there are none where nothing was read. ``missing`` are
    the words of the question that nothing has that was read. ``confidence`` is None where an answer
    was found without a reader.
    """

    confidence: float | None
    answer: str = ""
    place: Evidence | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedOrder:
    """The part of an order, in which a search ranked things, that a limit cut off.

    ``limit`` is the name of the limit and ``cutoff`` its value, None where it is no number.
    ``items`` are IRIs after the cut, best first; ``total`` counts all things that were ranked, 0
    where that is not known. The rank of an item is its place after the cut, or its number in
    ``ranks``; ``scores`` are there where the limit is one of scores. ``kind`` says what the items
    are, ``about`` is the entity whose edges they are, ``query`` the question on the way to the
    answer that they were ranked for, empty where that is the question itself. ``reason`` says in
    words why an item was left out; ``tgraph.retrieve.orders`` has the names in braces.
    """

    kind: str
    limit: str
    cutoff: int | float | None
    items: tuple[str, ...]
    total: int
    reason: str
    ranks: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    about: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question retrieved: the candidates, best first, and how they were found.

    ``total`` counts the edges retrieved, ``items`` everything else; ``cut`` lists them all
    by IRI where a limit left some out of the candidates. ``dropped`` counts what was left out, by
    reason. ``judgement`` is there once the candidates were read. ``orders`` are what limits cut
    off.
    """

    candidates: tuple[Candidate, ...]
    total: int
    items: int = 0
    concepts: tuple[str, ...] = ()
    matches: tuple[EntityMatch, ...] = ()
    cut: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    judgement: Judgement | None = None
    orders: tuple[RankedOrder, ...] = field(default=(), metadata={"in_package": False})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that was not selected, and why: ``not chosen``, ``below the limit``, ..."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected edge or item with the reasoning that chose it; ``index`` counts from 0."""

    index: int
    candidate: Candidate
    reasoning: str
    score: float

    @property
    def item(self) -> Edge | Item:
        return self.candidate.item

    @property
    def edge(self) -> Edge:
        """The edge. ``TypeError`` where the item is none."""
        return self.candidate.edge


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A part of a question that was asked by itself: the ``places`` that answer it, best first.

    Where none does, ``missing`` has its words, and ``nearest`` what comes nearest.
    """

    places: tuple[Evidence, ...] = ()
    missing: str = ""
    nearest: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected and what was not; ``unknown_ids`` counts ids that a model made up.

    ``judgement`` says whether it answers the question, where it was read before it was selected;
    ``parts`` are those of a question of which each was asked by itself."""

    selected: tuple[Selected, ...]
    rejected: tuple[Rejected, ...] = ()
    unknown_ids: int = 0
    malformed: int = 0
    judgement: Judgement | None = None
    parts: tuple[QuestionPart, ...] = ()


# --- answers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quotation:
    """The exact characters of a page (or of a document without pages) that state something, and by
    which evidence they are known.

    ``segment_kind`` is None where the quote reaches beyond one segment of the page, or the text of
    the page is not kept.
    """

    evidence: str
    chunk: str
    document: str
    title: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str
    segment_kind: SegmentKind | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Citation(Quotation):
    """The proof of a sentence: the exact characters of a page that what it cites rests on.

    ``edge`` is None where it cites something else; ``item`` is what it cites in any case, and
    ``via`` the path from there down to the characters.
    """

    kind: CitationKind
    edge: str | None
    item: str
    edge_selection: str
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer and the citations that carry it, best first.

    ``lead`` is what stands between it and the sentence before: nothing, a space, a new paragraph
    or a new item of a list.
    """

    text: str
    citations: tuple[Citation, ...]
    lead: str = " "


def joined(sentences: Sequence[Sentence]) -> str:
    """The text of an answer."""
    return "".join(
        (sentence.lead if index else "") + sentence.text for index, sentence in enumerate(sentences)
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A document that an answer cites."""

    document: str
    title: str
    path: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier question of a conversation and its answer."""

    question: str
    answer: str


def sources_of(sentences: Sequence[Sentence]) -> tuple[Source, ...]:
    """The distinct documents that the sentences cite, in order of first use."""
    seen = {c.document: Source(c.document, c.title, c.path) for s in sentences for c in s.citations}
    return tuple(seen.values())


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader of an answer must know beside it, such as that documents disagree: the edges or
    claims that it is about, by IRI, and a place for each side."""

    text: str
    facts: tuple[str, ...]
    places: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and its proof. ``session`` is the IRI under which everything else is on record.

    Where the documents hold no answer ``no_evidence`` is true, ``text`` says so, and there are no
    sentences. ``dropped`` counts what was left out on the way, by reason. ``short`` is the answer
    in a few words, ``confidence`` the probability that the documents answer (0 to 1), None where
    nobody judged that. ``usage_by_step`` has the order of the first calls.
    """

    question: str
    mode: str
    text: str
    no_evidence: bool
    sentences: tuple[Sentence, ...]
    selection: tuple[Selected, ...]
    session: str
    explain_collection: str
    usage: Usage
    model: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    short: str = ""
    confidence: float | None = None
    usage_by_step: tuple[StepUsage, ...] = ()

    @property
    def explain_id(self) -> str:
        return self.session

    @property
    def sources(self) -> tuple[Source, ...]:
        return sources_of(self.sentences)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Those of all sentences in their order, each once."""
        return tuple(dict.fromkeys(c for sentence in self.sentences for c in sentence.citations))

    def __str__(self) -> str:
        return self.text

    __repr__ = brief

    def _repr_html_(self) -> str:
        return render(self, "notebook")


Only = Choice["context", "prompt"]
"""What may be asked for in place of an answer: what its writer would be shown, or be sent."""


@dataclass(frozen=True, slots=True)
class ContextRow:
    """Something of the selection as the writer of an answer is shown it, and where it stands.

    A sentence would cite it by ``id``; ``row`` is the line that is shown.
    """

    id: str
    row: Mapping[str, Any]
    selected: Selected

    @property
    def places(self) -> tuple[Evidence, ...]:
        return self.selected.candidate.evidence


@dataclass(frozen=True, slots=True)
class ShownContext:
    """What the writer of an answer would be shown: the ``rows``, a line of ``text`` for each, and
    the ``messages`` of the whole prompt where a model would be asked. The session is on record with
    its retrieval and selection, and has no answer."""

    question: str
    mode: str
    rows: tuple[ContextRow, ...]
    text: str
    messages: tuple[Mapping[str, str], ...]
    session: str
    explain_collection: str
    usage: Usage
    model: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    usage_by_step: tuple[StepUsage, ...] = ()

    @property
    def explain_id(self) -> str:
        return self.session

    def __str__(self) -> str:
        return self.text

    __repr__ = brief


@dataclass(frozen=True, slots=True)
class GraphRagResponse:
    """One message of a streamed answer, with the specification's fields.

    ``message_type`` is ``explain`` (``explain_id`` is the IRI of a stage that has been recorded) or
    ``chunk`` (``response`` is a piece of the answer).
    """

    error: str | None = None
    response: str = ""
    end_of_stream: bool = False
    explain_id: str | None = None
    explain_collection: str | None = None
    message_type: Choice["chunk", "explain", ""] = ""
    end_of_session: bool = False
