"""Community reports of a graph that was really indexed: their record, and what a change costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyshacl
import pytest
from pyoxigraph import NamedNode
from rdflib import Graph

import tgraph
from tests.support.workers import open_graph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.export.formats import serialise_quads
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.index.communities.communities import read_communities
from tgraph.index.entity_network import read_network
from tgraph.index.evidence import stored_evidence
from tgraph.index.reports.details import DetailReader, edge_order, entity_order
from tgraph.index.reports.report import read_reports, report_evidence, report_key_of
from tgraph.index.sources import Texts, range_of_chunk, text_value
from tgraph.model import CommunityReport
from tgraph.models.tokens import count_tokens
from tgraph.resources import read_text
from tgraph.store.base import Store
from tgraph.testing import Fault, ScriptedServer
from tgraph.testing.faults import FaultKind

STEP = "community_report"
CURIE = """Marie Curie discovered polonium.
Marie Curie discovered radium.
Marie Curie worked in Paris.
Pierre Curie discovered polonium.
Pierre Curie worked in Paris.
"""
POLE = """Roald Amundsen reached the South Pole.
Robert Scott reached the South Pole.
Robert Scott led the Terra Nova expedition.
"""


def index(root: Path, server: ScriptedServer | None = None, **texts: str) -> tgraph.IndexReport:
    for name, text in texts.items():
        (root / f"{name}.txt").write_text(text)
    with opened(root, server) as kg:
        return kg.index([root / f"{name}.txt" for name in texts])


@contextmanager
def opened(
    root: Path, server: ScriptedServer | None = None, **settings: Any
) -> Iterator[KnowledgeGraph]:
    values: dict[str, Any] = {f"reports.{name}": value for name, value in settings.items()}
    if server is not None:
        values |= {
            "chat.base_url": server.base_url,
            "chat.retries": 0,
            "extract.gleanings": 0,
        }
    with open_graph(root / "g", settings=values) as kg:
        yield kg


def reports_of(root: Path) -> dict[str, CommunityReport]:
    with opened(root) as kg:
        return read_reports(kg.opened.read())


def reporting_of(store: Store, report: str) -> str:
    return text_value(store, report, v.prov("wasGeneratedBy"))


def dropped(store: Store, activity: str) -> dict[str, int]:
    found = {}
    for quad in store.match(NamedNode(activity), v.tg("dropped"), None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, NamedNode)
        reason = text_value(store, quad.object.value, v.tg("reason"))
        found[reason] = int(text_value(store, quad.object.value, v.tg("count")))
    return found


def assert_proven(kg: KnowledgeGraph) -> int:
    """Every finding resolves by prov:wasDerivedFrom alone to characters that are there."""
    store = kg.opened.read()
    texts = Texts(store, kg.opened.librarian)
    proven = 0
    for report in read_reports(store).values():
        whole = set(report_evidence(store, report.iri))
        assert whole
        assert report.findings
        for finding in report.findings:
            assert finding.cites
            grounds = report_evidence(store, finding.iri)
            assert grounds
            assert set(grounds) <= whole
            for iri, via in grounds.items():
                assert via[0] == finding.iri
                chunk = text_value(store, iri, v.prov("wasDerivedFrom"))
                start, end = range_of_chunk(chunk)
                offset = int(text_value(store, iri, v.tg("charOffset")))
                length = int(text_value(store, iri, v.tg("charLength")))
                assert start <= offset
                assert offset + length <= end
                quote = text_value(store, iri, v.tg("quote"))
                text = texts.of_chunk(chunk)[offset - start : offset - start + length]
                assert text == (quote or text)
                proven += 1
    return proven


# --- without a model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    index(root, curie=CURIE, pole=POLE)
    return root


def test_every_community_has_a_report_of_its_level(made):
    with opened(made) as kg:
        store = kg.opened.read()
        communities = {c.iri: c for c in read_communities(store)}
        reports = read_reports(store)
        assert reports.keys() == communities.keys()
        assert len(reports) >= 2
        for iri, report in reports.items():
            assert (report.community, report.level) == (iri, communities[iri].level)
            assert report.title
            assert report.summary
            assert 0 <= report.rating <= 10
            assert report.rating_explanation


def test_every_finding_leads_to_exact_characters(made):
    with opened(made) as kg:
        assert assert_proven(kg) >= 5


def test_the_record_says_who_when_and_from_what(made):
    with opened(made) as kg:
        store = kg.opened.read()
        for report in read_reports(store).values():
            activity = reporting_of(store, report.iri)
            agent = text_value(store, activity, v.prov("wasAssociatedWith"))
            assert agent.startswith("urn:trustgraph:agent:method:extractive-reports:")
            assert text_value(store, activity, v.prov("startedAtTime"))
            assert text_value(store, activity, v.prov("endedAtTime"))
            assert text_value(store, activity, v.tg("community")) == report.community
            content = text_value(store, report.iri, v.tg("contentHash"))
            kept = json.loads(kg.opened.librarian.get_text(content))
            assert kept["report"]["title"] == report.title
            (community,) = [c for c in read_communities(store) if c.iri == report.community]
            assert set(kept["shown"]["edges"]) >= set(community.edges)
            assert set(kept["shown"]["entities"]) == set(community.members)


def test_every_edge_and_attribute_of_a_community_is_among_its_details(made):
    with opened(made) as kg:
        store = kg.opened.read()
        communities = read_communities(store)
        texts = Texts(store, kg.opened.librarian)
        network = read_network(store)
        reader = DetailReader(store, texts, stored_evidence(store, texts), network.outline)
        read = list(reader.read(communities))
        assert [details.community for details in read] == list(communities)
        for details in read:
            outline = details.outline
            edges = list(details.edges(outline.ties, outline.attributes))
            entities = list(details.entities(details.community.members))
            own = {edge.iri for edge in edges if isinstance(edge.edge.object, NamedNode)}
            assert own == set(details.community.edges)
            assert len(own) == details.relationships
            assert len(edges) == len(own) + sum(outline.attributes.values())
            assert {entity.iri for entity in entities} == set(details.community.members)
            assert all(edge.evidence for edge in edges)
            assert all(entity.evidence for entity in entities)
            assert edges == sorted(edges, key=edge_order)
            assert entities == sorted(entities, key=entity_order)
            at = [end for edge in edges for end in edge.ends]
            assert all(entity.links == at.count(entity.iri) for entity in entities)


def test_reports_have_vectors(made):
    with opened(made) as kg:
        kg.ask("Who discovered radium?")
        context = kg.context()
        vectors = context.vectors["report"]
        assert set(vectors.keys) == {
            report.iri for report in read_reports(kg.opened.read()).values()
        }
        ((best, _),) = vectors.search(context.embed(["The discovery of radium in Paris"]), 1)[0]
        (found,) = [r for r in read_reports(kg.opened.read()).values() if r.iri == best]
        assert "Curie" in found.title


def test_indexing_nothing_new_changes_no_report(tmp_path):
    index(tmp_path, curie=CURIE)
    before = reports_of(tmp_path)
    with opened(tmp_path) as kg:
        generation = kg.index([tmp_path / "curie.txt"]).generation
        assert kg.index([tmp_path / "curie.txt"]).generation == generation
    assert reports_of(tmp_path) == before


def test_a_change_elsewhere_leaves_a_report_as_it_is(tmp_path):
    index(tmp_path, curie=CURIE)
    before = reports_of(tmp_path)
    index(tmp_path, pole=POLE)
    after = reports_of(tmp_path)
    assert before.items() < after.items()


def test_a_superseded_report_leaves_knowledge_and_stays_on_record(tmp_path):
    index(tmp_path, curie=CURIE)
    (before,) = reports_of(tmp_path).values()
    index(tmp_path, curie=CURIE + "Irene Curie worked in Paris.\n")
    (after,) = reports_of(tmp_path).values()
    assert after.iri != before.iri
    with opened(tmp_path) as kg:
        store = kg.opened.read()
        for iri in (before.iri, *(f.iri for f in before.findings)):
            assert not list(store.match(NamedNode(iri), None, None, v.KNOWLEDGE_GRAPH))
            assert report_evidence(store, iri)
        assert all(report_key_of(store, each.iri) for each in (before, after))
        content = text_value(store, before.iri, v.tg("contentHash"))
        assert json.loads(kg.opened.librarian.get_text(content))["report"]["title"] == before.title


def test_a_report_that_comes_back_is_the_same_and_recorded_once(tmp_path):
    index(tmp_path, curie=CURIE)
    (before,) = reports_of(tmp_path).values()
    index(tmp_path, curie=POLE)
    index(tmp_path, curie=CURIE)
    (after,) = reports_of(tmp_path).values()
    assert after == before
    with opened(tmp_path) as kg:
        made_by = kg.opened.read().match(
            NamedNode(after.iri), v.prov("wasGeneratedBy"), None, v.SOURCE_GRAPH
        )
        assert len(list(made_by)) == 1


@pytest.mark.slow
def test_the_same_documents_give_the_same_reports_in_any_order(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for root, names in ((one, ("curie", "pole")), (other, ("pole", "curie"))):
        root.mkdir()
        for name in names:
            index(root, None, **{name: {"curie": CURIE, "pole": POLE}[name]})
    assert reports_of(one) == reports_of(other)


def circles() -> str:
    """Two circles of people, each of three groups who are tied more closely still."""
    groups = [[f"Person {4 * g + n:02d}" for n in range(4)] for g in range(6)]
    lines = [f"{groups[0][0]} discovered {groups[3][0]}."]
    for g, members in enumerate(groups):
        lines += [f"{a} led {b}." for a in members for b in members if a < b]
        for other in range(g + 1, g - g % 3 + 3):
            lines += [f"{members[n]} studied {groups[other][n]}." for n in range(4)]
    return "\n".join(lines) + "\n"


def test_a_community_over_budget_uses_the_reports_of_its_parts(tmp_path):
    (tmp_path / "many.txt").write_text(circles())
    with opened(tmp_path, max_input_tokens=1_000) as kg:
        kg.index([tmp_path / "many.txt"])
        store = kg.opened.read()
        reports = read_reports(store)
        communities = {c.iri: c for c in read_communities(store)}
        top = [c for c in communities.values() if c.children]
        assert top
        for community in top:
            report = reports[community.iri]
            content = text_value(store, report.iri, v.tg("contentHash"))
            kept = json.loads(kg.opened.librarian.get_text(content))
            children = {reports[child].iri for child in community.children}
            used = set(kept["shown"]["reports"])
            assert used, "the details of twelve people need more"
            assert used <= children
            derived = {
                quad.object.value
                for quad in store.match(
                    NamedNode(report.iri), v.prov("wasDerivedFrom"), None, v.SOURCE_GRAPH
                )
                if isinstance(quad.object, NamedNode)
            }
            assert used <= derived
            shown = set(kept["shown"]["edges"])
            below = [communities[c] for c in community.children if reports[c].iri in used]
            covered = {edge for child in below for edge in child.edges}
            missing = set(community.edges) - shown - covered
            assert len(missing) == kept["left_out"].get("edge with no room", 0)
        assert_proven(kg)


@pytest.mark.slow
def test_everything_that_is_written_of_reports_conforms_to_the_shapes(tmp_path):
    (tmp_path / "many.txt").write_text(circles())
    with opened(tmp_path, max_input_tokens=1_000) as kg:
        kg.index([tmp_path / "many.txt"])
    index(tmp_path, curie=CURIE)
    index(tmp_path, curie=CURIE + "Irene Curie worked in Paris.\n")
    with ScriptedServer(faults=[Fault("prose", STEP, times=2)]) as server:
        index(tmp_path, server, pole="Roald Amundsen reached the South Pole with Oscar Wisting.\n")
    with opened(tmp_path) as kg:
        graph = Graph().parse(
            data=serialise_quads(replace_triple_terms(kg.opened.read().match()), "turtle"),
            format="turtle",
        )
    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    conforms, _, text = pyshacl.validate(graph, shacl_graph=shapes, inference="none")
    assert conforms, text


# --- with a model -------------------------------------------------------------------------------

TEXT = "# Marie Curie\n\nMarie Curie discovered Polonium in Paris. Pierre Curie met Marie Curie.\n"


def test_the_model_writes_the_reports_by_the_prompt_and_both_are_on_record(tmp_path):
    with ScriptedServer() as server:
        index(tmp_path, server, curie=TEXT)
        with opened(tmp_path, server) as kg:
            store = kg.opened.read()
            reports = read_reports(store)
            assert server.count(STEP) == len(reports) >= 1
            for report in reports.values():
                activity = NamedNode(reporting_of(store, report.iri))
                agent = text_value(store, activity.value, v.prov("wasAssociatedWith"))
                assert agent.startswith("urn:trustgraph:agent:model:")
                qualified = text_value(store, activity.value, v.prov("qualifiedAssociation"))
                plan = text_value(store, qualified, v.prov("hadPlan"))
                assert plan.startswith(f"urn:trustgraph:prompt:{STEP}:")
                assert kg.opened.librarian.has_content(text_value(store, plan, v.tg("contentHash")))
            assert assert_proven(kg)
        (request,) = [r for r in server.requests if r.step == STEP][:1]
        assert request.body["max_tokens"] == 2_000
        sent = "\n".join(str(m["content"]) for m in request.body["messages"])
        assert count_tokens(sent) <= 8_000


@pytest.mark.slow
def test_unchanged_communities_are_not_asked_about_again(tmp_path):
    with ScriptedServer() as server:
        index(tmp_path, server, curie=TEXT)
        calls = server.count(STEP)
        before = reports_of(tmp_path)
        index(tmp_path, server, curie=TEXT)
        assert server.count(STEP) == calls
        index(tmp_path, server, pole="Roald Amundsen reached the South Pole with Oscar Wisting.\n")
        assert server.count(STEP) > calls
        after = reports_of(tmp_path)
        assert before.items() < after.items()
        sent = [r.body["messages"] for r in server.requests if r.step == STEP]
        assert len(sent) == len({json.dumps(messages) for messages in sent})


@pytest.mark.slow
def test_a_report_whose_sentences_stand_elsewhere_now_is_not_asked_for_again(tmp_path):
    with ScriptedServer() as server:
        index(tmp_path, server, curie=TEXT)
        (before,) = reports_of(tmp_path).values()
        calls = server.count(STEP)
        index(tmp_path, server, curie=TEXT + "\nno more is known.\n")
        (after,) = reports_of(tmp_path).values()
        assert server.count(STEP) == calls
        assert (after.title, after.summary) == (before.title, before.summary)
        assert after.iri != before.iri, "it rests on the new text"
        with opened(tmp_path, server) as kg:
            assert set(report_evidence(kg.opened.read(), after.iri)).isdisjoint(
                report_evidence(kg.opened.read(), before.iri)
            )
            assert assert_proven(kg)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("prose", "holds no JSON"),
        ("empty", "is empty"),
        ("unknown_ids", "none of its findings cites what was shown"),
    ],
)
def test_a_useless_reply_costs_its_report_and_nothing_else(tmp_path, fault: FaultKind, reason):
    with ScriptedServer(faults=[Fault(fault, STEP)]) as server:
        report = index(tmp_path, server, curie=TEXT)
        with opened(tmp_path, server) as kg:
            store = kg.opened.read()
            reports = read_reports(store)
            assert reports
            for made_report in reports.values():
                activity = reporting_of(store, made_report.iri)
                assert reason in text_value(store, activity, v.tg("fallbackReason"))
                agent = text_value(store, activity, v.prov("wasAssociatedWith"))
                assert agent.startswith("urn:trustgraph:agent:method:extractive-reports:")
            assert assert_proven(kg)
        lost = report.dropped["community report whose reply can't be used"]
        assert lost == len(reports)


def test_an_over_long_reply_counts_as_far_as_it_is_a_report(tmp_path):
    with ScriptedServer(faults=[Fault("over_long", STEP)]) as server:
        index(tmp_path, server, curie=TEXT)
    with opened(tmp_path) as kg:
        for report in read_reports(kg.opened.read()).values():
            assert len(report.text) < 2_000
            assert not text_value(
                kg.opened.read(), reporting_of(kg.opened.read(), report.iri), v.tg("fallbackReason")
            )
        assert assert_proven(kg)


@pytest.mark.parametrize("fault", ["truncated_json", "length"])
def test_a_reply_that_was_cut_off_is_used_or_replaced_and_on_record(tmp_path, fault: FaultKind):
    with ScriptedServer(faults=[Fault(fault, STEP)]) as server:
        index(tmp_path, server, curie=TEXT)
    with opened(tmp_path) as kg:
        store = kg.opened.read()
        assert assert_proven(kg)
        for report in read_reports(store).values():
            activity = reporting_of(store, report.iri)
            fallback = text_value(store, activity, v.tg("fallbackReason"))
            assert fallback or dropped(store, activity)["reply that was cut off"] == 1


def test_a_made_up_citation_is_dropped_and_counted(tmp_path):
    good = {"summary": "A", "explanation": "A is so.", "citations": ["R1", "R99", "E1"]}
    bad = {"summary": "B", "explanation": "B is so.", "citations": ["edge-7"]}
    reply = {"title": "T", "summary": "S.", "rating": 5, "rating_explanation": "W."}
    with ScriptedServer({STEP: json.dumps({**reply, "findings": [good, bad]})}) as server:
        report = index(tmp_path, server, curie=TEXT)
    (only,) = reports_of(tmp_path).values()
    assert [f.summary for f in only.findings] == ["A"]
    assert len(only.findings[0].cites) == 2
    with opened(tmp_path) as kg:
        counts = dropped(kg.opened.read(), reporting_of(kg.opened.read(), only.iri))
    assert counts == {
        "citation of an id that was not shown": 2,
        "finding without a citation that holds": 1,
    }
    assert counts.items() <= report.dropped.items()


def test_what_a_summary_of_descriptions_says_is_traced_through_it(tmp_path):
    cited = {"summary": "A", "explanation": "A is so.", "citations": ["E1"]}
    reply = {"title": "T", "summary": "S.", "rating": 5, "rating_explanation": "W."}
    more = "Marie Curie taught Irene Curie at the Sorbonne.\n"
    with ScriptedServer({STEP: json.dumps({**reply, "findings": [cited]})}) as server:
        index(tmp_path, server, curie=TEXT, more=more)
    (report,) = reports_of(tmp_path).values()
    with opened(tmp_path) as kg:
        grounds = report_evidence(kg.opened.read(), report.findings[0].iri)
        assert len(grounds) > 1
        assert all(via[1].startswith("urn:trustgraph:summary:") for via in grounds.values())
        assert assert_proven(kg)


def test_a_fallback_is_tried_again_when_something_changes(tmp_path):
    with ScriptedServer(faults=[Fault("prose", STEP, times=2)]) as server:
        index(tmp_path, server, curie=TEXT)
        (before,) = reports_of(tmp_path).values()
        index(tmp_path, server, pole="Roald Amundsen reached the South Pole with Oscar Wisting.\n")
        after = reports_of(tmp_path)[before.community]
    assert after.iri != before.iri
    with opened(tmp_path) as kg:
        activity = reporting_of(kg.opened.read(), after.iri)
        assert not text_value(kg.opened.read(), activity, v.tg("fallbackReason"))


def test_an_interrupted_run_pays_for_no_report_twice(tmp_path):
    texts = {
        "curie": TEXT,
        "pole": "Roald Amundsen reached the South Pole with Oscar Wisting.\n",
        "ship": "Colin Archer built the Fram in Larvik.\n",
    }
    with ScriptedServer(faults=[Fault("unauthorised", STEP, nth=3)]) as server:
        with pytest.raises(EndpointError):
            index(tmp_path, server, **texts)
        assert not reports_of(tmp_path), "nothing was published"
        index(tmp_path, server, **texts)
        answered = [r for r in server.requests if r.step == STEP and r.fault is None]
        sent = {json.dumps(r.body["messages"]) for r in answered}
        assert len(answered) == len(sent) == len(reports_of(tmp_path))


def test_a_budget_that_leaves_no_room_is_one_clear_error(tmp_path):
    own = tmp_path / "prompts"
    own.mkdir()
    text = "=== system\nStep: community_report\n" + "Be brief. " * 800
    (own / f"{STEP}.md").write_text(text + "\n=== user\n<<<ENTITIES\n{{entities}}\nENTITIES>>>\n")
    (tmp_path / "curie.txt").write_text(TEXT)
    with ScriptedServer() as server:
        settings = {
            "chat.base_url": server.base_url,
            "prompts": own,
            "reports.max_input_tokens": 1_000,
            "extract.gleanings": 0,
        }
        with (
            open_graph(tmp_path / "g", settings=settings) as kg,
            pytest.raises(UsageError, match=r"reports\.max_input_tokens"),
        ):
            kg.index([tmp_path / "curie.txt"])


@pytest.mark.slow
def test_another_model_writes_its_own_reports_once_something_changes(tmp_path):
    with ScriptedServer() as server:
        index(tmp_path, server, curie=TEXT)
        calls = server.count(STEP)
        values = {
            "chat.base_url": server.base_url,
            "chat.model": "another",
            "extract.gleanings": 0,
        }
        (tmp_path / "pole.txt").write_text("Roald Amundsen met Oscar Wisting in Oslo.\n")
        with open_graph(tmp_path / "g", settings=values) as kg:
            kg.index([tmp_path / "pole.txt"])
            reports = read_reports(kg.opened.read())
        assert server.count(STEP) == calls + len(reports)
