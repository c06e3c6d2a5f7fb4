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
from tgraph.retrieve.labels import local_name, read_reified_edges
from tgraph.retrieve.text.lexical import stem
from tgraph.store.base import SolutionRow, Store, select_rows

if TYPE_CHECKING:
    from tgraph.retrieve.base import Context

_LISTED = re.compile(r'\(<([^<>]+)> "(\w+)"\)')
_TIME = re.compile(r"-?\d{4}")
_DENIES = frozenset({"not", "never", "no"})
_HELPS = frozenset({"do", "does", "did", "have", "has", "had", "is", "be"})


@cache
def once_only() -> Mapping[str, str]:
    """Return relations allowing a single value per entity: IRI to description of the value."""
    return dict(_LISTED.findall(read_text("sparql", "audit/contradictions.rq")))


def find_denials(store: Store) -> list[Contradiction]:
    """Return denials contradicting a statement, across all knowledge."""
    relations = (row["predicate"] for row in select_rows(store, "retrieve/relations"))
    denying = [r for r in relations if isinstance(r, NamedNode) and _split_negation(r)[1]]
    rows = select_rows(store, "retrieve/denied", {"predicates": denying})
    contradictions = dict.fromkeys(
        contradiction for row in rows for contradiction in _match_denial(row)
    )
    return sorted(contradictions, key=lambda c: (c.subject, c.first, c.second))


def _match_denial(row: SolutionRow) -> Iterator[Contradiction]:
    """Yield the contradiction if an affirmative relation between the same ends matches the
    denied relation."""
    subject, refused, obj, other_relation = (
        row[n] for n in ("subject", "predicate", "object", "other")
    )
    if (
        isinstance(subject, NamedNode)
        and isinstance(refused, NamedNode)
        and isinstance(other_relation, NamedNode)
        and isinstance(obj, NamedNode | Literal)
        and v.is_statement(other_relation)
    ):
        verb, _ = _split_negation(refused)
        if verb and _split_negation(other_relation) == (verb, False):
            facts = (v.edge_iri(subject, predicate, obj) for predicate in (other_relation, refused))
            yield Contradiction("denial", subject.value, *facts)


def find_value_conflicts(store: Store) -> list[Contradiction]:
    """Return differing values, across all knowledge, for relations allowing a single value per
    entity."""
    values_by_topic: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    relations = [NamedNode(relation) for relation in once_only()]
    for row in select_rows(store, "retrieve/statements", {"predicates": relations}):
        subject, predicate, value = row["subject"], row["predicate"], row["object"]
        if isinstance(subject, NamedNode) and isinstance(value, Literal):
            assert isinstance(predicate, NamedNode)
            edge = v.edge_iri(subject, predicate, value)
            values_by_topic[subject.value, once_only()[predicate.value]].append((value.value, edge))
    contradictions = (
        Contradiction("values", subject, first[1], second[1])
        for (subject, _), facts in values_by_topic.items()
        for first, second in combinations(sorted(facts), 2)
        if _times_differ(first[0], second[0])
    )
    return list(dict.fromkeys(contradictions))


@dataclass(frozen=True, slots=True)
class Disputed:
    """Contradicting edges of a published state, with the places stating the edges.

    Contradicting edges are few. So citations are compared with these edges, instead of
    comparing all edges stated at each place with all knowledge."""

    by_edge: Mapping[str, Sequence[Contradiction]]
    by_chunk: Mapping[str, Sequence[tuple[int, int, str]]]

    def find_contradicting_edges(self, place: Citation) -> Iterator[str]:
        """Yield contradicting edges stated within the cited characters."""
        for start, end, edge in self.by_chunk.get(place.chunk, ()):
            if start < place.end and place.start < end:
                yield edge


def find_disputed(store: Store) -> Disputed:
    """Return the store's edges belonging to a contradiction."""
    single = SingleValues(store).find_contradictions()
    by_edge: defaultdict[str, list[Contradiction]] = defaultdict(list)
    for contradiction in dict.fromkeys(
        [*find_value_conflicts(store), *find_denials(store), *single]
    ):
        for edge in _contradicting_facts(contradiction):
            by_edge[edge].append(contradiction)
    by_chunk: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for place in StoredEvidence(store).of_edges(list(by_edge)):
        by_chunk[place.chunk].append((place.start, place.start + place.length, place.about))
    return Disputed(by_edge, by_chunk)


