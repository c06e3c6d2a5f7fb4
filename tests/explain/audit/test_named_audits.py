"""Every audit against a record whose content is known: it finds what is there, and no more."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad
from rdflib import OWL, RDF, Graph

from tests.support.paths import REPOSITORY
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.audit.named_audits import GROUPS, find_audit, list_audits, run_audit
from tgraph.explain.trace.reader import Trace
from tgraph.resources import read_text
from tgraph.store.oxigraph import OxigraphStore

MADE = runpy.run_path(str(REPOSITORY / "docs/audits_reference.py"))
BOTH, ONE, OLD, ALONE = (MADE[name] for name in ("BOTH", "ONE", "OLD", "ALONE"))
BROKEN, NOTHING, REASON = (MADE[name] for name in ("BROKEN", "NOTHING", "REASON"))
CATALOGUE = v.collection_iri("explainability")
GRAPH = NamedNode(v.bundle_iri("00000000-0000-4000-8000-000000000000"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with MADE["example"](tmp_path_factory.mktemp("audits")) as made:
        yield made


@pytest.fixture(scope="module")
def traces(graph: KnowledgeGraph) -> list[Trace]:
    """Oldest first."""
    return [graph.trace(session.explain_id) for session in reversed(graph.sessions.summaries())]


@pytest.fixture(scope="module")
def first(traces: list[Trace]) -> dict[str, Trace]:
    """The first session of each question."""
    return {trace.question: trace for trace in reversed(traces)}


@pytest.fixture(scope="module")
def spoilt(graph: KnowledgeGraph) -> OxigraphStore:
    """A copy of the store to add to and to take from again."""
    return OxigraphStore.memory(graph.opened.read().match())


def rows(graph: KnowledgeGraph, name: str, *arguments: str) -> list[dict[str, str]]:
    result = graph.audit(name, *arguments)
    assert (result.passed is None) == (not result.audit.check)
    assert result.passed in (None, not result.rows)
    return [dict(zip(result.audit.columns, row, strict=True)) for row in result.rows]


def documents(graph: KnowledgeGraph, trace: Trace) -> set[str]:
    """The paths of what the answer cites, also of what does not stand any more."""
    paths = {known.document: known.path for known in graph.documents.summaries()}
    return {paths[c.document] for sentence in trace.sentences for c in sentence.citations}


# --- answers --------------------------------------------------------------------------------------


def test_only_what_the_model_said_alone_is_uncited(graph, first):
    assert {row["session"] for row in rows(graph, "uncited")} == {first[ALONE].explain_id}


def test_what_no_cited_text_says_is_unsupported_by_the_last_verification(graph, first):
    found = rows(graph, "unsupported")
    assert {row["session"] for row in found} == {first[OLD].explain_id}
    wrong = [s.text for s in first[OLD].sentences if "1066" in s.text]
    assert [row["sentence"] for row in found] == wrong != []
    assert {row["lost"] for row in found} == {"answer"}
    assert all("1066" in row["reason"] for row in found)


def test_a_later_verification_takes_the_place_of_an_earlier(graph, spoilt, first):
    earlier = next(spoilt.match(None, v.tg("verdict"), Literal("partly"), None))
    number = Literal("1000000", datatype=v.xsd("integer"))
    entry, later = NamedNode(v.bundle_iri("later")), NamedNode(v.verification_iri("later"))
    answer = NamedNode(v.answer_iri(first[OLD].explain_id.removeprefix(v.session_iri(""))))
    extra = [
        Quad(entry, v.tg("verification"), later, NamedNode(CATALOGUE)),
        Quad(entry, v.tg("sequence"), number, NamedNode(CATALOGUE)),
        Quad(later, v.RDF_TYPE, v.tg("Verification"), entry),
        Quad(later, v.prov("used"), answer, entry),
    ]
    assert earlier
    assert run_audit(spoilt, CATALOGUE, find_audit("unsupported")).rows
    spoilt.extend(extra)
    try:
        assert run_audit(spoilt, CATALOGUE, find_audit("unsupported")).passed
    finally:
        spoilt.remove(extra)


def test_the_answers_that_nobody_verified(graph, traces, first):
    verified = {first[BOTH].explain_id, first[OLD].explain_id}
    done = {trace.explain_id for trace in traces if trace.status == "completed"}
    assert {row["session"] for row in rows(graph, "unverified")} == done - verified


def test_the_answers_of_one_document_alone(graph, traces):
    found = {row["session"]: row for row in rows(graph, "single-source")}
    assert found.keys() == {t.explain_id for t in traces if len(documents(graph, t)) == 1}
    assert len(found) < len([t for t in traces if t.sentences])
    for trace in traces:
        if trace.explain_id in found:
            row = found[trace.explain_id]
            assert {row["path"]} == documents(graph, trace)
            assert int(row["quotes"]) == sum(len(s.citations) for s in trace.sentences)


def test_stale_answers_rest_on_what_was_changed_or_retracted(graph, traces):
    changes = {"fram.txt": "superseded", "notes.txt": "retracted"}
    expected = {
        (trace.explain_id, path, changes[path])
        for trace in traces[:-1]
        for path in documents(graph, trace) & changes.keys()
    }
    found = rows(graph, "stale-answers")
    assert {(r["session"], r["path"], r["change"]) for r in found} == expected
    assert len(found) == len(expected) == 3
    assert {bool(r["questioned"]) == (r["change"] == "retracted") for r in found} == {True}


def test_answers_on_a_retracted_document_come_with_who_and_why(graph, traces):
    found = rows(graph, "retracted-answers")
    fallen = {trace.explain_id for trace in traces if "notes.txt" in documents(graph, trace)}
    assert {row["session"] for row in found} == fallen
    assert {(row["path"], row["reason"], row["person"]) for row in found} == {
        ("notes.txt", REASON, "Ada")
    }
    assert all(row["questioned"] >= row["retracted"] for row in found)


def test_an_answer_from_what_did_not_stand_is_caught(graph, spoilt, first):
    audit = find_audit("used-after-retraction")
    assert not rows(graph, audit.name)
    generation = v.tg("generation")
    said = next(spoilt.match(NamedNode(first[ONE].explain_id), generation, None, None))
    for number, caught in ((1, set()), (2, {ONE}), (9, {ONE}), (0, {ONE})):
        later = Quad(
            said.subject,
            generation,
            Literal(str(number), datatype=v.xsd("integer")),
            said.graph_name,
        )
        spoilt.remove([said])
        spoilt.extend([later])
        result = run_audit(spoilt, CATALOGUE, audit)
        spoilt.remove([later])
        spoilt.extend([said])
        assert {row[2] for row in result.rows} == caught, number


def test_questions_in_vain_and_failures(graph, first):
    (nothing,) = rows(graph, "unanswered")
    assert (nothing["question"], nothing["asked"]) == (NOTHING, "1")
    assert nothing["session"] == first[NOTHING].explain_id
    (failure,) = rows(graph, "failures")
    assert failure["activity"] == first[BROKEN].explain_id
    assert (failure["kind"], failure["status"]) == ("session", "failed")
    assert failure["error"] == first[BROKEN].error != ""


def test_what_a_session_saw_and_did_not_use(graph, traces):
    for trace in traces:
        found = rows(graph, "not-used", trace.explain_id)
        expected = [(str(e.rank), e.item, e.reasoning) for e in trace.rejected]
        assert [(r["rank"], r["edge"] or r["item"], r["reason"]) for r in found] == expected
        assert all(" — " in row["fact"] for row in found if row["edge"])
    assert any(trace.rejected for trace in traces)


# --- documents and facts --------------------------------------------------------------------------


def test_documents_that_no_answer_quotes(graph, traces):
    quoted = {c.document for trace in traces for s in trace.sentences for c in s.citations}
    standing = {d.document: d.path for d in graph.documents.summaries() if d.standing}
    found = rows(graph, "unused-documents")
    assert {row["path"] for row in found} == {p for d, p in standing.items() if d not in quoted}
    assert "unread.txt" in {row["path"] for row in found}
    shown = {
        (place.document, trace.explain_id)
        for trace in traces
        for item in trace.selected
        for place in item.evidence
    }
    for row in found:
        assert int(row["shown"]) == sum(document == row["document"] for document, _ in shown)


def test_the_most_influential_documents_are_counted_right(graph, traces):
    found = rows(graph, "influential-documents")
    cited = {
        (c.document, trace.explain_id, s.iri, n)
        for trace in traces
        for s in trace.sentences
        for n, c in enumerate(s.citations)
    }
    assert {row["document"] for row in found} == {document for document, *_ in cited}
    for row in found:
        own = [c for c in cited if c[0] == row["document"]]
        counts = (len({c[1] for c in own}), len({c[2] for c in own}), len(own))
        assert (int(row["sessions"]), int(row["sentences"]), int(row["quotes"])) == counts
    assert len(rows(graph, "influential-documents", "1")) == 1


def test_the_most_influential_edges_are_counted_right(graph, traces):
    found = {row["edge"]: row for row in rows(graph, "influential-edges", "100")}
    chosen = {e.item for trace in traces for e in trace.selected if e.edge}
    assert found.keys() == chosen
    for edge, row in found.items():
        selections = {e.iri: t for t in traces for e in t.selected if e.item == edge}
        citing = [
            (trace.explain_id, sentence.iri)
            for trace in traces
            for sentence in trace.sentences
            if selections.keys() & set(sentence.edge_selections)
        ]
        assert int(row["selections"]) == len(selections)
        assert int(row["sessions"]) == len({session for session, _ in citing})
        assert int(row["sentences"]) == len(set(citing))


def test_what_extraction_lost_is_told_by_document(graph, spoilt):
    assert not [r for r in rows(graph, "extraction-losses") if r["reason"] == "nothing extracted"]
    (document,) = (d.document for d in graph.documents.summaries() if d.path == "unread.txt")
    chunk = next(spoilt.match(None, v.prov("wasDerivedFrom"), NamedNode(document), None)).subject
    lost = [
        quad
        for quad in spoilt.match(None, v.RDF_TYPE, v.tg("Evidence"), None)
        if next(spoilt.match(quad.subject, v.prov("wasDerivedFrom"), chunk, None), None)
    ]
    extraction = next(
        q.subject
        for q in spoilt.match(None, v.prov("used"), chunk, None)
        if next(spoilt.match(q.subject, v.RDF_TYPE, v.tg("Extraction"), None), None)
    )
    node = NamedNode(f"{v.URN}prov:dropped:test")
    extra = [
        Quad(extraction, v.tg("dropped"), node, v.SOURCE_GRAPH),
        Quad(node, v.tg("reason"), Literal("malformed row"), v.SOURCE_GRAPH),
        Quad(node, v.tg("count"), Literal(3), v.SOURCE_GRAPH),
    ]
    spoilt.remove(lost)
    spoilt.extend(extra)
    try:
        found = run_audit(spoilt, CATALOGUE, find_audit("extraction-losses")).rows
    finally:
        spoilt.extend(lost)
        spoilt.remove(extra)
    told = {(row[0], row[1], row[2], row[3], row[5]) for row in found}
    assert ("unread.txt", "nothing extracted", "1", "1", "yes") in told
    assert ("unread.txt", "malformed row", "3", "1", "yes") in told


def test_everything_dropped_adds_up(graph):
    expected: dict[str, int] = {}
    store = graph.opened.read()
    for quad in store.match(None, v.RDF_TYPE, v.tg("Dropped"), None):
        (reason,) = store.match(quad.subject, v.tg("reason"), None, None)
        (number,) = store.match(quad.subject, v.tg("count"), None, None)
        expected[reason.object.value] = expected.get(reason.object.value, 0) + int(
            number.object.value
        )
    found: dict[str, int] = {}
    for row in rows(graph, "dropped"):
        found[row["reason"]] = found.get(row["reason"], 0) + int(row["count"])
    assert found == expected


# --- models, prompts and cost ---------------------------------------------------------------------


def test_versions_of_a_prompt_and_models_that_took_over(graph):
    found = [r for r in rows(graph, "prompt-versions") if r["prompt"] == "synthesise_answer"]
    assert len(found) == len({row["hash"] for row in found}) == 2
    assert found[0]["last"] < found[1]["first"]
    assert {r["prompt"] for r in rows(graph, "prompt-versions", "synth")} == {"synthesise_answer"}
    changes = [r for r in rows(graph, "model-changes") if r["activity"].endswith("select_edges")]
    assert [row["agent"] for row in changes] == ["scripted-1", "scripted-2"]
    assert changes[0]["last"] < changes[1]["first"]
    assert not [r for r in rows(graph, "model-changes") if "summarise" in r["activity"]]


def test_costs_are_what_the_sessions_and_runs_were_charged(graph, traces):
    found = rows(graph, "costs")
    asked = [r for r in found if r["for"] == "session"]
    calls = [call for trace in traces for call in trace.calls]
    assert sum(int(r["calls"]) for r in asked) == len(calls)
    assert sum(int(r["input"]) for r in asked) == sum(c.input_tokens for c in calls)
    assert sum(int(r["output"]) for r in asked) == sum(c.output_tokens for c in calls)
    assert sum(int(r["milliseconds"]) for r in asked) == sum(c.milliseconds for c in calls)
    assert {r["for"] for r in found} == {"session", "indexrun", "curation"}
    every = sum(1 for _ in graph.opened.read().match(None, v.RDF_TYPE, v.tg("Call"), None))
    assert sum(int(r["calls"]) for r in found) == every
    days = {r["day"] for r in found}
    assert rows(graph, "costs", max(days), max(days)) == [r for r in found if r["day"] == max(days)]
    assert not rows(graph, "costs", "2027-01-01")


def test_the_slowest_steps_in_seconds(graph, traces, spoilt):
    found = rows(graph, "slowest-steps", "1000")
    steps = [(step, trace) for trace in traces for step in trace.steps]
    assert sorted((r["step"], r["session"]) for r in found) == sorted(
        (step.label, trace.explain_id) for step, trace in steps
    )
    times = [float(row["seconds"]) for row in found]
    assert times == sorted(times, reverse=True)
    step, trace = steps[0]
    (ended,) = spoilt.match(NamedNode(step.iri), v.prov("endedAtTime"), None, None)
    began = step.started.removesuffix("Z")
    assert began.startswith("2026-01-01T10:")
    late = Quad(
        ended.subject,
        ended.predicate,
        Literal(began.replace("01T10:", "03T13:") + ".5Z", datatype=v.xsd("dateTime")),
        ended.graph_name,
    )
    spoilt.remove([ended])
    spoilt.extend([late])
    row = run_audit(spoilt, CATALOGUE, find_audit("slowest-steps"), ["1"]).rows[0]
    spoilt.remove([late])
    spoilt.extend([ended])
    assert (row[0], row[-1]) == (str(2 * 86400 + 3 * 3600 + 0.5), trace.explain_id)


# --- PROV-CONSTRAINTS -----------------------------------------------------------------------------


def node(name: str) -> NamedNode:
    return NamedNode(f"urn:test:{name}")


def at(hour: int) -> Literal:
    return Literal(f"2026-02-01T{hour:02}:00:00Z", datatype=v.xsd("dateTime"))


def stated(*triples: tuple[str, str, Any]) -> list[Quad]:
    made = []
    for subject, name, value in triples:
        predicate = v.RDF_TYPE if name == "a" else v.prov(name)
        obj = at(value) if isinstance(value, int) else node(value)
        if name == "a":
            obj = v.prov(value)
        made.append(Quad(node(subject), predicate, obj, GRAPH))
    return made


def circle(name: str, length: int) -> tuple[tuple[str, str, Any], ...]:
    return tuple((f"x{i}", name, f"x{(i + 1) % length}") for i in range(length))


RAN = (("one", "startedAtTime", 1), ("one", "endedAtTime", 2))
LATER = (("two", "startedAtTime", 5), ("two", "endedAtTime", 6))
VIOLATIONS: list[tuple[str, str, str, tuple[tuple[str, str, Any], ...]]] = [
    ("ordering", "start-precedes-end", "x", (("x", "startedAtTime", 2), ("x", "endedAtTime", 1))),
    *[
        ("ordering", f"{kind}-within-activity", "e", (*RAN, ("e", by, "one"), ("e", time, hour)))
        for kind, by, time in (
            ("generation", "wasGeneratedBy", "generatedAtTime"),
            ("invalidation", "wasInvalidatedBy", "invalidatedAtTime"),
        )
        for hour in (0, 3)
    ],
    ("ordering", "wasInformedBy-ordering", "one", (*RAN, *LATER, ("one", "wasInformedBy", "two"))),
    (
        "ordering",
        "generation-precedes-invalidation",
        "e",
        (("e", "generatedAtTime", 4), ("e", "invalidatedAtTime", 3)),
    ),
    (
        "ordering",
        "generation-precedes-usage",
        "one",
        (*RAN, *LATER, ("one", "used", "e"), ("e", "wasGeneratedBy", "two")),
    ),
    (
        "ordering",
        "generation-precedes-usage",
        "one",
        (*RAN, ("one", "used", "e"), ("e", "generatedAtTime", 3)),
    ),
    (
        "ordering",
        "usage-precedes-invalidation",
        "two",
        (*LATER, ("two", "used", "e"), ("e", "invalidatedAtTime", 4)),
    ),
    (
        "ordering",
        "derivation-generation-generation-ordering",
        "e",
        (
            *RAN,
            *LATER,
            ("e", "wasDerivedFrom", "f"),
            ("e", "wasGeneratedBy", "one"),
            ("f", "wasGeneratedBy", "two"),
        ),
    ),
    (
        "ordering",
        "derivation-generation-generation-ordering",
        "e",
        (("e", "wasRevisionOf", "f"), ("e", "generatedAtTime", 1), ("f", "generatedAtTime", 2)),
    ),
    (
        "ordering",
        "specialization-generation-ordering",
        "e",
        (("e", "specializationOf", "f"), ("e", "generatedAtTime", 1), ("f", "generatedAtTime", 2)),
    ),
    *[
        ("uniqueness", constraint, "x", (("x", name, first), ("x", name, second)))
        for constraint, name, first, second in (
            ("unique-generation", "wasGeneratedBy", "one", "two"),
            ("unique-generation", "generatedAtTime", 1, 2),
            ("unique-invalidation", "wasInvalidatedBy", "one", "two"),
            ("unique-invalidation", "invalidatedAtTime", 1, 2),
            ("unique-startTime", "startedAtTime", 1, 2),
            ("unique-endTime", "endedAtTime", 1, 2),
        )
    ],
    *[
        ("disjointness", "entity-activity-disjoint", "x", (*active, *lasting))
        for active, lasting in (
            ((("x", "a", "Activity"),), (("x", "a", "Entity"),)),
            ((("x", "a", "Activity"),), (("x", "wasDerivedFrom", "e"),)),
            ((("x", "a", "Activity"),), (("e", "hadMember", "x"),)),
            ((("x", "startedAtTime", 1),), (("x", "a", "Entity"),)),
            ((("e", "wasGeneratedBy", "x"),), (("one", "used", "x"),)),
            ((("one", "wasInformedBy", "x"),), (("x", "specializationOf", "e"),)),
        )
    ],
    *[
        (
            "disjointness",
            "impossible-object-property-overlap",
            "x",
            (("x", "a", "Association"), ("x", "a", kind)),
        )
        for kind in ("Entity", "Activity", "Agent")
    ],
    *[
        ("impossibility", constraint, "x0", circle(name, length))
        for constraint, name in (
            ("derivation-generation-generation-ordering", "wasDerivedFrom"),
            ("derivation-generation-generation-ordering", "wasRevisionOf"),
            ("impossible-specialization-reflexive", "specializationOf"),
        )
        for length in (1, 2, 9)
    ],
    (
        "impossibility",
        "membership-empty-collection",
        "x",
        (("x", "a", "EmptyCollection"), ("x", "hadMember", "e")),
    ),
]


@pytest.mark.parametrize(
    ("family", "constraint", "subject", "triples"),
    VIOLATIONS,
    ids=[f"{number}-{case[1]}" for number, case in enumerate(VIOLATIONS)],
)
def test_a_violation_of_prov_constraints_is_caught(spoilt, family, constraint, subject, triples):
    quads = stated(*triples)
    spoilt.extend(quads)
    try:
        found = run_audit(spoilt, CATALOGUE, find_audit(f"prov-{family}"))
    finally:
        spoilt.remove(quads)
    assert found.passed is False
    assert (constraint, node(subject).value) in {row[:2] for row in found.rows}
    assert {row[0] for row in found.rows} == {constraint}


@pytest.mark.parametrize("family", ["ordering", "uniqueness", "disjointness", "impossibility"])
def test_what_tgraph_records_violates_nothing(graph, family):
    assert rows(graph, f"prov-{family}") == []


@pytest.mark.slow
def test_a_bent_verification_does_not_have_the_shape(graph, spoilt):
    assert rows(graph, "shapes") == []
    verdicts = v.tg("verdict")
    said = next(spoilt.match(None, verdicts, None, None))
    wrong = Quad(said.subject, verdicts, Literal("perhaps"), said.graph_name)
    spoilt.remove([said])
    spoilt.extend([wrong])
    try:
        found = run_audit(spoilt, CATALOGUE, find_audit("shapes"))
    finally:
        spoilt.remove([wrong])
        spoilt.extend([said])
    (verification,) = spoilt.match(None, v.RDF_TYPE, v.tg("Verification"), said.graph_name)
    assert {(row[0], row[1]) for row in found.rows} == {
        (verification.subject.value, said.subject.value)
    }


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_reference_of_audits_is_current_and_shows_something_for_each(graph, tmp_path):
    page = (REPOSITORY / "docs/reference/audits.md").read_text("utf-8")
    with MADE["spoilt"](tmp_path) as wrong:
        assert MADE["page"](graph, wrong) == page
    assert page.count("\n|---|") == len(list_audits())


def test_there_are_audits_in_every_group_and_their_names_are_distinct():
    audits = list_audits()
    assert [a.group for a in audits] == sorted((a.group for a in audits), key=GROUPS.index)
    assert {audit.group for audit in audits} == set(GROUPS)
    assert len({audit.name for audit in audits}) == len(audits) >= 24


def test_a_check_with_rows_is_exit_code_4_and_the_list_says_which_are_checks(graph):
    root = ["--root", str(graph.root)]
    failed = CliRunner().invoke(cli, ["audit", "uncited", "--json", *root])
    assert failed.exit_code == 4
    assert [row["mode"] for row in json.loads(failed.stdout)] == ["bypass"]
    assert "1 violations" in failed.stderr
    passed = CliRunner().invoke(cli, ["audit", "prov-uniqueness", *root])
    assert passed.exit_code == 0
    assert "no problem" in passed.stderr
    told = CliRunner().invoke(cli, ["audit", "single-source", *root])
    assert told.exit_code == 0
    listing = CliRunner().invoke(cli, ["audit", "--list"]).stdout
    for audit in list_audits():
        assert re.search(rf"^  {audit.name}\b", listing, re.MULTILINE)
    assert [line for line in listing.splitlines() if line in GROUPS] == list(GROUPS)
    assert listing.count("A check:") == sum(bool(audit.check) for audit in list_audits())


# --- other engines --------------------------------------------------------------------------------


QUERIES = sorted((REPOSITORY / "sparql").rglob("*.rq"))
ONTOLOGY = Graph().parse(data=read_text("ontology", "tgraph.ttl"), format="turtle")
LITERALS = {
    *("prov:startedAtTime", "prov:endedAtTime", "prov:generatedAtTime", "prov:invalidatedAtTime"),
    *(f"tg:{str(term).removeprefix(v.TG)}" for term in ONTOLOGY[: RDF.type : OWL.DatatypeProperty]),
}


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_a_query_asks_for_what_sparql_defines(path):
    """The least of some IRIs is left unbound by engines that keep to SPARQL 1.1 (18.5.1.5), and the
    difference of two times has no operator there (17.3)."""
    code = re.sub(r"(?m)#[^\n<>]*$", "", path.read_text("utf-8"))
    assert not re.search(r"\?\w+ - \?\w+", code)
    for name in re.findall(r"(?:MIN|MAX)\(\s*(?:DISTINCT )?\?(\w+)\s*\)", code):
        assert not re.search(rf"\?{name} (?:a|\w+:\w+) ", code), name
        assert set(re.findall(rf"(\w+:\w+) \?{name}\b", code)) <= LITERALS, name
