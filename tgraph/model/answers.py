"""An answer with its sentences and citations, and the messages in which the answer is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from typing import Literal as Choice

from tgraph.model.agents import StepUsage, Usage
from tgraph.model.computed import ComputedResult
from tgraph.model.documents import SegmentKind
from tgraph.model.knowledge import Evidence
from tgraph.model.retrieval import Selected
from tgraph.rendering import brief_repr, render_value

CitationKind = Choice["edge", "chunk", "report", "summary"]
AnswerVerdict = Choice["answered", "uncertain", "no_evidence"]
"""Whether the documents answer a question, as far as that can be judged."""


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
    paragraph or a new list item. ``label`` is told before the sentence without being a part of
    it, such as the title of its document."""

    text: str
    citations: tuple[Citation, ...]
    lead: str = " "
    label: str = ""


def join_sentences(sentences: Sequence[Sentence]) -> str:
    """Join sentences into an answer's text."""
    return "".join(
        (sentence.lead if index else "") + sentence.label + sentence.text
        for index, sentence in enumerate(sentences)
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
class AnswerJudgement:
    """The verdict on an answer, the probability that the documents answer, the short answer if it
    is to be shown, and the probability that the short answer is right."""

    verdict: AnswerVerdict
    confidence: float | None = None
    short: str = ""
    short_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and its proof. ``session`` is the IRI under which everything else is on record.

    Where the documents hold no answer, ``verdict`` is "no_evidence", ``text`` says so, and there
    are no sentences; where the sentences may not answer, ``verdict`` is "uncertain", ``text`` says
    so before the sentences, and there is no short answer. ``dropped`` counts what was left out on
    the way, by reason. ``short`` is the answer in a few words, ``short_confidence`` the probability
    that these words are right, ``confidence`` the probability that the documents answer the
    question; both are from 0 to 1, None where nobody judged that. ``usage_by_step`` has the order
    of the first calls. ``computed`` is the query of a computed answer with its result.
    """

    question: str
    mode: str
    text: str
    verdict: AnswerVerdict
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
    short_confidence: float | None = None
    computed: ComputedResult | None = None

    @property
    def no_evidence(self) -> bool:
        """Whether the documents hold no answer."""
        return self.verdict == "no_evidence"

    @property
    def introduction(self) -> str:
        """The words of ``text`` before the sentences, such as those before uncertain passages."""
        return self.text.removesuffix(join_sentences(self.sentences)).strip()

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
