"""Which way of reading a text needs, and the reading of any language without a parser."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pyoxigraph import Literal

from tgraph.extract.facts import MENTIONS, WEAK, ChunkReading, NamedEntity, NameTable
from tgraph.ingest.base import shorten
from tgraph.ingest.sentences import sentences
from tgraph.model import Segment

RELATED = "be mentioned with"
_CAPITALS = re.compile(
    r"(?<!\w)[^\W\d_a-zß-öø-ÿ][\w'’-]*(?:[ ](?:(?:de|la|du|des|del|von|van|der|di|da|le|zu) ){0,2}"
    r"[^\W\d_a-zß-öø-ÿ][\w'’-]*)*"
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_HAN_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2,}")
_MOST_PERSENTENCE = 8
_MOST_GRAMS = 60
_LONGEST_NAME = 80
_LONGEST_SAID = 200


def read(blocks: Sequence[Segment], titles: Sequence[str], names: NameTable) -> ChunkReading:
    """The reading of prose in any language. Names are runs of capitalised words that don't only
    open sentences, or, in scripts without capitals, word sequences that recur in the chunk. Two
    names in one sentence are related, weakly; how, is not claimed."""
    reading = ChunkReading(names)
    terms = terms_of(blocks)
    for term in terms:
        names.add(term, "term")
    names.link()
    topic = names.find(titles[0]) if titles else None
    for block in blocks:
        for start, end in sentence_spans(block.text):
            found = [
                reading.see(names.get(block.text[first:last], "term"), block, first, last)
                for first, last in occurrences(block.text, start, end, terms)
            ]
            relate(reading, block, (start, end), found, topic)
            if not found:  # so that it is found at all
                said = Literal(shorten(block.text[start:end], _LONGEST_SAID))
                reading.state(topic, "say", said, WEAK, block, (start, end))
    return reading


def relate(
    reading: ChunkReading,
    block: Segment,
    span: tuple[int, int],
    found: Sequence[NamedEntity],
    topic: NamedEntity | None,
) -> None:
    """Weak edges between neighbouring names of a sentence, or from the topic to a single one."""
    entities = list(dict.fromkeys(found))[:_MOST_PERSENTENCE]
    for one, other in pairwise(entities):
        reading.state(one, RELATED, other, 3.0, block, span)
    if len(entities) == 1:
        reading.state(topic, MENTIONS, entities[0], WEAK, block, span)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """The sentences of a text in any language, without the white space around them."""
    yield from sentences(text)


def terms_of(blocks: Sequence[Segment]) -> set[str]:
    """The names of a text, or, in scripts without capitals, the word sequences that recur in it."""
    if any(c.isupper() for block in blocks for c in block.text):
        return _capitalised(blocks)
    grams = Counter(gram for block in blocks for gram in _grams(block.text))
    frequent = [gram for gram, count in grams.most_common() if count > 1]
    kept: list[str] = []
    for gram in sorted(frequent, key=lambda g: (-len(g) * (grams[g] - 1), g)):
        if not any(gram in longer for longer in kept):
            kept.append(gram)
    return set(kept[:_MOST_GRAMS])


def _capitalised(blocks: Sequence[Segment]) -> set[str]:
    """Capitalised spans seen inside a sentence, or of several words, or never in small letters."""
    small = {w for block in blocks for w in _LETTERS.findall(block.text) if w[0].islower()}
    found = set()
    texts = (block.text[start:end] for block in blocks for start, end in sentences(block.text))
    for sentence in texts:
        opening = len(sentence) - len(sentence.lstrip())
        for match in _CAPITALS.finditer(sentence):
            text = match.group()
            inside = match.start() > opening
            first, _, rest = text.partition(" ")
            if not inside and rest and first.lower() in small:
                text, inside = rest, True
            if len(text) > 1 and (inside or (" " in text and text.split()[0].lower() not in small)):
                found.add(text[:_LONGEST_NAME])
    return {term for term in found if term.lower() not in small}


def _grams(text: str) -> Iterator[str]:
    words = list(_LETTERS.finditer(text))
    for size in (1, 2, 3):
        for place in range(len(words) - size + 1):
            gram = text[words[place].start() : words[place + size - 1].end()]
            if len(gram) > 3 and gram.count(" ") == size - 1:
                yield gram
    for run in _HAN_RUN.finditer(text):
        for size in (2, 3, 4, 5, 6):
            yield from (run.group()[i : i + size] for i in range(len(run.group()) - size + 1))


def occurrences(text: str, start: int, end: int, terms: set[str]) -> list[tuple[int, int]]:
    """Where terms stand, in order, longer ones first where they overlap."""
    taken = bytearray(end - start)
    found = []
    for term in sorted(terms, key=lambda t: (-len(t), t)):
        at = text.find(term, start, end)
        if at >= 0 and not any(taken[at - start : at - start + len(term)]):
            taken[at - start : at - start + len(term)] = b"\1" * len(term)
            found.append((at, at + len(term)))
    return sorted(found)
