"""Text language detection for extraction, and parser-free extraction for any language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pyoxigraph import Literal

from tgraph.extract.facts import MENTIONS, WEAK, ChunkReading, NamedEntity, NameTable
from tgraph.ingest.base import shorten_line
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


def read_text(blocks: Sequence[Segment], titles: Sequence[str], names: NameTable) -> ChunkReading:
    """Return the reading of prose in any language.

    Names are runs of capitalised words that don't only open sentences, or, in scripts without
    capitals, word sequences recurring in the chunk. Two names in one sentence are related,
    weakly; the kind of relation is not claimed."""
    reading = ChunkReading(names)
    terms = terms_of(blocks)
    for term in terms:
        names.add(term, "term")
    names.link()
    topic = names.find(titles[0]) if titles else None
    for block in blocks:
        for start, end in sentence_spans(block.text):
            entities = [
                reading.record_mention(
                    names.find_or_create(block.text[first:last], "term"), block, first, last
                )
                for first, last in find_occurrences(block.text, start, end, terms)
            ]
            relate_neighbours(reading, block, (start, end), entities, topic)
            if not entities:  # so that it is found at all
                sentence_literal = Literal(shorten_line(block.text[start:end], _LONGEST_SAID))
                reading.state(topic, "say", sentence_literal, WEAK, block, (start, end))
    return reading


def relate_neighbours(
    reading: ChunkReading,
    block: Segment,
    span: tuple[int, int],
    found: Sequence[NamedEntity],
    topic: NamedEntity | None,
) -> None:
    """Add weak edges between neighbouring sentence names, or from the topic to a solitary name."""
    entities = list(dict.fromkeys(found))[:_MOST_PERSENTENCE]
    for left_entity, right_entity in pairwise(entities):
        reading.state(left_entity, RELATED, right_entity, 3.0, block, span)
    if len(entities) == 1:
        reading.state(topic, MENTIONS, entities[0], WEAK, block, span)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield sentence spans of a text in any language, without surrounding white space."""
    yield from sentences(text)


def terms_of(blocks: Sequence[Segment]) -> set[str]:
    """Return names in a text or, for scripts without capitals, recurring word sequences."""
    if any(c.isupper() for block in blocks for c in block.text):
        return _capitalised_terms(blocks)
    grams = Counter(gram for block in blocks for gram in _word_grams(block.text))
    frequent = [gram for gram, count in grams.most_common() if count > 1]
    longest_grams: list[str] = []
    for gram in sorted(frequent, key=lambda g: (-len(g) * (grams[g] - 1), g)):
        if not any(gram in longer for longer in longest_grams):
            longest_grams.append(gram)
    return set(longest_grams[:_MOST_GRAMS])


def _capitalised_terms(blocks: Sequence[Segment]) -> set[str]:
    """Capitalised spans seen inside a sentence, or of several words, or never in small letters."""
    small = {w for block in blocks for w in _LETTERS.findall(block.text) if w[0].islower()}
    terms = set()
    texts = (block.text[start:end] for block in blocks for start, end in sentences(block.text))
    for sentence in texts:
        opening = len(sentence) - len(sentence.lstrip())
        for match in _CAPITALS.finditer(sentence):
            text = match.group()
            inside = match.start() > opening
            first, _, remaining_text = text.partition(" ")
            if not inside and remaining_text and first.lower() in small:
                text, inside = remaining_text, True
            if len(text) > 1 and (inside or (" " in text and text.split()[0].lower() not in small)):
                terms.add(text[:_LONGEST_NAME])
    return {term for term in terms if term.lower() not in small}


def _word_grams(text: str) -> Iterator[str]:
    words = list(_LETTERS.finditer(text))
    for size in (1, 2, 3):
        for place in range(len(words) - size + 1):
            gram = text[words[place].start() : words[place + size - 1].end()]
            if len(gram) > 3 and gram.count(" ") == size - 1:
                yield gram
    for run in _HAN_RUN.finditer(text):
        for size in (2, 3, 4, 5, 6):
            yield from (run.group()[i : i + size] for i in range(len(run.group()) - size + 1))


def find_occurrences(text: str, start: int, end: int, terms: set[str]) -> list[tuple[int, int]]:
    """Where terms stand, in order, longer ones first where they overlap."""
    occupied = bytearray(end - start)
    spans = []
    for term in sorted(terms, key=lambda t: (-len(t), t)):
        at = text.find(term, start, end)
        if at >= 0 and not any(occupied[at - start : at - start + len(term)]):
            occupied[at - start : at - start + len(term)] = b"\1" * len(term)
            spans.append((at, at + len(term)))
    return sorted(spans)
