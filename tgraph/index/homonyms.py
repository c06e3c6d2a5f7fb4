"""Bearers of one name: documents that speak of different people under the same name.

Documents tell people of one name apart where their facts exclude each other: a full-time post at
different organisations, or years of birth or death far apart. Without such facts a name is one
person."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolution import name_key
from tgraph.index.sources import document_of_chunk, text_value
from tgraph.index.standing_knowledge import (
    Properties,
    StandingEvidence,
    commonest_value,
    term_value,
    type_of,
)
from tgraph.ingest.document_dates import parse_date_span
from tgraph.resources import name_list, word_set
from tgraph.store.base import Store

YEARS_APART = 10
"""Years between births, or deaths, that no error in a document explains."""
_SAME_TIME = 1
"""Years between documents that tell of posts held at the same time."""
_PERSON = "person"
_JOINTS = frozenset({"of", "at", "for", "in"})
"""Words between a post and the organisation."""
_BE = "be"
_EVENTS = {"born": "born", "die": "died", "died": "died"}


@dataclass(frozen=True, slots=True)
class Bearer:
    """One bearer of a name: the text entity that has the name, the bearer's IRI and label, the
    documents that speak of the bearer, and the evidence that tells the bearer apart."""

    name: str
    iri: str
    label: str
    documents: tuple[str, ...]
    grounds: tuple[str, ...] = ()

    @property
    def plain_name(self) -> str:
        """The name without what tells the bearer apart."""
        return self.label.rpartition(" (")[0]

    @property
    def qualifier(self) -> str:
        """What tells the bearer apart, in words."""
        return self.label.rpartition(" (")[2].removesuffix(")")


def bearer_of(name: str, label: str, qualifier: str, documents: Iterable[str]) -> Bearer:
    """Return a bearer with a qualified label (``Li Wei (Harbin Steel)``)."""
    qualified = f"{label} ({qualifier})"
    return Bearer(name, v.entity_iri(qualified), qualified, tuple(sorted(documents)))


def is_distinguishing(triple: Triple) -> bool:
    """Return whether the edge states what a single person has only one of."""
    return _read_kind(triple) != ""


@dataclass(frozen=True, slots=True)
class _Fact:
    """What a document states of a name: kind (``born``, ``died`` or a post), year or key of the
    organisation, words for people, and the evidence.

    ``organisation`` is the IRI of the organisation, ``year`` 0 for posts."""

    kind: str
    value: str
    words: str
    document: str
    evidence: str
    organisation: str = ""
    year: int = 0


class HomonymFinder:
    """Finds the bearers of a name in the standing evidence."""

    def __init__(self, store: Store, texts: StandingEvidence) -> None:
        self._store = store
        self._texts = texts

    def find_bearers(self, entity: str, left_out: Iterable[str] = ()) -> list[Bearer]:
        """Return the bearers told apart by documents other than those ``left_out``; empty where
        the name may be one person's."""
        ignored = set(left_out)
        facts = [fact for fact in self._read_facts(entity) if fact.document not in ignored]
        evidence = self._read_in(entity, {fact.document for fact in facts})
        if type_of(evidence).casefold() != _PERSON:
            return []
        groups = _group_by_agreement(facts, self._agreeing_documents(entity))
        conflicts = [
            (first, second)
            for first, second in combinations(range(len(groups)), 2)
            if any(self._excludes(*pair) for pair in product(groups[first], groups[second]))
        ]
        label = commonest_value(evidence, "name")
        bearers = []
        for number in sorted({number for pair in conflicts for number in pair}):
            others = [groups[b if a == number else a] for a, b in conflicts if number in (a, b)]
            grounds = [
                fact
                for fact in groups[number]
                if any(self._excludes(fact, other) for group in others for other in group)
            ]
            documents = {fact.document for fact in groups[number]}
            bearer = bearer_of(entity, label, grounds[0].words, documents)
            bearers.append(replace(bearer, grounds=tuple(sorted(f.evidence for f in grounds))))
        return bearers if len({bearer.iri for bearer in bearers}) == len(bearers) else []

    def _agreeing_documents(self, entity: str) -> list[set[str]]:
        """Return, for each relationship of the name to another entity, the documents that state
        the relationship."""
        return [
            set(map(_document_of, self._texts.of_edge(edge)))
            for edge, triple in self._texts.edges_naming(entity).items()
            if term_value(triple.subject) == entity and isinstance(triple.object, NamedNode)
        ]

    def _read_facts(self, entity: str) -> list[_Fact]:
        facts = [
            fact
            for edge, triple in self._texts.edges_naming(entity).items()
            if term_value(triple.subject) == entity and (kind := _read_kind(triple))
            for item in self._texts.of_edge(edge)
            if (fact := self._read_fact(kind, triple, item)) is not None
        ]
        return sorted(facts, key=lambda f: (f.year == 0, f.words, f.kind, f.document, f.evidence))

    def _read_fact(self, kind: str, triple: Triple, item: Properties) -> _Fact | None:
        document = _document_of(item)
        evidence = term_value(item["evidence"][0])
        if isinstance(triple.object, Literal):
            days = parse_date_span(triple.object.value)
            if days is None:
                return None
            year = days[0].year
            return _Fact(kind, str(year), f"{kind} {year}", document, evidence, year=year)
        quote = term_value(item["quote"][0]).casefold().split() if "quote" in item else []
        if not quote or not _load_past_signs().isdisjoint(word.strip(".,;:()") for word in quote):
            return None
        organisation = term_value(triple.object)
        name = commonest_value(self._read_in(organisation, {document}), "name")
        if stated := _split_post(name)[1]:
            name, organisation = stated, v.entity_iri(stated)
        return _Fact(kind, name_key(name), name, document, evidence, organisation) if name else None

    def _excludes(self, one: _Fact, other: _Fact) -> bool:
        """Return whether no person has both."""
        if one.kind != other.kind or one.value == other.value:
            return False
        if one.year:
            return abs(one.year - other.year) >= YEARS_APART
        return (
            not _may_be_one_organisation(one.value, other.value)
            and self._are_of_one_time(one.document, other.document)
            and not self._names(one.document, other.organisation)
            and not self._names(other.document, one.organisation)
        )

    def _are_of_one_time(self, one: str, other: str) -> bool:
        years = [
            days[0].year
            for document in (one, other)
            if (days := parse_date_span(text_value(self._store, document, v.tg("calendarDate"))))
        ]
        return len(years) < len((one, other)) or abs(years[0] - years[1]) <= _SAME_TIME

    def _names(self, document: str, entity: str) -> bool:
        """Return whether the document names the entity."""
        return bool(self._read_in(entity, {document}))

    def _read_in(self, entity: str, documents: Collection[str]) -> list[Properties]:
        """Return the entity's evidence in some documents: what others say decides nothing here, so
        that only a change of these documents changes the bearers."""
        return [i for i in self._texts.of_entity(entity) if _document_of(i) in documents]


