"""Data sets of retrieval: passages, questions and which passages answer them.

The format is a folder with two files of JSON Lines (UTF-8):

- ``passages.jsonl``: ``{"id": "p1", "title": "Fram (ship)", "text": "..."}``; ``title`` may be
  missing or empty;
- ``questions.jsonl``: ``{"question": "...", "gold": ["p1", "p7"], "answer": "..."}``; ``answer``
  may be missing.

A file ``openie*.json`` beside them, as HippoRAG writes it (``{"docs": [{"title", "text",
"extracted_entities": [...], "extracted_triples": [[s, p, o], ...]}]}``), is an extraction of the
passages. The data sets as they were published are read too: MuSiQue in HippoRAG's layout
(``*_corpus.json`` beside the questions) and Anthropic's contextual retrieval
(``codebase_chunks.json``, ``evaluation_set.jsonl``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tgraph.errors import UsageError
from tgraph.extract.model.quote_location import QuoteFinder
from tgraph.ingest.chunk import page_chunks
from tgraph.model import (
    Agent,
    Chunk,
    Document,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Page,
    Prompt,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.models.tokens import count_tokens
from tgraph.vocabulary import normalise_name

LONGEST_NAME = 200
"""Characters of a name in an extraction; what is longer is a sentence in the wrong place."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a document of its own: with a title it is Markdown, without one plain text."""

    id: str
    title: str
    text: str

    @property
    def content(self) -> str:
        return f"# {self.title}\n\n{self.text}\n" if self.title else self.text

    @property
    def suffix(self) -> str:
        return ".md" if self.title else ".txt"

    @property
    def sha256(self) -> str:
        """What the document is known by."""
        return sha256(self.content.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the passages that it takes to answer it, by id."""

    question: str
    gold: frozenset[str]
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A document that holds several passages: each one's id, start and end in its text."""

    text: str
    passages: tuple[tuple[str, int, int], ...]

    @property
    def content(self) -> str:
        return self.text

    @property
    def suffix(self) -> str:
        return ".txt"

    @property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def chunks(self) -> list[Chunk]:
        """The passages as chunks of the document, each with what may be read in it."""
        page = Page(None, self.text)
        document = Document(self.sha256, "", "text/plain", (page,))
        spans = [(start, end) for _, start, end in self.passages]
        pieces = [(*span, count_tokens(self.text[slice(*span)])) for span in spans]
        return page_chunks(document, page, pieces)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Passages and questions; ``openie`` is an extraction of the passages, where there is one, and
    ``wholes`` are the documents that the passages are parts of, where they are."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Asked, ...]
    openie: Path | None = None
    wholes: tuple[Whole, ...] = ()

    def write_documents(self, folder: Path) -> list[Path]:
        """One file for each passage or whole document; those that are there are left alone."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        documents: Sequence[Passage | Whole] = self.wholes or self.passages
        for number, passage in enumerate(documents):
            file = folder / f"{number:06d}{passage.suffix}"
            data = passage.content.encode()
            if not file.is_file() or file.read_bytes() != data:
                file.write_bytes(data)
            files.append(file)
        return files


def read_data(folder: Path) -> DataSet:
    """The data set in a folder, in any of the formats above. ``UsageError`` where there is none."""
    if (folder / "passages.jsonl").is_file():
        found = _simple(folder)
    elif (folder / "codebase_chunks.json").is_file():
        found = _contextual(folder)
    elif corpora := sorted(folder.glob("*_corpus.json")):
        found = _hipporag(corpora[0])
    else:
        raise UsageError(f"{folder} holds no data set.", "See the head of retrieval_data.py.")
    known = {passage.id for passage in found.passages}
    lost = sorted(gold for asked in found.questions for gold in asked.gold - known)
    if lost:
        raise UsageError(
            f"A question of {folder} wants the passage {lost[0]!r}, which there is not.",
            "Give every gold passage a line in passages.jsonl.",
        )
    return found


def _simple(folder: Path) -> DataSet:
    passages = tuple(
        Passage(str(row["id"]), row.get("title", ""), row["text"])
        for row in _lines(folder / "passages.jsonl")
    )
    questions = tuple(
        Asked(row["question"], frozenset(map(str, row["gold"])), row.get("answer", ""))
        for row in _lines(folder / "questions.jsonl")
    )
    return DataSet(folder.name, passages, questions, find_openie(folder))


def _hipporag(corpus: Path) -> DataSet:
    """Passages by title and text; gold are the paragraphs that are marked as supporting."""
    rows = json.loads(corpus.read_text("utf-8"))
    ids = {(row["title"], row["text"]): f"p{place}" for place, row in enumerate(rows)}
    passages = tuple(Passage(iri, *pair) for pair, iri in ids.items())
    asked = json.loads(corpus.with_name(corpus.name.replace("_corpus", "")).read_text("utf-8"))
    questions = tuple(
        Asked(
            row["question"],
            frozenset(
                ids[part["title"], part["paragraph_text"]]
                for part in row["paragraphs"]
                if part["is_supporting"]
            ),
            row.get("answer", ""),
        )
        for row in asked
    )
    return DataSet(corpus.parent.name, passages, questions, find_openie(corpus.parent))


def _contextual(folder: Path) -> DataSet:
    documents = json.loads((folder / "codebase_chunks.json").read_text("utf-8"))
    passages = tuple(
        Passage(_chunk_id(document["original_uuid"], chunk["original_index"]), "", chunk["content"])
        for document in documents
        for chunk in document["chunks"]
    )
    questions = tuple(
        Asked(
            row["query"],
            frozenset(_chunk_id(uuid, index) for uuid, index in row["golden_chunk_uuids"]),
            row.get("answer", ""),
        )
        for row in _lines(folder / "evaluation_set.jsonl")
    )
    return DataSet(
        folder.name, passages, questions, find_openie(folder), wholes=tuple(map(_whole, documents))
    )


def _whole(document: Mapping[str, Any]) -> Whole:
    """The document with the places of its chunks, which stand in it in their order."""
    text, at, places = document["content"], 0, []
    for chunk in document["chunks"]:
        start = text.find(chunk["content"].strip(), at)
        if start < 0:
            raise UsageError(f"A chunk of {document['doc_id']} does not stand in the document.")
        end = start + len(chunk["content"].strip())
        places.append((_chunk_id(document["original_uuid"], chunk["original_index"]), start, end))
        at = start + 1
    return Whole(text, tuple(places))


def _chunk_id(uuid: str, index: int) -> str:
    return f"{uuid}:{index}"


def find_openie(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("openie*.json"))), None)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line.strip()]


class OpenIEExtractor:
    """An extractor that knows what was extracted before: HippoRAG's OpenIE file, by passage.

    A statement is found where its passage holds both names, in as few sentences as possible, else
    in the whole passage; triples that are none (of two parts, or four) are dropped and counted.
    """

    prompts: tuple[Prompt, ...] = ()

    def __init__(self, file: Path) -> None:
        data = file.read_bytes()
        self.key = f"openie:{sha256(data).hexdigest()}"
        self.agent = Agent("software", "openie-file", sha256(data).hexdigest()[:12])
        self._known = {_squeezed(d["title"], d["text"]): d for d in json.loads(data)["docs"]}

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        found = self._known.get(_squeezed(chunk.text.removeprefix("# ")))
        if found is None:
            return Extraction(chunk.iri, (), (), dropped={"chunk that the file doesn't know": 1})
        return _extraction(found, chunk)


def _extraction(found: Mapping[str, Any], chunk: Chunk) -> Extraction:
    located = QuoteFinder(chunk)
    entities = [
        ExtractedEntity(name, "concept", span=located.find(name))
        for name in dict.fromkeys(map(str, found["extracted_entities"]))
        if _is_name(name)
    ]
    whole = located.find(chunk.text)
    relationships = []
    dropped = 0
    for triple in found["extracted_triples"]:
        if not _is_triple(triple):
            dropped += 1
            continue
        subject, predicate, object_ = (part.strip() for part in triple)
        text = f"{subject} {predicate} {object_}"
        span = located.window([subject, object_], text) or whole
        relationships.append(
            ExtractedRelationship(subject, predicate, object_, description=text, span=span)
        )
    reasons = {"triple that is none": dropped} if dropped else {}
    return Extraction(chunk.iri, tuple(entities), tuple(relationships), dropped=reasons)


def _is_triple(triple: Sequence[Any]) -> bool:
    """Whether it has three parts of text, the outer two being two different names."""
    if len(triple) != 3 or not all(isinstance(part, str) and part.strip() for part in triple):
        return False
    ends = normalise_name(triple[0]), normalise_name(triple[2])
    return ends[0] != ends[1] and _is_name(triple[0]) and _is_name(triple[2])


def _is_name(text: str) -> bool:
    return bool(normalise_name(text)) and len(text) <= LONGEST_NAME


def _squeezed(*parts: str) -> str:
    return " ".join(" ".join(parts).split())
