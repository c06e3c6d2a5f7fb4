"""Name recognition in questions: find the entities and documents named, under any name variant.

A question word counts as a name because of the graph, not because of capital letters in the
question, since people type names in lower case: an entity counts as named if its own label is
written as a name. The labels "film" and "director" occur in many graphs and name nothing."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tgraph.index.graph_source import NetworkSource
from tgraph.index.network_ties import Wording
from tgraph.retrieve.labels import local_name
from tgraph.retrieve.text.lexical import STOP_WORDS, words

LONGEST = 12
"""Words of a name in a question."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ASIDE = re.compile(r"\s*\([^()]*\)\s*$")
_ARTICLES = frozenset({"the", "a", "an"})
_LEAST_BEFORE_COMMA = 2
"""Words before the first comma of a name that are a name too: "Paris, Texas" is not Paris."""

NameKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundName:
    """Text occurrence of a name, with matching nodes."""

    text: str
    nodes: tuple[int, ...]


class NameIndex:
    """Node index by name variants."""

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        nodes_by_key: defaultdict[NameKey, dict[int, None]] = defaultdict(dict)
        for name, node in names:
            for key in name_variants(name):
                nodes_by_key[key].setdefault(node)
        self._nodes: Mapping[NameKey, tuple[int, ...]] = {
            k: tuple(n) for k, n in nodes_by_key.items()
        }

    def in_text(self, text: str) -> list[FoundName]:
        """Return names occurring in a text, longest names first, without overlaps."""
        places = _locate_words(text)
        runs = [
            (
                range(first, first + length),
                tuple(places[at][0] for at in range(first, first + length)),
            )
            for length in range(min(LONGEST, len(places)), 0, -1)
            for first in range(len(places) - length + 1)
        ]
        called = self._find_nodes({key for _, key in runs})
        used_places: set[int] = set()
        names = []
        for part, key in runs:
            nodes = called.get(key)
            if nodes and used_places.isdisjoint(part):
                used_places.update(part)
                name = text[places[part[0]][1] : places[part[-1]][2]]
                names.append(FoundName(name, nodes))
        return names

    def _find_nodes(self, keys: Iterable[NameKey]) -> Mapping[NameKey, tuple[int, ...]]:
        """Look up nodes by normalised names."""
        return self._nodes


class SourceNames(NameIndex):
    """Nodes by the variants of their names, as a source of the network has them."""

    def __init__(self, source: NetworkSource, find: Callable[[str], int | None]) -> None:
        super().__init__(())
        self._source = source
        self._find = find

    def _find_nodes(self, keys: Iterable[NameKey]) -> Mapping[NameKey, tuple[int, ...]]:
        called: dict[NameKey, tuple[int, ...]] = {}
        for form, resources in self._source.find_named_resources(map(" ".join, keys)).items():
            nodes = {node for iri in resources if (node := self._find(iri)) is not None}
            if nodes:
                called[tuple(form.split(" "))] = tuple(sorted(nodes))
        return called


def is_name(label: str) -> bool:
    """Tell whether a label looks like a name: capital letter, or script without letter case."""
    return label != label.lower() or label.upper() == label


def name_variants(name: str) -> Iterator[NameKey]:
    """Yield name variants as word tuples.

    Variants ignore punctuation, accents, letter case, possessive endings and a leading article.
    Further variants omit a note in brackets at the end, or everything after the first comma."""
    plain = _ASIDE.sub("", name)
    first = plain.partition(",")[0]
    keys = [_name_key(name), _name_key(plain)]
    if len(_name_key(first)) >= _LEAST_BEFORE_COMMA:
        keys.append(_name_key(first))
    for key in dict.fromkeys(keys):
        for form in dict.fromkeys((key, key[1:] if key[:1] and key[0] in _ARTICLES else key)):
            if form and not all(word in STOP_WORDS for word in form):
                yield form


def _title_forms(title: str) -> list[str]:
    return [" ".join(key) for key in name_variants(title)]


WORDING = Wording(
    words=lambda iri: words(local_name(iri)),
    name_forms=lambda name: _title_forms(name) if is_name(name) else [],
    title_forms=_title_forms,
)
"""How the network of graph ranking compares names, with tables and without."""


def _name_key(name: str) -> NameKey:
    return tuple(word for word, _, _ in _locate_words(name))


def _locate_words(text: str) -> Sequence[tuple[str, int, int]]:
    """Return the normalised words of a text, each with start and end."""
    return [
        (folded, match.start(), match.end())
        for match in _WORD.finditer(text)
        for folded in _fold_word(match.group())
    ]


def _fold_word(word: str) -> list[str]:
    apart = unicodedata.normalize("NFKD", word)
    return words("".join(c for c in apart if not unicodedata.combining(c)))
