"""Validation of session records against the SHACL shapes (W3C SHACL, 2017) by pyshacl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tgraph.explain.export import classic, session_quads
from tgraph.explain.sessions import SessionSummary, find_session, list_sessions
from tgraph.resources import read_text
from tgraph.store.base import Store
from tgraph.store.statements import nquads

if TYPE_CHECKING:
    from rdflib import Graph

ALL = "all"
Violation = tuple[str, str, str, str, str]


def check_shapes(store: Store, catalogue: str, session: str = ALL) -> tuple[Violation, ...]:
    """Each violation as (session, focus node, path, value, message); none where all is well."""
    from rdflib import Graph

    chosen: Sequence[SessionSummary] = (
        list_sessions(store, catalogue)
        if session == ALL
        else [find_session(store, catalogue, session)]
    )
    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    found: list[Violation] = []
    for summary in chosen:
        found += _violations(store, summary, shapes)
    return tuple(found)


def _violations(store: Store, summary: SessionSummary, shapes: Graph) -> list[Violation]:
    from pyshacl import validate
    from rdflib import RDF, SH, Graph

    data = Graph().parse(
        data=nquads(classic(session_quads(store, summary.bundle))), format="nt"
    )
    conforms, report, text = validate(data, shacl_graph=shapes, inference="none")
    if conforms:
        return []
    if not isinstance(report, Graph):
        return [(summary.explain_id, "", "", "", " ".join(str(text).split()))]
    rows = [
        (
            summary.explain_id,
            _string(report.value(result, SH.focusNode)),
            _string(report.value(result, SH.resultPath)),
            _string(report.value(result, SH.value)),
            _string(report.value(result, SH.resultMessage)),
        )
        for result in report.subjects(RDF.type, SH.ValidationResult)
    ]
    return sorted(rows)


def _string(term: Any) -> str:
    return "" if term is None else str(term)
