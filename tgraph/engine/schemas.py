"""What the commands print as JSON, as shapes of values; ``docs/reference/schemas`` publishes their
schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tgraph.answer.citations import CITED_AS
from tgraph.engine.json_shape import JsonKey, JsonShape
from tgraph.model import (
    Answer,
    Citation,
    CitationKind,
    ContextRow,
    Edge,
    Evidence,
    GraphRagResponse,
    Note,
    Selected,
    Sentence,
    ShownContext,
    Source,
    StepUsage,
    Usage,
)
from tgraph.plugins import SCHEMAS
from tgraph.vocabulary import selected_iri, session_iri

if TYPE_CHECKING:
    from tgraph.engine.index.run import IndexReport

CITATION = JsonShape(
    "CitationOut",
    Citation,
    "The exact characters of a page that a sentence rests on.",
    "kind edge item edge_selection chunk document title path page start end quote via segment_kind",
)
SENTENCE = JsonShape(
    "SentenceOut",
    Sentence,
    "A sentence of the answer; without citations nothing proves it.",
    "text citations",
    (CITATION,),
)
_TERMS = ("subject", "subject_label", "predicate", "predicate_label", "object", "object_label")


def _of_edge(name: str) -> Callable[[Selected], str | None]:
    return lambda s: s.item.named_terms[name] if isinstance(s.item, Edge) else None


def _label(selected: Selected) -> str:
    item = selected.item
    return item.text if isinstance(item, Edge) or item.kind == "point" else item.label


def _selection(answer: Answer) -> list[dict[str, Any]]:
    uuid = answer.session.removeprefix(session_iri(""))
    return [
        SELECTION.plain(s, edge_selection=selected_iri(uuid, s.item.kind, s.index))
        for s in answer.selection
    ]


SELECTION = JsonShape(
    "SelectionOut",
    Selected,
    "An edge, or another item, that was selected, and why.\n\n"
    "What only an edge has is null for the others.",
    f"kind edge item label edge_selection {' '.join(_TERMS)} reasoning score",
    given={
        "kind": JsonKey(CitationKind, read=lambda selected: CITED_AS[selected.item.kind]),
        "edge": JsonKey(
            str | None, read=lambda s: s.item.iri if isinstance(s.item, Edge) else None
        ),
        "item": JsonKey(str, "IRI of what was selected", attrgetter("item.iri")),
        "label": JsonKey(str, "what was selected, in words", _label),
        "edge_selection": JsonKey(str),
        **{name: JsonKey(str | None, read=_of_edge(name)) for name in _TERMS},
        "object": JsonKey(
            str | None, "an IRI, or a literal as an N-Triples term", _of_edge("object")
        ),
    },
)
SOURCE = JsonShape("SourceOut", Source, "A document that the answer cites.", "document title path")
PLACE = JsonShape(
    "PlaceOut", Evidence, "A place in a document.", "document path page start end quote"
)
NOTE = JsonShape(
    "NoteOut",
    Note,
    "What a reader must know beside the answer, such as that documents disagree.",
    "text facts places",
    (PLACE,),
)
USAGE = JsonShape("UsageOut", Usage, None, "input_tokens output_tokens calls reasoning_tokens")
STEP_USAGE = JsonShape(
    "StepUsageOut",
    StepUsage,
    "What a step's calls for one purpose cost.",
    "step purpose asked calls input_tokens output_tokens",
)
ASK = JsonShape(
    "AskOut",
    Answer,
    "What ``tgraph ask --json`` prints.",
    "question mode answer=text no_evidence sentences selection sources explain_id"
    " explain_collection usage usage_by_step model dropped notes short confidence",
    (SENTENCE, SELECTION, SOURCE, USAGE, STEP_USAGE, NOTE),
    {"selection": JsonKey(tuple[Selected, ...], read=_selection)},
)
_ROW = JsonShape(
    "ContextRowOut",
    ContextRow,
    "Something that was selected, as the writer of an answer is shown it.",
    "id row places",
    (PLACE,),
)
ASK_CONTEXT = JsonShape(
    "AskContextOut",
    ShownContext,
    "What ``tgraph ask --only-context --json`` prints, and with ``--only-prompt``.",
    "question mode context=rows messages explain_id explain_collection usage usage_by_step model"
    " dropped",
    (_ROW, USAGE, STEP_USAGE),
    {
        "context": JsonKey(
            tuple[ContextRow, ...], "what was selected and has room", attrgetter("rows")
        ),
        "messages": JsonKey(
            tuple[dict[str, str], ...], "the prompt; empty where no model would be asked"
        ),
    },
)
EVENT = JsonShape(
    "EventOut",
    GraphRagResponse,
    "A line of ``tgraph ask --jsonl``: a message of the stream as it happened.\n\n"
    "``sentence`` is there on a chunk that is a whole sentence, ``answer`` on the last message.",
    "message_type response explain_id explain_collection end_of_stream end_of_session error"
    " sentence answer",
    (SENTENCE, ASK),
    {
        "message_type": JsonKey(Literal["explain", "chunk", ""]),
        "sentence": JsonKey(Sentence | None, default=None),
        "answer": JsonKey(Answer | None, default=None),
    },
    defaults=True,
)


def event_json(
    message: GraphRagResponse, sentence: Sentence | None = None, answer: Answer | None = None
) -> dict[str, Any]:
    """A message of the stream as it is printed: without the sentence or answer that it has not."""
    printed = EVENT.plain(message, sentence=sentence, answer=answer)
    absent = [key for key in ("sentence", "answer") if printed[key] is None]
    return {key: value for key, value in printed.items() if key not in absent}


def trace_shape() -> JsonShape:
    """A trace, as ``tgraph trace --format json`` prints it."""
    from tgraph.explain.trace.values import Trace

    keys = " ".join(each.name for each in fields(Trace) if each.name != "report")
    return JsonShape("Trace", Trace, "Everything that is on record of a session.", keys)


def session_shape() -> JsonShape:
    """An entry of ``tgraph sessions --json``."""
    from tgraph.explain.trace.sessions import SessionSummary

    keys = "explain_id question mode started ended status questioned"
    return JsonShape("SessionOut", SessionSummary, "An entry of ``tgraph sessions --json``.", keys)


def verification_shape() -> JsonShape:
    """What ``tgraph verify --json`` prints."""
    from tgraph.explain.assess.verification import Verification

    return JsonShape(
        "VerificationOut",
        Verification,
        "What ``tgraph verify --json`` prints.",
        "session question mode judge passed counts recall precision sentences verification usage"
        " dropped notes",
        (USAGE,),
        {"usage": JsonKey(Usage, read=lambda found: Usage(**found.usage))},
    )


def replay_shape() -> JsonShape:
    """What ``tgraph replay --json`` prints."""
    from tgraph.engine.rerun.replay import Replay
    from tgraph.explain.trace.comparison import RecordDifference

    keys = "subject property recorded replayed"
    difference = JsonShape("DifferenceOut", RecordDifference, "Where two records differ.", keys)
    return JsonShape(
        "ReplayOut",
        Replay,
        "What ``tgraph replay --json`` prints.",
        "explain_id=session same recorded_hash replayed_hash problem notes differences"
        " first_difference",
        (difference,),
        {
            "differences": JsonKey(int, "how many properties differ", lambda r: len(r.differences)),
            "first_difference": JsonKey(
                RecordDifference | None, read=lambda r: next(iter(r.differences), None)
            ),
        },
    )


_INDEXED = (
    "root run indexed unchanged superseded retracted erased failed chunks entities relationships"
    " claims merged communities isolated reports dropped usage generation"
)


def index_json(report: IndexReport, root: str) -> dict[str, Any]:
    """What ``tgraph index --json`` prints."""
    from tgraph.engine.index.run import IndexReport

    failed = [{"path": failure.path, "reason": str(failure)} for failure in report.failed]
    return JsonShape("index", IndexReport, None, _INDEXED).plain(report, root=root, failed=failed)


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas (2020-12) by the names of their files."""
    from pydantic import Field

    from tgraph.explain.audit.impact import Impact
    from tgraph.explain.integrity.check import Integrity
    from tgraph.explain.trace.comparison import Comparison
    from tgraph.explain.trace.curations import Curation
    from tgraph.explain.trace.entities import Merge, Split
    from tgraph.explain.trace.facts import KnownFact
    from tgraph.explain.trace.generations import Generation
    from tgraph.explain.trace.knowledge_diff import KnowledgeDiff
    from tgraph.explain.whynot.causes import WhyNot

    sessions = _schema(
        Annotated[tuple[session_shape().model(), ...], Field(title="Sessions")]  # type: ignore[misc]
    )
    sessions["$defs"] = sessions.pop("$defs")
    kinds: dict[str, Any] = {
        "ask": ASK.model(),
        "ask-context": ASK_CONTEXT.model(),
        "ask-event": EVENT.model(),
        "sessions": sessions,
        "impact": Impact,
        "integrity": Integrity,
        "replay": replay_shape().model(),
        "diff": _with_same(_schema(Comparison)),
        "knowledge-diff": _with_same(_schema(KnowledgeDiff)),
        "history": tuple[Generation, ...],
        "merges": tuple[Merge, ...],
        "verify": verification_shape().model(),
        "why-not": WhyNot,
        "splits": tuple[Split, ...],
        "facts": tuple[KnownFact, ...],
        "curations": tuple[Curation, ...],
    }
    kinds |= SCHEMAS.call_all(reserved=kinds)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: dialect | (kind if isinstance(kind, dict) else _schema(kind))
        for name, kind in kinds.items()
    }


def _with_same(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a comparison that is printed with whether the two are the same."""
    same = {"same": {"title": "Same", "type": "boolean"}}
    properties, required = same | schema["properties"], [*same, *schema["required"]]
    return schema | {"properties": properties, "required": required}


_PUBLISHED = {
    "SoleFact": "Fact",
    "CitingSentence": "Sentence",
    "SurrogateFit": "Fit",
    "OneSidedPlace": "Place",
    "DocumentPlace": "Place",
    "PipelinePosition": "Carrier",
}
"""Under which names classes were published that are called otherwise now."""


def _schema(kind: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    text = json.dumps(TypeAdapter(kind).json_schema(mode="serialization"))
    names = rf'"(#/\$defs/)?({"|".join(_PUBLISHED)})"'
    text = re.sub(names, lambda found: f'"{found[1] or ""}{_PUBLISHED[found[2]]}"', text)
    schema: dict[str, Any] = json.loads(text)
    if "$defs" in schema:
        schema["$defs"] = dict(sorted(schema["$defs"].items()))
    return schema
