"""Names in a question: which entities and documents it names, under whichever variant of the name.

A word of the question counts as a name for what it is in the graph, not for its letters in the
question, since people type names in lower case: an entity is named if its own label is written as a
name. "film" and "director" are entities of many graphs and name nothing.
"""

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

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundName:
    """A name as it stands in a text, and the nodes that are called so."""

    text: str
    nodes: tuple[int, ...]


class NameIndex:
    """Nodes by the variants of their names."""

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        found: defaultdict[Key, dict[int, None]] = defaultdict(dict)
        for name, node in names:
            for key in variants(name):
                found[key].setdefault(node)
        self._nodes: Mapping[Key, tuple[int, ...]] = {k: tuple(n) for k, n in found.items()}

    def in_text(self, text: str) -> list[FoundName]:
        """The names in a text, longer ones before the shorter; none lies within another."""
        places = _places(text)
        runs = [
            (
                range(first, first + length),
                tuple(places[at][0] for at in range(first, first + length)),
            )
            for length in range(min(LONGEST, len(places)), 0, -1)
            for first in range(len(places) - length + 1)
        ]
        called = self._called({key for _, key in runs})
        taken: set[int] = set()
        found = []
        for part, key in runs:
            nodes = called.get(key)
            if nodes and taken.isdisjoint(part):
                taken.update(part)
                name = text[places[part[0]][1] : places[part[-1]][2]]
                found.append(FoundName(name, nodes))
        return found

    def _called(self, keys: Iterable[Key]) -> Mapping[Key, tuple[int, ...]]:
        """The nodes that have these names."""
        return self._nodes


class SourceNames(NameIndex):
    """Nodes by the variants of their names, as a source of the network has them."""

    def __init__(self, source: NetworkSource, find: Callable[[str], int | None]) -> None:
        super().__init__(())
        self._source = source
        self._find = find

    def _called(self, keys: Iterable[Key]) -> Mapping[Key, tuple[int, ...]]:
        called: dict[Key, tuple[int, ...]] = {}
        for form, resources in self._source.called(map(" ".join, keys)).items():
            nodes = {node for iri in resources if (node := self._find(iri)) is not None}
            if nodes:
                called[tuple(form.split(" "))] = tuple(sorted(nodes))
        return called


def is_name(label: str) -> bool:
    """Whether a label is written as a name: with a capital letter, or in a script without them."""
    return label != label.lower() or label.upper() == label


def variants(name: str) -> Iterator[Key]:
    """What a name may be called by, as words: punctuation, accents, letter case, possessives and a
    leading article aside, without a note in brackets at its end, and to its first comma."""
    plain = _ASIDE.sub("", name)
    first = plain.partition(",")[0]
    keys = [_key(name), _key(plain)]
    if len(_key(first)) >= _LEAST_BEFORE_COMMA:
        keys.append(_key(first))
    for key in dict.fromkeys(keys):
        for form in dict.fromkeys((key, key[1:] if key[:1] and key[0] in _ARTICLES else key)):
            if form and not all(word in STOP_WORDS for word in form):
                yield form


def _title_forms(title: str) -> list[str]:
    return [" ".join(key) for key in variants(title)]


WORDING = Wording(
    words=lambda iri: words(local_name(iri)),
    name_forms=lambda name: _title_forms(name) if is_name(name) else [],
    title_forms=_title_forms,
)
"""How the network of graph ranking compares names, with tables and without."""


def _key(name: str) -> Key:
    return tuple(word for word, _, _ in _places(name))


def _places(text: str) -> Sequence[tuple[str, int, int]]:
    """The words of a text as they are compared, each with its place."""
    return [
        (folded, match.start(), match.end())
        for match in _WORD.finditer(text)
        for folded in _folded(match.group())
    ]


def _folded(word: str) -> list[str]:
    apart = unicodedata.normalize("NFKD", word)
    return words("".join(c for c in apart if not unicodedata.combining(c)))
