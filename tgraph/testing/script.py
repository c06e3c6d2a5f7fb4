"""Fake model replies: scripted by step, or plausible replies built from prompts.

Plausible replies rely on tgraph prompt conventions: data blocks stand between lines ``<<<NAME``
and ``NAME>>>`` (``TEXT``, ``QUESTION``, ``EDGES``, ``EVIDENCE``...); edges and other items are
one JSON object per line (``{"id", "edge": "subject | predicate | object"}``, ``{"id", "chunk":
"..."}``); ``response_format`` or a line ``Step: NAME`` names the step."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

from tgraph.testing import scripted_steps
from tgraph.testing.scripted_steps import (
    MOST,
    Blocks,
    list_items,
    own_knowledge,
    rows_of,
    write_questions,
    write_sentences,
)

R = TypeVar("R")
Messages = Sequence[Mapping[str, Any]]

_BLOCK = re.compile(r"^<<<(\w+)[^\S\n]*\n(.*?)(?:\n)?^\1>>>", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^Step:\s*(\S+)\s*$", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s(?:of\s|the\s|de\s|and\s)?[A-Z][\w'’-]*)*")
_WORD = re.compile(r"\w+")
_HAN_RUN = re.compile(r"[\u4e00-\u9fff]+")
_YEAR = re.compile(r"\b[12]\d{3}\b")
_NOT = re.compile(r"\b(?:not|never|no)\b|n[’']t\b")


_COMMON_WORDS = (
    "a about after all an and are as at be before but by did do does for from had has have he"
    " her his how i in is it its of on or she that the their there these they this those to"
    " was we were what when where which who whom whose why will with you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())


class Script(Generic[R]):
    """Scripted replies by step: texts, request functions, exceptions, or lists of replies.

    Lists are used in order; requests beyond the list end raise ``LookupError``, because such a
    test expects a wrong number of calls."""

    def __init__(self, replies: Mapping[str, ScriptedReply[R]] | None = None) -> None:
        self._replies = dict(replies or {})
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()

    def reply(self, step: str, request: R) -> str | None:
        """Return the scripted text, or None for unscripted steps; raise scripted exceptions."""
        if step not in self._replies:
            return None
        reply = self._replies[step]
        if not isinstance(reply, str) and isinstance(reply, Sequence):
            reply = self._next_reply(step, reply)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, str) else reply(request)

    def _next_reply(self, step: str, replies: Sequence[Single[R]]) -> Single[R]:
        with self._lock:
            index = self._used.get(step, 0)
            self._used[step] = index + 1
        if index >= len(replies):
            raise LookupError(f"the script has only {len(replies)} replies for {step}")
        return replies[index]


Single = str | BaseException | Callable[[R], str]
ScriptedReply = Single[R] | Sequence[Single[R]]


def parse_blocks(messages: Messages) -> dict[str, str]:
    """Return prompt blocks by name; later blocks replace earlier blocks of equal name."""
    return dict(_BLOCK.findall(_join_messages(messages)))


def step_named_in(messages: Messages) -> str:
    """Return the step from the final ``Step: NAME`` line; default: empty string."""
    step_names = _STEP.findall(_join_messages(messages))
    return str(step_names[-1]) if step_names else ""


def _join_messages(messages: Messages) -> str:
    return "\n".join(str(message.get("content") or "") for message in messages)


def plausible_reply(step: str, messages: Messages, schema: Mapping[str, Any] | None = None) -> str:
    """Return a plausible reply built from prompt contents, allowing complete runs."""
    data = parse_blocks(messages)
    if step in scripted_steps.TEXTS:
        return scripted_steps.TEXTS[step](data)
    if step in _VALUES:
        return json.dumps(_VALUES[step](data), ensure_ascii=False)
    if step in _LISTS:
        return _format_rows(_LISTS[step](data), schema)
    if step == "synthesise_answer":
        sentence_rows = [*write_sentences(data), *own_knowledge(messages)]
        return _format_rows(sentence_rows, schema) if sentence_rows else '{"no_evidence": true}'
    source = _first_sentence(data, messages)
    if schema is not None:
        return json.dumps(build_instance(schema, source), ensure_ascii=False)
    return source


def _extract_graph(text: str) -> dict[str, Any]:
    names: dict[str, str] = {}
    relationships = []
    for sentence in _SENTENCE.findall(text):
        quote = sentence.strip()
        placed_names = list(_find_names(quote))
        for _, name in placed_names:
            names.setdefault(name, quote)
        relationships += [
            _build_relationship(quote, left_name, right)
            for left_name, right in pairwise(placed_names)
        ]
    entities = [
        {"name": name, "type": "Thing", "description": quote, "aliases": []}
        for name, quote in names.items()
    ]
    return {"entities": entities, "relationships": relationships, "attributes": []}


def _extract_claims(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return one claim for each sentence starting with known names."""
    known_names = [name for name in data.get("NAMES", "").split("\n") if name != "-"]
    rows = []
    for sentence in _SENTENCE.findall(data.get("TEXT", "")):
        quote = sentence.strip()
        subject_names = [name for name in known_names if quote.startswith(name)]
        if subject_names:
            subject = max(subject_names, key=len)
            object_names = [name for name in known_names if name in quote[len(subject) :]]
            rows.append(_build_claim(quote, subject, max(object_names, key=len, default="")))
    return rows


