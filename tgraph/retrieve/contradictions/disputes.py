"""Facts that disagree: single values that differ, statements and their denials, claims and denials.

What happens to an entity once only is listed in ``sparql/audit/contradictions.rq``, which finds the
dates of the whole graph that differ; here are those that touch given facts, and what a query can't
say: denials. Other single values are in ``tgraph/retrieve/contradictions/single_values.py``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.claims import claims_of
from tgraph.index.evidence import StoredEvidence
from tgraph.model import Citation, Evidence, Note, Sentence
from tgraph.resources import read_text
from tgraph.retrieve.contradictions.single_values import Contradiction, SingleValues
from tgraph.retrieve.labels import local_name, reified
from tgraph.retrieve.text.lexical import stem
from tgraph.store.base import Row, Store, select

if TYPE_CHECKING:
    from tgraph.retrieve.base import Context

_LISTED = re.compile(r'\(<([^<>]+)> "(\w+)"\)')
_TIME = re.compile(r"-?\d{4}")
_DENIES = frozenset({"not", "never", "no"})
_HELPS = frozenset({"do", "does", "did", "have", "has", "had", "is", "be"})


@cache
def once_only() -> Mapping[str, str]:
    """The relations of which an entity has one value, by IRI, with what the value is of."""
    return dict(_LISTED.findall(read_text("sparql", "audit/contradictions.rq")))


def denials(store: Store) -> list[Contradiction]:
    """The denials in the whole of knowledge that deny a statement of it."""
    relations = (row["predicate"] for row in select(store, "retrieve/relations", union=False))
    denying = [r for r in relations if isinstance(r, NamedNode) and _verb(r)[1]]
    rows = select(store, "retrieve/denied", {"predicates": denying}, union=False)
    found = dict.fromkeys(each for row in rows for each in _denial(row))
    return sorted(found, key=lambda c: (c.subject, c.first, c.second))


def _denial(row: Row) -> Iterator[Contradiction]:
    """The statement that a denial is of, where what else joins its ends is that."""
    subject, refused, obj, stated = (row[n] for n in ("subject", "predicate", "object", "other"))
    if (
        isinstance(subject, NamedNode)
        and isinstance(refused, NamedNode)
        and isinstance(stated, NamedNode)
        and isinstance(obj, NamedNode | Literal)
        and v.is_statement(stated)
    ):
        verb, _ = _verb(refused)
        if verb and _verb(stated) == (verb, False):
            facts = (v.edge_iri(subject, predicate, obj) for predicate in (stated, refused))
            yield Contradiction("denial", subject.value, *facts)


def values(store: Store) -> list[Contradiction]:
    """The values in the whole of knowledge that differ where an entity has one only."""
    said: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    relations = [NamedNode(relation) for relation in once_only()]
    for row in select(store, "retrieve/statements", {"predicates": relations}, union=False):
        subject, predicate, value = row["subject"], row["predicate"], row["object"]
        if isinstance(subject, NamedNode) and isinstance(value, Literal):
            assert isinstance(predicate, NamedNode)
            edge = v.edge_iri(subject, predicate, value)
            said[subject.value, once_only()[predicate.value]].append((value.value, edge))
    found = (
        Contradiction("values", subject, one[1], other[1])
        for (subject, _), facts in said.items()
        for one, other in combinations(sorted(facts), 2)
        if _differ(one[0], other[0])
    )
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Disputed:
    """The edges of one published state that are part of a contradiction, and where they are stated.

    There are few of them, so that what an answer cites is held against them, and not the edges
    that are stated at each place against all of knowledge.
    """

    by_edge: Mapping[str, Sequence[Contradiction]]
    by_chunk: Mapping[str, Sequence[tuple[int, int, str]]]

    def at(self, place: Citation) -> Iterator[str]:
        """The edges among them that are stated within the cited characters."""
        for start, end, edge in self.by_chunk.get(place.chunk, ()):
            if start < place.end and place.start < end:
                yield edge


def disputed(store: Store) -> Disputed:
    """The edges of the store that are part of a contradiction."""
    single = SingleValues(store).all()
    by_edge: defaultdict[str, list[Contradiction]] = defaultdict(list)
    for each in dict.fromkeys([*values(store), *denials(store), *single]):
        for edge in _facts(each):
            by_edge[edge].append(each)
    by_chunk: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for place in StoredEvidence(store).of_edges(list(by_edge)):
        by_chunk[place.chunk].append((place.start, place.start + place.length, place.about))
    return Disputed(by_edge, by_chunk)


def notes_on(context: Context, sentences: Sequence[Sentence]) -> tuple[Note, ...]:
    """A note for each contradiction that the sentences touch, with a place for each side."""
    cited = [citation for sentence in sentences for citation in sentence.citations]
    known = context.remembered("disputed", 1).get("disputed", lambda: disputed(context.store))
    facts = {c.item for c in cited if c.kind == "edge"}
    facts.update(edge for c in cited if c.edge is None for edge in known.at(c))
    found = {each for fact in facts for each in known.by_edge.get(fact, ())}
    for claim in {c.item for c in cited if c.item.startswith(f"{v.URN}claim:")}:
        found.update(_claims(context.store, claim))
    ordered = sorted(found, key=lambda c: (c.subject, c.first, c.second))
    return tuple(note for note in (_note(context, each) for each in ordered) if note)


def _note(context: Context, found: Contradiction) -> Note | None:
    """None where one of the sides has no standing place any more."""
    sides = [(_words(context, found, f), _places(context, found, f)) for f in _facts(found)]
    if not all(places for _, places in sides):
        return None
    told = " but ".join(f"“{said}” ({places[0].path})" for said, places in sides)
    return Note(
        f"The documents disagree: {told}.",
        _facts(found),
        tuple(place for _, places in sides for place in places),
    )


def _facts(found: Contradiction) -> tuple[str, str]:
    return found.first, found.second


def _words(context: Context, found: Contradiction, fact: str) -> str:
    if found.kind != "claims":
        return reified(context.graph, [fact])[fact].text
    said = _said(context.store, fact)
    return f"{said.get('description', '')} ({said.get('claimStatus', '')})"


def _places(context: Context, found: Contradiction, fact: str) -> tuple[Evidence, ...]:
    if found.kind != "claims":
        return context.evidence.of_edges([fact], 1).get(fact, ())
    claims = claims_of(context.store, context.texts, [found.subject], context.doubt)
    about = claims.get(found.subject, ())
    return tuple(e for claim in about if claim.iri == fact for e in claim.evidence[:1])


# --- what disagrees ---


def _differ(one: str, other: str) -> bool:
    """Whether neither is the other said more exactly."""
    times = _TIME.match(one) and _TIME.match(other)
    return bool(times) and not one.startswith(other) and not other.startswith(one)


@cache
def _verb(predicate: NamedNode) -> tuple[tuple[str, ...], bool]:
    """The relation without its denial, and whether it is one."""
    words = re.findall(r"\w+", local_name(predicate.value).replace("-", " ").lower())
    kept = tuple(stem(word) for word in words if word not in _DENIES | _HELPS)
    return kept, any(word in _DENIES for word in words)


def _claims(store: Store, claim: str) -> Iterator[Contradiction]:
    """Claims of the same about the same that say the opposite."""
    own = _said(store, claim)
    if "subject" not in own:
        return
    about = NamedNode(own["subject"])
    for quad in store.match(None, v.tg("subject"), about, v.KNOWLEDGE_GRAPH):
        if not isinstance(quad.subject, NamedNode) or quad.subject.value == claim:
            continue
        other = _said(store, quad.subject.value)
        same = all(own.get(n) == other.get(n) for n in ("subject", "object", "claimType"))
        if same and {own.get("claimStatus"), other.get("claimStatus")} == {"TRUE", "FALSE"}:
            pair = (claim, quad.subject.value)
            first, second = pair if own["claimStatus"] == "TRUE" else reversed(pair)
            yield Contradiction("claims", own["subject"], first, second)


def _said(store: Store, claim: str) -> dict[str, str]:
    return {
        quad.predicate.value.removeprefix(v.TG): quad.object.value
        for quad in store.match(NamedNode(claim), None, None, v.KNOWLEDGE_GRAPH)
        if isinstance(quad.object, Literal | NamedNode)
    }
