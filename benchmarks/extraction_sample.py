"""Edges to be judged by hand, drawn from four kinds of text, and the table of what was judged.

A kind is a folder or file of public data (see ``KINDS``). With the same seed, data and extractor
the same edges are drawn: three from each chunk at most. What is right by its form is left out:
``mentions``, and the headings, items and code that stand in a section.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pyoxigraph import Literal

from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.facts import MENTIONS
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.files import load
from tgraph.model import Chunk, Document, ExtractedRelationship

RIGHT = "right"
_BY_FORM = frozenset({MENTIONS, "have section", "have item", "have code"})
_FROM_ONE_CHUNK = 3
_ROUND_OF_CHUNKS = 200

Documents = Iterator[Document]


def _text(title: str, parts: Iterable[str]) -> Document:
    name = title.replace("/", " ") + ".txt"
    return load("\n\n".join(parts).encode(), name)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _encyclopaedia(data: Path) -> Documents:
    for article in json.loads((data / "squad_dev/squad_dev.json").read_text("utf-8"))["data"]:
        title = article["title"].replace("_", " ")
        yield _text(title, (paragraph["context"] for paragraph in article["paragraphs"]))


def _technical(data: Path) -> Documents:
    yield from map(load, sorted((data / "otel_docs/docs").rglob("*.md")))


def _stories(data: Path) -> Documents:
    yield load((data / "christmas_carol/mock_data.txt").read_bytes(), "A Christmas Carol.txt")
    for story in _lines(data / "qa_training/fairytaleqa.jsonl"):
        yield _text(story["story"].replace("-", " ").capitalize(), story["sections"])


def _policy_and_science(data: Path) -> Documents:
    segments: dict[str, dict[str, None]] = {}
    for entry in _lines(data / "qa_training/policyqa.jsonl"):
        segments.setdefault(entry["title"], {})[entry["context"]] = None
    for title, contexts in segments.items():
        yield _text(f"Privacy policy of {title}", contexts)
    seen = dict.fromkeys(e["context"] for e in _lines(data / "qa_training/covidqa.jsonl"))
    for context in seen:
        yield _text(context.partition("\n")[0], [context])


KINDS: dict[str, Callable[[Path], Documents]] = {
    "encyclopaedia": _encyclopaedia,
    "technical": _technical,
    "stories": _stories,
    "policy and science": _policy_and_science,
}


def drawn(data: Path, seed: int, of_each: int) -> Iterator[dict[str, str]]:
    """``of_each`` edges of every kind of text, each with its sentence and an empty verdict."""
    extractor = EmbeddedExtractor()
    for kind, documents in KINDS.items():
        chosen = random.Random(f"{kind} {seed}")
        yield from islice(_edges(kind, documents(data), extractor, chosen), of_each)


def _edges(
    kind: str, documents: Documents, extractor: EmbeddedExtractor, chosen: random.Random
) -> Iterator[dict[str, str]]:
    chunks = [(chunk, d.title) for d in documents for chunk in chunk_document(d)]
    for chunk, title in chosen.sample(chunks, min(_ROUND_OF_CHUNKS, len(chunks))):
        found = [r for r in extractor.extract(chunk, title).relationships if _is_stated(r)]
        for edge in chosen.sample(found, min(_FROM_ONE_CHUNK, len(found))):
            yield {"kind": kind, "title": title} | _shown(edge, chunk) | {"verdict": ""}


def _is_stated(edge: ExtractedRelationship) -> bool:
    return edge.predicate not in _BY_FORM


def _shown(edge: ExtractedRelationship, chunk: Chunk) -> dict[str, str]:
    obj = edge.object.value if isinstance(edge.object, Literal) else edge.object
    quote = " ".join(edge.span.quote.split()) if edge.span else ""
    before = ""
    if edge.span:
        start = edge.span.start - chunk.start
        before = " ".join(chunk.text[max(0, start - 200) : start].split())
    stated = f"{edge.subject} | {edge.predicate} | {obj}"
    return {"before": before, "sentence": quote, "edge": stated}


def table(judged: Iterable[dict[str, str]]) -> str:
    """The precision of each kind of text, then the faults, commonest first, as Markdown."""
    entries = list(judged)
    lines = ["| text | edges | right |", "|---|---|---|"]
    for kind in dict.fromkeys(entry["kind"] for entry in entries):
        verdicts = [entry["verdict"] for entry in entries if entry["kind"] == kind]
        lines.append(f"| {kind} | {len(verdicts)} | {verdicts.count(RIGHT) / len(verdicts):.2f} |")
    right = sum(entry["verdict"] == RIGHT for entry in entries)
    lines.append(f"| all | {len(entries)} | {right / len(entries):.2f} |")
    faults = Counter(entry["verdict"] for entry in entries if entry["verdict"] != RIGHT)
    lines += ["", "| fault | edges |", "|---|---|"]
    lines += [f"| {fault} | {number} |" for fault, number in faults.most_common()]
    return "\n".join(lines)
