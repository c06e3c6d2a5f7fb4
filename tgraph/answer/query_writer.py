"""A language model that writes the query of a question, from the part of the catalogue that the
question may be about, and mends what can't be asked.

What it writes goes through the door of every written query; it says nothing of the result."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pyoxigraph import Literal as PlainLiteral
from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.answer.model import ModelStep, question_values
from tgraph.answer.rows import as_texts
from tgraph.compute.computation import (
    QueryPlan,
    RefusedText,
    catalogue_of,
    link_catalogue,
    plan_written,
)
from tgraph.compute.linking import QuestionLinks
from tgraph.errors import QueryError, UsageError
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.model import Object
from tgraph.models.base import CallSink
from tgraph.models.tokens import count_tokens, encoding_for
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_all
from tgraph.retrieve.labels import labels_of

MOST_ROUNDS = 4
"""Rounds in which a model writes a query, looks names up, and mends what can't be asked."""

MOST_NAMES, MOST_MATCHES = 10, 5
"""Names that a round looks up, and what is shown of each."""

MOST_SAMPLED, MOST_CELLS = 5, 20
"""Rows of a sample, and values of each."""

SHOWN_VALUES = 8
"""Values of a property in the catalogue of a prompt."""

LONGEST_LABEL, LONGEST_REASON = 120, 300
"""Characters of a name or a value in a prompt, and of a reason in a note."""

WRITTEN_BY_MODEL = "a model wrote the query"

Row = Mapping[str, object]


class _WriterReply(BaseModel):
    action: Literal["query", "look_up", "sample", "no_data"]
    sparql: str = ""
    names: Annotated[list[str], BeforeValidator(as_texts)] = Field(default_factory=list)
    reason: str = ""


class QueryWriter(ModelStep):
    """Writes the query of a question with a model, in a bounded number of rounds."""

    name = "write_query"

    def plan(self, question: Question, context: Context, sink: CallSink) -> QueryPlan:
        """Return the model's query, or none with a remark: the model says that the data don't have
        it, or wrote nothing that can be asked.

        Raises ``EndpointError`` if the model can't be reached, ``ModelError`` for an unreadable
        reply."""
        catalogue = catalogue_of(context)
        values = {**question_values(question), "rounds": str(MOST_ROUNDS)}
        values |= {"catalogue": self._show_catalogue(question, context, values), "findings": ""}
        findings: list[str] = []
        refused: list[RefusedText] = []
        for number in range(1, MOST_ROUNDS + 1):
            reply = self.ask(values, _WriterReply, sink).value
            if reply.action == "no_data":
                return _refuse_question(collapse_whitespace(reply.reason), refused)
            if reply.action == "query":
                try:
                    return plan_written(reply.sparql, context, WRITTEN_BY_MODEL, refused)
                except QueryError as error:
                    refused.append(RefusedText(reply.sparql.strip() or "-", str(error)))
                    rows: Sequence[Row] = [{"query": reply.sparql[:2_000], "problem": str(error)}]
            elif reply.action == "look_up":
                rows = list(_look_up(reply.names[:MOST_NAMES], catalogue, context))
            else:
                rows = list(_sample(reply.names[:1], catalogue, context))
            findings += [_write_row({"round": number, **row}) for row in rows]
            values["findings"] = self._show_findings(findings, values)
        problem = refused[-1].problem if refused else "it wrote none"
        remark = f"The model wrote no query that can be asked in {MOST_ROUNDS} rounds: {problem}"
        return QueryPlan(QuestionLinks(()), (), refused=tuple(refused), remark=remark)

    def _show_catalogue(
        self, question: Question, context: Context, values: Mapping[str, str]
    ) -> str:
        """Return the lines of the classes and properties that the question may be about, as many
        as half of the prompt's room has; the other half is for what the rounds give."""
        lines = map(_write_row, _catalogue_rows(question.text, context))
        return "\n".join(self._fit_lines(lines, {**values, "catalogue": "", "findings": ""}, 2))

    def _show_findings(self, findings: Sequence[str], values: Mapping[str, str]) -> str:
        """Return the newest findings that the prompt has room for, oldest first."""
        newest = self._fit_lines(reversed(findings), {**values, "findings": ""}, 1)
        return "\n".join(reversed(newest))

    def _fit_lines(self, lines: Iterable[str], values: Mapping[str, str], share: int) -> list[str]:
        """Return the first lines that fit into a share of the prompt's room."""
        encoding = encoding_for(self.agent.name)
        fixed = count_tokens(self.render_without("findings", values), encoding)
        room = (self.budget - fixed) // share
        fitting: list[str] = []
        for line in lines:
            room -= count_tokens(line, encoding) + 1
            if room < 0:
                break
            fitting.append(line)
        if not fitting and room < 0:
            raise UsageError(
                f"The question leaves no room for a query in {self.budget:,} tokens.",
                "Raise sparql_search.max_context_tokens, or ask with less history.",
            )
        return fitting


def _refuse_question(reason: str, refused: Sequence[RefusedText]) -> QueryPlan:
    detail = f": {reason[:LONGEST_REASON].rstrip('.')}" if reason else ""
    remark = f"The model says that the data don't have it{detail}."
    return QueryPlan(QuestionLinks(()), (), refused=tuple(refused), remark=remark)


def _write_row(row: Row) -> str:
    """Return a row as a JSON line, so that no text of it can pose as structure."""
    return json.dumps(row, ensure_ascii=False)


