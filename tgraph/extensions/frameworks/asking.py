"""Shared question interface of framework retrievers, query engines and tools.

The engine answers and records each question as usual; this module only selects results to pass
on."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from tgraph.answer.citations import citation_of
from tgraph.engine.graph import KnowledgeGraph, open_graph
from tgraph.errors import TgraphError, UsageError
from tgraph.index.sources import Texts, range_of_chunk
from tgraph.model import Answer, Citation, GraphRagResponse, Selected, ShownContext
from tgraph.retrieve.filters import NO_FILTERS, Filters
from tgraph.retrieve.modes.registry import AUTO, MODES
from tgraph.vocabulary import selected_iri, session_iri

if TYPE_CHECKING:
    Mode = str
else:
    Mode = Literal[(AUTO, *MODES)]

AsOf = str | int | datetime | date
Content = Literal["quote", "chunk"]
"""What a document of a retriever holds: the exact quote, or the whole chunk that it stands in."""


R = TypeVar("R")
AnswerSteps = Generator[GraphRagResponse, None, R]
"""The engine's messages as they happen, and what comes of the question."""


class MissingExtraError(TgraphError, ImportError):
    """An error for a missing framework package; the message contains the install command."""

    def __init__(self, framework: str, extra: str) -> None:
        super().__init__(
            f"{framework} isn't installed.", f'Install it with `pip install "tgraph-rag[{extra}]"`.'
        )


# --- what is asked ---


class How(TypedDict, total=False):
    """Question options; see ``Asker``."""

    collection: str | None
    mode: Mode
    filters: Filters
    as_of: AsOf | None
    settings: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Asker:
    """A graph with fixed question options: mode, filters, ``as_of`` and setting overrides.

    Options are as in ``KnowledgeGraph.ask`` and ``view``. Concurrent use is possible; questions
    are independent of earlier questions. ``owned`` states whether the asker opened the graph."""

    graph: KnowledgeGraph
    owned: bool = False
    mode: str = AUTO
    filters: Filters = NO_FILTERS
    as_of: AsOf | None = None
    settings: Mapping[str, Any] | None = None

    @classmethod
    def from_graph(
        cls, graph: KnowledgeGraph | str | Path, collection: str | None = None, **how: Any
    ) -> Asker:
        """Create an asker for an open graph or a graph folder.

        A folder is opened and stays open until ``close``. Raises ``UsageError`` if an open
        graph belongs to another collection."""
        if not isinstance(graph, KnowledgeGraph):
            return cls(open_graph(graph, collection=collection), True, **how)
        if collection not in (None, graph.settings.collection):
            raise UsageError(
                f"The graph is open at the collection {graph.settings.collection!r},"
                f" not {collection!r}.",
                "Give the folder in its place, or open the other collection.",
            )
        return cls(graph, False, **how)

    def close(self) -> None:
        """Close the graph, if opened by the asker."""
        if self.owned:
            self.graph.close()

    def passages(
        self, question: str, content: Content = "quote", most: int | None = None
    ) -> AnswerSteps[list[CitedPassage]]:
        """Yield messages of ``KnowledgeGraph.stream_context``; return the first ``most``
        distinct selected places.

        The complete selection is recorded, as a session without an answer."""
        with self.graph.view(self.settings) as view:
            shown_context = yield from view.stream_context(
                question, self.mode, **self._question_options()
            )
            passages = _shown_passages(shown_context)
            if content == "chunk":
                passages = _in_chunks(passages, view.context(shown_context.mode).texts)
            return list(islice(passages, most))

    def answer(self, question: str) -> AnswerSteps[Answer]:
        """The messages of ``KnowledgeGraph.stream``; returns the answer."""
        with self.graph.view(self.settings) as view:
            return (yield from view.stream(question, self.mode, **self._question_options()))

    def _question_options(self) -> dict[str, Any]:
        return {"history": (), "filters": self.filters, "as_of": self.as_of}


# --- what comes back ---


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """Exact document characters, or the surrounding chunk, with citation, score and selection
    reason."""

    citation: Citation
    session: str
    score: float | None
    reason: str
    chunk_text: str = ""

    @property
    def id(self) -> str:
        """IRI of the chunk or quoting evidence containing ``text``."""
        return self.citation.chunk if self.chunk_text else self.citation.evidence

    @property
    def text(self) -> str:
        return self.chunk_text or self.citation.quote

    @property
    def span(self) -> tuple[int, int]:
        """Position of ``text`` in the stored page text."""
        cited = self.citation
        return range_of_chunk(cited.chunk) if self.chunk_text else (cited.start, cited.end)

    @property
    def metadata(self) -> dict[str, Any]:
        """Passage metadata as JSON values, newly created on each access."""
        cited = {name: getattr(self.citation, name) for name in _CITED}
        details = {"via": list(self.citation.via), "score": self.score, "reason": self.reason}
        return {**cited, **details, "session": self.session}


_CITED = ("document", "path", "title", "page", "start", "end", "quote", "kind", "item", "chunk")
SHOWN = ("path", "title", "page")
"""What of the metadata is worth a model's reading."""


def cited_passages(answer: Answer) -> list[CitedPassage]:
    """Return distinct places cited by an answer, in sentence order."""
    uuid = _session_uuid(answer.session)
    by_iri = {selected_iri(uuid, s.item.kind, s.index): s for s in answer.selection}
    pairs = ((c, by_iri.get(c.edge_selection)) for c in answer.citations)
    return list(_each_once(pairs, answer.session))


