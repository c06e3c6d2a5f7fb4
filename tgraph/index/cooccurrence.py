"""Name co-occurrence: selecting important names of a collection, and related name pairs.

Two names are tied by how much more often than by chance they stand in one sentence (or in two
in a row, or in one chunk): their number of places times the pointwise mutual information, in
bits (Church and Hanks 1990). Up to a constant factor, this equals the edge weight of Microsoft
GraphRAG (``normalize_edge_weights``: p(x,y) log2(p(x,y) / p(x) p(y))), so its limits mean the
same here. The result is a function of the sentences alone."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

from tgraph.extract.resolution import name_key
from tgraph.index.sources import document_of_chunk, page_of_chunk
from tgraph.model import ExtractedEntity, Extraction, Occurrence, Span
from tgraph.models.base import canonical_json

if TYPE_CHECKING:
    from tgraph.settings import FastSettings

IriPair = tuple[str, str]
Places = dict[IriPair, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Names in sentences of a standing chunk; ``subgraph`` is the extraction's subgraph."""

    subgraph: str
    chunk: str
    entities: tuple[ExtractedEntity, ...]
    sentences: tuple[Occurrence, ...]

    @property
    def keys(self) -> list[str]:
        """Name keys of entities, equal across all chunks."""
        return [name_key(entity.name) for entity in self.entities]


def encode_occurrences(extraction: Extraction) -> str:
    """Return entities and sentences of an extraction in the librarian's stored form."""
    entities = [
        [entity.name, entity.type, list(entity.aliases), entity.span.start, entity.span.end]
        for entity in extraction.entities
        if entity.span is not None  # a reading of sentences saw each of them somewhere
    ]
    sentences = [[s.start, s.end, list(s.entities), s.paragraph] for s in extraction.sentences]
    return canonical_json({"entities": entities, "sentences": sentences})


def decode_occurrences(subgraph: str, chunk: str, content: str, page: str) -> Occurrences:
    """What ``encode`` wrote; ``page`` is the text of the chunk's page."""
    data = json.loads(content)
    entities = [
        ExtractedEntity(name, kind, aliases=tuple(aliases), span=Span(start, end, page[start:end]))
        for name, kind, aliases, start, end in data["entities"]
    ]
    sentences = [
        Occurrence(start, end, tuple(entity_indexes), paragraph)
        for start, end, entity_indexes, paragraph in data["sentences"]
    ]
    return Occurrences(subgraph, chunk, tuple(entities), tuple(sentences))


@dataclass(slots=True)
class Kept:
    """Names and name pairs retained for a collection, with pair weights and places.

    ``places`` are by subgraph: for each retained pair the stretches of the page naming both.
    ``dropped`` counts omissions, by reason."""

    names: set[str] = field(default_factory=set)
    weights: dict[IriPair, float] = field(default_factory=dict)
    places: dict[str, Places] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)


def select_names_and_pairs(chunks: Sequence[Occurrences], limits: FastSettings) -> Kept:
    """Return names and pairs retained from all standing chunks.

    The limits are those of GraphRAG's ``prune_graph``; unlike there, names losing their last
    pair to a later limit go too. The same chunks in any order give the same result."""
    read = _without_repetition(sorted(chunks, key=lambda chunk: (chunk.chunk, chunk.subgraph)))
    selection = Kept()
    counts = Counter(key for _, windows in read for key in _window_names(windows, limits.window))
    names = _frequent_names(counts, limits, selection.dropped)
    selection.places = {chunk.subgraph: {} for chunk, _ in read}
    pairs: Counter[IriPair] = Counter()
    for chunk, sentences in read:
        places = _find_pairs(sentences, names, limits.window)
        selection.places[chunk.subgraph] = places
        pairs.update({pair: len(where) for pair, where in places.items()})
    weights = _pair_weights(pairs, counts, selection.dropped)
    selection.weights = _prune_pairs(weights, limits, selection.dropped)
    selection.names = {name for pair in selection.weights for name in pair}
    if not limits.min_node_degree:
        selection.names |= names
    for places in selection.places.values():
        for pair in [pair for pair in places if pair not in selection.weights]:
            del places[pair]
    return selection


_SentenceNames = tuple[int, int, int, tuple[str, ...]]
"""Start, end, paragraph and the names that it holds, each once."""


def _without_repetition(
    chunks: Sequence[Occurrences],
) -> list[tuple[Occurrences, list[_SentenceNames]]]:
    """Return sentences of each chunk with name keys, omitting sentences contained in another
    sentence of the page (where chunks overlap)."""
    by_page: defaultdict[tuple[str, int | None], list[tuple[int, int, int]]] = defaultdict(list)
    for at, chunk in enumerate(chunks):
        page = document_of_chunk(chunk.chunk), page_of_chunk(chunk.chunk)
        by_page[page] += [(s.start, -s.end, at) for s in chunk.sentences]
    counted: set[tuple[int, int, int]] = set()
    for spans in by_page.values():
        reached = -1
        for start, minus_end, at in sorted(spans):
            if -minus_end > reached:
                counted.add((at, start, -minus_end))
                reached = -minus_end
    result = []
    for at, chunk in enumerate(chunks):
        keys = chunk.keys
        sentences = [
            (s.start, s.end, s.paragraph, tuple(dict.fromkeys(keys[at] for at in s.entities)))
            for s in chunk.sentences
            if (at, s.start, s.end) in counted
        ]
        result.append((chunk, sentences))
    return result


