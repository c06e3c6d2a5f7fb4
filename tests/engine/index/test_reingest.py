"""Taking documents in again: knowledge is what the standing documents say, however they came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

import tgraph
from tests.support.workers import collection, edges, generation, knowledge, open_graph, snapshot
from tgraph import vocabulary as v
from tgraph.engine.index.run import IndexReport
from tgraph.index.evidence import stored_evidence
from tgraph.index.sources import Texts
from tgraph.index.standing_knowledge import term_value
from tgraph.librarian import Librarian
from tgraph.record.chain import canonical_hash

ONE = "Marie Curie discovered polonium.\n"
TWO = "Marie Curie discovered radium.\n"


class Corpus:
    """A folder of documents and a graph of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "g"
        folder.mkdir(exist_ok=True)

    def index(self, **texts: str) -> IndexReport:
        """Write the documents and take them in, in the order given."""
        for name, text in texts.items():
            (self.folder / f"{name}.txt").write_text(text)
        with open_graph(self.root) as kg:
            return kg.index([self.folder / f"{name}.txt" for name in texts])

    def ask(self, question: str) -> tgraph.Answer:
        with open_graph(self.root, create=False) as kg:
            return kg.ask(question)

    def quads(self) -> set[Quad]:
        with snapshot(self.root) as found:
            return set(found.store.match(None, None, None, None))

    def hash(self) -> str:
        with snapshot(self.root) as found:
            return canonical_hash(knowledge(found.store))

    def quotes(self) -> dict[str, list[str]]:
        """The quotes that vouch for each edge, by the name of its subject."""
        with snapshot(self.root) as found:
            store = found.store
            edges = [q.subject.value for q in store.match(None, v.RDF_TYPE, v.tg("Edge"))]  # type: ignore[union-attr]
            subjects = {
                edge: term_value(q.object.subject).rpartition(":")[2]  # type: ignore[union-attr]
                for edge in edges
                for q in store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
            }
            texts = Texts(store, Librarian(collection(self.root).librarian))
            evidence = stored_evidence(store, texts).of_edges(edges, 10)
        return {subjects[e]: sorted(item.quote for item in evidence[e]) for e in edges}

    def labels(self) -> set[str]:
        with snapshot(self.root) as found:
            quads = found.store.match(None, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
            return {term_value(quad.object) for quad in quads}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus")


def test_an_unchanged_file_changes_nothing(corpus: Corpus) -> None:
    corpus.index(a=ONE)
    before, pointer = corpus.quads(), collection(corpus.root).pointer.read_bytes()
    report = corpus.index(a=ONE)
    assert (len(report.unchanged), report.indexed, report.generation) == (1, (), 1)
    assert corpus.quads() == before
    assert collection(corpus.root).pointer.read_bytes() == pointer


def test_a_changed_file_supersedes(corpus: Corpus) -> None:
    corpus.index(a=ONE, b="Pierre Curie worked in Paris.\n")
    assert "polonium" in corpus.ask("What did Marie Curie discover?").text
    old = corpus.quads()
    report = corpus.index(a=TWO)
    assert len(report.superseded) == 1
    assert edges(corpus.root) == {"marie-curie discovered radium", "pierre-curie worked-in paris"}
    answer = corpus.ask("What did Marie Curie discover?")
    assert "radium" in answer.text
    assert "polonium" not in answer.text
    lost = {q for q in old - corpus.quads() if q.graph_name != v.KNOWLEDGE_GRAPH}
    assert not lost, "evidence and sources stay"
    assert "polonium" not in corpus.labels()


@pytest.mark.slow
def test_a_file_that_changes_back_makes_no_cycle(corpus: Corpus) -> None:
    corpus.index(a=ONE)
    first = corpus.hash()
    for text in (TWO, ONE, TWO, ONE):
        corpus.index(a=text)
    assert corpus.hash() == first
    assert generation(corpus.root) == 5
    quads = corpus.quads()
    revised = [q for q in quads if q.predicate == v.prov("wasRevisionOf")]
    revisions = {term_value(q.subject): term_value(q.object) for q in revised}
    assert len(revisions) == 4
    node, steps = next(iter(set(revisions) - set(revisions.values()))), 0
    while node in revisions:
        node, steps = revisions[node], steps + 1
    assert steps == 4
    standing = {q.subject for q in quads if q.predicate == v.prov("specializationOf")}
    standing -= {q.subject for q in quads if q.predicate == v.prov("invalidatedAtTime")}
    assert len(standing) == 1


def test_one_content_under_two_paths(corpus: Corpus) -> None:
    report = corpus.index(a=ONE, b=ONE)
    assert (len(report.indexed), report.chunks) == (2, 1)
    for subject, times in _starts(corpus.quads()).items():
        assert len(times) == 1, f"{subject} began twice"
    corpus.index(a=TWO)
    assert edges(corpus.root) == {
        "marie-curie discovered polonium",
        "marie-curie discovered radium",
    }
    cited = {c.path for s in corpus.ask("Who discovered polonium?").sentences for c in s.citations}
    assert {Path(path).name for path in cited} == {"b.txt"}
    corpus.index(b=TWO)
    assert edges(corpus.root) == {"marie-curie discovered radium"}


def test_one_content_is_read_once_whatever_its_names_are(tmp_path: Path) -> None:
    """Two readers would make two texts of it; offsets hold for one."""
    page = "<p>\nMarie Curie discovered polonium.\n</p>"
    for name in ("a.txt", "b.html"):
        (tmp_path / name).write_text(page)
    with open_graph(tmp_path / "g") as kg:
        for name in ("a.txt", "b.html"):
            kg.index([tmp_path / name])
    with snapshot(tmp_path / "g") as found:
        assert len(list(found.store.match(None, v.tg("textHash"), None, v.SOURCE_GRAPH))) == 1


def test_a_file_that_was_withdrawn_comes_back(corpus: Corpus) -> None:
    corpus.index(a=ONE)
    with open_graph(corpus.root) as kg, kg.opened.ledger.open() as (store, _):
        (path,) = store.match(None, v.tg("path"))
        store.extend(
            [Quad(path.subject, v.prov("invalidatedAtTime"), path.object, path.graph_name)]
        )
        kg.opened.ledger.publish(store)
    report = corpus.index(a=ONE)
    assert (len(report.indexed), report.superseded, report.chunks) == (1, (), 0)
    quads = corpus.quads()
    accessions = {q.subject for q in quads if q.predicate == v.tg("path")}
    assert len(accessions) == 2
    assert len([q for q in quads if q.predicate == v.prov("invalidatedAtTime")]) == 1
    assert len([q for q in quads if q.predicate == v.prov("wasRevisionOf")]) == 1
    assert edges(corpus.root) == {"marie-curie discovered polonium"}


@pytest.mark.slow
def test_what_was_answered_before_a_file_changed_reads_as_before(corpus: Corpus) -> None:
    def trace() -> dict[str, Any]:
        with open_graph(corpus.root, create=False) as kg:
            return kg.trace(session).as_dict()

    def paths() -> set[str]:
        quoted = [place for item in trace()["selected"] for place in item["evidence"]]
        cited = [place for sentence in trace()["sentences"] for place in sentence["citations"]]
        return {Path(place["path"]).name for place in (*quoted, *cited)}

    corpus.index(a="Marie Curie worked in Paris.\n", b="Marie Curie worked in Paris.\n")
    session = corpus.ask("Where did Marie Curie work?").explain_id
    before = trace()
    (item,) = before["selected"]
    labels = [item[f"{part}_label"] for part in ("subject", "predicate", "object")]
    assert labels == ["Marie Curie", "worked in", "Paris"]
    assert "Marie Curie" in {match["label"] for match in before["matches"]}
    assert paths() == {"a.txt"}
    corpus.index(b="Pierre Curie studied physics.\n")
    assert trace() == before
    corpus.index(a="Pierre Curie studied chemistry.\n")
    assert paths() == {"a.txt"}
    assert trace() == before


@pytest.mark.slow
def test_a_document_is_read_under_the_last_path_that_it_had(corpus: Corpus) -> None:
    def paths() -> set[str]:
        with open_graph(corpus.root, create=False) as kg:
            (item, *_) = kg.trace(session).selected
            return {Path(place.path).name for place in item.evidence}

    corpus.index(a=ONE, b=ONE)
    session = corpus.ask("What did Marie Curie discover?").explain_id
    assert paths() == {"a.txt"}
    corpus.index(a="Pierre Curie studied physics.\n")
    assert paths() == {"b.txt"}
    corpus.index(b="Pierre Curie studied chemistry.\n")
    assert paths() == {"b.txt"}


def _starts(quads: set[Quad]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for quad in quads:
        if quad.predicate == v.prov("startedAtTime") and isinstance(quad.subject, NamedNode):
            found.setdefault(quad.subject.value, []).append(str(quad.object))
    return found


DOCUMENTS = {
    "a": "Robert Falcon Scott = Scott\nRobert Falcon Scott led Terra Nova Expedition.\n",
    "b": "Scott reached South Pole.\nScott is called Robert Falcon Scott.\n",
    "c": "the South Pole lies in Antarctica.\nTerra Nova Expedition Reached South Pole.\n",
    "d": "South Pole lies-in Antarctica.\nROBERT FALCON SCOTT wrote diary.\n",
}
ORDERS = ["abcd", "dcba", "cadb", "bdac"]


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_order_of_the_files_does_not_matter(tmp_path: Path, order: str, at_once: bool) -> None:
    reference, other = Corpus(tmp_path / "one"), Corpus(tmp_path / "two")
    reference.index(**DOCUMENTS)
    texts = {name: DOCUMENTS[name] for name in order}
    for part in [texts] if at_once else [{name: text} for name, text in texts.items()]:
        other.index(**part)
    assert _difference(reference, other) == ([], [])
    assert other.hash() == reference.hash()


AMBIGUOUS = "Walter Scott = Scott\nWalter Scott wrote Ivanhoe.\n"


@pytest.mark.slow
def test_an_alias_that_becomes_ambiguous_undoes_the_merge(tmp_path: Path) -> None:
    """An edge between two names of one entity is none while they are one, and comes back."""
    corpus, never = Corpus(tmp_path / "one"), Corpus(tmp_path / "two")
    corpus.index(a=DOCUMENTS["a"], b=DOCUMENTS["b"])
    assert "robert-falcon-scott reached south-pole" in edges(corpus.root)
    assert not any("is-called" in edge for edge in edges(corpus.root))
    merged = corpus.hash()
    corpus.index(w=AMBIGUOUS)
    assert {"scott reached south-pole", "scott is-called robert-falcon-scott"} <= edges(corpus.root)
    never.index(w=AMBIGUOUS, b=DOCUMENTS["b"], a=DOCUMENTS["a"])
    assert _difference(corpus, never) == ([], [])
    corpus.index(w="nothing of note\n")
    assert corpus.hash() == merged


def test_evidence_goes_with_the_name_that_it_was_merged_into_last(corpus: Corpus) -> None:
    """An edge that became another, and now a third, has left the second's evidence."""
    stated = "{} reached South Pole.\n"
    corpus.index(
        a="Robert Falcon Scott = Scott\n",
        b=stated.format("Scott"),
        c=stated.format("Robert Falcon Scott"),
    )
    assert corpus.quotes() == {
        "robert-falcon-scott": [
            "Robert Falcon Scott reached South Pole.",
            "Scott reached South Pole.",
        ]
    }
    corpus.index(a="Walter Henry Scott = Scott\n")
    assert corpus.quotes() == {
        "robert-falcon-scott": ["Robert Falcon Scott reached South Pole."],
        "walter-henry-scott": ["Scott reached South Pole."],
    }


def test_what_was_withdrawn_leaves_no_trace_in_knowledge(tmp_path: Path) -> None:
    corpus, never = Corpus(tmp_path / "one"), Corpus(tmp_path / "two")
    corpus.index(a=AMBIGUOUS + DOCUMENTS["b"], b=DOCUMENTS["c"], c=DOCUMENTS["d"])
    corpus.index(a=DOCUMENTS["a"], b=ONE)
    never.index(a=DOCUMENTS["a"], b=ONE, c=DOCUMENTS["d"])
    assert _difference(corpus, never) == ([], [])


def _difference(left: Corpus, right: Corpus) -> tuple[list[str], list[str]]:
    with snapshot(left.root) as one, snapshot(right.root) as two:
        a, b = knowledge(one.store), knowledge(two.store)
    return sorted(map(str, a - b)), sorted(map(str, b - a))


def test_the_same_input_gives_the_same_graph_everywhere(tmp_path: Path) -> None:
    """Source and knowledge graphs agree, but for the activities of the run and the times."""
    for name, text in DOCUMENTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    graphs = []
    for folder in ("one", "two"):
        with open_graph(tmp_path / folder) as kg:
            kg.index([tmp_path / f"{name}.txt" for name in DOCUMENTS])
        with snapshot(tmp_path / folder) as found:
            stated = [
                *found.store.match(None, None, None, v.SOURCE_GRAPH),
                *found.store.match(None, None, None, v.KNOWLEDGE_GRAPH),
            ]
        graphs.append({str(quad) for quad in stated if not _of_run(quad)})
    assert graphs[0] == graphs[1]
    assert len(graphs[0]) > 100


ACTIVITIES = (
    "run:",
    "extraction:",
    "resolution:",
    "prov:",
    "merge:",
    "summarising:",
    "clustering:",
    "hierarchy:",
    "reporting:",
)


def _of_run(quad: Quad) -> bool:
    names = [term.value for term in (quad.subject, quad.object) if isinstance(term, NamedNode)]
    times = quad.predicate in (v.prov("generatedAtTime"), v.prov("invalidatedAtTime"))
    return times or any(name.startswith(tuple(v.URN + a for a in ACTIVITIES)) for name in names)
