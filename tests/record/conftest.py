"""A small record with everything in it, written by the recorder itself under a fixed clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pyshacl
import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple
from rdflib import Graph

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.answer.citations import cite_places
from tgraph.explain.export.formats import serialise_quads
from tgraph.explain.trace.record_quads import catalogue_quads, replace_triple_terms, session_quads
from tgraph.extract.summaries import Summary, SummarySentence
from tgraph.index.communities.communities import FoundCommunities, community_quads, read_communities
from tgraph.index.communities.given import GivenCommunity
from tgraph.index.descriptions import Described, Original
from tgraph.index.evidence import stored_evidence
from tgraph.index.reports.context import EdgeDetail, EntityDetail, ReportContext, SubReport
from tgraph.index.reports.report import DraftFinding, ReportDraft, made_report
from tgraph.index.sources import Texts
from tgraph.model import (
    Agent,
    Candidate,
    Chunk,
    Community,
    Document,
    Edge,
    EntityMatch,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Note,
    Page,
    Prompt,
    ReadingLoss,
    ReadingReport,
    Rejected,
    Retrieval,
    Selected,
    Selection,
    Sentence,
    Span,
    UnitCount,
    Usage,
)
from tgraph.models.base import Call
from tgraph.record.activities import SOFTWARE, Authorship, agent_quads, prompt_quads
from tgraph.record.assessments import (
    EvaluationRecord,
    InfluenceRecord,
    InvalidationRecord,
    VerificationRecord,
)
from tgraph.record.communities import (
    Hierarchy,
    Parameters,
    clustering_quads,
    given_quads,
    report_content,
    report_quads,
    standing_hierarchies,
    state_report,
)
from tgraph.record.ledger import Ledger
from tgraph.record.merges import curation_quads, merge_quads, rejoin_quads, split_quads
from tgraph.record.recorder import call_activity, describe_call
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.record.sources import (
    ExtractionRecord,
    accession_quads,
    chunk_quads,
    document_quads,
    run_quads,
)
from tgraph.record.summaries import state_summary
from tgraph.resources import read_text
from tgraph.store.base import Store
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import Statements, Value, reifier_quad

CATALOGUE = v.collection_iri("explainability")
ENDINGS = ("completed", "no-evidence", "failed", "interrupted", "aborted")
RUN_UUID = "00000000-0000-4000-8000-000000000000"
EVALUATION_UUID = "00000000-0000-4000-8000-000000000099"
VERIFICATION_UUID = "00000000-0000-4000-8000-000000000098"
INVALIDATION_UUID = "00000000-0000-4000-8000-000000000097"
INFLUENCE_UUID = "00000000-0000-4000-8000-000000000096"
RUN = f"{v.URN}run:{RUN_UUID}"
LATER_RUN = f"{v.URN}run:00000000-0000-4000-8000-999999999999"
MODEL = Agent("model", "scripted", provider="tgraph.testing")
LEIDEN = Agent("method", "igraph-leiden", "1.0.0", "igraph")
EMBEDDER = Agent("method", "hashing", "1", "tgraph")
PAGES = (
    "Marie Curie discovered Polonium. Her laboratory stood in Paris.",
    "M. Curie 😀 was born in 1867. Henri Becquerel lectured.",
)
NOTE = "Marie Curie worked in Paris."


def uuid_of(ending: str) -> str:
    return f"00000000-0000-4000-8000-{ENDINGS.index(ending) + 1:012d}"


def prompt(name: str) -> Prompt:
    text = f"Step: {name}"
    return Prompt(name, text, sha256(text.encode()).hexdigest())


def clock() -> Callable[[], datetime]:
    """A clock that is a second further each time it is read."""
    ticks = iter(range(1_000_000))
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks))


def call(now: Callable[[], datetime], kind: str, agent: Agent, step: Prompt | None) -> Call:
    request = {"model": agent.name, "step": step.name if step else "embed"}
    reply = {"text": "said"} if kind == "chat" else {"vectors": "AAAA"}
    return Call(kind, request, reply, agent, now(), now(), Usage(12, 3, 1), step)  # type: ignore[arg-type]


class SampleRecord:
    """A collection with two documents, a merge and one session of each ending."""

    def __init__(self, root: Path) -> None:
        self.now = clock()
        self.folder: CollectionFolder = GraphFolder.create(root).collection("default", create=True)
        self.ledger = Ledger(self.folder, CATALOGUE, self.now)
        with self.ledger.open() as (store, _):
            store.extend(self._sources(store))
            store.extend(self._knowledge())
            store.extend(self._communities())
            store.extend(self._reports(store))
            candidates = self._candidates(store)
            del store
        for ending in ENDINGS:
            self._session(ending, candidates)
        self._evaluation()
        self._verification()
        self._influence()
        self._invalidation()

    # --- sources ---

    def _sources(self, store: Store) -> list[Quad]:
        now, put = self.now, self.ledger.librarian.put_text
        started = now()
        paged = self._document("report.pdf", "application/pdf", enumerate(PAGES, 1))
        note = self._document("note.txt", "text/plain", [(None, NOTE)])
        old = self._document("note.txt", "text/plain", [(None, "An older note.")])
        first = v.accession_iri("note.txt", old.sha256, None)
        quads = []
        for document in (paged, note, old):
            hashes = [put(page.text) for page in document.pages]
            quads += document_quads(document, document.sha256, hashes)
        quads += accession_quads(first, old.iri, "note.txt", RUN, now(), None)
        quads += accession_quads(
            v.accession_iri("note.txt", note.sha256, first), note.iri, "note.txt", RUN, now(), first
        )
        quads += accession_quads(
            v.accession_iri("report.pdf", paged.sha256, None),
            paged.iri,
            "report.pdf",
            RUN,
            now(),
            None,
        )
        quads += self._extraction(paged, 1, [("Marie Curie", "discovered", "Polonium")], 0)
        quads += self._extraction(paged, 2, [("M. Curie", "born", Literal(1867))], 1)
        quads += self._extraction(note, None, [("Marie Curie", "worked in", "Paris")], 0)
        quads += self._summary_of(quads)
        quads += self._run_calls()
        one, two, three = (v.entity_iri(n) for n in ("Marie Curie", "M. Curie", "Henri Becquerel"))
        made = merge_quads(store, RUN, now(), now(), {two: one, three: one}, {})
        store.extend(made)
        agents = [SOFTWARE, MODEL, EMBEDDER]
        quads += made + run_quads(RUN, "Index run", started, now(), agents, {"malformed row": 2})
        again = now()
        quads += merge_quads(store, LATER_RUN, now(), now(), {}, {three: one})
        quads += run_quads(LATER_RUN, "Index run", again, now(), agents, {})
        quads += self._curations()
        return quads + agent_quads(agents) + prompt_quads([prompt("extract_graph")])

    def _summary_of(self, quads: list[Quad]) -> list[Quad]:
        """Two descriptions summarised, where another method had to stand in."""
        found = sorted(q.subject.value for q in quads if q.object == v.tg("Evidence"))  # type: ignore[union-attr]
        originals = tuple(Original(text, (e,)) for text, e in zip("AB", found, strict=False))
        described = Described(v.entity_iri("Marie Curie"), originals)
        self.summary = described.summary("key")
        sentences = (SummarySentence("She is A.", (0,)), SummarySentence("And B.", (0, 1)))
        text = Summary(sentences, {"unknown id in a summary": 1})
        steps = [prompt("summarise_descriptions")]
        out = Statements(v.SOURCE_GRAPH)
        how = Authorship(RUN, MODEL, steps, self.now(), self.now(), "It did not answer.")
        state_summary(out, described, self.summary, text, how)
        return out.quads + prompt_quads(steps)

    def _curations(self) -> list[Quad]:
        """A split that stands, and one that was taken back."""
        now, person = self.now, Agent("person", "Ada")
        pairs = [(v.entity_iri("M. Curie"), v.entity_iri(name)) for name in ("Marie", "Ève Curie")]
        quads = []
        for number, pair in enumerate([*pairs, None]):
            activity = f"{v.URN}curation:00000000-0000-4000-8000-{number:012d}"
            started = now()
            if pair:
                made = split_quads(activity, pair, now())
                split = made[0].subject
            else:
                assert isinstance(split, NamedNode)
                made = rejoin_quads(activity, split.value, now())
            agents = [SOFTWARE, person]
            quads += made + curation_quads(activity, "Split", "Seen.", started, now(), agents)
        return quads

    @staticmethod
    def _document(name: str, kind: str, pages: object) -> Document:
        made = tuple(Page(number, text) for number, text in pages)  # type: ignore[attr-defined]
        digest = sha256("".join(page.text for page in made).encode()).hexdigest()
        about = {"author": "A. Writer", "date": "1911", "language": "en"}
        report = ReadingReport(
            "reader 1.0",
            (UnitCount("characters", 100, 90, 5),),
            (ReadingLoss("image", 2, "page 1", "an image has no text", True),),
            ("5 of 100 characters of the file aren't in the stored text.",),
        )
        return Document(digest, name, kind, made, about, report)

    def _extraction(
        self,
        document: Document,
        number: int | None,
        facts: list[tuple[str, str, str | Literal]],
        index: int,
    ) -> list[Quad]:
        page = next(page for page in document.pages if page.number == number)
        chunk = Chunk(
            document.sha256, number, index, 0, len(page.text), page.text, 12, ("Part", "Chapter")
        )
        end = page.text.index(".") if number == 1 else len(page.text)
        span = Span(0, end, page.text[:end])
        entities = [
            ExtractedEntity(fact[0], "person", "A physicist.", ("Madame Curie",), span)
            for fact in facts
        ]
        relationships = [
            ExtractedRelationship(*fact, "It is so.", ("science",), 8.0, span) for fact in facts
        ]
        found = Extraction(
            chunk.iri, tuple(entities), tuple(relationships), "reply", {"malformed row": 1}
        )
        how = Authorship(RUN, MODEL, [prompt("extract_graph")], self.now(), self.now())
        return chunk_quads(chunk) + ExtractionRecord(how, chunk, found, "key").quads()

    def _run_calls(self) -> list[Quad]:
        out = Statements(v.SOURCE_GRAPH)
        made = [
            call(self.now, "chat", MODEL, prompt("extract_graph")),
            call(self.now, "embedding", EMBEDDER, None),
        ]
        for item in made:
            key = self.ledger.librarian.put_text(item.agent.name)
            describe_call(out, call_activity(RUN_UUID, RUN, item), item, key)
        return out.quads

    # --- knowledge ---

    def _edges(self) -> list[Edge]:
        marie, born = NamedNode(v.entity_iri("Marie Curie")), Literal(1867)
        discovered = NamedNode(v.relation_iri("discovered")), NamedNode(v.entity_iri("Polonium"))
        worked = NamedNode(v.relation_iri("worked in")), NamedNode(v.entity_iri("Paris"))
        return [
            Edge(marie, *discovered, "Marie Curie", "discovered", "Polonium", 8.0),
            Edge(marie, *worked, "Marie Curie", "worked in", "Paris", 8.0),
            Edge(
                marie, NamedNode(v.relation_iri("born")), born, "Marie Curie", "born", "1867", 8.0
            ),
        ]

    def _knowledge(self) -> list[Quad]:
        """Two edges as the texts have them, and one that is canonical for a merged name."""
        known, source = Statements(v.KNOWLEDGE_GRAPH), Statements(v.SOURCE_GRAPH)
        for edge in self._edges():
            known.quads.append(Quad(edge.subject, edge.predicate, edge.object, v.KNOWLEDGE_GRAPH))
            known.add(
                edge.iri,
                (v.RDF_TYPE, v.tg("Edge")),
                (v.tg("weight"), edge.weight),
                (v.tg("description"), "It is so."),
                (v.tg("keyword"), "science"),
            )
            kinds = [v.tg("Entity"), NamedNode(v.type_iri("person"))]
            known.add(edge.subject.value, (v.RDF_TYPE, kinds), (v.RDFS_LABEL, edge.subject_label))
            known.add(edge.subject.value, (v.tg("summary"), NamedNode(self.summary)))
            if isinstance(edge.object, NamedNode):
                known.add(edge.object.value, (v.RDF_TYPE, kinds), (v.RDFS_LABEL, edge.object_label))
            known.add(
                edge.predicate.value,
                (v.RDF_TYPE, v.tg("Relation")),
                (v.RDFS_LABEL, edge.predicate_label),
            )
        known.add(v.type_iri("person"), (v.RDF_TYPE, v.tg("EntityType")), (v.RDFS_LABEL, "person"))
        merged = self._edges()[-1]
        original = v.edge_iri(NamedNode(v.entity_iri("M. Curie")), merged.predicate, merged.object)
        known.add(merged.iri, (v.tg("original"), NamedNode(original)))
        source.add(merged.iri, (v.tg("mergedFrom"), NamedNode(original)))
        source.quads.append(
            reifier_quad(merged.iri, Triple(merged.subject, merged.predicate, merged.object))
        )
        return known.quads + source.quads

    def _communities(self) -> list[Quad]:
        """Three entities, two of them closer, and a pair that was a community before."""
        names = [v.entity_iri(name) for name in ("Marie Curie", "Polonium", "Paris")]
        all_three = Community(v.community_iri(0, names), 0, tuple(names), ())
        near = Community(v.community_iri(1, names[:2]), 1, tuple(names[:2]), (), all_three.iri)
        gone = Community(v.community_iri(1, names[1:]), 1, tuple(names[1:]), (), all_three.iri)
        quads: list[Quad] = []
        ended: list[Hierarchy] = []
        how: Parameters = {"max-size": 2, "quality": "modularity", "resolution": 1.0}
        for run, pair in ((RUN, gone), (LATER_RUN, near)):
            by = Authorship(run, LEIDEN, (), self.now(), self.now())
            left = (
                {gone.iri: community_quads([FoundCommunities(gone, "Paris, Polonium")])}
                if ended
                else {}
            )
            made = {v.digest_parts(run): [all_three.iri, pair.iri]}
            quads += clustering_quads(by, how, 1, made, ended, left)
            ended = list(standing_hierarchies(OxigraphStore.memory(quads)).values())
        quads += self._given(names)
        return quads + community_quads(
            [FoundCommunities(all_three, "Marie Curie"), FoundCommunities(near, "Polonium")]
        )

    def _given(self, names: Sequence[str]) -> list[Quad]:
        """Two communities, one within the other, that a graph brought of which the note tells."""
        note = self._document("note.txt", "text/plain", [(None, NOTE)]).iri
        whole, part = (
            f"{v.URN}given-community:{v.digest_parts(name)}" for name in ("whole", "part")
        )
        given = (
            GivenCommunity(
                whole, 0, frozenset(names), "", note, 0, 4, (tuple(names[:1]), tuple(names[1:2]))
            ),
            GivenCommunity(part, 1, frozenset(names[:2]), whole, note, 5, 9),
        )
        by = Authorship(RUN, SOFTWARE, (), self.now(), self.now())
        hierarchy = f"{v.URN}given-hierarchy:{v.digest_parts('given')}"
        return given_quads(by, hierarchy, [v.digest_parts("part")], given, [note])

    def _reports(self, store: Store) -> list[Quad]:
        """A report of a part, which a model could not write, and one of the whole that cites it."""
        edges = [edge for edge in self._edges() if isinstance(edge.object, NamedNode)]
        reader = stored_evidence(store, Texts(store, self.ledger.librarian))
        found = reader.of_edges([e.iri for e in edges], 3)
        details = tuple(EdgeDetail(edge, 2, found[edge.iri]) for edge in edges)
        curie = v.entity_iri("Marie Curie")
        named = store.match(None, v.tg("entity"), NamedNode(curie), v.SOURCE_GRAPH)
        grounds = tuple(sorted(q.subject.value for q in named if isinstance(q.subject, NamedNode)))
        entities = (EntityDetail(curie, "Marie Curie", "person", 2, (), grounds),)
        whole, part = sorted(read_communities(store), key=lambda community: community.level)
        prompts = (prompt("community_report"),)
        quads: list[Quad] = prompt_quads(prompts)
        below: tuple[SubReport, ...] = ()
        cited = {part: ("R1", "R9"), whole: ("E1", "S1", "S1.1")}
        for community, agent in ((part, EMBEDDER), (whole, MODEL)):
            cites = cited[community]
            context = ReportContext(community, entities, details, (), below)
            draft = ReportDraft("T", "S.", 4.5, "W.", (DraftFinding("A", "A is so.", cites),))
            made = made_report(draft, context, v.digest_parts(community.iri))
            fallback = "The reply holds no JSON." if agent is EMBEDDER else ""
            how = Authorship(
                RUN, agent, () if fallback else prompts, self.now(), self.now(), fallback
            )
            content = self.ledger.librarian.put_text(report_content(made, context))
            out = Statements(v.SOURCE_GRAPH)
            state_report(out, made, how, content)
            quads += report_quads(made.report) + out.quads
            below = (SubReport(made.report),)
        return quads

    def _candidates(self, store: Store) -> list[Candidate]:
        edges, texts = self._edges(), Texts(store, self.ledger.librarian)
        evidence = stored_evidence(store, texts).of_edges([edge.iri for edge in edges], 10)
        found = [(edge, evidence.get(edge.iri, ())) for edge in edges]
        return [
            Candidate(edge, rank, 1.0 / rank, rank - 1, evidence)
            for rank, (edge, evidence) in enumerate(found, 1)
        ]

    # --- sessions ---

    def _session(self, ending: str, candidates: list[Candidate]) -> None:
        record = SessionRecord(self.folder.journals, uuid_of(ending), self.now)
        parameters: dict[str, Value] = {
            "edge-limit": 2,
            "exact": True,
            "share": 0.5,
            "language": "en",
        }
        record.start(
            SessionDescription(
                "Who discovered what?", "graph", parameters, 1, "default", "explainability"
            )
        )
        try:
            self._stages(record, ending, candidates)
            record.finish(ending)
        except RuntimeError as error:
            if ending != "aborted":
                record.finish(ending, str(error))
        finally:
            record.close()

    def _stages(self, record: SessionRecord, ending: str, candidates: list[Candidate]) -> None:
        now = self.now
        with record.step("ConceptExtraction", MODEL) as step:
            record.call(call(now, "chat", MODEL, prompt("extract_concepts")))
            concepts = record.concepts(step, ["Marie Curie"])
        with record.step("EntityMatching", EMBEDDER, [concepts]) as step:
            record.call(call(now, "embedding", EMBEDDER, None))
            found = [
                EntityMatch(v.entity_iri("Marie Curie"), "Marie Curie", "Marie Curie", 1.0, "name")
            ]
            matches = record.matches(step, [concepts], found)
        with record.step("Traversal", used=[matches]):
            everything = [f"{c.edge.iri}" for c in candidates] + [f"{v.URN}edge:{'0' * 40}"]
            retrieval = Retrieval(
                tuple(candidates), 4, cut=tuple(everything), dropped={"over the limit": 1}
            )
            record.retrieval(retrieval, [matches])
        with record.step("EdgeSelecting", MODEL, [record.retrieval_iri]) as step:
            record.call(call(now, "chat", MODEL, prompt("select_edges")))
            if ending not in ("completed", "no-evidence"):
                raise RuntimeError("The model can't be reached.")
            selection = self._selection(candidates, 0 if ending == "no-evidence" else 2)
            record.selection(step, selection)
        sentences = []
        with record.step("Synthesising", MODEL, [record.selection_iri]) as step:
            if ending == "completed":
                sentences = self._sentences(record, selection)
        text = " ".join(s.text for s in sentences) or "There is no evidence."
        places = tuple(s.candidate.evidence[0] for s in selection.selected[:2])
        notes = [Note("The documents disagree.", (), places)] if sentences else []
        record.answer(step, text, sentences, {"citation that does not hold": 1}, notes)

    @staticmethod
    def _selection(candidates: list[Candidate], count: int) -> Selection:
        chosen = [
            Selected(index, candidate, "It names the discovery.", candidate.score)
            for index, candidate in enumerate(candidates[:count])
        ]
        rejected = [Rejected(candidate, "not chosen") for candidate in candidates[count:]]
        return Selection(tuple(chosen), tuple(rejected), unknown_ids=1, malformed=1)

    @staticmethod
    def _sentences(record: SessionRecord, selection: Selection) -> list[Sentence]:
        drafts = [Draft(s.candidate.evidence[0].quote, (s,)) for s in selection.selected]
        return [cite_places(draft, record.uuid) for draft in drafts]

    # --- evaluations ---

    def _evaluation(self) -> None:
        """Two answers judged, and one that could not be."""
        record = EvaluationRecord(self.folder.journals, EVALUATION_UUID, self.now)
        record.start("q.json", "[]", "graph", {"statements": 10}, "default", "explainability")
        record.judged_by([(MODEL, (prompt("check_entailment"),)), (EMBEDDER, ())])
        record.call(call(self.now, "chat", MODEL, prompt("check_entailment")))
        judged = {"precision": 0.5, "recall": 1.0}
        answer = v.answer_iri(uuid_of("completed"))
        record.assessment("Who?", judged, "{}", answer=answer, dropped={"malformed row": 1})
        record.assessment("Who else?", {"precision": 0.0}, "{}")
        record.assessment("Why?", {}, "{}", error="The reply holds no JSON.")
        record.result(judged, "{}")
        record.finish("completed")
        record.close()

    def _verification(self) -> None:
        """An answer with a sentence of each verdict."""
        uuid = uuid_of("completed")
        judge = prompt("judge_support")
        record = VerificationRecord(self.folder.journals, VERIFICATION_UUID, self.now)
        record.start(v.answer_iri(uuid), MODEL, (judge,), "explainability")
        record.call(call(self.now, "chat", MODEL, judge))
        verdicts = ("supported", "quoted", "partly", "unsupported", "uncited", "undecided")
        for index, verdict in enumerate(verdicts):
            sentence = v.session_part_iri("sentence", uuid, index % 2)
            lost = verdict in ("partly", "unsupported", "uncited")
            record.verdict(
                sentence,
                verdict,
                "it is so",
                lost_at="answer" if lost else "",
                lost_in=sentence if lost else "",
            )
        record.result({"citation-recall": 0.25}, {"judgement that can't be used": 1})
        record.finish("completed")
        record.close()

    def _influence(self) -> None:
        """An answer written again from all and from a part of its selection."""
        uuid = uuid_of("completed")
        record = InfluenceRecord(self.folder.journals, INFLUENCE_UUID, self.now)
        parameters: dict[str, Value] = {"method": "leave-one-out", "repeats": 1, "measure": "words"}
        measure = Agent("method", "lexical-support", "1")
        record.start(v.answer_iri(uuid), MODEL, measure, parameters, "explainability")
        for kinds, mask, said in ((["cited-only", "none"], "11", "11"), (["one"], "01", "01")):
            ablation = record.ablation(kinds, mask, 0)
            record.call(call(self.now, "chat", MODEL, prompt("synthesise_answer")), ablation)
            record.record_ablation(ablation, said)
        selection = v.edge_selection_iri(uuid, 0)
        record.influence(selection, v.answer_iri(uuid), 0.5, 0.0, above=True)
        record.influence(selection, v.session_part_iri("sentence", uuid, 0), 1.0, 0.0, above=True)
        result = record.result({"necessity": 0.5}, {"ablation whose reply can't be used": 1})
        record.out.add(result, (v.tg("lds"), 0.9))  # records of version 0.1.0 have it
        record.finish("completed")
        record.close()

    def _invalidation(self) -> None:
        """An answer called into question."""
        record = InvalidationRecord(self.folder.journals, INVALIDATION_UUID, self.now)
        document = self._document("note.txt", "text/plain", [(None, NOTE)]).iri
        answers = [uuid_of("completed")]
        record.write(document, "Forged.", answers, "Ada", "default", "explainability")
        record.close()

    # --- reading ---

    @contextmanager
    def reading(self) -> Iterator[Store]:
        with self.ledger.open() as (store, _):
            yield store
            del store

    def session_graph(self, ending: str) -> Graph:
        """One session as it is exported, with its catalogue entry, in the classic view."""
        bundle = v.bundle_iri(uuid_of(ending))
        with self.reading() as store:
            return as_graph(
                session_quads(store, bundle) + catalogue_quads(store, bundle, CATALOGUE)
            )

    def whole_graph(self) -> Graph:
        with self.reading() as store:
            return as_graph(list(store.match()))


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleRecord:
    return SampleRecord(tmp_path_factory.mktemp("record"))


@pytest.fixture(scope="session")
def whole(sample: SampleRecord) -> Graph:
    """Everything that the sample's store holds, in the classic view; not to be changed."""
    return sample.whole_graph()


@pytest.fixture(scope="session")
def session(sample: SampleRecord) -> Graph:
    """One completed session as it is exported; not to be changed."""
    return sample.session_graph("completed")


@pytest.fixture(scope="session")
def shapes() -> Graph:
    return Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")


Validate = Callable[..., tuple[bool, Graph, str]]


@pytest.fixture(scope="session")
def validate(shapes: Graph) -> Validate:
    """(conforms, report, text) of a graph against the shapes, or against those given."""

    def run(graph: Graph, against: Graph | None = None) -> tuple[bool, Graph, str]:
        found = pyshacl.validate(graph, shacl_graph=against or shapes, inference="none")
        return found[0], found[1], found[2]

    return run


@pytest.fixture(scope="session", name="as_graph")
def as_graph_fixture() -> Callable[[list[Quad]], Graph]:
    return as_graph


def as_graph(quads: list[Quad]) -> Graph:
    graph = Graph()
    graph.parse(data=serialise_quads(replace_triple_terms(quads), "turtle"), format="turtle")
    return graph
