"""The language model's way: it names the concepts, selects edges with its reasoning, and writes.

What it says is checked against what it was shown: ids that were not in the prompt are counted and
dropped, and a sentence cites only edges of the selection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from tgraph.answer.base import Draft, Notes, WriterPrompt
from tgraph.answer.rows import (
    AnswerSentenceRow,
    ShownRows,
    T,
    format_items,
    read_citations,
    read_prose,
    read_selection,
    reasoning_of,
    score_of,
    shown_lines,
)
from tgraph.errors import EndpointError, ModelError
from tgraph.model import (
    Agent,
    Candidate,
    Evidence,
    Judgement,
    Prompt,
    Rejected,
    Retrieval,
    Selected,
    Selection,
    Turn,
)
from tgraph.models.base import CallSink, ChatModel, ChatRequest
from tgraph.models.json_parsing import JsonlReader
from tgraph.models.prompts import Prompts, fill_messages, load_prompt
from tgraph.models.structured_output import Structured, ask_structured
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reasons import explain

R = TypeVar("R", bound=BaseModel)

MAX_CONTEXT_TOKENS = 12_000
VERIFY = "[LLM: verify]"
"""The mark of a sentence from a model's general knowledge, which no document proves."""

GENERAL_KNOWLEDGE = """. There is one exception: you may add what you know of the world yourself
  where it helps, and answer from that alone where the evidence is empty or answers nothing;
  "no_evidence" is then for what you don't know either. Such a sentence cites nothing, ends with
  [LLM: verify], and its row has "general_knowledge": true"""
UNASKED = "sentence from general knowledge, which was not allowed"
UNMARKED = "sentence that is not marked, where nothing was selected"
_AFTER = re.compile(re.escape(VERIFY) + r"[\s.]*")
_MARK = re.compile(r"(?<!\s)\s*" + re.escape(VERIFY))
_LEADS = {"paragraph": "\n\n", "item": "\n- "}


class ModelStep:
    """A step performed by a model with one prompt; ``budget`` limits the prompt's tokens."""

    name = ""

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
        max_context_tokens: int = MAX_CONTEXT_TOKENS,
    ) -> None:
        self.model = model
        self._prompt = load_prompt(self.name, prompts)
        self._temperature = temperature
        self._seed = seed
        self._max_tokens = max_tokens
        self.budget = max_context_tokens

    @property
    def agent(self) -> Agent:
        return self.model.agent

    @property
    def prompt(self) -> Prompt:
        return self._prompt

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt,)

    def ask(self, values: Mapping[str, str], form: type[R], sink: CallSink) -> Structured[R]:
        """Return the parsed reply to the prompt filled with ``values``.

        Raises ``ModelError`` for an unreadable reply."""
        return ask_structured(self.model, self.request(values), form, sink)

    def try_ask(self, values: Mapping[str, str], form: type[R], sink: CallSink) -> R | ModelError:
        """Return the parsed reply, or the error for an unreadable reply.

        Raises ``EndpointError`` if the model can't be reached."""
        try:
            return self.ask(values, form, sink).value
        except EndpointError:
            raise
        except ModelError as error:
            return error

    def request(self, values: Mapping[str, str]) -> ChatRequest:
        """Return the chat request with the filled-in prompt."""
        return ChatRequest(
            self._prompt,
            fill_messages(self._prompt, values),
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=self._seed,
        )

    def _fit_items(self, items: Sequence[T], name: str, values: Mapping[str, str]) -> ShownRows[T]:
        """Format items fitting the prompt under ``name``, beside other prompt values."""
        return format_items(items, self.render_without(name, values), self.budget, self.agent.name)

    def render_without(self, name: str, values: Mapping[str, str]) -> str:
        """Return the prompt text with ``name`` left empty."""
        empty = fill_messages(self._prompt, {**values, name: ""})
        return "\n".join(message["content"] for message in empty)


class _ConceptsReply(BaseModel):
    concepts: list[str]


class ModelConcepts(ModelStep):
    """A model step that names the question's concepts."""

    name = "extract_concepts"

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        reply = self.ask(question_values(question), _ConceptsReply, sink).value
        concept_names = [" ".join(concept.split())[:200] for concept in reply.concepts]
        return tuple(dict.fromkeys(name for name in concept_names if name))[:8] or (question.text,)


