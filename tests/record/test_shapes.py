"""The shapes: every ending of a session conforms, and whatever is taken away or bent is caught."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from rdflib import RDF, BNode, Graph, Literal, Namespace, URIRef
from rdflib.term import Node

import tgraph
from tgraph.engine.components import Components
from tgraph.errors import ModelError
from tgraph.explain.trace.record_quads import catalogue_quads, session_quads
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock

TG = Namespace("https://trustgraph.ai/ns/")
PROV = Namespace("http://www.w3.org/ns/prov#")
OA = Namespace("http://www.w3.org/ns/oa#")
DCTERMS = Namespace("http://purl.org/dc/terms/")
SH = Namespace("http://www.w3.org/ns/shacl#")
ENDINGS = ("completed", "no-evidence", "failed", "interrupted", "aborted")
Finding = tuple[Node | None, Node | None]
Pairs = set[tuple[Node, Node]]
Bend = tuple[str, Pairs, Pairs]


THROUGH_THE_ENGINE = {
    TG.Update,
    TG.CurationNote,
    TG.Denial,
    TG.Join,
    TG.Parting,
    TG.Weighting,
    TG.Ontology,
    TG.PromptTuning,
    TG.ContextBuilding,
    TG.VectorSearch,
    TG.HybridSearch,
    TG.TreeSearch,
    TG.WordSearch,
    TG.Summary,
    TG.SummaryRecord,
    TG.ClusterSummarising,
    TG.Situating,
    TG.ChunkContext,
    TG.GraphRanking,
    TG.Bypassing,
    TG.ModeChoosing,
    TG.ModeChoice,
    TG.Reading,
    TG.Judgement,
    TG.QueryMaking,
    TG.QueryEvaluating,
    TG.WitnessSelecting,
    TG.ComputedQuery,
    TG.CandidateQuery,
    TG.QuestionDecomposing,
    TG.Decomposition,
    TG.StepAnswering,
    TG.StepAnswer,
    TG.Budgeting,
    TG.CommunityRating,
    TG.ReportSearch,
    TG.Mapping,
    TG.Ratings,
    TG.Rating,
    TG.ReportBatch,
    TG.Point,
    TG.Expanding,
    TG.ReportMatching,
    TG.Priming,
    TG.Asking,
    TG.Weighing,
    TG.Hypothesis,
    TG.FollowUp,
    TG.IntermediateAnswer,
    TG.ItemSelection,
    TG.Claim,
    TG.Erasure,
    TG.Rewriting,
    TG.Signature,
    TG.SigningKey,
    TG.Ontology,
}
"""What only some modes write: their own tests validate whole sessions."""


def copy(graph: Graph) -> Graph:
    return Graph() + graph


# --- what is right conforms ---


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_sessions_of_every_ending_conform(sample, validate, ending):
    graph = sample.session_graph(ending)
    (session,) = graph.subjects(RDF.type, TG.Session)
    assert graph.value(session, TG.status) == Literal(ending)
    assert graph.value(session, PROV.endedAtTime) is not None
    conforms, _, text = validate(graph)
    assert conforms, text


@pytest.mark.slow
def test_the_whole_store_conforms(whole, validate):
    conforms, _, text = validate(whole)
    assert conforms, text


def test_every_shape_has_something_to_say_of_the_record(whole, shapes):
    for target in set(shapes.objects(None, SH.targetClass)) - THROUGH_THE_ENGINE:
        assert (None, RDF.type, target) in whole, f"nothing of the class {target} is tested"


# --- what is bent is caught, statement by statement ---

OPTIONAL = {
    (TG.Document, TG.reader),
    (TG.Document, TG.readingVersion),
    (TG.Document, TG.readingWarning),
    (TG.Document, TG.layoutHash),
    (TG.ReadingLoss, TG.lossPlace),
    (TG.ReadingLoss, TG.lossReason),
    (TG.GivenCommunity, TG.finding),  # a community without a report has none
    (TG.Note, PROV.wasDerivedFrom),
    (TG.Session, TG.parameter),
    (TG.Session, TG.call),
    (TG.Session, TG.wording),  # absent in sessions of earlier releases
    (TG.Session, PROV.qualifiedAssociation),
    (TG.Call, PROV.qualifiedAssociation),
    (TG.Call, TG.cached),
    (TG.Concepts, TG.concept),
    (TG.EntityMatches, PROV.hadMember),
    (TG.EntityMatches, PROV.wasDerivedFrom),
    (TG.Selection, TG.selectedEdge),
    (TG.Selection, PROV.hadMember),
    (TG.Retrieval, PROV.wasDerivedFrom),
    (TG.Candidate, TG.rejectionReason),  # rules, tested below, say when these are needed
    (TG.Retrieval, TG.candidate),
    (TG.Retrieval, TG.contentHash),
    (TG.Sentence, TG.citation),
    (TG.Sentence, PROV.wasDerivedFrom),
    (TG.Retrieval, TG.dropped),
    (TG.Selection, TG.dropped),
    (TG.Answer, TG.dropped),
    (TG.Answer, TG.sentence),  # what a completed session lacks without it is tested below
    (TG.Extraction, PROV.qualifiedAssociation),
    (TG.Extraction, TG.dropped),
    (TG.Reporting, PROV.qualifiedAssociation),
    (TG.Reporting, TG.fallbackReason),
    (TG.Reporting, TG.dropped),
    (TG.ReportRecord, PROV.wasDerivedFrom),  # a graph that was imported may have no evidence
    (TG.CommunityReport, PROV.wasDerivedFrom),
    (TG.Finding, PROV.wasDerivedFrom),
    (TG.Finding, TG.entity),  # it cites something of any sort
    (TG.Finding, TG.report),
    (TG.IndexRun, TG.call),
    (TG.IndexRun, TG.dropped),
    (TG.Chunk, TG.heading),
    (TG.Accession, PROV.wasRevisionOf),
    (TG.Document, DCTERMS.creator),
    (TG.Document, DCTERMS.date),
    (TG.Document, DCTERMS.language),
    (TG.Subgraph, TG.contains),
    (TG.Evidence, TG.quote),
    (TG.Evidence, TG.description),
    (TG.Evidence, TG.alias),
    (TG.Evidence, TG.aliasKey),
    (TG.Evidence, TG.keyword),
    (TG.Edge, TG.mergedFrom),
    (TG.Edge, TG.original),
    (TG.Entity, TG.summary),
    (TG.Summarising, TG.error),
    (TG.Summarising, TG.dropped),
    (TG.Summarising, PROV.qualifiedAssociation),
    (TG.Edge, TG.description),
    (TG.Edge, TG.keyword),
    (TG.Batch, TG.generation),
    (TG.Batch, TG.run),
    (TG.Evaluation, TG.mode),  # where every question had its answer nothing was asked
    (TG.Evaluation, TG.parameter),
    (TG.Evaluation, TG.call),
    (TG.Evaluation, PROV.qualifiedAssociation),
    (TG.Assessment, TG.dropped),
    (TG.Answer, TG.note),
    (TG.Verification, TG.call),
    (TG.Verification, PROV.qualifiedAssociation),
    (TG.Verdict, TG.reasoning),
    (TG.VerificationResult, TG.metric),
    (TG.VerificationResult, TG.dropped),
    (TG.InfluenceAnalysis, TG.call),
    (TG.InfluenceAnalysis, PROV.qualifiedAssociation),
    (TG.Ablation, PROV.endedAtTime),
    (TG.Ablation, TG.stillSaid),
    (TG.InfluenceResult, TG.lds),
    (TG.InfluenceResult, TG.metric),
    (TG.InfluenceResult, TG.dropped),
    (TG.EvaluationResult, TG.metric),  # nothing could be judged
}
STEPS = (TG.ConceptExtraction, TG.EntityMatching, TG.Traversal, TG.EdgeSelecting, TG.Synthesising)
OPTIONAL |= {(step, p) for step in STEPS for p in (PROV.used, PROV.wasInformedBy)}
AGENTS = (TG.Software, TG.EmbeddedMethod, TG.LanguageModel)
OPTIONAL |= {(agent, p) for agent in AGENTS for p in (TG.componentVersion, TG.provider)}
ANYTHING = {RDF.subject, RDF.predicate, RDF.object, TG.entity, TG.absorbed, TG.canonical}
"""Properties whose value may be any IRI of the knowledge, or one that has been merged away."""


@dataclass(frozen=True)
class Bent:
    """A twin of a node of the record, one statement of it bent."""

    twin: URIRef
    original: URIRef
    how: str


def twin_iri(node: URIRef, number: int) -> URIRef:
    """Another IRI of the same form."""
    bent = re.sub(r"(?<=:)[0-9a-f]{4}(?=[0-9a-f-]{4})", f"{number:04d}", node, count=1)
    return URIRef(bent if bent != str(node) else f"{node}{number:04d}")


def examples(graph: Graph) -> Iterator[tuple[URIRef, URIRef]]:
    """For each class, its node with the most properties."""
    for kind in sorted({URIRef(str(k)) for k in graph.objects(None, RDF.type)}):
        own = str(kind).startswith((TG, OA)) or kind == PROV.Association or kind == PROV.Bundle
        if own and kind not in (OA.Annotation, TG.Entity, TG.Relation, TG.EntityType):
            nodes = sorted(URIRef(str(n)) for n in graph.subjects(RDF.type, kind))
            yield kind, max(nodes, key=lambda n: len(set(graph.predicates(n))))


def bends(graph: Graph, kind: URIRef, node: URIRef) -> Iterator[Bend]:
    """(how, triples to take away, statements to add) for every way to bend the node."""
    yield "an unknown property", set(), {(TG.unheardOf, Literal("x"))}
    if (node, RDF.type, PROV.Entity) in graph:
        yield "both entity and activity", set(), {(RDF.type, PROV.Activity)}
    if (node, RDF.type, PROV.Activity) in graph:
        yield "both activity and entity", set(), {(RDF.type, PROV.Entity)}
    for kind_of in graph.objects(node, RDF.type):
        if not str(kind_of).startswith(TG) and kind_of != kind:
            yield f"without the type {kind_of}", {(RDF.type, kind_of)}, set()
    for path in sorted({URIRef(str(p)) for p in graph.predicates(node)} - {RDF.type}):
        said: Pairs = {(path, value) for value in graph.objects(node, path)}
        if (kind, path) not in OPTIONAL:
            yield f"without {path}", said, set()
        value = min(graph.objects(node, path), key=str)
        if path == RDF.object:
            continue  # anything goes
        for how, other in wrong_values(path, value):
            yield f"{path} {how}", {(path, value)}, {(path, other)}


def wrong_values(path: URIRef, value: Node) -> Iterator[tuple[str, Node]]:
    yield "as a blank node", BNode()
    if isinstance(value, Literal):
        yield "as an IRI", URIRef("urn:x:nobody")
        yield "with a language", Literal(str(value), lang="en")
        if path != TG.value:
            yield "of another datatype", Literal(str(value) if value.datatype else 5)
        if str(path).endswith(("Hash", "hash")):
            yield "as no hash", Literal("abc")
        if value.datatype == XSD_INTEGER and path != TG.value:
            yield "below zero", Literal(-1)
    elif path not in ANYTHING:
        yield "as a text", Literal(str(value))
        yield "that points to nobody", URIRef("urn:x:nobody")


XSD_INTEGER = URIRef("http://www.w3.org/2001/XMLSchema#integer")


def add_twin(graph: Graph, to: Graph, node: URIRef, twin: URIRef, less: Pairs, more: Pairs) -> None:
    for _, path, value in graph.triples((node, None, None)):
        if (path, value) not in less:
            to.add((twin, path, value))
    for path, value in more:
        to.add((twin, path, value))
    for subject, path, _ in graph.triples((None, None, node)):
        to.add((subject, path, twin))


def findings(report: Graph, focus: URIRef) -> set[Finding]:
    """What the report says of a node: (constraint, path)."""
    return {
        (report.value(r, SH.sourceConstraintComponent), report.value(r, SH.resultPath))
        for r in report.subjects(SH.focusNode, focus)
    }


@pytest.mark.slow
def test_whatever_is_bent_is_caught(whole, shapes, validate):
    """Twins of one node of each class, each bent in one way, all validated at once: a bent twin has
    a finding that the unbent twin of the same node has not."""
    graph, numbers, all_bent = copy(whole), count(1), []
    controls: dict[URIRef, URIRef] = {}
    for kind, node in examples(whole):
        controls[node] = twin_iri(node, next(numbers))
        add_twin(whole, graph, node, controls[node], set(), set())
        for how, less, more in bends(whole, kind, node):
            bent = Bent(twin_iri(node, next(numbers)), node, f"{kind}: {how}")
            add_twin(whole, graph, node, bent.twin, less, more)
            all_bent.append(bent)
    assert len({bent.twin for bent in all_bent}) == len(all_bent) > 500
    of_classes = copy(shapes)  # the rules over the whole graph have a test of their own
    of_classes.remove((None, SH.targetNode, None))
    _, report, _ = validate(graph, of_classes)
    fine = {node: findings(report, control) for node, control in controls.items()}
    unchained = {n: found for n, found in fine.items() if (n, TG.sequence, None) not in whole}
    assert not any(unchained.values())
    missed = [b.how for b in all_bent if not findings(report, b.twin) - fine[b.original]]
    assert not missed


# --- through the engine ---

TEXT = """# Radium

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
SCRIPTS: dict[str, dict[str, str | ModelError]] = {
    "completed": {},
    "no-evidence": {"select_edges": '{"edges": []}', "synthesise_answer": '{"sentences": []}'},
    "failed": {"synthesise_answer": ModelError("The model is gone.", "Call it back.")},
    "interrupted": {},
}


