"""All human decisions about a graph: subject, person, time, reason, and whether the decision
still stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError
from tgraph.explain.as_of.names import NamesAsOf, values_of
from tgraph.index.sources import (
    PRUNING,
    RETRACTION,
    document_of_accession,
    evidence_of_document,
    is_note,
    is_retracted,
    last_accession,
    text_value,
)
from tgraph.retrieve.labels import local_name
from tgraph.store.base import Store

_SHORTEST = 4
_PERSON = v.agent_iri("person", "", "")
UNDOABLE = ("Split", "Join", "Denial", "Parting", "Accession")
"""The results of decisions that another decision ends."""
_OTHERWISE = {
    RETRACTION: "is taken back by `tgraph index --reinstate PATH`.",
    PRUNING: "is taken back by `tgraph index PATH`, where the file is again.",
    "Weighting": "is taken back by `tgraph documents weigh --clear`.",
}


@dataclass(frozen=True, slots=True)
class CurationResult:
    """A decision's result: kind, subject, and end time (blank if still standing)."""

    kind: str
    iri: str
    what: str
    ended: str


@dataclass(frozen=True, slots=True)
class Curation:
    """A human decision.

    ``standing`` tells whether any part of the decision holds; ``undoes`` names the decision
    taken back, ``undone_by`` the decision taking back, or empty. ``document`` is the note
    recording the decision, or the retracted document."""

    curation: str
    label: str
    what: str
    person: str
    decided: str
    reason: str
    standing: bool
    undone_by: str
    undoes: str
    document: str
    results: tuple[CurationResult, ...]

    @property
    def undoable(self) -> tuple[CurationResult, ...]:
        """What `tgraph curations undo` would end."""
        return tuple(r for r in self.results if r.kind in UNDOABLE and not r.ended)

    @property
    def why_not(self) -> str:
        """Return why `tgraph curations undo` refuses to take the decision back."""
        if self.undone_by:
            return f"was undone already by {self.undone_by}."
        return _OTHERWISE.get(self.label, "is itself an undoing; make a new decision instead.")


def read_curations(store: Store) -> list[Curation]:
    """Return all decisions, newest first."""
    names = NamesAsOf(store)
    quads = store.match(None, v.RDF_TYPE, v.tg("Curation"), v.SOURCE_GRAPH)
    curations = [_read_curation(store, names, quad.subject.value) for quad in quads]  # type: ignore[union-attr]
    return sorted(curations, key=lambda c: (v.in_time(c.decided), c.curation), reverse=True)


def find_curation(curations: Sequence[Curation], name: str) -> Curation:
    """Return a decision matching an IRI, a UUID, a leading part, or a result IRI; ``last``
    means the newest.

    Raise ``UsageError`` if none or several match."""
    if name == "last" and curations:
        return curations[0]
    start = f"{v.URN}curation:{name.removeprefix(f'{v.URN}curation:').lower()}"
    long = len(start) >= len(f"{v.URN}curation:") + _SHORTEST
    matches = [
        curation
        for curation in curations
        if (long and curation.curation.startswith(start))
        or name in (r.iri for r in curation.results)
    ]
    if len(matches) == 1:
        return matches[0]
    problem = (
        f"{name!r} may be any of {len(matches)} decisions." if matches else f"No decision {name!r}."
    )
    raise UnknownNameError(problem, "`tgraph curations list` lists the decisions with ids.")


def _read_curation(store: Store, names: NamesAsOf, curation: str) -> Curation:
    results = tuple(_read_results(store, names, curation))
    undone = {text_value(store, r.iri, v.prov("wasInvalidatedBy")) for r in results} - {""}
    label = text_value(store, curation, v.RDFS_LABEL)
    used = text_value(store, curation, v.prov("used"))
    notes = [document_of_accession(store, r.iri) for r in results if r.kind == "Accession"]
    undoes = text_value(store, curation, v.prov("wasInformedBy"))
    agents = values_of(store, curation, v.prov("wasAssociatedWith"), v.SOURCE_GRAPH, NamedNode)
    people = [text_value(store, a, v.RDFS_LABEL) for a in agents if a.startswith(_PERSON)]
    standing = is_retracted(store, used) if used else any(not r.ended for r in results)
    if label in (RETRACTION, PRUNING) and not used:
        standing = any(map(partial(_is_last_of_path, store), _ended_by(store, curation)))
    elif not results and not used:
        standing = True
    subject = "; ".join(r.what for r in results) or (names.document(used)[1] if used else "")
    return Curation(
        curation,
        label,
        subject or _describe_ended(store, names, curation),
        ", ".join(sorted(people)),
        text_value(store, curation, v.prov("endedAtTime")),
        text_value(store, curation, v.tg("reason")),
        standing,
        min(undone, default=""),
        undoes,
        used or min(notes, default=""),
        results,
    )


