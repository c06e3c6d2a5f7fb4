"""Questions over an imported graph: GeoQuery's facts and questions, computed without a model.

    git clone https://github.com/jkkummerfeld/text2sql-data
    python -m benchmarks.computing geo text2sql-data --split test

The facts and questions are those of Zelle and Mooney (1996) with the SQL of Finegan-Dollak et al.
(2018). The facts become RDF, which is imported as a user would; each question is asked in the mode
``sparql``. An answer is right whose values are those of the first SQL query over the same facts,
as sets. ``--misses`` prints what was wrong or refused: use it with the training questions alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, serialize

from benchmarks.computing_data import open_indexed
from tgraph import vocabulary as v
from tgraph.compute.algebra import Aggregate, CompareGroups, Count, Exists, GroupRows, RowShare
from tgraph.compute.computation import Computation, compute_plan, plan_query
from tgraph.compute.evaluation import Computed
from tgraph.compute.results import decisive_solutions
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extensions.interchange import import_graph
from tgraph.index.graph_source import GraphSource
from tgraph.retrieve.labels import labels_of

BASE = "http://example.org/geo/"
COUNTRY = ("United States", ("usa", "us", "u.s.", "america", "United States of America"))
_LABEL, _ALIAS = NamedNode(v.RDFS + "label"), NamedNode(v.SKOS + "altLabel")
_OF_STATES = ("population", "area", "population density")
_TABLE = re.compile(r"CREATE TABLE `(\w+)` \((.*?)\) ENGINE", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GeoQuestion:
    """A question with the SQL query that answers it."""

    text: str
    sql: str


def read_file(repository: Path, name: str) -> str:
    """Return a file of a clone, which may be bare."""
    path = repository / name
    if path.exists():
        return path.read_text(encoding="utf-8")
    command = ["git", "-C", str(repository), "show", f"HEAD:{name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def open_facts(dump: str) -> sqlite3.Connection:
    """Return the facts of a MySQL dump as a database in memory."""
    database = sqlite3.connect(":memory:")
    for name, body in _TABLE.findall(dump):
        columns = re.findall(r"^\s*`(\w+)` (\w+)", body, re.MULTILINE)
        kinds = ", ".join(
            f"{column} {'real' if kind in ('int', 'double') else 'text collate nocase'}"
            for column, kind in columns
        )
        database.execute(f"CREATE TABLE {name} ({kinds})")
    for line in dump.splitlines():
        if line.startswith("INSERT INTO"):
            database.execute(line.replace("\\'", "''"))
    return database


def read_questions(text: str, split: str) -> Iterator[GeoQuestion]:
    """Yield the questions of a split, their variables replaced by names."""
    for entry in json.loads(text):
        for sentence in entry["sentences"]:
            if sentence["question-split"] not in split.split("+"):
                continue
            names = {one["name"]: one["example"] for one in entry["variables"]}
            names |= sentence["variables"]
            question, sql = sentence["text"], entry["sql"][0]
            for variable, name in names.items():
                question = question.replace(variable, name)
                sql = sql.replace(f'"{variable}"', f'"{name}"').replace(variable, name)
            yield GeoQuestion(question, re.sub(r'"([^"]*)"', r"'\1'", sql))


def keep_answerable(
    facts: sqlite3.Connection, questions: Iterable[GeoQuestion]
) -> Iterator[GeoQuestion]:
    """Yield the questions whose query SQLite can run."""
    for question in questions:
        with suppress(sqlite3.OperationalError):
            facts.execute(question.sql)
            yield question


# --- the facts as RDF ---


def make_triples(facts: sqlite3.Connection) -> list[Triple]:
    """Return the facts as RDF: things with a class and a name, and their properties."""
    writer = FactsWriter()
    writer.write_country()
    writer.write_states(facts)
    writer.write_cities(facts)
    writer.write_points(facts)
    for kind, measure in (("mountain", "altitude"), ("lake", "area"), ("river", "length")):
        writer.write_places(facts, kind, measure)
    for label, iri in writer.properties.items():
        writer.triples[Triple(iri, _LABEL, Literal(label))] = None
    return list(writer.triples)


@dataclass
class FactsWriter:
    """The triples of the facts, and the properties that they have, by label."""

    triples: dict[Triple, None] = field(default_factory=dict)
    properties: dict[str, NamedNode] = field(default_factory=dict)

    def name_thing(self, kind: str, name: str, key: str = "") -> NamedNode:
        """State the class and the name of a thing, and return it."""
        node = thing(kind, key or name)
        self.triples[Triple(node, v.RDF_TYPE, NamedNode(f"{BASE}class/{kind}"))] = None
        self.triples[Triple(node, _LABEL, Literal(name))] = None
        return node

    def state(self, subject: NamedNode, label: str, value: NamedNode | float | None) -> None:
        """State a value of a property; nothing where there is no value."""
        if value is not None:
            iri = NamedNode(f"{BASE}{label.replace(' ', '-')}")
            self.properties[label] = iri
            term = value if isinstance(value, NamedNode) else write_number(value)
            self.triples[Triple(subject, iri, term)] = None

    def write_country(self) -> None:
        """State the country, with its other names."""
        country = self.name_thing("country", COUNTRY[0], "usa")
        for alias in COUNTRY[1]:
            self.triples[Triple(country, _ALIAS, Literal(alias))] = None

    def write_states(self, facts: sqlite3.Connection) -> None:
        """State what the states are, have and border."""
        columns = "state_name, capital, population, area, density"
        for name, capital, *amounts in facts.execute(f"SELECT {columns} FROM state"):
            node = self.name_thing("state", name)
            self.state(node, "country", thing("country", "usa"))
            for label, amount in zip(_OF_STATES, amounts, strict=True):
                self.state(node, label, amount)
            if capital:
                city = thing("city", f"{capital}, {name}")
                self.triples[Triple(city, _LABEL, Literal(capital))] = None
                self.state(node, "capital", city)
                self.state(city, "located in", node)
        for name, other in facts.execute("SELECT state_name, border FROM border_info"):
            self.state(thing("state", name), "borders", thing("state", other))

    def write_cities(self, facts: sqlite3.Connection) -> None:
        """State the cities: one of a name in each state."""
        for name, people, within in facts.execute(
            "SELECT city_name, population, state_name FROM city"
        ):
            node = self.name_thing("city", name, f"{name}, {within}")
            self.state(node, "population", people)
            self.state(node, "located in", thing("state", within))
            self.state(node, "country", thing("country", "usa"))

    def write_points(self, facts: sqlite3.Connection) -> None:
        """State the highest and lowest points of the states."""
        for which in ("highest", "lowest"):
            for within, name, elevation in facts.execute(
                f"SELECT state_name, {which}_point, {which}_elevation FROM highlow"
            ):
                node, point = thing("state", within), self.name_thing("point", name)
                self.state(node, f"{which} point", point)
                self.state(node, f"{which} elevation", elevation)
                self.state(point, "elevation", elevation)

    def write_places(self, facts: sqlite3.Connection, kind: str, measure: str) -> None:
        """State the mountains, lakes or rivers."""
        column = {"mountain": "mountain_altitude"}.get(kind, measure)
        place, relation = ("state_name", "located in")
        if kind == "river":
            place, relation = ("traverse", "runs through")
        rows = facts.execute(f"SELECT {kind}_name, {column}, {place} FROM {kind}")
        for name, amount, within in rows:
            node = self.name_thing(kind, name)
            self.state(node, measure, amount)
            self.state(node, relation, thing("state", within))
            self.state(node, "country", thing("country", "usa"))


def thing(kind: str, key: str) -> NamedNode:
    """Return the IRI of a thing of a kind."""
    return NamedNode(f"{BASE}{kind}/{re.sub('[^a-z0-9]+', '-', key.lower())}")


def write_number(value: float) -> Literal:
    """Return a number as a literal, whole ones as integers."""
    if value == int(value):
        return Literal(str(int(value)), datatype=v.xsd("integer"))
    return Literal(repr(value), datatype=v.xsd("decimal"))


# --- asking and judging ---


def import_facts(facts: sqlite3.Connection, folder: Path) -> KnowledgeGraph:
    """Return a graph into which the facts are imported."""
    data = serialize(make_triples(facts), format=RdfFormat.TURTLE)
    assert data is not None
    (folder / "geo.ttl").write_bytes(data)
    graph = open_indexed(folder, create=True)
    import_graph(graph, [folder / "geo.ttl"])
    return graph


def answer_values(computed: Computed, names: GraphSource) -> set[str]:
    """Return the values that a result says."""
    query = computed.query
    if isinstance(query, Count | Aggregate | CompareGroups | RowShare | Exists):
        if isinstance(query, Count) and query.distinct:
            return {write_value(computed.bindings[0]["distinct"].value)}
        return {write_value(term.value) for row in computed.bindings for term in row.values()}
    solutions = decisive_solutions(query, computed.solutions)
    shown = getattr(query, "shown", None)
    terms = [
        s.group if isinstance(query, GroupRows) else s.value if shown else s.row for s in solutions
    ]
    labels = labels_of(names, {term for term in terms if isinstance(term, NamedNode)})
    return {
        write_value(labels[term] if isinstance(term, NamedNode) else term.value)
        for term in terms
        if term is not None
    }


def write_value(value: object) -> str:
    """Return a value as it is compared: a number to four digits, a text in lower case."""
    try:
        return f"{float(str(value)):.4g}"
    except ValueError:
        return str(value).lower()


def gold_values(facts: sqlite3.Connection, sql: str) -> set[str]:
    """Return the values of the first column of a query's result."""
    rows = facts.execute(sql).fetchall()
    return {write_value(row[0]) for row in rows if row[0] is not None}


