"""What every framework's retriever, query engine and tool asks of a graph, and what it gets.

The engine answers, and records each question as any other; here is only what of it is passed on.
"""

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
Asked = Generator[GraphRagResponse, None, R]
"""The engine's messages as they happen, and what comes of the question."""


class MissingExtraError(TgraphError, ImportError):
    """What a framework's module needs is not installed; the message has the command."""

    def __init__(self, framework: str, extra: str) -> None:
        super().__init__(
            f"{framework} isn't installed.", f'Install it with `pip install "tgraph-rag[{extra}]"`.'
        )


# --- what is asked ---


class How(TypedDict, total=False):
    """How questions are asked; see ``Asker``."""

    collection: str | None
    mode: Mode
    filters: Filters
    as_of: AsOf | None
    settings: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Asker:
    """A graph, and what holds for every question to it: mode, filters, ``as_of`` and overrides of
    settings, as ``KnowledgeGraph.ask`` and ``view`` take them. May be used by many at the same
    time; no question knows those before it. ``owned`` is whether it opened the graph."""

    graph: KnowledgeGraph
    owned: bool = False
    mode: str = AUTO
    filters: Filters = NO_FILTERS
    as_of: AsOf | None = None
    settings: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, graph: KnowledgeGraph | str | Path, collection: str | None = None, **how: Any
    ) -> Asker:
        """For a graph that is open, or the folder of one, which is then opened and stays so until
        ``close``. ``UsageError`` where an open graph is not of the collection."""
        if not isinstance(graph, KnowledgeGraph):
            return cls(open_graph(graph, collection=collection), True, **how)
        if collection not in (None, graph.collection):
            raise UsageError(
                f"The graph is open at the collection {graph.collection!r}, not {collection!r}.",
                "Give the folder in its place, or open the other collection.",
            )
        return cls(graph, False, **how)

    def close(self) -> None:
        """Let go of the graph, if it was opened here."""
        if self.owned:
            self.graph.close()

    def passages(
        self, question: str, content: Content = "quote", most: int | None = None
    ) -> Asked[list[CitedPassage]]:
        """The messages of ``KnowledgeGraph.stream_context``; returns the first ``most`` places of
        what was selected, each once. The whole is on record, as a session without an answer."""
        with self.graph.view(self.settings) as seen:
            shown = yield from seen.stream_context(question, self.mode, **self._known())
            found = _shown(shown)
            if content == "chunk":
                found = _in_chunks(found, seen.context(shown.mode).texts)
            return list(islice(found, most))

    def answer(self, question: str) -> Asked[Answer]:
        """The messages of ``KnowledgeGraph.stream``; returns the answer."""
        with self.graph.view(self.settings) as seen:
            return (yield from seen.stream(question, self.mode, **self._known()))

    def _known(self) -> dict[str, Any]:
        return {"history": (), "filters": self.filters, "as_of": self.as_of}


# --- what comes back ---


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """Exact characters of a document, or the chunk around them, and what is known of them: the
    citation, and the score and the reason of what was selected."""

    citation: Citation
    session: str
    score: float | None
    reason: str
    chunk_text: str = ""

    @property
    def id(self) -> str:
        """The IRI of what ``text`` is: the chunk, or the evidence that has the quote."""
        return self.citation.chunk if self.chunk_text else self.citation.evidence

    @property
    def text(self) -> str:
        return self.chunk_text or self.citation.quote

    @property
    def span(self) -> tuple[int, int]:
        """Where ``text`` stands in the stored text of the page."""
        cited = self.citation
        return range_of_chunk(cited.chunk) if self.chunk_text else (cited.start, cited.end)

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known of it, as JSON has it; a new one each time."""
        cited = {name: getattr(self.citation, name) for name in _CITED}
        told = {"via": list(self.citation.via), "score": self.score, "reason": self.reason}
        return {**cited, **told, "session": self.session}


_CITED = ("document", "path", "title", "page", "start", "end", "quote", "kind", "item", "chunk")
SHOWN = ("path", "title", "page")
"""What of the metadata is worth a model's reading."""


def cited_passages(answer: Answer) -> list[CitedPassage]:
    """The places that an answer cites, each once, in the order of its sentences."""
    uuid = _uuid(answer.session)
    by_iri = {selected_iri(uuid, s.item.kind, s.index): s for s in answer.selection}
    found = ((c, by_iri.get(c.edge_selection)) for c in answer.citations)
    return list(_each_once(found, answer.session))