def _window_names(sentences: Iterable[_SentenceNames], window: str) -> Iterator[str]:
    """Yield distinct names of every window."""
    if window == "chunk":
        yield from {key for *_, keys in sentences for key in keys}
    else:
        for *_, keys in sentences:
            yield from keys


def _find_pairs(sentences: Sequence[_SentenceNames], names: Collection[str], window: str) -> Places:
    places: Places = {}
    if window == "chunk":
        return _pairs_of_chunk(sentences, names)
    for start, end, _, keys in sentences:
        for pair in combinations(sorted(key for key in keys if key in names), 2):
            places.setdefault(pair, []).append((start, end))
    if window == "neighbours":
        for pair, place in _pairs_of_neighbours(sentences, names):
            places.setdefault(pair, []).append(place)
    return {pair: sorted(where) for pair, where in places.items()}


def _pairs_of_neighbours(
    sentences: Sequence[_SentenceNames], names: Collection[str]
) -> Iterator[tuple[IriPair, tuple[int, int]]]:
    """Yield name pairs across neighbouring sentences of a paragraph.

    Sentences without names are skipped; a name found in both sentences forms no pair."""
    for (start, _, paragraph, here), (_, end, next_paragraph, there) in pairwise(sentences):
        if paragraph != next_paragraph:
            continue
        before = [name for name in here if name in names and name not in there]
        after = [name for name in there if name in names and name not in here]
        for earlier_name, right in product(before, after):
            yield (min(earlier_name, right), max(earlier_name, right)), (start, end)


def _pairs_of_chunk(sentences: Sequence[_SentenceNames], names: Collection[str]) -> Places:
    places: Places = {}
    standing: defaultdict[str, list[int]] = defaultdict(list)
    for at, (*_, keys) in enumerate(sentences):
        for key in keys:
            if key in names:
                standing[key].append(at)
    for pair in combinations(sorted(standing), 2):
        first, last = _nearest_stretch(standing[pair[0]], standing[pair[1]])
        places[pair] = [(sentences[first][0], sentences[last][1])]
    return places


def _nearest_stretch(one: Sequence[int], other: Sequence[int]) -> tuple[int, int]:
    """Return the shortest stretch linking numbers from two ascending lists; among equals, the
    earliest."""
    merged = sorted([(at, 0) for at in one] + [(at, 1) for at in other])
    stretches = [
        (right[0] - lower[0], lower[0], right[0])
        for lower, right in pairwise(merged)
        if lower[1] != right[1]
    ]
    return min(stretches)[1:]


def _frequent_names(
    counts: Mapping[str, int], limits: FastSettings, dropped: Counter[str]
) -> frozenset[str]:
    upper_limit = _upper_limit(list(counts.values()), limits.max_node_freq_std)
    rare = {key for key, count in counts.items() if count < limits.min_node_freq}
    common = {key for key, count in counts.items() if count > upper_limit}
    dropped["name that is too rare"] += len(rare)
    dropped["name that is too common"] += len(common)
    return frozenset(counts.keys() - rare - common)


def _upper_limit(values: Sequence[float], deviations: float | None) -> float:
    """Return the mean plus several standard deviations; infinity if no limit is set."""
    if deviations is None or not values:
        return math.inf
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return mean + deviations * math.sqrt(variance)


def _pair_weights(
    pairs: Mapping[IriPair, int], counts: Mapping[str, int], dropped: Counter[str]
) -> dict[IriPair, float]:
    """Return pair weights: places times bits; pairs no more frequent than chance are omitted."""
    all_pairs, all_names = sum(pairs.values()), sum(counts.values())
    weights = {}
    for (first, second), count in sorted(pairs.items()):
        expected = counts[first] / all_names * counts[second] / all_names
        weight = round(count * math.log2(count / all_pairs / expected), 2)
        if weight > 0:
            weights[first, second] = weight
    dropped["pair that chance would have"] += len(pairs) - len(weights)
    return weights


def _prune_pairs(
    weights: Mapping[IriPair, float], limits: FastSettings, dropped: Counter[str]
) -> dict[IriPair, float]:
    least = _interpolate_percentile(sorted(weights.values()), limits.min_edge_weight_pct)
    weighty_pairs = {pair: weight for pair, weight in weights.items() if weight >= least}
    dropped["pair with too little weight"] += len(weights) - len(weighty_pairs)
    degrees = Counter(name for pair in weighty_pairs for name in pair)
    out: set[str] = set()
    if limits.remove_ego_nodes and degrees:
        out.add(min(degrees, key=lambda name: (-degrees[name], name)))
    upper_limit = _upper_limit(list(degrees.values()), limits.max_node_degree_std)
    out |= {name for name, degree in degrees.items() if degree > upper_limit}
    dropped["name that is tied to too many"] += len(out)
    return _with_degree(weighty_pairs, out, limits.min_node_degree, dropped)


def _with_degree(
    weights: dict[IriPair, float], out: set[str], least: int, dropped: Counter[str]
) -> dict[IriPair, float]:
    """Return weights excluding names in ``out``, then excluding names tied to fewer than
    ``least`` neighbours."""
    while True:
        weights = {pair: w for pair, w in weights.items() if not out.intersection(pair)}
        degrees = Counter(name for pair in weights for name in pair)
        out = {name for name, degree in degrees.items() if degree < least}
        if not out:
            return weights
        dropped["name that is tied to too few"] += len(out)


def _interpolate_percentile(ascending: Sequence[float], percent: float) -> float:
    """Return a percentile like numpy, interpolated between nearest ranks; 0 without values."""
    if not ascending:
        return 0.0
    place = (len(ascending) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (place - low)
