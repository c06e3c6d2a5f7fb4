"""What the fakes answer: scripted replies by step, or plausible ones made from the prompt itself.

The plausible replies rest on the convention that tgraph's prompts keep: data stands in blocks
between a line ``<<<NAME`` and a line ``NAME>>>`` (``TEXT``, ``QUESTION``, ``EDGES``,
``EVIDENCE``...), edges and other items one JSON object per line (``{"id", "edge": "subject |
predicate | object"}``, ``{"id", "chunk": "..."}``), and a step is named by the ``response_format``
or by a line ``Step: NAME``.
"""

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
    listed,
    own_knowledge,
    questions,
    rows_of,
    sentences,
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
    """Replies by step: a text, a function of the request, an exception, or a list of these.

    A list is used up in order; asking once more than it has entries is a ``LookupError``, because a
    test that does so is wrong about the number of calls.
    """

    def __init__(self, replies: Mapping[str, Reply[R]] | None = None) -> None:
        self._replies = dict(replies or {})
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()

    def reply(self, step: str, request: R) -> str | None:
        """The scripted text, None where the step has no script. Raises a scripted exception."""
        if step not in self._replies:
            return None
        reply = self._replies[step]
        if not isinstance(reply, str) and isinstance(reply, Sequence):
            reply = self._next(step, reply)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, str) else reply(request)

    def _next(self, step: str, replies: Sequence[Single[R]]) -> Single[R]:
        with self._lock:
            index = self._used.get(step, 0)
            self._used[step] = index + 1
        if index >= len(replies):
            raise LookupError(f"the script has only {len(replies)} replies for {step}")
        return replies[index]


Single = str | BaseException | Callable[[R], str]
Reply = Single[R] | Sequence[Single[R]]


def blocks(messages: Messages) -> dict[str, str]:
    """The blocks of a prompt by name; a later block of the same name replaces an earlier one."""
    return dict(_BLOCK.findall(_text(messages)))


def step_named_in(messages: Messages) -> str:
    """The step that the last line ``Step: NAME`` names, empty if none does."""
    found = _STEP.findall(_text(messages))
    return str(found[-1]) if found else ""


def _text(messages: Messages) -> str:
    return "\n".join(str(message.get("content") or "") for message in messages)


def plausible_reply(step: str, messages: Messages, schema: Mapping[str, Any] | None = None) -> str:
    """A reply that a whole run can go on with, made only from what the prompt holds."""
    data = blocks(messages)
    if step in scripted_steps.TEXTS:
        return scripted_steps.TEXTS[step](data)
    if step in _VALUES:
        return json.dumps(_VALUES[step](data), ensure_ascii=False)
    if step in _LISTS:
        return _rows(_LISTS[step](data), schema)
    if step == "synthesise_answer":
        said = [*sentences(data), *own_knowledge(messages)]
        return _rows(said, schema) if said else '{"no_evidence": true}'
    source = _first_sentence(data, messages)
    if schema is not None:
        return json.dumps(instance(schema, source), ensure_ascii=False)
    return source


def _graph(text: str) -> dict[str, Any]:
    names: dict[str, str] = {}
    relationships = []
    for sentence in _SENTENCE.findall(text):
        quote = sentence.strip()
        found = list(_names(quote))
        for _, name in found:
            names.setdefault(name, quote)
        relationships += [_link(quote, left, right) for left, right in pairwise(found)]
    entities = [
        {"name": name, "type": "Thing", "description": quote, "aliases": []}
        for name, quote in names.items()
    ]
    return {"entities": entities, "relationships": relationships, "attributes": []}


