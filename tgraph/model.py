"""Value types of tgraph, from a file on disk to a proven answer.

IRIs are plain strings, RDF terms are pyoxigraph's. Every ``start`` and ``end`` counts Unicode
code points in the stored text of a page, or of the document if its format has no pages; ``end``
is exclusive, so ``text[start:end]`` is the quote."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.rendering import brief_repr, render_value

Object = NamedNode | Literal
CitationKind = Choice["edge", "chunk", "report", "summary"]
ItemKind = Choice["chunk", "report", "entity", "claim", "point", "summary"]


# --- documents ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """A page heading: text, level (1 is highest) and start offset."""

    text: str
    level: int
    start: int


@dataclass(frozen=True, slots=True)
class Page:
    """Stored page text, or a document's text in pageless formats (``number`` None)."""

    number: int | None
    text: str
    headings: tuple[Heading, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """Document content, identified by the SHA-256 of the bytes, regardless of file names."""

    sha256: str
    title: str
    media_type: str
    pages: tuple[Page, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def iri(self) -> str:
        return v.document_iri(self.sha256)

    def page_iri(self, page: Page) -> str:
        """Return the origin of the page's chunks: the page, or the document if pageless."""
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
    """A page stretch read as a unit: a paragraph, list item, row or code block.

    ``text`` is the reader's view of ``page[start:end]``: without mark-up, white space collapsed
    (code keeps its lines), a row as ``Column: value; Column: value``. ``offsets[i]`` is the
    page position of character ``i`` in ``text``, and never decreases; text added by the reading
    (a column's name) has the place of the text it belongs to. ``headings`` contains the
    headings above the segment, highest first; ``lead`` contains the sentence introducing its
    list, table or code, and the enclosing item. ``pairs`` gives, for a row, the positions of
    each column's name and value in ``text``. ``inlines`` contains mark-up sorted by start:
    nested, never crossed."""

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
        """The segment's context: headings, followed by lead sentences."""
        return (*self.headings, *self.lead)

    def clip(self, start: int, end: int) -> Segment:
        """Return a segment restricted to ``text[start:end]``, which must not be empty."""
        first, last = self.locate(start, end)
        first = self.start if start == 0 else first
        last = self.end if end == len(self.text) else last
        clipped_pairs = tuple(
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
            pairs=clipped_pairs,
        )

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return the page position of nonempty ``text[start:end]``, extended to a well-formed
        quote.

        Every inline shared beyond its content is included whole."""
        return self.whole(self.offsets[start], self.offsets[end - 1] + 1)

    def whole(self, first: int, last: int) -> tuple[int, int]:
        """Return the page stretch, extended to include whole every inline shared beyond its
        content.

        The result for a part of a stretch is never larger."""
        for innermost in (self._inline_at(first), self._inline_at(last - 1)):
            number = innermost
            while number >= 0:
                inline = self.inlines[number]
                if inline.content_start <= first and last <= inline.content_end:
                    break
                first, last = min(first, inline.start), max(last, inline.end)
                number = inline.outer
        return first, last

    def _inline_at(self, position: int) -> int:
        """Return the index of the innermost inline at a page position; -1 if none."""
        number = bisect_right(self.inlines, position, key=_inline_start) - 1
        while number >= 0 and self.inlines[number].end <= position:
            number = self.inlines[number].outer
        return number

    def fit(self, start: int, end: int, low: int, high: int) -> TextSpan:
        """Return the longest span of ``text[start:end]`` that stands in ``page[low:high]`` with
        whole inlines.

        For a cut inline, the inside or the outside is kept, whichever is longer. The span may
        be empty."""
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
        """Return the index of the earliest ``text`` character at or after a page position."""
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
    """Extend a page stretch to whole inlines of the segments, as in ``Segment.whole``, within
    ``page[low:high]``.

    The stretch itself must lie within ``page[low:high]``."""
    at = bisect_right(segments, start, key=_segment_end)
    while at < len(segments) and segments[at].start < end:
        segment = segments[at]
        first, last = segment.whole(max(start, segment.start), min(end, segment.end))
        start, end = max(min(start, first), low), min(max(end, last), high)
        at += 1
    return start, end


def _segment_end(segment: Segment) -> int:
    return segment.end


# --- what an extractor finds in a chunk ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """A quote's position in page coordinates."""

    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity named in a chunk; ``span`` contains the (first) mention, None if unknown.

    A graph may give an ``iri`` (else the IRI is minted from the name), ``classes`` by IRI,
    equal entities (``same``) by IRI, and a ``graph``, the named graph stating the entity."""

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
    """A chunk's statement: subject, predicate and object, with supporting quote.

    ``object`` is the name of an entity, or a typed literal for an attribute. ``span`` is the
    supporting quote: the stating sentence or part of the sentence. ``strength`` ranges from 1
    to 10. A graph names entities and relations by IRI (a ``NamedNode``; ``label`` is the
    relation's label); a graph may also give the stating named ``graph`` and the statement's
    ``sources``, by IRI."""

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
    """A chunk's claim about an entity (GraphRAG's covariate): subject, type and status.

    ``object`` is the name of an entity, empty if the claim concerns nobody else; the dates are
    ``xsd:date``, ``xsd:dateTime``, ``xsd:gYearMonth`` or ``xsd:gYear`` literals, as exact as
    the text, None if not stated. ``span`` is the supporting quote. A graph may give the IRIs of
    subject and object (else the IRIs are minted from the names)."""

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
    """A sentence in page coordinates, with entities mentioned.

    ``entities`` contains places in the extraction, in the order of first mention. ``paragraph``
    counts within the chunk."""

    start: int
    end: int
    entities: tuple[int, ...]
    paragraph: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """An extractor's results for a chunk, plus counts of dropped results by reason.

    ``sentences`` come from an extractor that states no relationships itself: relationships then
    follow from the frequency of entities named together in the whole collection."""

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
    """A prompt as used: a PROV plan identified by its text hash."""

    name: str
    text: str
    sha256: str

    @property
    def iri(self) -> str:
        return v.prompt_iri(self.name, self.sha256)


@dataclass(frozen=True, slots=True)
class Usage:
    """Cost of a step or session: tokens counted by the server, and number of calls.

    ``reasoning_tokens`` counts output tokens used for the model's reasoning."""

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
    """Related entities, by IRI, with the edges between the entities.

    ``level`` 0 is the coarsest; ``parent`` is the containing community of the previous level,
    None at level 0; ``children`` contains communities of the next level."""

    iri: str
    level: int
    members: tuple[str, ...]
    edges: tuple[str, ...]
    parent: str | None = None
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """An insight of a report, citing report input by IRI."""

    iri: str
    summary: str
    explanation: str
    cites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """A community report; ``rating`` expresses community importance from 0 to 10."""

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
        """The complete report as Markdown."""
        parts = [f"# {self.title}", self.summary]
        parts += [f"## {finding.summary}\n\n{finding.explanation}" for finding in self.findings]
        return "\n\n".join(parts)


# --- the graph as a question sees it ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Edge:
    """A knowledge graph relationship with human-readable labels."""

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
        """Terms as texts, and labels, by field: subject, subject_label, predicate...

        The object is an IRI, or a literal as an N-Triples term."""
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
    """An answer's basis other than an edge; ``text`` is shown to models.

    A point is a conclusion drawn by a model or method from reports on the way to an answer.
    ``preface`` is document metadata placed before a chunk."""

    kind: ItemKind
    iri: str
    label: str
    text: str
    preface: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An immutable stating place, with exact characters and position.

    ``statement`` is the supported edge, entity or claim, or the chunk itself. ``via`` leads
    from an item down to the evidence, by IRI; empty for the item's own evidence. ``relevance``
    measures how well the evidence answers the current question (0 to 1), if measured.
    ``by_hand`` states whether a person, not a document, is the source."""

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
    """A knowledge claim with standing evidence, sorted by place.

    ``subject`` and ``object`` are canonical entity IRIs; ``object`` is empty if the claim
    concerns nobody else. ``statement`` of the evidence is the claim's IRI."""

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
    """An item considered by retrieval: rank (from 1), score and, for edges, hops from a seed
    entity.

    ``tokens`` is the prompt cost, if the mode has a budget; ``bridge`` is the IRI of the
    evidence, in another document, that names an entity of the candidate, where both answer
    together; ``authority`` is the highest weight of the sources, 1 unless a person decided."""

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
        """The edge; raises ``TypeError`` for other items."""
        if not isinstance(self.item, Edge):
            raise TypeError(f"{self.item.iri} is a {self.item.kind}, not an edge")
        return self.item


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """An entity matched by a question concept; ``method`` is name, vector, edge or centre (of a
    community)."""

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
    """A candidate that a selector did not select, with the reason, such as ``over the edge limit``.

    ``SessionRecord.selection`` records the reason as ``tg:rejectionReason``."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected edge or item with selection reasoning; ``index`` counts from 0."""

    index: int
    candidate: Candidate
    reasoning: str
    score: float

    @property
    def item(self) -> Edge | Item:
        return self.candidate.item

    @property
    def edge(self) -> Edge:
        """The edge; raises ``TypeError`` for other items."""
        return self.candidate.edge


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A separately asked part of a question: ``places`` contains answering places, best first.

    If no place answers, ``missing`` contains the part's words, and ``nearest`` the nearest
    places."""

    places: tuple[Evidence, ...] = ()
    missing: str = ""
    nearest: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected and rejected candidates; ``unknown_ids`` counts ids invented by a model.

    ``judgement`` states whether the candidates answer the question, if read before selection;
    ``parts`` contains separately asked parts of the question."""

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
    """The proof of a sentence: exact page characters supporting the cited item.

    ``edge`` is None if another kind of item is cited; ``item`` is always the cited item, and
    ``via`` the path from the item down to the characters."""

    kind: CitationKind
    edge: str | None
    item: str
    edge_selection: str
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """An answer sentence with supporting citations, best first.

    ``lead`` separates the sentence from the previous sentence: nothing, a space, a new
    paragraph or a new list item."""

    text: str
    citations: tuple[Citation, ...]
    lead: str = " "


def join_sentences(sentences: Sequence[Sentence]) -> str:
    """Join sentences into an answer's text."""
    return "".join(
        (sentence.lead if index else "") + sentence.text for index, sentence in enumerate(sentences)
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A document cited by an answer."""

    document: str
    title: str
    path: str


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier conversation question, plus answer."""

    question: str
    answer: str


def sources_of(sentences: Sequence[Sentence]) -> tuple[Source, ...]:
    """Return distinct documents cited by the sentences, in order of first use."""
    sources = {
        c.document: Source(c.document, c.title, c.path) for s in sentences for c in s.citations
    }
    return tuple(sources.values())


@dataclass(frozen=True, slots=True)
class Note:
    """A remark accompanying an answer, for example about document disagreement.

    The note lists the edges or claims concerned, by IRI, and a place for each side."""

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
        """Distinct citations of all sentences, in sentence order."""
        return tuple(dict.fromkeys(c for sentence in self.sentences for c in sentence.citations))

    def __str__(self) -> str:
        return self.text

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")


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
    """Context for an answer writer: ``rows``, a line of ``text`` for each row, and
    ``messages``.

    ``messages`` contains the whole prompt where a model would be asked. The session is recorded
    with its retrieval and selection, and has no answer."""

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

    __repr__ = brief_repr


@dataclass(frozen=True, slots=True)
class GraphRagResponse:
    """A streamed answer message, using the specification's field names.

    ``message_type`` is ``explain`` (``explain_id`` is the IRI of a recorded stage) or ``chunk``
    (``response`` is a piece of the answer)."""

    error: str | None = None
    response: str = ""
    end_of_stream: bool = False
    explain_id: str | None = None
    explain_collection: str | None = None
    message_type: Choice["chunk", "explain", ""] = ""
    end_of_session: bool = False
