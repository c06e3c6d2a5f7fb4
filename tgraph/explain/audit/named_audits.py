"""Named audits: queries in ``sparql/audit/`` with headers describing parameters and purpose.

A header line ``Parameter: NAME (KIND) = DEFAULT - TEXT`` declares a parameter; without a
default it is required. Kinds: ``session``, ``document``, ``edge`` (found by typed names),
``text`` and ``number``. ``Group`` is the heading for listing the audit. ``Check: TEXT``
declares a check of TEXT, violated by any row. ``Words`` are others by which a question asks for the
audit (``tgraph.explain.audit.asked_audits``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile

from pyoxigraph import BlankNode, Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError, nearest_names
from tgraph.explain.as_of.names import NamesAsOf
from tgraph.explain.trace.bundle_reader import kind_of
from tgraph.explain.trace.derivation import DisplayNames
from tgraph.explain.trace.documents import find_document
from tgraph.explain.trace.sessions import find_session
from tgraph.index.evidence import documents_of
from tgraph.index.sources import document_of_chunk
from tgraph.index.standing_knowledge import StandingEvidence
from tgraph.rendering import brief_repr, render_value
from tgraph.resources import list_names, read_text
from tgraph.retrieve.contradictions.disputes import find_denials
from tgraph.retrieve.contradictions.single_values import Contradiction, SingleValues
from tgraph.store.base import Solutions, Store, Term, load_query, select_rows, text_of
from tgraph.store.statements import canonical_literal

FOLDER = "audit"
_PARAMETER = re.compile(r"(\w+) \((\w+)\)(?: = (.*?))? - (.*)")
_ALL = "all"
RECORD = "The record"
GROUPS = ("Answers", "Documents", "Facts", "Models, prompts and cost", RECORD)
"""Under which headings audits are listed, in this order."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An audit parameter; ``default`` is None if required."""

    name: str
    kind: str
    default: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Audit:
    """A named audit: title, question, parameters, columns, listing group, and for audits whose
    rows are violations, the checked property. ``words`` are others by which questions ask for the
    audit."""

    name: str
    title: str
    question: str
    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]
    group: str = RECORD
    check: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Audit result rows: texts in column order. ``passed`` tells whether the check succeeded,
    None for audits without a check."""

    audit: Audit
    rows: tuple[tuple[str, ...], ...]
    passed: bool | None = None

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")


def list_audits() -> list[Audit]:
    """Return all audits, sorted by group and name."""
    query_files = [n for n in list_names("sparql", FOLDER) if n.endswith(".rq")]
    audits = [read_header(n.removeprefix(f"{FOLDER}/").removesuffix(".rq")) for n in query_files]
    audits += [SHAPES, INTEGRITY, KNOWLEDGE, ONTOLOGY]
    return sorted(audits, key=lambda audit: (GROUPS.index(audit.group), audit.name))


def find_audit(name: str) -> Audit:
    """Return the named audit. Raise ``UsageError`` for unknown names."""
    audits = {audit.name: audit for audit in list_audits()}
    if name in audits:
        return audits[name]
    audit_names = list(audits)
    raise UnknownNameError(
        f"There is no audit {name!r}.", nearest_names(name, audit_names, most=len(audit_names))
    )


def read_header(name: str) -> Audit:
    """Return an audit parsed from header comments in ``sparql/audit/NAME.rq``."""
    text = read_text("sparql", f"{FOLDER}/{name}.rq").splitlines()
    lines = [line[1:].strip() for line in takewhile(lambda line: line.startswith("#"), text)]
    fields: dict[str, list[str]] = {}
    for line in lines[1:]:
        key, _, value = line.partition(": ")
        fields.setdefault(key, []).append(value)
    return Audit(
        name,
        lines[0].rstrip("."),
        " ".join(fields["Answers"]),
        tuple(_parse_parameter(text) for text in fields.get("Parameter", ())),
        tuple(column.strip() for column in " ".join(fields["Columns"]).split(",")),
        " ".join(fields["Group"]),
        " ".join(fields.get("Check", ())),
        " ".join(fields.get("Words", ())),
    )


def _parse_parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not the header of a parameter: {text!r}")
    default = match[3].strip('"') if match[3] is not None else None
    return Parameter(match[1], match[2], default, match[4])


SHAPES = Audit(
    "shapes",
    "Bundles against the shapes",
    "Is every record of a session, or of a later statement about a session, complete and well "
    "formed?",
    (Parameter("session", "session", _ALL, "the session, or all"),),
    ("session", "focus", "path", "value", "message"),
    check="the shapes of ontology/shapes.ttl (SHACL)",
)

INTEGRITY = Audit(
    "integrity",
    "The record against its seals",
    "Are all bundles, batches, quads and texts unchanged since sealing, is the chain complete, "
    "and does each quote match the stored text?",
    (Parameter("head", "text", "", "a head of the chain that was saved before"),),
    ("problem", "what", "subject", "detail"),
    check="the seals of the chain, and what the record says of texts, recomputed",
)

KNOWLEDGE = Audit(
    "knowledge",
    "Knowledge against the record",
    "Does knowledge contain exactly the triples that follow from the documents in use, the "
    "decisions on names and the settings?",
    (),
    ("problem", "subject", "predicate", "object"),
    check="every triple of knowledge and every merge, derived anew from what is on record",
)


ONTOLOGY = Audit(
    "ontology",
    "Knowledge against the ontology",
    "Which statements of documents contradict the ontology or its shapes, and where?",
    (
        Parameter(
            "of",
            "text",
            "",
            'a reason ("domain", "unknown property", ...), or "all" for what no term fits as well',
        ),
    ),
    ("problem", "what", "detail", "document", "place", "quote"),
    "Facts",
    check="domains, ranges, disjoint classes, functional properties, and SHACL shapes",
)


def run_audit(
    store: Store, catalogue: str, audit: Audit, arguments: Sequence[str] = ()
) -> AuditResult:
    """Run an audit and return its result. Raise ``UsageError`` for too many or too few
    arguments, or for unknown names in arguments."""
    values = _parameter_values(audit, arguments)
    if audit.name == SHAPES.name:
        from tgraph.explain.audit.shacl import check_shapes

        violations = check_shapes(store, catalogue, values["session"])
        return AuditResult(audit, violations, not violations)
    if audit.name == "contradictions":
        return AuditResult(audit, contradiction_rows(store, values["about"]))
    terms = {
        parameter.name: [_resolve_term(store, catalogue, parameter.kind, values[parameter.name])]
        for parameter in audit.parameters
    }
    terms["catalogue"] = [NamedNode(catalogue)]
    graphs = (row["graph"] for row in select_rows(store, "trace/other-graphs"))
    others = [graph for graph in graphs if isinstance(graph, NamedNode)]
    query = load_query(f"{FOLDER}/{audit.name}", terms, without=others)
    result_rows = _select_rows(store, query, audit, values)
    labels = _edge_labels(store, result_rows) if "fact" in audit.columns else {}
    rows = tuple(
        tuple(
            labels.get(row["edge"], "") if column == "fact" else _term_text(row[column])
            for column in audit.columns
        )
        for row in result_rows
    )
    return AuditResult(audit, rows, not rows if audit.check else None)


def _select_rows(
    store: Store, text: str, audit: Audit, values: dict[str, str]
) -> list[dict[str, Term | None]]:
    for parameter in audit.parameters:
        if parameter.kind == "number":
            text = text.replace(f"<number:{parameter.name}>", values[parameter.name])
    results = store.query(text)
    assert isinstance(results, Solutions)
    columns = [variable.value for variable in results.variables]
    return [{column: row[column] for column in columns} for row in results]


def _parameter_values(audit: Audit, arguments: Sequence[str]) -> dict[str, str]:
    if len(arguments) > len(audit.parameters):
        raise UsageError(
            f"The audit {audit.name} takes {len(audit.parameters)} arguments, not {len(arguments)}."
        )
    values = {}
    for index, parameter in enumerate(audit.parameters):
        value = arguments[index] if index < len(arguments) else parameter.default
        if value is None:
            raise UsageError(
                f"The audit {audit.name} needs {parameter.description}.",
                f"Run `tgraph audit {audit.name} {parameter.name.upper()}`.",
            )
        values[parameter.name] = value
    return values


def _resolve_term(store: Store, catalogue: str, kind: str, value: str) -> NamedNode | Literal:
    if kind == "session":
        return NamedNode(find_session(store, catalogue, value).explain_id)
    if kind == "document":
        return NamedNode(find_document(store, value).document)
    if kind == "edge":
        return _find_edge(store, value)
    if kind == "number":
        if not value.isdigit():
            raise UsageError(f"{value!r} is not a whole number.")
        return canonical_literal(int(value))
    return canonical_literal(value)


def _find_edge(store: Store, name: str) -> NamedNode:
    prefix = f"{v.URN}edge:"
    edge_name = name if name.startswith(prefix) else prefix + name
    with suppress(ValueError):  # what a person types need not be an IRI
        if next(
            store.match(edge := NamedNode(edge_name), v.RDF_REIFIES, None, v.SOURCE_GRAPH), None
        ):
            return edge
    raise UsageError(f"There is no edge {name!r}.", "`tgraph trace` shows the edges of a session.")


def _edge_labels(store: Store, rows: Sequence[dict[str, Term | None]]) -> dict[Term | None, str]:
    edge_terms = {row["edge"] for row in rows if isinstance(row["edge"], NamedNode)}
    edges = NamesAsOf(store).edges(sorted(edge.value for edge in edge_terms))
    return {NamedNode(iri): " — ".join(edge.labels) for iri, edge in edges.items()}


def _term_text(term: Term | None) -> str:
    if isinstance(term, Literal | NamedNode | BlankNode):
        return term.value
    return "" if term is None else str(term)


AuditRow = tuple[str, str, str, str, str, str]


def find_contradictions(store: Store) -> list[Contradiction]:
    """Return all contradictions in knowledge, sorted by subject."""
    parts = ("kind", "subject", "first", "second")
    contradictions = [
        Contradiction(*(text_of(row[part]) for part in parts))  # type: ignore[arg-type]
        for row in select_rows(store, "audit/contradictions")
    ]
    contradictions += [*find_denials(store), *SingleValues(store).find_contradictions()]
    return sorted(set(contradictions), key=lambda c: (c.subject, c.first, c.second))


def contradiction_rows(store: Store, about: str = "") -> tuple[AuditRow, ...]:
    """Return contradiction rows: kind, subject, then text and document paths of both facts."""
    sides = Sides(store)
    rows = (
        (
            c.kind,
            sides.subject(c.subject),
            *sides.describe_fact(c.first),
            *sides.describe_fact(c.second),
        )
        for c in find_contradictions(store)
    )
    return tuple(row for row in rows if about.casefold() in row[1].casefold())


class Sides:
    """Fact texts with their document paths."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names = DisplayNames(store, lambda _: "")
        self._stated = StandingEvidence(store, lambda _: True)

    def subject(self, entity: str) -> str:
        """The entity's label."""
        return self._names.recalled.entity(entity) or entity

    def describe_fact(self, fact: str) -> tuple[str, str]:
        """Return fact text, and paths of standing documents stating the fact."""
        return self._names.display_name(fact), ", ".join(self.paths(fact))

    def paths(self, fact: str) -> list[str]:
        find = self._stated.of_claim if kind_of(fact) == "claim" else self._stated.of_edge
        items = [item for f in (fact, *self._stated.merged_into(fact)) for item in find(f)]
        documents = {document_of_chunk(item["wasDerivedFrom"][0].value) for item in items}
        return sorted({path for _, path in documents_of(self._store, documents).values()})