@pytest.fixture
def graph(tmp_path, request):
    names, clock = count(), ticking_clock()
    (tmp_path / "radium.md").write_text(TEXT)
    parts = Components(
        load_settings(None),
        tmp_path / "cache",
        chat=ScriptedModel({**SCRIPTS[request.param]}, clock=clock),
        embedder=HashingEmbedder(),
    )
    with tgraph.open(
        tmp_path / "graph",
        create=True,
        parts=parts,
        settings={"claims.enabled": True},
        clock=clock,
        uuid=lambda: f"00000000-0000-4000-8000-{next(names):012d}",
    ) as kg:
        kg.index([tmp_path / "radium.md"])
        yield kg, request.param


@pytest.mark.slow
@pytest.mark.parametrize("graph", list(SCRIPTS), indirect=True)
def test_what_the_engine_records_conforms(graph, validate, as_graph):
    kg, ending = graph
    stream = kg.stream("What did Marie Curie discover?")
    if ending == "interrupted":
        next(stream), next(stream), stream.close()
    elif ending == "failed":
        with pytest.raises(ModelError):
            list(stream)
    else:
        list(stream)
    summary = kg.sessions.find("last")
    assert summary.status == ending
    store, catalogue = kg.opened.read(), "urn:trustgraph:collection:explainability"
    quads = session_quads(store, summary.bundle) + catalogue_quads(store, summary.bundle, catalogue)
    for exported in (quads, list(store.match())):
        conforms, _, text = validate(as_graph(exported))
        assert conforms, text