def judge_questions(
    graph: KnowledgeGraph, facts: sqlite3.Connection, questions: Sequence[GeoQuestion], misses: bool
) -> tuple[int, int]:
    """Return how many questions are answered, and how many right; print the others on demand."""
    answered = right = 0
    names = graph.opened.context().graph
    for question in questions:
        gold = gold_values(facts, question.sql)
        computation = ask_question(graph, question.text)
        computed = computation.computed
        values = answer_values(computed, names) if computed else None
        answered += computed is not None
        right += values == gold
        if misses and values != gold:
            best = computation.plan.ranked[0] if computation.plan.ranked else None
            missing = ", ".join(best.unaccounted) if best else "no candidate"
            reason = f"{best.likelihood:.2f} {missing}" if best else missing
            said = (
                f"WRONG {sorted(values)[:4]} for {sorted(gold)[:4]}" if values is not None else ""
            )
            print(f"{question.text}\n    {said or 'refused'} ({reason})")
    return answered, right


def ask_question(graph: KnowledgeGraph, text: str) -> Computation:
    """Return what a question becomes in the mode ``sparql``."""
    context = graph.opened.context()
    return compute_plan(plan_query(text, context), context)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the set is asked with."""
    parser.add_argument("repository", type=Path)
    parser.add_argument("--split", default="test", help="train, dev, test, or several with +")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--most", type=int)


def run(options: argparse.Namespace) -> None:
    """Ask the questions of a split, and print the figures."""
    facts = open_facts(read_file(options.repository, "data/geography-db.sql"))
    text = read_file(options.repository, "data/geography.json")
    asked = list(read_questions(text, options.split))
    questions = list(keep_answerable(facts, asked))[: options.most]
    with (
        tempfile.TemporaryDirectory() as folder,
        import_facts(facts, Path(folder)) as graph,
    ):
        answered, right = judge_questions(graph, facts, questions, options.misses)
    figures = {
        "questions": len(questions),
        "without_gold": len(asked) - len(questions),
        "answered": answered,
        "right": right,
        "right_of_all": round(right / len(questions), 3),
        "right_of_answered": round(right / answered, 3) if answered else None,
    }
    print(json.dumps(figures))