def _claims(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """A claim for every sentence that begins with one of the known names."""
    known = [name for name in data.get("NAMES", "").split("\n") if name != "-"]
    rows = []
    for sentence in _SENTENCE.findall(data.get("TEXT", "")):
        quote = sentence.strip()
        found = [name for name in known if quote.startswith(name)]
        if found:
            subject = max(found, key=len)
            others = [name for name in known if name in quote[len(subject) :]]
            rows.append(_claim(quote, subject, max(others, key=len, default="")))
    return rows


def _claim(quote: str, subject: str, other: str) -> dict[str, Any]:
    words = _words(quote)
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


def _names(sentence: str) -> Iterator[tuple[int, str]]:
    """The capitalised names with where they start, without a common word that opens a sentence."""
    for match in _NAME.finditer(sentence):
        name, start = match.group(), match.start()
        first, _, rest = name.partition(" ")
        if first.lower() in _COMMON:
            name, start = rest.strip(), start + len(name) - len(rest)
        if len(name) > 1 and name.lower() not in _COMMON:
            yield start, name


def _link(quote: str, left: tuple[int, str], right: tuple[int, str]) -> dict[str, Any]:
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


def _summary(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """The first sentence of each description, once, with the ids of all that begin with it."""
    ids: dict[str, list[str]] = {}
    for row in rows_of(data.get("DESCRIPTIONS", "")):
        if first := _SENTENCE.search(str(row.get("text", ""))):
            ids.setdefault(first.group().strip(), []).append(str(row["id"]))
    return [{"text": text, "ids": rests_on} for text, rests_on in ids.items()]


def _cluster(data: Mapping[str, str]) -> dict[str, str]:
    """The first sentence of each passage, under the title of the first."""
    rows = list(scripted_steps.lines_of(data.get("PASSAGES", "")))
    found = [_SENTENCE.search(str(row["text"]).replace("#", " ")) for row in rows]
    said = dict.fromkeys(match.group().strip() for match in found if match)
    return {"title": str(rows[0]["title"]), "summary": " ".join(said)}


def _concepts(question: str) -> list[str]:
    words = [w for w in _WORD.findall(question) if len(w) > 5 and w.lower() not in _COMMON]
    return list(dict.fromkeys([*(name for _, name in _names(question)), *words]))


def _keywords(question: str) -> dict[str, list[str]]:
    low = list(dict.fromkeys(name for _, name in _names(question)))
    return {"high": [c for c in _concepts(question) if c not in low], "low": low}


def _words(text: str) -> set[str]:
    found = {word for word in _WORD.findall(text.lower()) if word not in _COMMON}
    runs = _HAN_RUN.findall(text)
    return found | {run[at : at + 2] for run in runs for at in range(len(run) - 1)}


def _selected(data: Mapping[str, str]) -> list[dict[str, Any]]:
    wanted = _words(data.get("QUESTION", ""))
    shared = [
        (len(wanted & _words(json.dumps(row, ensure_ascii=False))), row) for row in listed(data)
    ]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return [
        {
            "id": row["id"],
            "reasoning": f"It shares {count} words with the question.",
            "score": round(count / max(len(wanted), 1), 3),
        }
        for count, row in best[:MOST]
    ]


def _rows(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> str:
    """The rows as JSON Lines, or in the schema's lists if a schema is asked for."""
    if schema is None and not rows:
        return json.dumps({"none": True})  # as prompts/select_edges.md asks
    if schema is None:
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    reply = {
        name: list(rows) if sub.get("type") == "array" else instance(sub, "", schema)
        for name, sub in schema.get("properties", {}).items()
    }
    return json.dumps(reply, ensure_ascii=False)


def _first_sentence(data: Mapping[str, str], messages: Messages) -> str:
    source = next(iter(data.values()), "") or (str(messages[-1]["content"]) if messages else "")
    match = _SENTENCE.search(source)
    return match.group().strip() if match else "Nothing."


def instance(
    schema: Mapping[str, Any], text: str, root: Mapping[str, Any] | None = None, depth: int = 0
) -> Any:
    """A value that fits a JSON schema: its strings are ``text``, its lists have one item."""
    root = schema if root is None else root
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return instance(root["$defs"][name], text, root, depth)
    for choices in ("enum", "anyOf", "const"):
        if choices in schema:
            first = schema[choices]
            first = first if choices == "const" else first[0]
            return instance(first, text, root, depth) if choices == "anyOf" else first
    if schema.get("type") == "object":
        return {
            name: instance(sub, text, root, depth + 1)
            for name, sub in schema.get("properties", {}).items()
        }
    if schema.get("type") == "array":
        return [] if depth > 3 else [instance(schema.get("items", {}), text, root, depth + 1)]
    low = schema.get("minimum", 1)
    simple: dict[str, Any] = {"integer": int(low), "number": low, "boolean": True, "null": None}
    return simple.get(schema.get("type", "string"), text)


_VALUES: Mapping[str, Callable[[Blocks], Any]] = {
    "extract_graph": lambda data: _graph(data.get("TEXT", "")),
    "extract_graph_more": lambda data: _graph(""),
    "extract_claims": lambda data: {"claims": _claims(data)},
    "extract_claims_more": lambda data: {"claims": []},
    "extract_concepts": lambda data: {"concepts": _concepts(data.get("QUESTION", ""))},
    "decompose_question": lambda data: {"steps": []},
    "answer_step": scripted_steps.step_answer,
    "choose_mode": lambda data: {"form": "one", "reason": "it is short"},
    "extract_keywords": lambda data: _keywords(data.get("QUESTION", "")),
    "summarise_cluster": _cluster,
    "situate_chunk": lambda data: {"context": f"From {data.get('TITLE', '')}."},
    "summarise_descriptions": lambda data: {"sentences": _summary(data)},
    **scripted_steps.VALUES,
}
_LISTS: Mapping[str, Callable[[Blocks], Sequence[Mapping[str, Any]]]] = {
    "select_edges": _selected,
    "suggest_questions": questions,
    "answer_alone": lambda data: [{"sentence": "I believe so."}],
}
