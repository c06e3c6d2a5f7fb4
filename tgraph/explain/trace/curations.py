"""All that people decided about a graph: what, who, when, why, and whether it still stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError
from tgraph.explain.as_of.names import NamesAsOf, values_of
from tgraph.index.sources import (
    document_of_accession,
    evidence_of_document,
    is_retracted,
    text_value,
)
from tgraph.retrieve.labels import local_name
from tgraph.store.base import Store

_SHORTEST = 4
_PERSON = v.agent_iri("person", "", "")
UNDOABLE = ("Split", "Join", "Denial", "Accession")
"""The results of decisions that another decision ends."""
_OTHERWISE = {
    "Retraction": "is taken back by `tgraph index --reinstate PATH`.",
    "Weighting": "is taken back by `tgraph documents weigh --clear`.",
}


@dataclass(frozen=True, slots=True)
class CurationResult:
    """What a decision made: of which kind, about what, and when it was ended, or empty."""

    kind: str
    iri: str
    what: str
    ended: str


@dataclass(frozen=True, slots=True)
class Curation:
    """A decision. ``standing`` is whether anything of it holds; ``undoes`` the decision that it
    took back, ``undone_by`` the one that took it back, or empty. ``document`` is the note in which
    it is put down, or the document that was retracted."""

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
        """Why `tgraph curations undo` doesn't take it back."""
        if self.undone_by:
            return f"was taken back already, by {self.undone_by}."
        return _OTHERWISE.get(self.label, "took a decision back; decide again instead.")


def read_curations(store: Store) -> list[Curation]:
    """All decisions, the last first."""
    names = NamesAsOf(store)
    quads = store.match(None, v.RDF_TYPE, v.tg("Curation"), v.SOURCE_GRAPH)
    found = [_curation(store, names, quad.subject.value) for quad in quads]  # type: ignore[union-attr]
    return sorted(found, key=lambda c: (v.in_time(c.decided), c.curation), reverse=True)


def find_curation(curations: Sequence[Curation], name: str) -> Curation:
    """The decision of an IRI, a UUID, the beginning of one, or the IRI of what it made; ``last`` is
    the last. ``UsageError`` for none or several."""
    if name == "last" and curations:
        return curations[0]
    start = f"{v.URN}curation:{name.removeprefix(f'{v.URN}curation:').lower()}"
    long = len(start) >= len(f"{v.URN}curation:") + _SHORTEST
    found = [
        each
        for each in curations
        if (long and each.curation.startswith(start)) or name in (r.iri for r in each.results)
    ]
    if len(found) == 1:
        return found[0]
    what = f"{name!r} may be any of {len(found)} decisions." if found else f"No decision {name!r}."
    raise UnknownNameError(what, "`tgraph curations list` lists them with their ids.")


def note_of(store: Store, document: str) -> Curation | None:
    """The decision in which the document, a note, was put down last; None of other documents."""
    made = [c for c in read_curations(store) if c.document == document and c.label != "Retraction"]
    return made[0] if made else None


def _curation(store: Store, names: NamesAsOf, curation: str) -> Curation:
    results = tuple(_results(store, names, curation))
    undone = {text_value(store, r.iri, v.prov("wasInvalidatedBy")) for r in results} - {""}
    label = text_value(store, curation, v.RDFS_LABEL)
    used = text_value(store, curation, v.prov("used"))
    notes = [document_of_accession(store, r.iri) for r in results if r.kind == "Accession"]
    undoes = text_value(store, curation, v.prov("wasInformedBy"))
    agents = values_of(store, curation, v.prov("wasAssociatedWith"), v.SOURCE_GRAPH, NamedNode)
    people = [text_value(store, a, v.RDFS_LABEL) for a in agents if a.startswith(_PERSON)]
    held = is_retracted(store, used) if used else any(not r.ended for r in results)
    what = "; ".join(r.what for r in results) or (names.document(used)[1] if used else "")
    return Curation(
        curation,
        label,
        what or _undone(store, names, curation),
        ", ".join(sorted(people)),
        text_value(store, curation, v.prov("endedAtTime")),
        text_value(store, curation, v.tg("reason")),
        held or (not results and not used),
        min(undone, default=""),
        undoes,
        used or min(notes, default=""),
        results,
    )


def _results(store: Store, names: NamesAsOf, curation: str) -> Iterator[CurationResult]:
    """What the decision made, denials first."""
    for kind, result in sorted(results_of(store, curation), key=lambda r: (r[0] == "Accession", r)):
        ended = text_value(store, result, v.prov("invalidatedAtTime"))
        yield CurationResult(kind, result, _words(store, names, kind, result), ended)


def results_of(store: Store, curation: str) -> Iterator[tuple[str, str]]:
    """The kind and IRI of each thing that the decision made."""
    made = store.match(None, v.prov("wasGeneratedBy"), NamedNode(curation), v.SOURCE_GRAPH)
    for quad in made:
        assert isinstance(quad.subject, NamedNode)
        kinds = values_of(store, quad.subject.value, v.RDF_TYPE, v.SOURCE_GRAPH, NamedNode)
        for kind in sorted(kind.removeprefix(v.TG) for kind in kinds if kind.startswith(v.TG)):
            yield kind, quad.subject.value


def _undone(store: Store, names: NamesAsOf, curation: str) -> str:
    """What a decision that made nothing ended."""
    about = v.prov("wasInvalidatedBy"), NamedNode(curation), v.SOURCE_GRAPH
    ended = sorted(quad.subject.value for quad in store.match(None, *about))  # type: ignore[union-attr]
    said = []
    for one in ended:
        kinds = values_of(store, one, v.RDF_TYPE, v.SOURCE_GRAPH, NamedNode)
        kind = max((k.removeprefix(v.TG) for k in kinds if k.startswith(v.TG)), default="")
        if kind not in ("", "Merge"):
            said.append(_words(store, names, kind, one))
    return "; ".join(said)


def _words(store: Store, names: NamesAsOf, kind: str, result: str) -> str:
    def entities(predicate: str) -> list[str]:
        found = values_of(store, result, v.tg(predicate), v.SOURCE_GRAPH, NamedNode)
        return sorted(names.entity(entity) or local_name(entity) for entity in found)

    if kind == "Accession":
        document = document_of_accession(store, result)
        stated = sorted(evidence_of_document(store, document))
        return text_value(store, stated[0], v.tg("quote")) if stated else ""
    if kind == "Denial":
        edges = values_of(store, result, v.tg("deniedEdge"), v.SOURCE_GRAPH, NamedNode)
        said = sorted(" — ".join(edge.labels) for edge in names.edges(edges).values())
        return "; ".join(dict.fromkeys((*said, *entities("deniedEntity"))))
    if kind == "Weighting":
        return text_value(store, result, v.tg("pathPattern"))
    joint = " and " if kind == "Join" else " apart from "
    return joint.join(entities("together" if kind == "Join" else "apart"))
