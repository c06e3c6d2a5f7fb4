"""The shapes of what the commands print as JSON; ``docs/reference/schemas`` publishes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pyoxigraph import NamedNode

from tgraph.answer.citations import CITED_AS
from tgraph.explain.entities import Merge, Split
from tgraph.explain.impact import Impact
from tgraph.explain.influence import Influence, InfluenceEstimate
from tgraph.explain.integrity import Integrity
from tgraph.explain.sessions import SessionSummary
from tgraph.explain.verified import JudgedSentence, Verification
from tgraph.explain.whynot import WhyNot
from tgraph.model import Answer, Edge, GraphRagResponse, Note, Selected, Sentence


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CitationOut(_Model):
    """The exact characters of a page that a sentence rests on."""

    kind: Literal["edge", "chunk", "report", "summary"]
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


class SentenceOut(_Model):
    """A sentence of the answer; without citations nothing proves it."""

    text: str
    citations: tuple[CitationOut, ...]


class SelectionOut(_Model):
    """An edge, or another item, that was selected, and why.

    What only an edge has is null for the others.
    """

    kind: Literal["edge", "chunk", "report", "summary"]
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


class SourceOut(_Model):
    """A document that the answer cites."""

    document: str
    title: str
    path: str


class PlaceOut(_Model):
    """A place in a document."""

    document: str = Field(description="IRI of the document")
    path: str
    page: int | None
    start: int
    end: int
    quote: str


class NoteOut(_Model):
    """What a reader must know beside the answer, such as that documents disagree."""

    text: str
    facts: tuple[str, ...] = Field(description="IRIs of the edges or claims that it is about")
    places: tuple[PlaceOut, ...] = Field(description="where documents say each of them")


class UsageOut(_Model):
    input_tokens: int
    output_tokens: int
    calls: int


class AskOut(_Model):
    """What ``tgraph ask --json`` prints."""

    question: str
    mode: str
    answer: str
    no_evidence: bool
    sentences: tuple[SentenceOut, ...]
    selection: tuple[SelectionOut, ...]
    sources: tuple[SourceOut, ...]
    explain_id: str = Field(description="IRI of the session")
    explain_collection: str
    usage: UsageOut
    model: str
    dropped: dict[str, int] = Field(description="what was left out on the way, by reason")
    notes: tuple[NoteOut, ...] = Field(description="what a reader must know beside the answer")


class EventOut(_Model):
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


class SessionOut(_Model):
    """An entry of ``tgraph sessions --json``."""

    explain_id: str
    question: str
    mode: str
    started: str = Field(description="xsd:dateTime in UTC")
    ended: str = Field(description="empty while the session has no end")
    status: str = Field(
        description="completed, no-evidence, failed, interrupted, aborted, or empty"
    )
    questioned: str = Field(
        description="since when the answer does not stand (xsd:dateTime); empty while it does"
    )


class SessionsOut(_Model):
    """The published shape of the array that ``tgraph sessions --json`` prints."""

    sessions: tuple[SessionOut, ...]


class VerificationOut(_Model):
    """What ``tgraph verify --json`` prints."""

    session: str = Field(description="IRI of the session")
    question: str
    mode: str
    judge: str = Field(description="the model or method that judged")
    passed: bool = Field(description="no sentence lacks support")
    counts: dict[str, int] = Field(description="how many sentences have each verdict")
    recall: float | None = Field(description="ALCE's citation recall, 0 to 1")
    precision: float | None = Field(description="ALCE's citation precision, 0 to 1")
    sentences: tuple[JudgedSentence, ...]
    verification: str = Field(description="IRI of the verification on record")
    usage: UsageOut
    dropped: dict[str, int] = Field(description="what could not be used, by reason")
    notes: tuple[str, ...]


def verification_out(found: Verification) -> VerificationOut:
    """A verification as it is printed."""
    return VerificationOut(
        session=found.session,
        question=found.question,
        mode=found.mode,
        judge=found.judge,
        passed=found.passed,
        counts=found.counts,
        recall=found.recall,
        precision=found.precision,
        sentences=found.sentences,
        verification=found.verification,
        usage=UsageOut(**found.usage),
        dropped=dict(found.dropped),
        notes=found.notes,
    )


def ask_out(answer: Answer) -> AskOut:
    """An answer as it is printed."""
    return AskOut(
        question=answer.question,
        mode=answer.mode,
        answer=answer.text,
        no_evidence=answer.no_evidence,
        sentences=tuple(map(sentence_out, answer.sentences)),
        selection=tuple(_selection_out(selected, answer.session) for selected in answer.selection),
        sources=tuple(
            SourceOut(document=s.document, title=s.title, path=s.path) for s in answer.sources
        ),
        explain_id=answer.explain_id,
        explain_collection=answer.explain_collection,
        usage=UsageOut(
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
            calls=answer.usage.calls,
        ),
        model=answer.model,
        dropped=dict(answer.dropped),
        notes=tuple(map(_note_out, answer.notes)),
    )


def _note_out(note: Note) -> NoteOut:
    places = tuple(
        PlaceOut(
            document=p.document, path=p.path, page=p.page, start=p.start, end=p.end, quote=p.quote
        )
        for p in note.places
    )
    return NoteOut(text=note.text, facts=note.facts, places=places)


def sentence_out(sentence: Sentence) -> SentenceOut:
    citations = tuple(
        CitationOut(
            kind=c.kind,
            edge=c.edge,
            item=c.item,
            edge_selection=c.edge_selection,
            chunk=c.chunk,
            document=c.document,
            title=c.title,
            path=c.path,
            page=c.page,
            start=c.start,
            end=c.end,
            quote=c.quote,
            via=c.via,
        )
        for c in sentence.citations
    )
    return SentenceOut(text=sentence.text, citations=citations)


def _selection_out(selected: Selected, session: str) -> SelectionOut:
    from tgraph.vocabulary import selected_iri, session_iri

    item = selected.item
    uuid = session.removeprefix(session_iri(""))
    edge = item if isinstance(item, Edge) else None
    return SelectionOut(
        kind=CITED_AS[item.kind],
        edge=edge and edge.iri,
        item=item.iri,
        label=item.text if isinstance(item, Edge) or item.kind == "point" else item.label,
        edge_selection=selected_iri(uuid, item.kind, selected.index),
        subject=edge and edge.subject.value,
        subject_label=edge and edge.subject_label,
        predicate=edge and edge.predicate.value,
        predicate_label=edge and edge.predicate_label,
        object=edge
        and (edge.object.value if isinstance(edge.object, NamedNode) else str(edge.object)),
        object_label=edge and edge.object_label,
        reasoning=selected.reasoning,
        score=selected.score,
    )


def event_out(
    message: GraphRagResponse, sentence: Sentence | None = None, answer: Answer | None = None
) -> EventOut:
    """A message of the stream as it is printed."""
    return EventOut(
        message_type=message.message_type,
        response=message.response,
        explain_id=message.explain_id,
        explain_collection=message.explain_collection,
        end_of_stream=message.end_of_stream,
        end_of_session=message.end_of_session,
        error=message.error,
        sentence=sentence_out(sentence) if sentence else None,
        answer=ask_out(answer) if answer else None,
    )


def session_out(summary: SessionSummary) -> SessionOut:
    return SessionOut(
        explain_id=summary.explain_id,
        question=summary.question,
        mode=summary.mode,
        started=summary.started,
        ended=summary.ended,
        status=summary.status,
        questioned=summary.questioned,
    )


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas (2020-12) by the names of their files."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    from tgraph.cli.evaluation_schema import EvaluationOut
    from tgraph.cli.replay_schema import replay_schemas

    sessions = SessionsOut.model_json_schema(mode="serialization")
    array = {**sessions["properties"]["sessions"], "$defs": sessions["$defs"]}
    return {
        name: {"$schema": dialect, **schema}
        for name, schema in {
            "ask": AskOut.model_json_schema(mode="serialization"),
            "ask-event": EventOut.model_json_schema(mode="serialization"),
            "sessions": array,
            "evaluation": EvaluationOut.model_json_schema(mode="serialization"),
            "impact": TypeAdapter(Impact).json_schema(mode="serialization"),
            "influence": TypeAdapter(Influence).json_schema(mode="serialization"),
            "influence-estimate": TypeAdapter(InfluenceEstimate).json_schema(mode="serialization"),
            "integrity": TypeAdapter(Integrity).json_schema(mode="serialization"),
            **replay_schemas(),
            "merges": TypeAdapter(tuple[Merge, ...]).json_schema(mode="serialization"),
            "verify": VerificationOut.model_json_schema(mode="serialization"),
            "why-not": TypeAdapter(WhyNot).json_schema(mode="serialization"),
            "splits": TypeAdapter(tuple[Split, ...]).json_schema(mode="serialization"),
        }.items()
    }