@pytest.mark.parametrize("graph", ["completed"], indirect=True)
def test_an_update_by_the_user_conforms(graph, validate, as_graph):
    kg, _ = graph
    assert kg.update("INSERT DATA { <urn:x:radium> rdfs:label 'Radium' }") == (1, 0)
    store = as_graph(list(kg.opened.read().match()))
    update = store.value(predicate=RDF.type, object=TG.Update)
    assert store.value(predicate=TG.run, object=update) is not None
    conforms, _, text = validate(store)
    assert conforms, text


BENT_CLAIM = {
    TG.claimStatus: Literal("MAYBE"),
    TG.claimStart: Literal("once"),
    TG.claimType: None,
    TG.subject: Literal("Marie Curie"),
    TG.description: None,
}


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["completed"], indirect=True)
def test_a_claim_that_is_bent_does_not_conform(graph, validate, as_graph):
    """Twins of a claim and of its evidence, each bent in one property, validated at once."""
    kg, _ = graph
    store = as_graph(list(kg.opened.read().match()))
    twins, numbers, bent = copy(store), count(1), []
    for kind in (TG.Claim, TG.Evidence):
        claim = next(
            s for s in store.subjects(RDF.type, kind) if (s, TG.claimStatus, None) in store
        )
        control = twin_iri(claim, next(numbers))
        add_twin(store, twins, claim, control, set(), set())
        for term, value in BENT_CLAIM.items():
            twin = twin_iri(claim, next(numbers))
            less: Pairs = {(term, known) for known in store.objects(claim, term)}
            add_twin(store, twins, claim, twin, less, {(term, value)} if value else set())
            bent.append((twin, control, term))
    _, report, _ = validate(twins)
    assert [
        t for twin, control, t in bent if findings(report, twin) <= findings(report, control)
    ] == []


TWICE = """{"entities": [], "attributes": [], "relationships": [
  {"subject": "Marie Curie", "predicate": "discovered", "object": "Polonium", "strength": 3,
   "description": "", "keywords": [], "quote": "Marie Curie discovered Polonium in Paris."},
  {"subject": "marie curie", "predicate": "Discovered", "object": "polonium", "strength": 9,
   "description": "Again.", "keywords": [], "quote": "Marie Curie discovered Polonium in Paris."}
]}"""
SCRIPTS["says it twice"] = {"extract_graph": TWICE}


@pytest.mark.parametrize("graph", ["says it twice"], indirect=True)
def test_a_place_that_is_named_twice_is_one_evidence(graph, validate, as_graph):
    kg, _ = graph
    store = as_graph(list(kg.opened.read().match()))
    assert [value.toPython() for value in store.objects(None, TG.strength)] == [3.0]
    conforms, _, text = validate(store)
    assert conforms, text
