"""JSON models of answers, answer contexts and stream messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, Field

from tgraph.answer.citations import CITED_AS
from tgraph.engine.json_output import Output
from tgraph.model import (
    Answer,
    AnswerVerdict,
    CitationKind,
    Edge,
    GraphRagResponse,
    SegmentKind,
    Selected,
    Sentence,
    ShownContext,
    WitnessRole,
)
from tgraph.vocabulary import selected_iri, session_iri

Dropped = Annotated[dict[str, int], Field(description="what was left out on the way, by reason")]
SessionIri = Annotated[str, Field(description="IRI of the session")]


class CitationOut(Output):
    """The exact characters of a page that a sentence rests on."""

    kind: CitationKind
    edge: str | None = Field(description="IRI of the edge; null where the item isn't one")
    item: str = Field(description="IRI of what is cited: the edge, chunk, report, entity or claim")
    edge_selection: str = Field(description="IRI of the selection that carries the reasoning")
    chunk: str = Field(description="IRI of the chunk")
    document: str = Field(description="IRI of the document")
    title: str
    path: str
    page: int | None = Field(description="null where the document has no pages")
    start: int = Field(description="first code point in the stored text of the page")
    end: int = Field(description="the code point after the last")
    quote: str = Field(description="text[start:end]")
    via: tuple[str, ...] = Field(description="IRIs from a report or summary down to the characters")
    segment_kind: SegmentKind | None = Field(
        description="kind of the segment of the page that it stands in; null where it reaches"
        " beyond one, or the page's text is not kept"
    )


class SentenceOut(Output):
    """A sentence of the answer; without citations nothing proves it."""

    text: str
    citations: tuple[CitationOut, ...]


class SelectionOut(Output):
    """An edge, or another item, that was selected, and why.

    What only an edge has is null for the others.
    """

    kind: CitationKind
    edge: str | None
    item: str = Field(description="IRI of what was selected")
    label: str = Field(description="what was selected, in words")
    edge_selection: str
    subject: str | None
    subject_label: str | None
    predicate: str | None
    predicate_label: str | None
    object: str | None = Field(description="an IRI, or a literal as an N-Triples term")
    object_label: str | None
    reasoning: str
    score: float

    @classmethod
    def from_selected(cls, selected: Selected, session: str) -> Self:
        """Return the JSON of an item that was selected in a session, by the session's IRI."""
        item, uuid = selected.item, session.removeprefix(session_iri(""))
        edge = item if isinstance(item, Edge) else None
        return cls(
            kind=CITED_AS[item.kind],
            edge=edge.iri if edge else None,
            item=item.iri,
            label=item.text if isinstance(item, Edge) or item.kind == "point" else item.label,
            edge_selection=selected_iri(uuid, item.kind, selected.index),
            reasoning=selected.reasoning,
            score=selected.score,
            **(edge.named_terms if edge else dict.fromkeys(_TERMS)),
        )


_TERMS = ("subject", "subject_label", "predicate", "predicate_label", "object", "object_label")


class SourceOut(Output):
    """A document that the answer cites."""

    document: str
    title: str
    path: str


class PlaceOut(Output):
    """A place in a document."""

    document: str = Field(description="IRI of the document")
    path: str
    page: int | None
    start: int
    end: int
    quote: str


class NoteOut(Output):
    """What a reader must know beside the answer, such as that documents disagree."""

    text: str
    facts: tuple[str, ...] = Field(description="IRIs of the edges or claims that it is about")
    places: tuple[PlaceOut, ...] = Field(description="where documents say each of them")


class UsageOut(Output):
    input_tokens: int
    output_tokens: int
    calls: int
    reasoning_tokens: int


class StepUsageOut(Output):
    """What a step's calls for one purpose cost."""

    step: str = Field(description="the step of the session, as on record")
    purpose: str = Field(
        description="name of the prompt, or else what was called: embedding, reading, ..."
    )
    asked: int = Field(description="calls on record")
    calls: int = Field(description="of these, those that a server answered")
    input_tokens: int
    output_tokens: int


UsageBySteps = Annotated[
    tuple[StepUsageOut, ...],
    Field(description="the same by step and prompt, in the order of their first calls"),
]


class WitnessPlaceOut(PlaceOut):
    """The characters that state a witness."""

    title: str


class WitnessOut(Output):
    """A statement that a computed result depends on."""

    item: str = Field(description="IRI of the edge; of a class or a name its bearer's")
    label: str = Field(description="the statement in words")
    role: WitnessRole = Field(
        description="rests: the result would be another without it; compared: a lesser value;"
        " searched: looked through, and not in the result; contradicts: one of several values of a"
        " row, with which nothing is computed"
    )
    rows: tuple[int, ...] = Field(description="numbers of the rows that it is a witness of, from 0")
    place: WitnessPlaceOut | None


class ResultCellOut(Output):
    term: str = Field(description="the value as an N-Triples term; empty where there is none")
    text: str = Field(description="the value in words")


class ResultRowOut(Output):
    """A row of the result with what it rests on, or was compared with."""

    cells: tuple[ResultCellOut, ...] = Field(description="a cell for each column")
    witnesses: tuple[WitnessOut, ...]


