"""Scripted model replies for each step, built from prompt data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

MOST = 8
"""Rows of a prompt that a reply speaks of."""

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_ALLOWED = '"general_knowledge": true'


def list_items(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return edges or other items in the prompt."""
    return rows_of(data.get("EDGES") or data.get("EVIDENCE", ""))


def lines_of(block: str) -> Iterator[Any]:
    """Yield values of a JSON Lines block."""
    return (json.loads(line) for line in block.split("\n") if line)


def rows_of(block: str) -> list[dict[str, Any]]:
    """Return block objects with ids, skipping other lines."""
    rows = []
    for line in block.split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "id" in row:
            rows.append(row)
    return rows


def write_sentences(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return sentences for the first items, each citing its item."""
    return [
        {"sentence": f"{_item_sentence(row)}.", "citations": [row["id"]]}
        for row in list_items(data)[:MOST]
    ]


def own_knowledge(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one uncited sentence of general knowledge if instructions allow general knowledge;
    otherwise return nothing."""
    instructions = [str(m.get("content") or "") for m in messages if m.get("role") == "system"]
    if not any(_ALLOWED in text for text in instructions):
        return []
    sentence_text = "I believe so. [LLM: verify]"
    return [{"sentence": sentence_text, "citations": [], "general_knowledge": True}]


def write_questions(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return questions for the first items, each citing its item."""
    return [
        {"sentence": f"Is it so that {_item_sentence(row)}?", "citations": [row["id"]]}
        for row in list_items(data)[:MOST]
    ]


def step_answer(data: Mapping[str, str]) -> dict[str, Any]:
    """Return an item name absent from the question, plus item id; the first match counts."""
    question = data.get("QUESTION", "")
    for row in list_items(data):
        names = (name for name in _NAME.findall(_item_sentence(row)) if name not in question)
        if name := next(names, ""):
            return {"answer": name, "citations": [row["id"]]}
    return {"answer": "", "citations": []}


def _item_sentence(row: Mapping[str, Any]) -> str:
    kinds = ("edge", "point", "report", "claim", "entity", "summary", "chunk")
    item_text = next((str(row[kind]) for kind in kinds if kind in row), str(row["id"]))
    first = _SENTENCE.search(item_text.replace("|", " ").replace("#", " "))
    return " ".join((first.group() if first else item_text).strip(" .").split())


_MOST_STATEMENTS, _MOST_FOLLOW_UPS = 3, 3
_NAME = re.compile(r"\b[A-Z][\w'’-]{4,}(?: [A-Z][\w'’-]+)*")
_WORD = re.compile(r"\w{3,}")

Blocks = Mapping[str, str]


def _write_hypothesis(data: Blocks) -> str:
    first = _SENTENCE.search(data.get("TEMPLATE", ""))
    return f"{data.get('QUESTION', '').strip()} {first.group().strip() if first else ''}"


def _write_response(data: Blocks) -> dict[str, Any]:
    question_text = f"{data.get('MAIN_QUESTION', '')} {data.get('QUESTION', '')}"
    question_words = _lower_words(question_text)
    ranked = sorted(
        (
            (len(question_words & _lower_words(text)), number, key, text)
            for number, key, text in _number_findings(data)
        ),
        key=lambda row: (-row[0], row[1]),
    )
    best = [row for row in ranked if row[0]][:_MOST_STATEMENTS]
    names = [name for *_, text in best for name in _NAME.findall(text) if name not in question_text]
    return {
        "response": [
            {"statement": _first_sentence(text), "citations": [key]} for *_, key, text in best
        ],
        "score": round(
            100 * max((row[0] for row in best), default=0) / max(len(question_words), 1)
        ),
        "follow_ups": [
            f"What is known of {name}?" for name in list(dict.fromkeys(names))[:_MOST_FOLLOW_UPS]
        ],
    }


def _number_findings(data: Blocks) -> Iterator[tuple[int, str, str]]:
    """Yield report findings, or evidence pieces, with numbers and ids."""
    number = 0
    for block in (data.get("REPORTS", ""), data.get("EVIDENCE", "")):
        for line in block.split("\n"):
            row = json.loads(line) if line.startswith("{") else {}
            for piece in row.get("findings") or [row]:
                if "id" in piece:
                    number += 1
                    yield number, str(piece["id"]), _piece_text(piece)


def _piece_text(row: Mapping[str, Any]) -> str:
    if quotes := row.get("quotes"):
        return str(quotes[0])
    kinds = ("finding", "edge", "claim", "entity", "chunk", "report")
    kind = next((kind for kind in kinds if kind in row), "")
    title_prefix = f"{row['title']}: " if kind == "entity" else ""
    return f"{title_prefix}{row.get(kind, '')}"


def _first_sentence(text: str) -> str:
    match = _SENTENCE.search(text)
    return " ".join((match.group() if match else text).replace("|", " ").split())


def _lower_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _write_numbers(data: Blocks) -> str:
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return "\n".join(
        json.dumps({"number": number, "word": word}) for number, word in enumerate(words, 1)
    )


TEXTS: Mapping[str, Callable[[Blocks], str]] = {
    "drift_hyde": _write_hypothesis,
    "preflight_context": lambda data: data.get("CODE", "") or "I can't see one.",
    "preflight_stream": _write_numbers,
}
"""Replies that are plain text, by step."""

_JUDGING_SENTENCE = re.compile(r"[^.!?\n]+")
_JUDGING_WORD = re.compile(r"\w+")
_NOT = re.compile(r"\b(?:not|never|no)\b", re.IGNORECASE)


def split_statements(data: Blocks) -> dict[str, Any]:
    """Return a statement per sentence: first word, second word, remaining words."""
    rows = []
    for sentence in _JUDGING_SENTENCE.findall(data.get("TEXT", "")):
        subject, _, predicate_part = " ".join(sentence.split()).partition(" ")
        predicate, _, object_words = predicate_part.partition(" ")
        if predicate:
            rows.append({"subject": subject, "predicate": predicate, "object": object_words})
    return {"statements": rows}


def judge_statements(data: Blocks) -> dict[str, Any]:
    """Return entailment verdicts.

    Entailment requires all statement words in the reference; a negation in only one text makes
    Contradiction; other statements are Neutral."""
    reference = data.get("REFERENCE", "")
    reference_words = set(_JUDGING_WORD.findall(reference.lower()))
    rows = []
    for row in lines_of(data.get("STATEMENTS", "")):
        statement = str(row["statement"])
        statement_words = set(_JUDGING_WORD.findall(_NOT.sub("", statement).lower()))
        label = (
            "Entailment" if statement_words and statement_words <= reference_words else "Neutral"
        )
        if label == "Entailment" and bool(_NOT.search(statement)) != bool(_NOT.search(reference)):
            label = "Contradiction"
        rows.append({"id": row["id"], "label": label})
    return {"verdicts": rows}


_READING_WORD = re.compile(r"\w{4,}")


def rate_findings(data: Blocks) -> dict[str, Any]:
    """Return each report's finding sharing most words with the question; without shared words,
    return first findings with low scores."""
    question_words = _reading_words(data.get("QUESTION", ""))
    best = [_best_finding(row, question_words) for row in lines_of(data.get("REPORTS", ""))]
    least = min(1, max((shared for shared, _ in best), default=0))
    rows = [
        {
            "description": finding["finding"],
            "score": min(100, 10 + 90 * shared // max(len(question_words), 1)),
            "citations": [finding["id"]],
        }
        for shared, finding in best
        if finding and shared >= least
    ]
    return {"points": rows}


def _best_finding(report: dict[str, Any], wanted: set[str]) -> tuple[int, dict[str, Any]]:
    scored_findings = [(len(wanted & _reading_words(f["finding"])), f) for f in report["findings"]]
    return max(scored_findings, key=lambda pair: pair[0], default=(-1, {}))


def rate_report(data: Blocks) -> dict[str, Any]:
    """Rate a report: one point per word shared with the question, maximum five."""
    shared = len(_reading_words(data.get("QUESTION", "")) & _reading_words(data.get("REPORT", "")))
    return {"reason": f"It shares {shared} words with the question.", "rating": min(shared, 5)}


def _reading_words(text: str) -> set[str]:
    return set(_READING_WORD.findall(text.lower()))


_MOST_FINDINGS = 5


def write_report(data: Mapping[str, str]) -> dict[str, Any]:
    """Return a report naming first entities and citing first rows; ``data`` holds prompt
    blocks."""
    entities, edges, parts = (
        rows_of(data.get(name, "")) for name in ("ENTITIES", "RELATIONSHIPS", "REPORTS")
    )
    names = [str(row.get("name", row["id"])) for row in entities[:3]]
    findings = [_of_part(row) for row in parts] + [_of_edge(row) for row in edges]
    findings = findings or [_of_entity(row) for row in entities]
    explanations = [finding["explanation"] for finding in findings[:2]]
    return {
        "title": " and ".join(names) or "Nothing",
        "summary": " ".join(explanations) or "There is nothing to report.",
        "rating": min(10, len(edges)),
        "rating_explanation": f"It has {len(edges)} relationships.",
        "findings": findings[:_MOST_FINDINGS],
    }


def _of_edge(row: Mapping[str, Any]) -> dict[str, Any]:
    edge_text = " ".join(str(row.get("edge", "")).replace("|", " ").split())
    quotes = row.get("quotes") or [f"{edge_text}."]
    return {"summary": edge_text, "explanation": str(quotes[0]), "citations": [row["id"]]}


def _of_part(row: Mapping[str, Any]) -> dict[str, Any]:
    inner = row.get("findings") or [row]
    return {
        "summary": str(row.get("title", "")),
        "explanation": str(row.get("summary", "")),
        "citations": [inner[0]["id"]],
    }


def _of_entity(row: Mapping[str, Any]) -> dict[str, Any]:
    name = str(row.get("name", row["id"]))
    return {"summary": name, "explanation": f"{name} is in it.", "citations": [row["id"]]}


def extract_keepers(data: Blocks) -> dict[str, Any]:
    """Return the lighthouse in a passage with year and keepers."""
    names = [" ".join(keeper_name.split()) for keeper_name in _KEEPER.findall(data.get("TEXT", ""))]
    year = re.search(r"\d{4}", data.get("TEXT", ""))
    return {
        "lighthouse": names[0] if names else "",
        "lit": int(year.group()) if year else 0,
        "keepers": names[1:],
    }


_KEEPER = re.compile(r"[A-Z][a-z]+ (?:[A-Z][a-z]+|lighthouse)")


def describe_collection(data: Blocks) -> dict[str, Any]:
    """Describe a collection, naming its subject after the first capitalised passage name."""
    first = _NAME.search(data.get("PASSAGES", ""))
    subject = first.group() if first else "something"
    return {
        "domain": f"the history of {subject}",
        "language": "English",
        "persona": f"You are an expert on {subject}.",
        "role": f"It should tell what became of {subject}.",
        "rating": f"A group is important if it has to do with {subject}.",
    }


def extract_example(data: Blocks) -> dict[str, Any]:
    """Return a relationship between two names found within one sentence."""
    for sentence_match in _SENTENCE.finditer(data.get("PASSAGE", "")):
        quote = sentence_match.group().strip()
        names = _NAME.findall(quote)
        if len(names) > 1:
            row = {"subject": names[0], "predicate": "have to do with", "object": names[1]}
            return {"relationships": [{**row, "subject_type": "thing", "quote": quote}]}
    return {"relationships": []}


VALUES: Mapping[str, Callable[[Blocks], Any]] = {
    "tune_domain": describe_collection,
    "tune_types": lambda data: {"types": ["Person", "ship", "place"]},
    "tune_example": extract_example,
    "preflight_structure": extract_keepers,
    "community_report": write_report,
    "map_points": rate_findings,
    "rate_report": rate_report,
    "drift_primer": _write_response,
    "drift_action": _write_response,
    "extract_statements": split_statements,
    "check_entailment": judge_statements,
}
"""Replies that are one JSON value, by step."""