def _shown(shown: ShownContext) -> Iterator[CitedPassage]:
    """The places that what was selected rests on, best first."""
    uuid = _uuid(shown.session)
    found = (
        (citation_of(row.selected, place, uuid), row.selected)
        for row in shown.rows
        for place in row.places
    )
    return _each_once(found, shown.session)


def _uuid(session: str) -> str:
    return session.removeprefix(session_iri(""))


def _each_once(
    cited: Iterable[tuple[Citation, Selected | None]], session: str
) -> Iterator[CitedPassage]:
    """A passage for each place; the best of what rests on it says why."""
    seen = set()
    for citation, selected in cited:
        if _place(citation) not in seen:
            seen.add(_place(citation))
            score, reason = (selected.score, selected.reasoning) if selected else (None, "")
            yield CitedPassage(citation, session, score, reason)


def _place(citation: Citation) -> tuple[str, int | None, int, int]:
    return citation.document, citation.page, citation.start, citation.end


def _in_chunks(passages: Iterable[CitedPassage], texts: Texts) -> Iterator[CitedPassage]:
    """The first passage of each chunk, with the text of the chunk."""
    seen = set()
    for passage in passages:
        cited = passage.citation
        if cited.chunk not in seen:
            seen.add(cited.chunk)
            start, end = range_of_chunk(cited.chunk)
            text = texts.of_page(cited.document, cited.page)[start:end]
            yield replace(passage, chunk_text=text)


# --- tools for agents ---


ToolParameter = Literal[
    "mode", "documents", "since", "until", "types", "languages", "valid_at", "as_of"
]
"""What an agent may say of a question, beside the question."""
PARAMETERS: tuple[ToolParameter, ...] = get_args(ToolParameter)
_FILTERS = tuple(each.name for each in fields(Filters))
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
    """The arguments of an agent's tool: the question and of the ``parameters`` those that the
    ``asker`` doesn't fix, so that an agent can't reach beyond what it was given."""
    fixed = {name for name in PARAMETERS if _fixed(asker, name) not in _NOT_GIVEN}
    question = (str, Field(min_length=1, max_length=20_000, description="the question, in full"))
    offered = {name: _OFFERED[name] for name in parameters if name not in fixed}
    config = ConfigDict(extra="forbid")
    return create_model("AskArguments", __config__=config, question=question, **offered)


def _fixed(asker: Asker, name: str) -> Any:
    return getattr(asker.filters if name in _FILTERS else asker, name)


def asked_with(asker: Asker, arguments: Mapping[str, Any]) -> Asker:
    """As the agent wants it, with arguments that have been validated; not the question."""
    given = {n: v for n, v in arguments.items() if n != "question" and v not in (*_NOT_GIVEN, [])}
    filters = {n: _tuple(v) for n, v in given.items() if n in _FILTERS}
    others = {n: v for n, v in given.items() if n not in _FILTERS}
    return replace(asker, filters=replace(asker.filters, **filters), **others)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def refusal(error: ValidationError) -> str:
    """What is wrong with the arguments of a tool, for the agent that gave them."""
    wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return f"The arguments can't be used. {'; '.join(wrong)}."


TOOL_NAME = "ask_documents"
TOOL_DESCRIPTION = (
    "Answers a question from the documents of a knowledge graph, with the exact characters that "
    "each sentence rests on, or says that there is no evidence. The result is JSON: the answer, "
    "its sentences with the numbers of their citations, the citations with their quotes, and the "
    "session under which all of it is on record."
)


def tool_text(answer: Answer) -> str:
    """The answer as an agent's model reads it: JSON, since quotes may say anything."""
    places = [passage.citation for passage in cited_passages(answer)]
    numbers = {_place(each): number for number, each in enumerate(places, 1)}
    told = {
        "answer": answer.text,
        "no_evidence": answer.no_evidence,
        "sentences": [
            {
                "text": each.text,
                "citations": list(dict.fromkeys(numbers[_place(c)] for c in each.citations)),
            }
            for each in answer.sentences
        ],
        "citations": [
            {"number": numbers[_place(each)], **{name: getattr(each, name) for name in _QUOTED}}
            for each in places
        ],
        "notes": [note.text for note in answer.notes],
        "session": answer.session,
    }
    return json.dumps(told, ensure_ascii=False)


_QUOTED = ("path", "title", "page", "start", "end", "quote")