class ModelSelector(ModelStep):
    """The model selects edges and says why."""

    name = "select_edges"
    step = "EdgeSelecting"

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        if not retrieval.candidates:
            return Selection(())
        values = {**question_values(question), "limit": str(limit)}
        edge_rows = self._fit_items(retrieval.candidates, "edges", values)
        reply = self.model.complete(self.request({**values, "edges": edge_rows.text}), sink)
        rows, unknown, malformed = read_selection(reply.text, edge_rows.by_id)
        chosen = list(rows)[:limit]
        selected = tuple(
            Selected(index, candidate, reasoning_of(rows[i]), score_of(rows[i], candidate.score))
            for index, i in enumerate(chosen)
            for candidate in [edge_rows.by_id[i]]
        )
        limited = explain("selection-limit", limit=limit)
        rejected = [
            Rejected(c, limited if i in rows else explain("model-unselected"))
            for i, c in edge_rows.by_id.items()
            if i not in chosen
        ]
        rejected += [Rejected(c, explain("budget")) for c in edge_rows.left_out]
        return Selection(selected, tuple(rejected), unknown, malformed)


class ModelSynthesiser(ModelStep):
    """Writes the answer with a model, sentence by sentence, each citing ids of its evidence."""

    name = "synthesise_answer"

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        response_type: str = "",
        general_knowledge: bool = False,
        max_words: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, prompts, **options)
        form = f", in the form of: {collapse_whitespace(response_type)}" if response_type else ""
        length = f", in at most {max_words:,} words" if max_words else ""
        self._form = {
            "response_type": form + length,
            "general_knowledge": GENERAL_KNOWLEDGE if general_knowledge else "",
            "judgement": "",
        }
        self._general = general_knowledge

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """As ``Synthesiser.synthesise``. Raises ``ModelError`` for a reply that can't be read.

        Where nothing was selected, the model is asked only if it may use its general knowledge; the
        answer then has marked sentences alone. What a reader judged is shown beside the evidence
        that it rests on.
        """
        prompt = self.build_prompt(question, selection, notes)
        if prompt.request is not None:
            yield from self._stream_drafts(prompt.request, prompt.by_id, notes, sink)

    def build_prompt(self, question: Question, selection: Selection, notes: Notes) -> WriterPrompt:
        """As ``PromptedSynthesiser.build_prompt``."""
        if not selection.selected and not self._general:
            return WriterPrompt({}, "")
        values, judged = {**question_values(question), **self._form}, selection.judgement
        if judged is not None:  # counted before it is known what there is room for
            ids = (identity for identity, _ in shown_lines(selection.selected))
            values["judgement"] = _format_judgement(
                judged, dict(zip(ids, selection.selected, strict=True))
            )
        evidence_rows = self._fit_items(selection.selected, "evidence", values)
        notes.drop("selected item over the token budget", len(evidence_rows.left_out))
        if judged is not None:
            values["judgement"] = _format_judgement(judged, evidence_rows.by_id)
        request = self.request({**values, "evidence": evidence_rows.text})
        return WriterPrompt(evidence_rows.by_id, evidence_rows.text, request)

    def _stream_drafts(
        self, request: ChatRequest, by_id: Mapping[str, Selected], notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """Yield drafts while the reply arrives."""
        reader, reply_pieces, rows = JsonlReader(AnswerSentenceRow), [], 0
        for piece in self.model.stream(request, sink):
            reply_pieces.append(piece)
            for row in reader.feed(piece):
                rows += 1
                yield from self._drafts(row, by_id, notes)
        for row in reader.finish():
            rows += 1
            yield from self._drafts(row, by_id, notes)
        notes.drop("malformed row", reader.malformed)
        if not rows:
            yield from self._draft_prose("".join(reply_pieces), reader.malformed, by_id, notes)

    @staticmethod
    def lead_of(row: AnswerSentenceRow) -> str:
        """Return the separator before the sentence."""
        return _LEADS.get(row.start, " ")

    def left_out(self, question: Question, points: Sequence[Candidate]) -> dict[str, str]:
        """Return items exceeding the prompt's room, by IRI, each with its reason."""
        evidence_rows = self._fit_items(
            points, "evidence", {**question_values(question), **self._form}
        )
        return {point.item.iri: explain("budget") for point in evidence_rows.left_out}

    def _draft_prose(
        self, text: str, malformed: int, by_id: Mapping[str, Selected], notes: Notes
    ) -> Iterator[Draft]:
        """A model that wrote prose: its sentences, cited where they contain ids, else unproven."""
        if malformed:
            raise ModelError(
                f"The reply of {self.agent.name} to the step {self.name} can't be used:"
                " it is broken JSON.",
                "Ask again, or use a larger model.",
            )
        notes.drop("reply in prose instead of rows")
        for row in _prose_rows(text):
            yield from self._drafts(row, by_id, notes)

    def _drafts(
        self, row: AnswerSentenceRow, by_id: Mapping[str, Selected], notes: Notes
    ) -> Iterator[Draft]:
        text, cited, unknown = read_citations(row.sentence, row.citations, by_id)
        if row.no_evidence:
            return
        notes.drop("citation of an id that was not shown", unknown)
        is_general = row.general_knowledge or VERIFY in text
        text = _MARK.sub("", text).strip()
        if not text:
            notes.drop("malformed row")
        elif is_general:
            yield from self._draft_own_knowledge(text, len(cited), self.lead_of(row), notes)
        elif not by_id:
            notes.drop(UNMARKED)
        else:
            notes.drop("sentence without a citation that holds", 0 if cited else 1)
            yield Draft(text, tuple(by_id[i] for i in cited), lead=self.lead_of(row))

    def _draft_own_knowledge(
        self, text: str, cited: int, lead: str, notes: Notes
    ) -> Iterator[Draft]:
        """Yield a sentence from the model's own knowledge, marked and without citations, if
        allowed."""
        if not self._general:
            notes.drop(UNASKED)
            return
        notes.drop("citation by a sentence from general knowledge", cited)
        notes.drop("sentence from general knowledge, to be verified")
        yield Draft(f"{text} {VERIFY}", (), lead=lead)


def _format_judgement(judgement: Judgement, shown: Mapping[str, Selected]) -> str:
    """Return the reader's judgement as a JSON line; empty if the judged answer's place is not
    shown."""
    place = judgement.place
    holding = next(
        (i for i, s in shown.items() if place and _contains_place(s.candidate, place)), None
    )
    if holding is None:
        return ""
    row: dict[str, object] = {"confidence": judgement.confidence, "id": holding}
    if judgement.answer:
        row["answer"] = judgement.answer
    if judgement.missing:
        row["missing"] = judgement.missing
    return json.dumps(row, ensure_ascii=False)


def _contains_place(candidate: Candidate, place: Evidence) -> bool:
    """Return whether the place lies within the candidate's evidence."""
    return any(
        (evidence.document, evidence.page) == (place.document, place.page)
        and evidence.start <= place.start
        and place.end <= evidence.end
        for evidence in candidate.evidence
    )


def _prose_rows(text: str) -> Iterator[AnswerSentenceRow]:
    """Yield sentences from a prose reply; a knowledge mark counts for the preceding sentence."""
    *marked, last = [read_prose(part) for part in _AFTER.split(text)]
    for part in marked:
        yield from (AnswerSentenceRow(sentence=sentence) for sentence in part[:-1])
        yield from (
            AnswerSentenceRow(sentence=sentence, general_knowledge=True) for sentence in part[-1:]
        )
    yield from (AnswerSentenceRow(sentence=sentence) for sentence in last)


def question_values(question: Question) -> dict[str, str]:
    """Return question and history as prompt values."""
    return {"question": question.text, "history": _format_history(question.history)}


def _format_history(turns: Sequence[Turn]) -> str:
    lines = [
        json.dumps({"question": turn.question, "answer": turn.answer}, ensure_ascii=False)
        for turn in turns
    ]
    return "\n".join(lines)


# --- the model alone: an answer from what it knows, which no document proves ----------------------


class ModelAlone(ModelSynthesiser):
    """Each sentence cites nothing and ends with ``[LLM: verify]``."""

    name = "answer_alone"

    def build_prompt(self, question: Question, selection: Selection, notes: Notes) -> WriterPrompt:
        """Build the prompt like ``PromptedSynthesiser.build_prompt``, ignoring the selection."""
        values = {**question_values(question), "response_type": self._form["response_type"]}
        return WriterPrompt({}, "", self.request(values))

    def _drafts(
        self, row: AnswerSentenceRow, by_id: Mapping[str, Selected], notes: Notes
    ) -> Iterator[Draft]:
        text = collapse_whitespace(row.sentence)
        if row.no_evidence:
            return
        if not text:
            notes.drop("malformed row")
            return
        notes.drop("sentence from general knowledge, to be verified")
        marked = text if text.endswith(VERIFY) else f"{text} {VERIFY}"
        yield Draft(marked, (), lead=self.lead_of(row))