def _shorten(text: str) -> str:
    return collapse_whitespace(text)[:LONGEST_LABEL]


# --- the catalogue ----------------------------------------------------------------------------


def _catalogue_rows(question: str, context: Context) -> Iterator[Row]:
    """Yield classes and properties: those that the question names first, then the most frequent,
    each class before its properties."""
    catalogue = catalogue_of(context)
    links = link_catalogue(question, context)
    weights: defaultdict[NamedNode, float] = defaultdict(float)
    for link in links.properties:
        weights[link.known.iri] += link.score * len(link.span)
    for value_link in links.values:
        for iri in value_link.properties:
            weights[iri] += value_link.score
    class_keys = {(link.known.kind, link.known.key) for link in links.classes}

    def rank(known: KnownClass) -> tuple[bool, float]:
        best = max((weights.get(iri, 0.0) for iri, _ in known.properties), default=0.0)
        return (known.kind, known.key) not in class_keys, -best

    classes = sorted(catalogue.classes, key=rank)
    properties = {p.iri: p for p in catalogue.properties}
    listed: set[NamedNode] = set()
    for known in classes:
        columns = [properties[iri] for iri, _ in known.properties if iri in properties]
        yield _class_row(known, columns)
        for own_property in sorted(columns, key=lambda column: -weights.get(column.iri, 0.0)):
            if own_property.iri not in listed:
                listed.add(own_property.iri)
                yield _property_row(own_property)
    yield from (_property_row(p) for iri, p in properties.items() if iri not in listed)


def _class_row(known: KnownClass, properties: Sequence[KnownProperty]) -> Row:
    return {
        "class": known.key,
        "name": _shorten(known.type_label or known.label),
        "kind": known.kind,
        "members": known.members,
        "properties": [_shorten(p.name) for p in properties[:MOST_CELLS]],
    }


def _property_row(known: KnownProperty) -> Row:
    row: dict[str, object] = {
        "property": known.iri.value,
        "name": _shorten(known.name),
        "values": known.kind,
        "statements": known.statements,
    }
    if known.unit:
        row["unit"] = known.unit
    if known.values:
        frequent = known.values[:SHOWN_VALUES]
        row["most frequent"] = [_value_row(value.value, value.label) for value in frequent]
    return row


def _value_row(value: Object, label: str) -> object:
    if isinstance(value, NamedNode):
        return {"iri": value.value, "name": _shorten(label)}
    return _shorten(value.value)


# --- look-ups ---------------------------------------------------------------------------------


def _look_up(names: Sequence[str], catalogue: Catalogue, context: Context) -> Iterator[Row]:
    """Yield what each name may mean: things called so, properties and values with it."""
    texts = [_shorten(name) for name in names if name.strip()]
    entities = match_all(texts, context.graph) if texts else {}
    for text in texts:
        folded = text.casefold()
        things = [{"iri": iri} for iri in entities.get(text, ())[:MOST_MATCHES]]
        properties = [p for p in catalogue.properties if folded in p.label.casefold()]
        values = [
            {"property": p.iri.value, "value": _value_row(value.value, value.label)}
            for p in catalogue.properties
            for value in p.values
            if folded in value.label.casefold()
        ]
        yield {
            "name": text,
            "things": things,
            "properties": [
                {"property": p.iri.value, "name": _shorten(p.name)}
                for p in properties[:MOST_MATCHES]
            ],
            "values": values[:MOST_MATCHES],
        }


def _sample(names: Sequence[str], catalogue: Catalogue, context: Context) -> Iterator[Row]:
    """Yield some rows of the class with a key or name, with their values."""
    folded = [name.strip().strip("<>").casefold() for name in names]
    for known in catalogue.classes:
        labels = {known.key.casefold(), known.label.casefold(), known.type_label.casefold()}
        if labels.intersection(folded):
            rows = known.rows[:MOST_SAMPLED] or _first_members(known, context)
            properties = {p.iri for p in catalogue.properties}
            for row in rows:
                quads = context.store.match(row, None, None, v.KNOWLEDGE_GRAPH)
                statements = [quad for quad in quads if quad.predicate in properties]
                yield {"row": row.value, "values": _show_statements(statements, context)}
            return
    yield {"problem": f"There is no class {_shorten(', '.join(names)) or '-'}."}


def _first_members(known: KnownClass, context: Context) -> list[NamedNode]:
    quads = context.store.match(None, v.RDF_TYPE, NamedNode(known.type), v.KNOWLEDGE_GRAPH)
    members = (quad.subject for quad in islice(quads, MOST_SAMPLED))
    return sorted((member for member in members if isinstance(member, NamedNode)), key=str)


def _show_statements(statements: Sequence[Quad], context: Context) -> list[Row]:
    """Return statements of a row as pairs of a property and a value, in a settled order."""
    pairs = sorted(
        {
            (quad.predicate, quad.object)
            for quad in statements
            if isinstance(quad.object, NamedNode | PlainLiteral)
        },
        key=str,
    )
    cells = list(islice(pairs, MOST_CELLS))
    labels = labels_of(context.graph, [value for _, value in cells if isinstance(value, NamedNode)])
    return [
        {
            "property": predicate.value,
            "value": _value_row(value, labels[value] if isinstance(value, NamedNode) else ""),
        }
        for predicate, value in cells
    ]
