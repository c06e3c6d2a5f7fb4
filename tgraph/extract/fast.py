"""Fast extraction: what each sentence names, without a parser or a language model.

English goes through the tagger alone: names are runs of capitalised words, terms are phrases of a
noun and what stands before it. Other languages, and English where spaCy isn't installed, go through
statistics of their words. Which of the names are worth keeping, and which belong together, only the
whole collection tells (``tgraph.index.cooccurrence``). After Microsoft GraphRAG's method ``fast``,
whose graph is of noun phrases too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from tgraph.extract import language
from tgraph.extract.embedded import titles_of
from tgraph.extract.english import parser
from tgraph.extract.english.mentions import Mention, find_mentions
from tgraph.extract.english.parser import find_lemma
from tgraph.extract.english.rules import without_common_words
from tgraph.extract.entity_types import kind_of_name, kind_of_noun
from tgraph.extract.facts import UNKNOWN, NamedEntity, NameTable
from tgraph.ingest.languages import language_of
from tgraph.ingest.segments import sentences_of
from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    Extraction,
    Occurrence,
    Prompt,
    Segment,
    Span,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.resources import word_set
from tgraph.vocabulary import digest_parts

if TYPE_CHECKING:
    from spacy.tokens import Doc

NAME = "fast-extractor"
VERSION = "4"
_NOUNS = frozenset({"NN", "NNS"})
_INSIDE = _NOUNS | {"JJ", "HYPH"}
_TERM = "concept"
_READ = frozenset(("prose", "item", "row", "heading"))
_LONGEST_TERM = 5
_EMPTY = word_set("english", "telling_nothing")


@dataclass(frozen=True, slots=True)
class _NamedPlace:
    """An entity named in a sentence, with positions in the block text."""

    block: Segment
    sentence: tuple[int, int]
    entity: NamedEntity
    place: tuple[int, int]


class FastExtractor:
    """Finds names and noun phrases; implements ``tgraph.extract.base.Extractor``.

    Its extractions have entities and ``sentences``, and no relationships. ``max_word_length``
    leaves out phrases with a longer word (GraphRAG's ``extract_graph_nlp`` has 15).
    """

    agent = Agent("method", NAME, VERSION)
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, max_word_length: int = 15) -> None:
        self._longest = max_word_length

    @cached_property
    def key(self) -> str:
        """Digest of method version, options and dependency versions."""
        return digest_parts(NAME, VERSION, str(self._longest), *parser.package_versions())

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """Return entities named in a chunk's sentences; chunk text never causes errors."""
        blocks = [block for block in chunk.segments if block.kind in _READ]
        titles = titles_of(title, chunk.headings)
        prose = " ".join(block.text for block in blocks if block.kind in ("prose", "item"))
        tagged = language_of(prose) == "en" and all(parser.package_versions())
        places = _find_tagged(blocks, titles, self._longest) if tagged else _find_terms(blocks)
        return _create_extraction(chunk, list(places))


def _find_tagged(
    blocks: Sequence[Segment], titles: Sequence[str], longest: int
) -> Iterator[_NamedPlace]:
    docs = parser.tag_texts([block.text for block in blocks])
    mentions = without_common_words(docs, [find_mentions(doc, titles) for doc in docs])
    names_by_doc = [[mention for mention in doc_names if mention.is_name] for doc_names in mentions]
    names = NameTable()
    for mention in chain.from_iterable(names_by_doc):
        names.add(mention.text, mention.type)
    names.link()
    for block, doc, doc_names, doc_mentions in zip(
        blocks, docs, names_by_doc, mentions, strict=True
    ):
        places = [(names.find_or_create(m.text, m.type), _mention_span(doc, m)) for m in doc_names]
        for start, end in _noun_phrases(doc, doc_mentions, longest):
            span = doc[start:end]
            text = " ".join([*(t.lower_ for t in span[:-1]), find_lemma(span[-1].lower_, "noun")])
            entity = names.find_or_create(
                text.replace(" - ", "-"), kind_of_noun(text.split()[-1]) or _TERM
            )
            places.append((entity, (span.start_char, span.end_char)))
        yield from _by_sentence(block, places)


def _mention_span(doc: Doc, mention: Mention) -> tuple[int, int]:
    span = doc[mention.start : mention.end]
    return span.start_char, span.end_char


def _noun_phrases(doc: Doc, taken: Iterable[Mention], longest: int) -> Iterator[tuple[int, int]]:
    """Yield maximal runs of adjectives and nouns ending in a noun, with at least two meaningful
    words."""
    free = bytearray(b"\1" * len(doc))
    for mention in taken:
        free[mention.start : mention.end] = b"\0" * (mention.end - mention.start)
    start = 0
    while start < len(doc):
        end = start
        while end < len(doc) and free[end] and _goes_on(doc, start, end):
            end += 1
        last = end
        while last > start and doc[last - 1].tag_ not in _NOUNS:
            last -= 1
        first = max(start, last - _LONGEST_TERM)
        while first < last and (doc[first].lower_ in _EMPTY or not doc[first].text[0].isalpha()):
            first += 1
        if _is_term([token.text for token in doc[first:last]], longest):
            yield first, last
        start = max(end, start + 1)


def _goes_on(doc: Doc, start: int, at: int) -> bool:
    token = doc[at]
    opens = at > start and token.is_sent_start
    return not opens and token.tag_ in _INSIDE and (token.is_alpha or "-" in token.text)


def _is_term(texts: Sequence[str], longest: int) -> bool:
    spoken = [text for text in texts if any(map(str.isalpha, text))]
    compound = any("-" in text.strip("-") for text in texts)
    return (len(spoken) > 1 or compound) and all(1 < len(text) <= longest for text in spoken)


def _by_sentence(
    block: Segment, places: Sequence[tuple[NamedEntity, tuple[int, int]]]
) -> Iterator[_NamedPlace]:
    """Yield named places inside sentences, counting rows as sentences.

    Places cut by a sentence end are left out, and so are names inside longer names."""
    outer: list[tuple[NamedEntity, tuple[int, int]]] = []
    for named_place in sorted(places, key=lambda item: (item[1][0], -item[1][1])):
        if not outer or named_place[1][1] > outer[-1][1][1]:
            outer.append(named_place)
    for sentence in sentences_of(block):
        for entity, place in outer:
            if sentence[0] <= place[0] and place[1] <= sentence[1]:
                yield _NamedPlace(block, sentence, entity, place)


def _find_terms(blocks: Sequence[Segment]) -> Iterator[_NamedPlace]:
    terms = language.terms_of(blocks)
    names = NameTable()
    for term in terms:
        names.add(term, kind_of_name(term) or "term")
    names.link()
    for block in blocks:
        for start, end in language.sentence_spans(block.text):
            for place in language.find_occurrences(block.text, start, end, terms):
                if entity := names.find(block.text[slice(*place)]):
                    yield _NamedPlace(block, (start, end), entity, place)


def _create_extraction(chunk: Chunk, found: Sequence[_NamedPlace]) -> Extraction:
    index: dict[int, int] = {}
    entities: list[ExtractedEntity] = []
    by_sentence: dict[tuple[int, int], dict[int, None]] = {}
    paragraphs: dict[int, int] = {}
    paragraph_of: dict[tuple[int, int], int] = {}
    for item in found:
        entity_index = index.setdefault(id(item.entity), len(entities))
        if entity_index == len(entities):
            entities.append(_create_entity(chunk, item))
        start, end = item.block.locate(*item.sentence)
        by_sentence.setdefault((start, end), {})[entity_index] = None
        paragraph_of[start, end] = paragraphs.setdefault(id(item.block), len(paragraphs))
    occurrences = [
        Occurrence(*span, tuple(entity_indexes), paragraph_of[span])
        for span, entity_indexes in by_sentence.items()
    ]
    return Extraction(chunk.iri, tuple(entities), (), sentences=tuple(occurrences))


def _create_entity(chunk: Chunk, item: _NamedPlace) -> ExtractedEntity:
    start, end = item.block.locate(*item.place)
    quote = chunk.text[start - chunk.start : end - chunk.start]
    kind = _TERM if item.entity.type == UNKNOWN else item.entity.type
    return item.entity.to_extracted(kind, Span(start, end, quote))