def notes_on(context: Context, sentences: Sequence[Sentence]) -> tuple[Note, ...]:
    """Return a note per contradiction touched by the sentences, citing places for each side."""
    cited = [citation for sentence in sentences for citation in sentence.citations]
    disputed_edges = context.open_cache("disputed", 1).load_item(
        "disputed", lambda: find_disputed(context.store)
    )
    facts = {c.item for c in cited if c.kind == "edge"}
    facts.update(
        edge for c in cited if c.edge is None for edge in disputed_edges.find_contradicting_edges(c)
    )
    contradictions = {
        contradiction for fact in facts for contradiction in disputed_edges.by_edge.get(fact, ())
    }
    for claim in {c.item for c in cited if c.item.startswith(f"{v.URN}claim:")}:
        contradictions.update(_find_opposite_claims(context.store, claim))
    ordered = sorted(contradictions, key=lambda c: (c.subject, c.first, c.second))
    return tuple(
        note for note in (_write_note(context, contradiction) for contradiction in ordered) if note
    )


def _write_note(context: Context, found: Contradiction) -> Note | None:
    """Return a contradiction note; None if a side lacks standing places."""
    sides = [
        (_describe_fact(context, found, f), _find_places(context, found, f))
        for f in _contradicting_facts(found)
    ]
    if not all(places for _, places in sides):
        return None
    sides_text = " but ".join(f"“{words}” ({places[0].path})" for words, places in sides)
    return Note(
        f"The documents disagree: {sides_text}.",
        _contradicting_facts(found),
        tuple(place for _, places in sides for place in places),
    )


def _contradicting_facts(found: Contradiction) -> tuple[str, str]:
    return found.first, found.second


def _describe_fact(context: Context, found: Contradiction, fact: str) -> str:
    if found.kind != "claims":
        return read_reified_edges(context.graph, [fact])[fact].text
    claim_values = _read_claim(context.store, fact)
    return f"{claim_values.get('description', '')} ({claim_values.get('claimStatus', '')})"


def _find_places(context: Context, found: Contradiction, fact: str) -> tuple[Evidence, ...]:
    if found.kind != "claims":
        return context.evidence.of_edges([fact], 1).get(fact, ())
    claims = claims_of(context.store, context.texts, [found.subject], context.doubt)
    subject_claims = claims.get(found.subject, ())
    return tuple(e for claim in subject_claims if claim.iri == fact for e in claim.evidence[:1])


# --- what disagrees ---


def _times_differ(one: str, other: str) -> bool:
    """Return whether times differ, neither refining the other."""
    times = _TIME.match(one) and _TIME.match(other)
    return bool(times) and not one.startswith(other) and not other.startswith(one)


@cache
def _split_negation(predicate: NamedNode) -> tuple[tuple[str, ...], bool]:
    """Return the relation's stems without negation, plus whether the relation is negated."""
    words = re.findall(r"\w+", local_name(predicate.value).replace("-", " ").lower())
    stems = tuple(stem(word) for word in words if word not in _DENIES | _HELPS)
    return stems, any(word in _DENIES for word in words)


def _find_opposite_claims(store: Store, claim: str) -> Iterator[Contradiction]:
    """Yield contradictions with opposite claims about the same subject, object and type."""
    claim_values = _read_claim(store, claim)
    if "subject" not in claim_values:
        return
    subject = NamedNode(claim_values["subject"])
    for quad in store.match(None, v.tg("subject"), subject, v.KNOWLEDGE_GRAPH):
        if not isinstance(quad.subject, NamedNode) or quad.subject.value == claim:
            continue
        other_claim = _read_claim(store, quad.subject.value)
        same = all(
            claim_values.get(n) == other_claim.get(n) for n in ("subject", "object", "claimType")
        )
        if same and {claim_values.get("claimStatus"), other_claim.get("claimStatus")} == {
            "TRUE",
            "FALSE",
        }:
            pair = (claim, quad.subject.value)
            first, second = pair if claim_values["claimStatus"] == "TRUE" else reversed(pair)
            yield Contradiction("claims", claim_values["subject"], first, second)


def _read_claim(store: Store, claim: str) -> dict[str, str]:
    return {
        quad.predicate.value.removeprefix(v.TG): quad.object.value
        for quad in store.match(NamedNode(claim), None, None, v.KNOWLEDGE_GRAPH)
        if isinstance(quad.object, Literal | NamedNode)
    }