def _shown_passages(shown: ShownContext) -> Iterator[CitedPassage]:
    """Yield places supporting the selection, best first."""
    uuid = _session_uuid(shown.session)
    pairs = (
        (citation_of(row.selected, place, uuid), row.selected)
        for row in shown.rows
        for place in row.places
    )
    return _each_once(pairs, shown.session)


def _session_uuid(session: str) -> str:
    return session.removeprefix(session_iri(""))


def _each_once(
    cited: Iterable[tuple[Citation, Selected | None]], session: str
) -> Iterator[CitedPassage]:
    """Yield a passage for each distinct place, with the reason of the best selected item."""
    previous_places = set()
    for citation, selected in cited:
        if _citation_place(citation) not in previous_places:
            previous_places.add(_citation_place(citation))
            score, reason = (selected.score, selected.reasoning) if selected else (None, "")
            yield CitedPassage(citation, session, score, reason)


def _citation_place(citation: Citation) -> tuple[str, int | None, int, int]:
    return citation.document, citation.page, citation.start, citation.end


def _in_chunks(passages: Iterable[CitedPassage], texts: Texts) -> Iterator[CitedPassage]:
    """Yield the first passage of each chunk, including chunk text."""
    previous_chunks = set()
    for passage in passages:
        cited = passage.citation
        if cited.chunk not in previous_chunks:
            previous_chunks.add(cited.chunk)
            start, end = range_of_chunk(cited.chunk)
            text = texts.of_page(cited.document, cited.page)[start:end]
            yield replace(passage, chunk_text=text)


# --- tools for agents ---


ToolParameter = Literal[
    "mode", "documents", "since", "until", "types", "languages", "valid_at", "as_of"
]
"""What an agent may say of a question, beside the question."""
PARAMETERS: tuple[ToolParameter, ...] = get_args(ToolParameter)
_FILTERS = tuple(Filter.name for Filter in fields(Filters))
_OFFERED: Mapping[str, Any] = {
    "mode": (Mode, Field(AUTO, description="how to search; auto chooses by the question")),
    "documents": (
        list[str],
        Field([], max_length=1_000, description="only from these: paths, ends of paths, patterns"),
    ),
    "since": (
        str | None,
        Field(None, description="only documents from this date on: YYYY[-MM-DD]"),
    ),
    "until": (str | None, Field(None, description="only documents up to this date")),
    "types": (
        list[str],
        Field([], max_length=100, description="only about entities of these types"),
    ),
    "languages": (
        list[str],
        Field([], max_length=100, description="only documents in these languages (BCP 47)"),
    ),
    "valid_at": (str | None, Field(None, description="only what holds at this date")),
    "as_of": (
        str | int | None,
        Field(None, description="as the graph knew it at a date or time, or in a generation"),
    ),
}
_NOT_GIVEN = (None, "", (), AUTO)


def tool_arguments(asker: Asker, parameters: Sequence[ToolParameter]) -> type[BaseModel]:
    """Return argument model of an agent tool: the question, plus ``parameters`` not fixed by
    the ``asker``.

    An agent therefore can't reach beyond the given data."""
    fixed = {name for name in PARAMETERS if _fixed_value(asker, name) not in _NOT_GIVEN}
    question = (str, Field(min_length=1, max_length=20_000, description="the question, in full"))
    offered = {name: _OFFERED[name] for name in parameters if name not in fixed}
    config = ConfigDict(extra="forbid")
    return create_model("AskArguments", __config__=config, question=question, **offered)


def _fixed_value(asker: Asker, name: str) -> Any:
    return getattr(asker.filters if name in _FILTERS else asker, name)


def asked_with(asker: Asker, arguments: Mapping[str, Any]) -> Asker:
    """Return the asker with validated agent arguments applied, leaving out the question."""
    values = {n: v for n, v in arguments.items() if n != "question" and v not in (*_NOT_GIVEN, [])}
    filters = {n: _list_to_tuple(v) for n, v in values.items() if n in _FILTERS}
    options = {n: v for n, v in values.items() if n not in _FILTERS}
    return replace(asker, filters=replace(asker.filters, **filters), **options)


def _list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def argument_refusal(error: ValidationError) -> str:
    """Return an explanation of invalid tool arguments for the calling agent."""
    wrong = (f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors())
    return f"The arguments can't be used. {'; '.join(wrong)}."


TOOL_NAME = "ask_documents"
TOOL_DESCRIPTION = (
    "Answers a question from the documents of a knowledge graph, with the exact characters that "
    "each sentence rests on, or says that there is no evidence. The result is JSON: the answer, "
    "its sentences with the numbers of their citations, the citations with their quotes, and the "
    "session under which all of it is on record."
)


def tool_text(answer: Answer) -> str:
    """Return the answer as JSON text for an agent's model, since quotes may contain anything."""
    places = [passage.citation for passage in cited_passages(answer)]
    numbers = {_citation_place(item): number for number, item in enumerate(places, 1)}
    reply = {
        "answer": answer.text,
        "verdict": answer.verdict,
        "no_evidence": answer.no_evidence,
        "sentences": [
            {
                "text": item.text,
                "citations": list(
                    dict.fromkeys(numbers[_citation_place(c)] for c in item.citations)
                ),
            }
            for item in answer.sentences
        ],
        "citations": [
            {
                "number": numbers[_citation_place(item)],
                **{name: getattr(item, name) for name in _QUOTED},
            }
            for item in places
        ],
        "notes": [note.text for note in answer.notes],
        "session": answer.session,
    }
    return json.dumps(reply, ensure_ascii=False)


_QUOTED = ("path", "title", "page", "start", "end", "quote")