def _read_results(store: Store, names: NamesAsOf, curation: str) -> Iterator[CurationResult]:
    """Yield results of a decision, denials first."""
    for kind, result in sorted(results_of(store, curation), key=lambda r: (r[0] == "Accession", r)):
        ended = text_value(store, result, v.prov("invalidatedAtTime"))
        yield CurationResult(kind, result, _describe_result(store, names, kind, result), ended)


def results_of(store: Store, curation: str) -> Iterator[tuple[str, str]]:
    """Yield kind and IRI of every result a decision made."""
    generated = store.match(None, v.prov("wasGeneratedBy"), NamedNode(curation), v.SOURCE_GRAPH)
    for quad in generated:
        assert isinstance(quad.subject, NamedNode)
        kinds = values_of(store, quad.subject.value, v.RDF_TYPE, v.SOURCE_GRAPH, NamedNode)
        for kind in sorted(kind.removeprefix(v.TG) for kind in kinds if kind.startswith(v.TG)):
            yield kind, quad.subject.value


def _describe_ended(store: Store, names: NamesAsOf, curation: str) -> str:
    """Return text describing everything ended by a decision without results."""
    descriptions = []
    for ended_iri in _ended_by(store, curation):
        kinds = values_of(store, ended_iri, v.RDF_TYPE, v.SOURCE_GRAPH, NamedNode)
        kind = max((k.removeprefix(v.TG) for k in kinds if k.startswith(v.TG)), default="")
        if kind not in ("", "Merge"):
            descriptions.append(_describe_result(store, names, kind, ended_iri))
    return "; ".join(descriptions)


def _ended_by(store: Store, curation: str) -> list[str]:
    """Return everything that a decision ended."""
    pattern = v.prov("wasInvalidatedBy"), NamedNode(curation), v.SOURCE_GRAPH
    return sorted(quad.subject.value for quad in store.match(None, *pattern))  # type: ignore[union-attr]


def _is_last_of_path(store: Store, accession: str) -> bool:
    """Return whether nothing was taken in at an accession's path since."""
    return last_accession(store, text_value(store, accession, v.tg("path"))) == accession


def _describe_result(store: Store, names: NamesAsOf, kind: str, result: str) -> str:
    def entities(predicate: str) -> list[str]:
        entity_iris = values_of(store, result, v.tg(predicate), v.SOURCE_GRAPH, NamedNode)
        return sorted(names.entity(entity) or local_name(entity) for entity in entity_iris)

    if kind == "Accession":
        document = document_of_accession(store, result)
        if not is_note(store, document):
            return text_value(store, result, v.tg("path"))
        evidence = sorted(evidence_of_document(store, document))
        return text_value(store, evidence[0], v.tg("quote")) if evidence else ""
    if kind == "Denial":
        edges = values_of(store, result, v.tg("deniedEdge"), v.SOURCE_GRAPH, NamedNode)
        edge_texts = sorted(" — ".join(edge.labels) for edge in names.edges(edges).values())
        return "; ".join(dict.fromkeys((*edge_texts, *entities("deniedEntity"))))
    if kind == "Parting":
        documents = values_of(store, result, v.tg("bearerDocument"), v.SOURCE_GRAPH, NamedNode)
        paths = ", ".join(sorted(names.document(document)[1] for document in documents))
        return f"{text_value(store, result, v.tg('name'))} in {paths}"
    if kind == "Weighting":
        return text_value(store, result, v.tg("pathPattern"))
    joint = " and " if kind == "Join" else " apart from "
    return joint.join(entities("together" if kind == "Join" else "apart"))