def _build_claim(quote: str, subject: str, other: str) -> dict[str, Any]:
    words = _content_words(quote)
    doubted = words & {"may", "perhaps", "allegedly", "probably", "suspected"}
    year = _YEAR.search(quote)
    date = year.group() if year else ""
    return {
        "subject": subject,
        "object": other,
        "type": "deed",
        "status": "FALSE" if _NOT.search(quote) else "SUSPECTED" if doubted else "TRUE",
        "started": date,
        "ended": date,
        "description": quote,
        "quote": quote,
    }


def _find_names(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield capitalised names with start offsets, dropping common words opening a sentence."""
    for match in _NAME.finditer(sentence):
        name, start = match.group(), match.start()
        first, _, remainder = name.partition(" ")
        if first.lower() in _COMMON:
            name, start = remainder.strip(), start + len(name) - len(remainder)
        if len(name) > 1 and name.lower() not in _COMMON:
            yield start, name


def _build_relationship(
    quote: str, left: tuple[int, str], right: tuple[int, str]
) -> dict[str, Any]:
    between = quote[left[0] + len(left[1]) : right[0]]
    words = [w for w in _WORD.findall(between) if w.lower() not in {"a", "an", "the", "and"}]
    return {
        "subject": left[1],
        "predicate": " ".join(words[:4]).lower() or "is related to",
        "object": right[1],
        "description": quote,
        "keywords": words[:2],
        "strength": 7,
        "quote": quote,
    }


def _summarise_descriptions(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return distinct first sentences of descriptions, each with its description ids."""
    ids: dict[str, list[str]] = {}
    for row in rows_of(data.get("DESCRIPTIONS", "")):
        if first := _SENTENCE.search(str(row.get("text", ""))):
            ids.setdefault(first.group().strip(), []).append(str(row["id"]))
    return [{"text": text, "ids": rests_on} for text, rests_on in ids.items()]


def _summarise_cluster(data: Mapping[str, str]) -> dict[str, str]:
    """Return first sentences of all passages, titled like the first passage."""
    rows = list(scripted_steps.lines_of(data.get("PASSAGES", "")))
    matches = [_SENTENCE.search(str(row["text"]).replace("#", " ")) for row in rows]
    unique_sentences = dict.fromkeys(match.group().strip() for match in matches if match)
    return {"title": str(rows[0]["title"]), "summary": " ".join(unique_sentences)}


def _extract_concepts(question: str) -> list[str]:
    words = [w for w in _WORD.findall(question) if len(w) > 5 and w.lower() not in _COMMON]
    return list(dict.fromkeys([*(name for _, name in _find_names(question)), *words]))


def _extract_keywords(question: str) -> dict[str, list[str]]:
    low = list(dict.fromkeys(name for _, name in _find_names(question)))
    return {"high": [c for c in _extract_concepts(question) if c not in low], "low": low}


def _content_words(text: str) -> set[str]:
    word_set = {word for word in _WORD.findall(text.lower()) if word not in _COMMON}
    runs = _HAN_RUN.findall(text)
    return word_set | {run[at : at + 2] for run in runs for at in range(len(run) - 1)}


def _select_rows(data: Mapping[str, str]) -> list[dict[str, Any]]:
    question_words = _content_words(data.get("QUESTION", ""))
    shared = [
        (len(question_words & _content_words(json.dumps(row, ensure_ascii=False))), row)
        for row in list_items(data)
    ]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return [
        {
            "id": row["id"],
            "reasoning": f"It shares {count} words with the question.",
            "score": round(count / max(len(question_words), 1), 3),
        }
        for count, row in best[:MOST]
    ]


def _format_rows(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> str:
    """Format rows as JSON Lines, or as lists of a requested schema."""
    if schema is None and not rows:
        return json.dumps({"none": True})  # as prompts/select_edges.md asks
    if schema is None:
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    reply = {
        name: list(rows) if sub.get("type") == "array" else build_instance(sub, "", schema)
        for name, sub in schema.get("properties", {}).items()
    }
    return json.dumps(reply, ensure_ascii=False)


def _first_sentence(data: Mapping[str, str], messages: Messages) -> str:
    source = next(iter(data.values()), "") or (str(messages[-1]["content"]) if messages else "")
    match = _SENTENCE.search(source)
    return match.group().strip() if match else "Nothing."


def build_instance(
    schema: Mapping[str, Any], text: str, root: Mapping[str, Any] | None = None, depth: int = 0
) -> Any:
    """Return a value fitting a JSON schema: strings are ``text``, lists have one item."""
    root = schema if root is None else root
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return build_instance(root["$defs"][name], text, root, depth)
    for choices in ("enum", "anyOf", "const"):
        if choices in schema:
            first = schema[choices]
            first = first if choices == "const" else first[0]
            return build_instance(first, text, root, depth) if choices == "anyOf" else first
    if schema.get("type") == "object":
        return {
            name: build_instance(sub, text, root, depth + 1)
            for name, sub in schema.get("properties", {}).items()
        }
    if schema.get("type") == "array":
        return [] if depth > 3 else [build_instance(schema.get("items", {}), text, root, depth + 1)]
    low = schema.get("minimum", 1)
    simple: dict[str, Any] = {"integer": int(low), "number": low, "boolean": True, "null": None}
    return simple.get(schema.get("type", "string"), text)


_VALUES: Mapping[str, Callable[[Blocks], Any]] = {
    "extract_graph": lambda data: _extract_graph(data.get("TEXT", "")),
    "extract_graph_more": lambda data: _extract_graph(""),
    "extract_claims": lambda data: {"claims": _extract_claims(data)},
    "extract_claims_more": lambda data: {"claims": []},
    "extract_concepts": lambda data: {"concepts": _extract_concepts(data.get("QUESTION", ""))},
    "decompose_question": lambda data: {"steps": []},
    "write_query": lambda data: {"action": "no_data", "reason": "nothing fits"},
    "answer_step": scripted_steps.step_answer,
    "choose_mode": lambda data: {"form": "one", "reason": "it is short"},
    "extract_keywords": lambda data: _extract_keywords(data.get("QUESTION", "")),
    "summarise_cluster": _summarise_cluster,
    "situate_chunk": lambda data: {"context": f"From {data.get('TITLE', '')}."},
    "summarise_descriptions": lambda data: {"sentences": _summarise_descriptions(data)},
    **scripted_steps.VALUES,
}
_LISTS: Mapping[str, Callable[[Blocks], Sequence[Mapping[str, Any]]]] = {
    "select_edges": _select_rows,
    "suggest_questions": write_questions,
    "answer_alone": lambda data: [{"sentence": "I believe so."}],
}
