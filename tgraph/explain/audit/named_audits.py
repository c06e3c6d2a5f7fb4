"""Named audits: queries in ``sparql/audit/`` whose headers say what they need and what they answer.

A header line ``Parameter: NAME (KIND) = DEFAULT - TEXT`` declares a parameter; without a default it
must be given. Kinds: ``session``, ``document``, ``edge`` (found by what a person types), ``text``
and ``number``. ``Group`` is under which heading the audit is listed. ``Check: TEXT`` says that the
audit is a check of TEXT, which any row violates.
"""

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
from tgraph.rendering import brief, render
from tgraph.resources import names, read_text
from tgraph.retrieve.contradictions.disputes import denials
from tgraph.retrieve.contradictions.single_values import Contradiction, SingleValues
from tgraph.store.base import Solutions, Store, Term, load_query, select, text_of
from tgraph.store.statements import literal

FOLDER = "audit"
_PARAMETER = re.compile(r"(\w+) \((\w+)\)(?: = (.*?))? - (.*)")
_ALL = "all"
RECORD = "The record"
GROUPS = ("Answers", "Documents", "Facts", "Models, prompts and cost", RECORD)
"""Under which headings audits are listed, in this order."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What an audit may be told; ``default`` is None where it must be."""

    name: str
    kind: str
    default: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Audit:
    """A named audit: its title, the question it answers, its parameters and columns, the group that
    it is listed in, and, where any row of it is a violation, what it checks."""

    name: str
    title: str
    question: str
    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]
    group: str = RECORD
    check: str = ""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Rows of texts in the order of the columns. ``passed`` is None where the audit only tells,
    and otherwise whether what it checks holds."""

    audit: Audit
    rows: tuple[tuple[str, ...], ...]
    passed: bool | None = None

    __repr__ = brief

    def _repr_html_(self) -> str:
        return render(self, "notebook")


def list_audits() -> list[Audit]:
    """The audits that there are, group by group, by name."""
    found = [n for n in names("sparql", FOLDER) if n.endswith(".rq")]
    audits = [read_header(n.removeprefix(f"{FOLDER}/").removesuffix(".rq")) for n in found]
    audits += [SHAPES, INTEGRITY, KNOWLEDGE, ONTOLOGY]
    return sorted(audits, key=lambda audit: (GROUPS.index(audit.group), audit.name))


def find_audit(name: str) -> Audit:
    """The audit of the name. ``UsageError`` where there is none."""
    audits = {audit.name: audit for audit in list_audits()}
    if name in audits:
        return audits[name]
    known = list(audits)
    raise UnknownNameError(
        f"There is no audit {name!r}.", nearest_names(name, known, most=len(known))
    )


def read_header(name: str) -> Audit:
    """What the comments at the head of ``sparql/audit/NAME.rq`` say."""
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
        tuple(_parameter(text) for text in fields.get("Parameter", ())),
        tuple(column.strip() for column in " ".join(fields["Columns"]).split(",")),
        " ".join(fields["Group"]),
        " ".join(fields.get("Check", ())),
    )


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not the header of a parameter: {text!r}")
    default = match[3].strip('"') if match[3] is not None else None
    return Parameter(match[1], match[2], default, match[4])


SHAPES = Audit(
    "shapes",
    "Bundles against the shapes",
    "Is every record, of a session or of what was said of one later, complete and well formed?",
    (Parameter("session", "session", _ALL, "the session, or all"),),
    ("session", "focus", "path", "value", "message"),
    check="the shapes of ontology/shapes.ttl (SHACL)",
)

INTEGRITY = Audit(
    "integrity",
    "The record against its seals",
    "Is every bundle, batch, quad and text as it was sealed, the chain whole, and every quote what"
    " its text says?",
    (Parameter("head", "text", "", "a head of the chain that was saved before"),),
    ("problem", "what", "subject", "detail"),
    check="the seals of the chain, and what the record says of texts, recomputed",
)

KNOWLEDGE = Audit(
    "knowledge",
    "Knowledge against the record",
    "Is knowledge what follows from the standing documents, the names that were told apart and the"
    " settings, to the triple?",
    (),
    ("problem", "subject", "predicate", "object"),
    check="every triple of knowledge and every merge, derived anew from what is on record",
)


ONTOLOGY = Audit(
    "ontology",
    "Knowledge against the ontology",
    "What do the documents say that the ontology rules out, or its shapes, and where?",
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
    """Run an audit. ``UsageError`` for too many or too few arguments, or one that names nothing."""
    values = _values(audit, arguments)
    if audit.name == SHAPES.name:
        from tgraph.explain.audit.shacl import check_shapes

        violations = check_shapes(store, catalogue, values["session"])
        return AuditResult(audit, violations, not violations)
    if audit.name == "contradictions":
        return AuditResult(audit, contradiction_rows(store, values["about"]))
    terms = {
        parameter.name: [_term(store, catalogue, parameter.kind, values[parameter.name])]
        for parameter in audit.parameters
    }
    terms["catalogue"] = [NamedNode(catalogue)]
    found = _select(store, load_query(f"{FOLDER}/{audit.name}", terms), audit, values)
    labels = _edge_labels(store, found) if "fact" in audit.columns else {}
    rows = tuple(
        tuple(
            labels.get(row["edge"], "") if column == "fact" else _text(row[column])
            for column in audit.columns
        )
        for row in found
    )
    return AuditResult(audit, rows, not rows if audit.check else None)


def _select(
    store: Store, text: str, audit: Audit, values: dict[str, str]
) -> list[dict[str, Term | None]]:
    for parameter in audit.parameters:
        if parameter.kind == "number":
            text = text.replace(f"<number:{parameter.name}>", values[parameter.name])
    results = store.query(text)
    assert isinstance(results, Solutions)
    columns = [variable.value for variable in results.variables]
    return [{column: row[column] for column in columns} for row in results]


def _values(audit: Audit, arguments: Sequence[str]) -> dict[str, str]:
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


def _term(store: Store, catalogue: str, kind: str, value: str) -> NamedNode | Literal:
    if kind == "session":
        return NamedNode(find_session(store, catalogue, value).explain_id)
    if kind == "document":
        return NamedNode(find_document(store, value).document)
    if kind == "edge":
        return _edge(store, value)
    if kind == "number":
        if not value.isdigit():
            raise UsageError(f"{value!r} is not a whole number.")
        return literal(int(value))
    return literal(value)


def _edge(store: Store, name: str) -> NamedNode:
    prefix = f"{v.URN}edge:"
    wanted = name if name.startswith(prefix) else prefix + name
    with suppress(ValueError):  # what a person types need not be an IRI
        if next(store.match(edge := NamedNode(wanted), v.RDF_REIFIES, None, v.SOURCE_GRAPH), None):
            return edge
    raise UsageError(f"There is no edge {name!r}.", "`tgraph trace` shows the edges of a session.")


def _edge_labels(store: Store, rows: Sequence[dict[str, Term | None]]) -> dict[Term | None, str]:
    found = {row["edge"] for row in rows if isinstance(row["edge"], NamedNode)}
    edges = NamesAsOf(store).edges(sorted(edge.value for edge in found))
    return {NamedNode(iri): " — ".join(edge.labels) for iri, edge in edges.items()}


def _text(term: Term | None) -> str:
    if isinstance(term, Literal | NamedNode | BlankNode):
        return term.value
    return "" if term is None else str(term)


Row = tuple[str, str, str, str, str, str]


def find_contradictions(store: Store) -> list[Contradiction]:
    """Every contradiction in knowledge, by subject."""
    parts = ("kind", "subject", "first", "second")
    found = [
        Contradiction(*(text_of(row[part]) for part in parts))  # type: ignore[arg-type]
        for row in select(store, "audit/contradictions")
    ]
    found += [*denials(store), *SingleValues(store).all()]
    return sorted(set(found), key=lambda c: (c.subject, c.first, c.second))


def contradiction_rows(store: Store, about: str = "") -> tuple[Row, ...]:
    """Kind, subject, and for each of the two facts what it says and the paths of its documents."""
    sides = Sides(store)
    rows = (
        (c.kind, sides.subject(c.subject), *sides.of(c.first), *sides.of(c.second))
        for c in find_contradictions(store)
    )
    return tuple(row for row in rows if about.casefold() in row[1].casefold())


class Sides:
    """What facts say, and where."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names = DisplayNames(store, lambda _: "")
        self._stated = StandingEvidence(store, lambda _: True)

    def subject(self, entity: str) -> str:
        """The entity's label."""
        return self._names.recalled.entity(entity) or entity

    def of(self, fact: str) -> tuple[str, str]:
        """The fact in words, and the paths of the standing documents that say it."""
        return self._names.of(fact), ", ".join(self.paths(fact))

    def paths(self, fact: str) -> list[str]:
        find = self._stated.of_claim if kind_of(fact) == "claim" else self._stated.of_edge
        items = [item for f in (fact, *self._stated.merged_into(fact)) for item in find(f)]
        documents = {document_of_chunk(item["wasDerivedFrom"][0].value) for item in items}
        return sorted({path for _, path in documents_of(self._store, documents).values()})
