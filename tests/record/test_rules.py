"""The shapes' rules over a whole session: what hangs together, and the chain of the catalogue."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rdflib import RDF, Graph, Literal, Namespace, URIRef

TG = Namespace("https://trustgraph.ai/ns/")
PROV = Namespace("http://www.w3.org/ns/prov#")
DCTERMS = Namespace("http://purl.org/dc/terms/")
OA = Namespace("http://www.w3.org/ns/oa#")
XSD_TIME = URIRef("http://www.w3.org/2001/XMLSchema#dateTime")


def copy(graph: Graph) -> Graph:
    return Graph() + graph


Spoil = Callable[[Graph], None]


def one(graph: Graph, kind: URIRef, has: URIRef | None = None) -> URIRef:
    nodes = [n for n in graph.subjects(RDF.type, kind) if has is None or (n, has, None) in graph]
    return URIRef(min(map(str, nodes)))


def end_before_start(graph: Graph) -> None:
    graph.set(
        (
            one(graph, TG.Session),
            PROV.endedAtTime,
            Literal("2020-01-01T00:00:00Z", datatype=XSD_TIME),
        )
    )


def derived_in_a_circle(graph: Graph) -> None:
    graph.add((one(graph, TG.Document), PROV.wasDerivedFrom, one(graph, TG.Evidence)))


def plan_of_a_stranger(graph: Graph) -> None:
    activity = one(graph, TG.Call, PROV.qualifiedAssociation)
    graph.set((activity, PROV.wasAssociatedWith, one(graph, TG.Software)))


def too_many_candidates(graph: Graph) -> None:
    graph.set((one(graph, TG.Retrieval), TG.edgeCount, Literal(2)))


def no_list_of_all(graph: Graph) -> None:
    graph.remove((one(graph, TG.Retrieval), TG.contentHash, None))


def neither_selected_nor_rejected(graph: Graph) -> None:
    graph.remove((one(graph, TG.Candidate, TG.rejectionReason), TG.rejectionReason, None))


def selected_and_rejected(graph: Graph) -> None:
    chosen = graph.value(one(graph, TG.EdgeSelection), TG.candidate, any=False)
    assert chosen is not None
    graph.add((chosen, TG.rejectionReason, Literal("not chosen")))


def answer_without_what_it_cites(graph: Graph) -> None:
    graph.remove((one(graph, TG.Answer), PROV.wasDerivedFrom, one(graph, TG.EdgeSelection)))


def sentence_without_what_it_cites(graph: Graph) -> None:
    graph.remove((one(graph, TG.Sentence), PROV.wasDerivedFrom, None))


def sentence_that_cites_nothing_it_names(graph: Graph) -> None:
    graph.remove((one(graph, TG.Sentence), TG.citation, None))


def evidence_never_shown(graph: Graph) -> None:
    selection = one(graph, TG.EdgeSelection)
    other = next(
        e
        for e in graph.subjects(RDF.type, TG.Evidence)
        if (selection, PROV.wasDerivedFrom, e) not in graph
    )
    for evidence in list(graph.objects(selection, PROV.wasDerivedFrom)):
        graph.remove((selection, PROV.wasDerivedFrom, evidence))
    graph.add((selection, PROV.wasDerivedFrom, other))


def another_page(graph: Graph) -> None:
    target = one(graph, OA.SpecificResource)
    source = graph.value(target, OA.hasSource)
    pages = {*graph.subjects(RDF.type, TG.Page), *graph.subjects(RDF.type, TG.Document)}
    graph.set((target, OA.hasSource, min(pages - {source}, key=str)))


def quote_of_another_length(graph: Graph) -> None:
    graph.set((one(graph, OA.TextQuoteSelector), OA.exact, Literal("shorter")))


def beyond_the_page(graph: Graph) -> None:
    position = one(graph, OA.TextPositionSelector)
    for path in (OA.start, OA.end):
        before = graph.value(position, path)
        graph.set((position, path, Literal(int(str(before)) + 10_000)))


def nothing_between_start_and_end(graph: Graph) -> None:
    position = one(graph, OA.TextPositionSelector)
    graph.set((position, OA.start, Literal(5)))
    graph.set((position, OA.end, Literal(5)))


def chunk_beyond_the_page(graph: Graph) -> None:
    graph.set((one(graph, TG.Chunk), TG.charLength, Literal(10_000)))


def evidence_beyond_the_chunk(graph: Graph) -> None:
    graph.set((one(graph, TG.Evidence), TG.charOffset, Literal(10_000)))


def quote_not_as_long_as_said(graph: Graph) -> None:
    graph.set((one(graph, TG.Evidence), TG.quote, Literal("x")))


def completed_without_a_sentence(graph: Graph) -> None:
    for sentence in list(graph.subjects(RDF.type, TG.Sentence)):
        graph.remove((sentence, None, None))
        graph.remove((None, None, sentence))


def completed_with_an_error(graph: Graph) -> None:
    graph.add((one(graph, TG.Session), TG.error, Literal("It broke.")))


def failed_without_an_error(graph: Graph) -> None:
    graph.set((one(graph, TG.Session), TG.status, Literal("failed")))


def generated_twice(graph: Graph) -> None:
    answer, steps = one(graph, TG.Answer), [one(graph, TG.Traversal), one(graph, TG.Synthesising)]
    for step in steps:
        graph.add((answer, PROV.wasGeneratedBy, step))


def generated_by_an_entity(graph: Graph) -> None:
    graph.set((one(graph, TG.Evidence), PROV.wasGeneratedBy, one(graph, TG.Chunk)))


SPOILS: dict[Spoil, str] = {
    end_before_start: "An end is not before",
    nothing_between_start_and_end: "An end is not before",
    derived_in_a_circle: "Nothing is derived from itself",
    plan_of_a_stranger: "Who is associated by a plan",
    too_many_candidates: "Some candidates are not counted",
    no_list_of_all: "Some candidates are not counted",
    neither_selected_nor_rejected: "A candidate is either selected or rejected",
    selected_and_rejected: "A candidate is either selected or rejected",
    answer_without_what_it_cites: "An answer is derived from every selection",
    sentence_without_what_it_cites: "A sentence is derived from exactly",
    sentence_that_cites_nothing_it_names: "A sentence is derived from exactly",
    evidence_never_shown: "A citation rests on evidence",
    another_page: "A citation points into the page",
    quote_of_another_length: "A citation quotes as many characters",
    beyond_the_page: "A citation quotes as many characters",
    chunk_beyond_the_page: "A chunk lies inside",
    evidence_beyond_the_chunk: "Evidence lies inside its chunk",
    quote_not_as_long_as_said: "Evidence lies inside its chunk",
    completed_without_a_sentence: "XoneConstraint",
    completed_with_an_error: "XoneConstraint",
    failed_without_an_error: "XoneConstraint",
    generated_twice: "MaxCountConstraint",
    generated_by_an_entity: "An activity is typed so",
}


@pytest.mark.slow
@pytest.mark.parametrize(("spoil", "found"), SPOILS.items(), ids=[s.__name__ for s in SPOILS])
def test_what_does_not_hang_together_is_caught(session, validate, spoil, found):
    graph = copy(session)
    spoil(graph)
    conforms, _, text = validate(graph)
    assert not conforms
    assert found in text


def test_a_report_that_is_selected_does_not_select_those_that_it_was_made_from(session, validate):
    graph = copy(session)
    above, below = (URIRef(f"urn:trustgraph:report:{letter * 40}") for letter in "ab")
    graph.add((one(graph, TG.EdgeSelection), TG.item, above))
    graph.add((above, PROV.wasDerivedFrom, below))
    graph.add((one(graph, TG.Candidate, TG.rejectionReason), TG.item, below))
    assert "A candidate is either selected or rejected" not in validate(graph)[2]


@pytest.mark.slow
def test_a_chain_that_was_broken_is_caught(whole, validate):
    catalogue = Graph()
    for entry in whole.subjects(TG.sequence):
        catalogue += whole.triples((entry, None, None))
    assert validate(catalogue)[0]
    by_number = {int(str(n)): e for e, n in catalogue.subject_objects(TG.sequence)}
    last = max(by_number)
    assert last > 2
    for entry, path, value in [
        (by_number[last], TG.previousHash, Literal("f" * 64)),
        (by_number[last - 1], TG.chainHash, Literal("e" * 64)),
        (by_number[last], TG.sequence, Literal(last - 1)),
        (by_number[1], TG.previousHash, Literal("1" * 64)),
    ]:
        graph = copy(catalogue)
        graph.set((entry, path, value))
        assert not validate(graph)[0], (entry, path)


@pytest.mark.slow
def test_a_community_that_is_no_part_of_its_parent_is_caught(whole, validate):
    parts = Graph()
    for kind in (TG.Community, TG.Entity):
        for node in whole.subjects(RDF.type, kind):
            parts += whole.triples((node, None, None))
    found = "A community is of the level after its parent's"
    assert found not in validate(parts)[2]
    child = one(parts, TG.Community, TG.parent)
    strange, deeper = copy(parts), copy(parts)
    strange.add((child, TG.member, URIRef("urn:trustgraph:entity:a-stranger")))
    deeper.set((child, TG.level, Literal(2)))
    for graph in (strange, deeper):
        assert found in validate(graph)[2]


@pytest.mark.slow
def test_a_report_that_does_not_hang_together_is_caught(whole, validate):
    reports = Graph()
    for kind in (TG.ReportRecord, TG.Finding):
        for node in whole.subjects(RDF.type, kind):
            reports += whole.triples((node, None, None))
    grounds, only = "A finding rests on what its report rests on", "A community has one report"
    said = validate(reports)[2]
    assert grounds not in said
    assert only not in said
    finding = one(reports, TG.Finding, TG.report)
    stranger, twice = copy(reports), copy(reports)
    stranger.add((finding, PROV.wasDerivedFrom, URIRef("urn:trustgraph:evidence:elsewhere")))
    (community,) = reports.objects(reports.value(finding, DCTERMS.isPartOf), TG.community)
    for report in reports.subjects(RDF.type, TG.CommunityReport):
        twice.set((report, TG.community, community))
    assert grounds in validate(stranger)[2]
    assert only in validate(twice)[2]
