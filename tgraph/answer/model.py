"""The language model's way: it names the concepts, selects edges with its reasoning, and writes.

What it says is checked against what it was shown: ids that were not in the prompt are counted and
dropped, and a sentence cites only edges of the selection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tgraph.answer.base import Draft, Notes, edge_line
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, EdgeSelection, Prompt, Rejected, Retrieval, Selection, Turn
from tgraph.models.base import CallSink, ChatModel, ChatRequest
from tgraph.models.jsonl import JsonlReader, read_jsonl
from tgraph.models.prompts import load_prompt, messages
from tgraph.models.structured import ask
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.labels import LabelGraph, get_labelgraph

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{12})?")


class _Step:
    """A step that the model does by one prompt."""

    name = ""

    def __init__(
        self,
        model: ChatModel,
        prompts: Path | None = None,
        *,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._prompt = load_prompt(self.name, prompts)
        self._temperature = temperature
        self._seed = seed
        self._max_tokens = max_tokens

    @property
    def agent(self) -> Agent:
        return self._model.agent

    @property
    def prompt(self) -> Prompt:
        return self._prompt

    def _request(self, values: Mapping[str, str]) -> ChatRequest:
        return ChatRequest(
            self._prompt,
            messages(self._prompt, values),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=self._seed,
        )


class _ConceptsReply(BaseModel):
    concepts: list[str]


class ModelConcepts(_Step):
    """The model names what the question is about."""

    name = "extract_concepts"

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        values = {"question": question.text, "history": _history(question.history)}
        reply = ask(self._model, self._request(values), _ConceptsReply, sink).value
        named = [" ".join(concept.split())[:200] for concept in reply.concepts]
        return tuple(dict.fromkeys(name for name in named if name))[:8] or (question.text,)


class _SelectionRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    id: str
    reasoning: str = ""
    score: float | None = None


class ModelSelector(_Step):
    """The model selects edges and says why."""

    name = "select_edges"

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        candidates = retrieval.candidates
        if not candidates:
            return Selection(())
        graph = get_labelgraph([candidate.edge for candidate in candidates])
        by_id = dict(zip(graph.ids, candidates, strict=True))
        quotes = {i: [e.quote for e in c.evidence] for i, c in by_id.items()}
        reply = self._model.complete(
            self._request(
                {
                    "question": question.text,
                    "history": _history(question.history),
                    "edges": _edges(graph, quotes),
                    "limit": str(limit),
                }
            ),
            sink,
        )
        rows, malformed = read_jsonl(reply.text, _SelectionRow)
        chosen = {row.id: row for row in reversed(rows) if row.id in by_id}
        order = [i for i in dict.fromkeys(row.id for row in rows) if i in chosen]
        selected = tuple(
            EdgeSelection(index, by_id[i], _clean(chosen[i].reasoning), _score(chosen[i], by_id[i].score))
            for index, i in enumerate(order[:limit])
        )
        over = set(order[limit:])
        rejected = tuple(
            Rejected(c, "over the edge limit" if i in over else "not chosen by the model")
            for i, c in by_id.items()
            if i not in order[:limit]
        )
        unknown = sum(row.id not in by_id for row in rows)
        return Selection(selected, rejected, unknown, malformed)


class _SentenceRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    sentence: str = ""
    citations: list[str] = Field(default_factory=list)
    no_evidence: bool = False


class ModelSynthesiser(_Step):
    """The model writes the answer, a sentence at a time, each with the ids of what it rests on."""

    name = "synthesise_answer"

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        if not selection.selected:
            return
        graph = get_labelgraph([selected.edge for selected in selection.selected])
        by_id = dict(zip(graph.ids, selection.selected, strict=True))
        quotes = {i: [e.quote for e in s.candidate.evidence] for i, s in by_id.items()}
        values = {
            "question": question.text,
            "history": _history(question.history),
            "edges": _edges(graph, quotes),
        }
        reader = JsonlReader(_SentenceRow)
        whole, some = "", False
        for piece in self._model.stream(self._request(values), sink):
            whole += piece
            for row in reader.feed(piece):
                some = True
                yield from _drafts(row, by_id, notes)
        for row in reader.finish():
            some = True
            yield from _drafts(row, by_id, notes)
        notes.drop("malformed row", reader.malformed)
        if not some:
            yield from _prose(whole, by_id, notes)


def _drafts(
    row: _SentenceRow, by_id: Mapping[str, EdgeSelection], notes: Notes
) -> Iterator[Draft]:
    text = _clean(row.sentence)
    if row.no_evidence or not text:
        return
    known = [by_id[i] for i in dict.fromkeys(row.citations) if i in by_id]
    notes.drop("citation of an id that was not shown", len(set(row.citations) - set(by_id)))
    notes.drop("sentence without a citation that holds", 0 if known else 1)
    yield Draft(text, tuple(known))


def _prose(text: str, by_id: Mapping[str, EdgeSelection], notes: Notes) -> Iterator[Draft]:
    """A model that wrote prose: its sentences, cited where they contain ids, else unproven."""
    if text.strip():
        notes.drop("reply in prose instead of rows")
    for start, end in sentences(text):
        sentence = text[start:end]
        ids = [i for i in dict.fromkeys(_ID.findall(sentence)) if i in by_id]
        clean = _clean(re.sub(r"\s*[\[(][^\])]*[0-9a-f]{8}[^\])]*[\])]", "", sentence))
        if clean:
            notes.drop("sentence without a citation that holds", 0 if ids else 1)
            yield Draft(clean, tuple(by_id[i] for i in ids))


def _edges(graph: LabelGraph, quotes: Mapping[str, Sequence[str]]) -> str:
    """One JSON object to a line; JSON keeps a label's newlines and pipes from posing as structure."""
    lines = [
        json.dumps(edge_line(i, labels, quotes[i]), ensure_ascii=False)
        for i, labels in zip(graph.ids, graph.labeled_edges, strict=True)
    ]
    return "\n".join(lines)


def _history(turns: Sequence[Turn]) -> str:
    lines = [json.dumps({"question": t.question, "answer": t.answer}, ensure_ascii=False) for t in turns]
    return "\n".join(lines)


def _clean(text: str) -> str:
    return " ".join(text.split())


def _score(row: _SelectionRow, fallback: float) -> float:
    """The model's score brought to 0..1; retrieval's where it gave none."""
    if row.score is None:
        return fallback
    return min(1.0, max(0.0, row.score if row.score <= 1 else row.score / 10))