def _document_of(item: Properties) -> str:
    return document_of_chunk(term_value(item["wasDerivedFrom"][0]))


def _read_kind(triple: Triple) -> str:
    """Return what an edge tells people apart by: ``born``, ``died``, the post, or nothing."""
    words = v.local_words(term_value(triple.predicate)).casefold().replace("-", " ").split()
    if isinstance(triple.object, Literal):
        return next((kind for word, kind in _EVENTS.items() if word in words[:2]), "")
    if words == [_BE]:  # the object is a post such as "CEO of Alpha Corp."
        return _split_post(v.local_words(term_value(triple.object)))[0]
    if not words or words[-1] not in _JOINTS:
        return ""
    posts = (post for post in _load_posts() if words[-1 - len(post) : -1] == list(post))
    return " ".join(next(posts, ()))


def _split_post(text: str) -> tuple[str, str]:
    """Return the post and the organisation of a phrase such as "CEO of Alpha Corp."; both empty
    for others."""
    words = text.replace("-", " ").split()
    for post in _load_posts():
        size = len(post)
        is_post = [word.casefold() for word in words[:size]] == list(post)
        if is_post and len(words) > size + 1 and words[size].casefold() in _JOINTS:
            return " ".join(post), " ".join(words[size + 1 :])
    return "", ""


def _group_by_agreement(facts: Sequence[_Fact], agreeing: Iterable[set[str]]) -> list[list[_Fact]]:
    """Return facts by person: documents that share a fact speak of one person, and so do the
    documents of each set in ``agreeing``."""
    documents_by_fact: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        documents_by_fact.setdefault((fact.kind, fact.value), set()).add(fact.document)
    groups: list[set[str]] = []
    told = {fact.document for fact in facts}
    for documents in (*documents_by_fact.values(), *(shared & told for shared in agreeing)):
        joined = set(documents).union(*(group for group in groups if group & documents))
        groups = [group for group in groups if not group & documents] + [joined]
    return [
        [fact for fact in facts if fact.document in group]
        for group in sorted(filter(None, groups), key=min)
    ]


def _may_be_one_organisation(one: str, other: str) -> bool:
    """Return whether one name may be short for the other."""
    short, long = sorted((one.split(), other.split()), key=len)
    initials = "".join(word[0] for word in long)
    return set(short) <= set(long) or (len(short) == 1 and short[0] == initials)


@cache
def _load_posts() -> list[tuple[str, ...]]:
    """Return full-time posts as words, the longest first."""
    posts = [tuple(post.split()) for post in name_list("english", "single_posts")]
    return sorted(posts, key=lambda post: (-len(post), post))


def _load_past_signs() -> frozenset[str]:
    return word_set("english", "past_signs")