class UnchosenQueryOut(Output):
    """A query that the question might have meant."""

    sparql: str
    likelihood: float
    reasons: str
    rejection: str = Field(description="why it was not chosen")


class ComputedOut(Output):
    """The query of a computed answer with its result; both are empty where no query was likely
    enough."""

    sparql: str
    written: str = Field(description="the query as a person writes it, to be changed and asked")
    algebra: str = Field(description="the query as an expression of the algebra")
    likelihood: float = Field(description="how likely the question means the query, 0 to 1")
    reasons: str = Field(description="what each word was taken for")
    columns: tuple[str, ...]
    rows: tuple[ResultRowOut, ...]
    witnesses: tuple[WitnessOut, ...] = Field(description="all witnesses, whichever their role")
    unchosen: tuple[UnchosenQueryOut, ...]


class AskOut(Output):
    """What ``tgraph ask --json`` prints."""

    question: str
    mode: str
    answer: str
    verdict: AnswerVerdict = Field(
        description="answered; uncertain: the passages are near and may not answer; no_evidence"
    )
    no_evidence: bool
    sentences: tuple[SentenceOut, ...]
    selection: tuple[SelectionOut, ...]
    sources: tuple[SourceOut, ...]
    explain_id: SessionIri
    explain_collection: str
    usage: UsageOut
    usage_by_step: UsageBySteps
    model: str
    dropped: Dropped
    notes: tuple[NoteOut, ...] = Field(description="what a reader must know beside the answer")
    short: str = Field(description="the answer in a few words; empty where there are none")
    short_confidence: float | None = Field(
        description="how likely the short answer is right, 0 to 1; null where nobody judged that"
    )
    confidence: float | None = Field(
        description="how likely the documents answer, 0 to 1; null where nobody judged that"
    )
    computed: ComputedOut | None = Field(
        description="query and table of a computed answer; null where nothing is computed"
    )

    @classmethod
    def from_answer(cls, answer: Answer) -> Self:
        """Return the JSON of an answer."""
        selection = tuple(
            SelectionOut.from_selected(selected, answer.session) for selected in answer.selection
        )
        return cls(
            question=answer.question,
            mode=answer.mode,
            answer=answer.text,
            verdict=answer.verdict,
            no_evidence=answer.no_evidence,
            sentences=answer.sentences,
            selection=selection,
            sources=answer.sources,
            explain_id=answer.session,
            explain_collection=answer.explain_collection,
            usage=answer.usage,
            usage_by_step=answer.usage_by_step,
            model=answer.model,
            dropped=answer.dropped,
            notes=answer.notes,
            short=answer.short,
            short_confidence=answer.short_confidence,
            confidence=answer.confidence,
            computed=answer.computed,
        )


class ContextRowOut(Output):
    """Something that was selected, as the writer of an answer is shown it."""

    id: str = Field(description="by which a sentence would cite it")
    row: dict[str, Any] = Field(description="the line that is shown")
    places: tuple[PlaceOut, ...]


class AskContextOut(Output):
    """What ``tgraph ask --only-context --json`` prints, and with ``--only-prompt``."""

    question: str
    mode: str
    context: tuple[ContextRowOut, ...] = Field(
        validation_alias=AliasChoices("context", "rows"),
        description="what was selected and has room",
    )
    messages: tuple[dict[str, str], ...] = Field(
        description="the prompt; empty where no model would be asked"
    )
    explain_id: SessionIri
    explain_collection: str
    usage: UsageOut
    usage_by_step: UsageBySteps
    model: str
    dropped: Dropped


class EventOut(Output):
    """A line of ``tgraph ask --jsonl``: a message of the stream as it happened.

    ``sentence`` is there on a chunk that is a whole sentence, ``answer`` on the last message.
    """

    message_type: Literal["explain", "chunk", ""]
    response: str = ""
    explain_id: str | None = None
    explain_collection: str | None = None
    end_of_stream: bool = False
    end_of_session: bool = False
    error: str | None = None
    sentence: SentenceOut | None = None
    answer: AskOut | None = None


def answer_json(answer: Answer) -> dict[str, Any]:
    """Return the JSON object of an answer, as ``tgraph ask --json`` prints it."""
    return AskOut.from_answer(answer).model_dump(mode="json")


def context_json(context: ShownContext) -> dict[str, Any]:
    """Return the JSON object of the context of an answer, as ``--only-context --json`` prints."""
    return AskContextOut.model_validate(context).model_dump(mode="json")


def event_json(
    message: GraphRagResponse, sentence: Sentence | None = None, answer: Answer | None = None
) -> dict[str, Any]:
    """Return the JSON object of a message of the stream, without the keys ``sentence`` and
    ``answer`` where the message has none."""
    parts = {
        "sentence": SentenceOut.model_validate(sentence) if sentence else None,
        "answer": AskOut.from_answer(answer) if answer else None,
    }
    absent = {key for key, part in parts.items() if part is None}
    event = EventOut.model_validate(message).model_copy(update=parts)
    return event.model_dump(mode="json", exclude=absent)
