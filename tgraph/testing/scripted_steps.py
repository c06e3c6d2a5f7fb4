"""What a scripted model replies to each step, from what the prompt shows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

MOST = 8
"""Rows of a prompt that a reply speaks of."""

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_ALLOWED = '"general_knowledge": true'


def listed(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """The edges or other items of the prompt."""
    return rows_of(data.get("EDGES") or data.get("EVIDENCE", ""))


def lines_of(block: str) -> Iterator[Any]:
    """The values of a block of JSON Lines."""
    return (json.loads(line) for line in block.split("\n") if line)


def rows_of(block: str) -> list[dict[str, Any]]:
    """The objects with an id of a block; lines that hold none are passed over."""
    rows = []
    for line in block.split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "id" in row:
            rows.append(row)
    return rows


def sentences(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """A sentence for each of the first items, which it cites."""
    return [
        {"sentence": f"{_spoken(row)}.", "citations": [row["id"]]} for row in listed(data)[:MOST]
    ]


def own_knowledge(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One sentence of the model's own where the instructions allow that, else none."""
    told = [str(m.get("content") or "") for m in messages if m.get("role") == "system"]
    if not any(_ALLOWED in text for text in told):
        return []
    said = "I believe so. [LLM: verify]"
    return [{"sentence": said, "citations": [], "general_knowledge": True}]


def questions(data: Mapping[str, str]) -> list[dict[str, Any]]:
    """A question for each of the first items, which it cites."""
    return [
        {"sentence": f"Is it so that {_spoken(row)}?", "citations": [row["id"]]}
        for row in listed(data)[:MOST]
    ]


def step_answer(data: Mapping[str, str]) -> dict[str, Any]:
    """The first name of the first item that has one, which the question has not; with its id."""
    question = data.get("QUESTION", "")
    for row in listed(data):
        names = (name for name in _NAME.findall(_spoken(row)) if name not in question)
        if name := next(names, ""):
            return {"answer": name, "citations": [row["id"]]}
    return {"answer": "", "citations": []}


def _spoken(row: Mapping[str, Any]) -> str:
    kinds = ("edge", "point", "report", "claim", "entity", "summary", "chunk")
    said = next((str(row[kind]) for kind in kinds if kind in row), str(row["id"]))
    first = _SENTENCE.search(said.replace("|", " ").replace("#", " "))
    return " ".join((first.group() if first else said).strip(" .").split())


_MOST_STATEMENTS, _MOST_FOLLOW_UPS = 3, 3
_NAME = re.compile(r"\b[A-Z][\w'’-]{4,}(?: [A-Z][\w'’-]+)*")
_WORD = re.compile(r"\w{3,}")

Blocks = Mapping[str, str]


def _hypothesis(data: Blocks) -> str:
    first = _SENTENCE.search(data.get("TEMPLATE", ""))
    return f"{data.get('QUESTION', '').strip()} {first.group().strip() if first else ''}"


def _response(data: Blocks) -> dict[str, Any]:
    asked = f"{data.get('MAIN_QUESTION', '')} {data.get('QUESTION', '')}"
    wanted = _words(asked)
    ranked = sorted(
        ((len(wanted & _words(text)), number, key, text) for number, key, text in _shown(data)),
        key=lambda row: (-row[0], row[1]),
    )
    best = [row for row in ranked if row[0]][:_MOST_STATEMENTS]
    names = [name for *_, text in best for name in _NAME.findall(text) if name not in asked]
    return {
        "response": [{"statement": _first(text), "citations": [key]} for *_, key, text in best],
        "score": round(100 * max((row[0] for row in best), default=0) / max(len(wanted), 1)),
        "follow_ups": [
            f"What is known of {name}?" for name in list(dict.fromkeys(names))[:_MOST_FOLLOW_UPS]
        ],
    }


def _shown(data: Blocks) -> Iterator[tuple[int, str, str]]:
    """The findings of reports, or else the pieces of evidence, with their ids."""
    number = 0
    for block in (data.get("REPORTS", ""), data.get("EVIDENCE", "")):
        for line in block.split("\n"):
            row = json.loads(line) if line.startswith("{") else {}
            for piece in row.get("findings") or [row]:
                if "id" in piece:
                    number += 1
                    yield number, str(piece["id"]), _said(piece)


def _said(row: Mapping[str, Any]) -> str:
    if quotes := row.get("quotes"):
        return str(quotes[0])
    kinds = ("finding", "edge", "claim", "entity", "chunk", "report")
    kind = next((kind for kind in kinds if kind in row), "")
    named = f"{row['title']}: " if kind == "entity" else ""
    return f"{named}{row.get(kind, '')}"


def _first(text: str) -> str:
    found = _SENTENCE.search(text)
    return " ".join((found.group() if found else text).replace("|", " ").split())


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _counted(data: Blocks) -> str:
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return "\n".join(
        json.dumps({"number": number, "word": word}) for number, word in enumerate(words, 1)
    )


TEXTS: Mapping[str, Callable[[Blocks], str]] = {
    "drift_hyde": _hypothesis,
    "preflight_context": lambda data: data.get("CODE", "") or "I can't see one.",
    "preflight_stream": _counted,
}
"""Replies that are plain text, by step."""

_JUDGING_SENTENCE = re.compile(r"[^.!?\n]+")
_JUDGING_WORD = re.compile(r"\w+")
_NOT = re.compile(r"\b(?:not|never|no)\b", re.IGNORECASE)


def statements(data: Blocks) -> dict[str, Any]:
    """A statement for each sentence: its first word, its second, and the rest."""
    rows = []
    for sentence in _JUDGING_SENTENCE.findall(data.get("TEXT", "")):
        subject, _, rest = " ".join(sentence.split()).partition(" ")
        predicate, _, thing = rest.partition(" ")
        if predicate:
            rows.append({"subject": subject, "predicate": predicate, "object": thing})
    return {"statements": rows}


def verdicts(data: Blocks) -> dict[str, Any]:
    """Entailment where the reference holds every word of the statement, or Contradiction where
    only one of them has a negation; else Neutral."""
    reference = data.get("REFERENCE", "")
    known = set(_JUDGING_WORD.findall(reference.lower()))
    rows = []
    for row in lines_of(data.get("STATEMENTS", "")):
        said = str(row["statement"])
        wanted = set(_JUDGING_WORD.findall(_NOT.sub("", said).lower()))
        label = "Entailment" if wanted and wanted <= known else "Neutral"
        if label == "Entailment" and bool(_NOT.search(said)) != bool(_NOT.search(reference)):
            label = "Contradiction"
        rows.append({"id": row["id"], "label": label})
    return {"verdicts": rows}


_READING_WORD = re.compile(r"\w{4,}")


def points(data: Blocks) -> dict[str, Any]:
    """The finding of each report that shares most words with the question; where none shares any,
    the first finding of each report, with a low score."""
    wanted = _reading_words(data.get("QUESTION", ""))
    best = [_best(row, wanted) for row in lines_of(data.get("REPORTS", ""))]
    least = min(1, max((shared for shared, _ in best), default=0))
    rows = [
        {
            "description": finding["finding"],
            "score": min(100, 10 + 90 * shared // max(len(wanted), 1)),
            "citations": [finding["id"]],
        }
        for shared, finding in best
        if finding and shared >= least
    ]
    return {"points": rows}


def _best(report: dict[str, Any], wanted: set[str]) -> tuple[int, dict[str, Any]]:
    found = [(len(wanted & _reading_words(f["finding"])), f) for f in report["findings"]]
    return max(found, key=lambda pair: pair[0], default=(-1, {}))


def rating(data: Blocks) -> dict[str, Any]:
    """One for each word that the report shares with the question, at most five."""
    shared = len(_reading_words(data.get("QUESTION", "")) & _reading_words(data.get("REPORT", "")))
    return {"reason": f"It shares {shared} words with the question.", "rating": min(shared, 5)}


def _reading_words(text: str) -> set[str]:
    return set(_READING_WORD.findall(text.lower()))


_MOST_FINDINGS = 5


def report(data: Mapping[str, str]) -> dict[str, Any]:
    """A report that names the first entities and cites the first rows; ``data`` are the blocks."""
    entities, edges, parts = (
        rows_of(data.get(name, "")) for name in ("ENTITIES", "RELATIONSHIPS", "REPORTS")
    )
    names = [str(row.get("name", row["id"])) for row in entities[:3]]
    findings = [_of_part(row) for row in parts] + [_of_edge(row) for row in edges]
    findings = findings or [_of_entity(row) for row in entities]
    told = [finding["explanation"] for finding in findings[:2]]
    return {
        "title": " and ".join(names) or "Nothing",
        "summary": " ".join(told) or "There is nothing to report.",
        "rating": min(10, len(edges)),
        "rating_explanation": f"It has {len(edges)} relationships.",
        "findings": findings[:_MOST_FINDINGS],
    }


def _of_edge(row: Mapping[str, Any]) -> dict[str, Any]:
    said = " ".join(str(row.get("edge", "")).replace("|", " ").split())
    quotes = row.get("quotes") or [f"{said}."]
    return {"summary": said, "explanation": str(quotes[0]), "citations": [row["id"]]}


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


def keepers(data: Blocks) -> dict[str, Any]:
    """The lighthouse of the passage, with its year and its keepers."""
    names = [" ".join(found.split()) for found in _KEEPER.findall(data.get("TEXT", ""))]
    year = re.search(r"\d{4}", data.get("TEXT", ""))
    return {
        "lighthouse": names[0] if names else "",
        "lit": int(year.group()) if year else 0,
        "keepers": names[1:],
    }


_KEEPER = re.compile(r"[A-Z][a-z]+ (?:[A-Z][a-z]+|lighthouse)")


def collection(data: Blocks) -> dict[str, Any]:
    """What a collection is, by the first name of its first passage."""
    first = _NAME.search(data.get("PASSAGES", ""))
    about = first.group() if first else "something"
    return {
        "domain": f"the history of {about}",
        "language": "English",
        "persona": f"You are an expert on {about}.",
        "role": f"It should tell what became of {about}.",
        "rating": f"A group is important if it has to do with {about}.",
    }


def example(data: Blocks) -> dict[str, Any]:
    """A relationship between the first names of a sentence that has two."""
    for found in _SENTENCE.finditer(data.get("PASSAGE", "")):
        quote = found.group().strip()
        names = _NAME.findall(quote)
        if len(names) > 1:
            row = {"subject": names[0], "predicate": "have to do with", "object": names[1]}
            return {"relationships": [{**row, "subject_type": "thing", "quote": quote}]}
    return {"relationships": []}


VALUES: Mapping[str, Callable[[Blocks], Any]] = {
    "tune_domain": collection,
    "tune_types": lambda data: {"types": ["Person", "ship", "place"]},
    "tune_example": example,
    "preflight_structure": keepers,
    "community_report": report,
    "map_points": points,
    "rate_report": rating,
    "drift_primer": _response,
    "drift_action": _response,
    "extract_statements": statements,
    "check_entailment": verdicts,
}
"""Replies that are one JSON value, by step."""
