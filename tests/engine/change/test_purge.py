"""After a purge no byte of a document is left, and all else is as it was."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tests.support import workers
from tests.support.tables import blocks_of
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import StoreError, UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.integrity.check import check_integrity
from tgraph.explain.integrity.erasures import read_erasure
from tgraph.extensions.lab import evaluate, measure_influence
from tgraph.extensions.lab.evaluation.metrics import EvaluationItem
from tgraph.ingest import files
from tgraph.record.chain import Head
from tgraph.record.erasure.traces import TraceCollector
from tgraph.retrieve.filters import Filters
from tgraph.store.folder import GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import to_bytes
from tgraph.store.writer import open_writable_store
from tgraph.testing import ScriptedServer

SHARED = "Roald Amundsen reached the South Pole in December 1911."
SECRET = f"""# The Zorblatt ledger

Ottoline Zorblatt hid the quivering emerald beneath Glimmerfen Abbey. Wilhelmina Tresk met Roald
Amundsen in Hobart. Quentin Vashmère won the Blackthorn Medal.
Ottoline Zorblatt met Wilhelmina Tresk.

{SHARED}
"""
KEPT = f"""{SHARED} The Fram carried Roald Amundsen to the Bay of Whales.
Ernest Shackleton led the Nimrod expedition. Ernest Shackleton met Frank Worsley in London.
"""
WORDS = (
    "Zorblatt",
    "Ottoline",
    "quivering",
    "emerald",
    "Glimmerfen",
    "Wilhelmina",
    "Tresk",
    "Hobart",
    "Quentin",
    "Vashmère",
    "Blackthorn",
    "hid the quivering emerald beneath",
)
STAY = ("Worsley", "Nimrod", "Bay of Whales", SHARED)
ABOUT_IT = "What did Ottoline Zorblatt hide beneath Glimmerfen Abbey?"
ABOUT_OTHERS = "Who led the Nimrod expedition?"
REASON = "erasure request 17"
CATALOGUE = v.collection_iri("explainability")
MODES = {
    "http": ("graph", "global", "drift", "raptor", "contextual"),
    "embedded": ("graph", "global"),
}


@contextmanager
def opened(root: Path, server: ScriptedServer | None, **options: Any) -> Iterator[KnowledgeGraph]:
    values: dict[str, Any] = {"embedding.provider": "hashing", "person": "Ada"}
    if server is not None:
        values |= {"chat.base_url": server.base_url, "chat.model": "scripted", "chat.retries": 0}
        values |= {"claims.enabled": True, "extract.gleanings": 0}
    with tgraph.open(root, create=True, settings=values, **options) as graph:
        yield graph


Opened = Callable[..., Any]


@pytest.fixture(scope="module", params=list(MODES))
def made(request, tmp_path_factory) -> Iterator[tuple[Path, Opened]]:
    """A graph of two documents, asked in several modes, verified and evaluated."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "secret.md").write_text(SECRET)
    (folder / "kept.txt").write_text(KEPT)
    with ScriptedServer() as server:
        used = server if request.param == "http" else None

        def again(root: Path = folder / "g", **options: Any) -> Any:
            return opened(root, used, **options)

        with again() as graph:
            graph.index([folder / "secret.md", folder / "kept.txt"])
            for mode in MODES[request.param]:
                graph.ask(ABOUT_IT, mode, history=[])
            graph.ask(ABOUT_OTHERS, history=[])
            graph.ask(ABOUT_OTHERS, history=[], filters=Filters(documents=("kept.txt",)))
            graph.ask("And what did she hide?")
            graph.verify(graph.sessions.summaries()[-1].explain_id)
            if used:
                evaluate(graph, [EvaluationItem("1", ABOUT_IT, gt_answer="The quivering emerald.")])
        yield folder, again


@pytest.fixture(scope="module")
def purged(made, tmp_path_factory) -> tuple[Path, Opened]:
    """The graph after the purge."""
    folder, again = made
    root = tmp_path_factory.mktemp("purged") / "g"
    shutil.copytree(folder / "g", root)
    with again(root) as graph:
        graph.purge("secret.md", reason=REASON)
    return root, again


# --- what is in a folder ---


def forms(word: str) -> Iterator[bytes]:
    """The word as bytes, in every way that something may write it down; small letters."""
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        yield word.lower().encode(encoding)
    yield word.lower().encode("ascii", "backslashreplace")
    yield word.lower().replace(" ", "-").encode()
    yield word.lower().replace(" ", "-").replace("è", "%c3%a8").encode()


def contents(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every file as it is and unpacked, tables of databases too, and every statement of every
    store."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_file():
            yield name, path.read_bytes()
            yield f"the name of {name}", name.encode()
            if path.suffix == ".gz":
                yield f"{name}, unpacked", gzip.decompress(path.read_bytes())
            if path.suffix == ".sst":
                yield f"{name}, unpacked", b"".join(blocks_of(path.read_bytes()))
        elif (path / "CURRENT").exists():
            yield f"{name}, as statements", to_bytes(OxigraphStore.snapshot(path).match())


def found(root: Path, words: tuple[str, ...]) -> set[tuple[str, str]]:
    """The words that are anywhere in the folder, with where."""
    return {
        (word, name)
        for name, data in contents(root)
        for low in [data.lower()]
        for word in words
        if any(form in low for form in forms(word))
    }


def stores(root: Path) -> set[str]:
    """The digests of the files of all databases."""
    return {
        sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.suffix in (".sst", ".log") and path.stat().st_size
    }


# --- the text ---


@pytest.mark.slow
def test_no_byte_of_the_document_is_left(made, purged):
    folder, _ = made
    root, _ = purged
    before = found(folder / "g", WORDS)
    assert {word for word, _ in before} == set(WORDS)
    unpacked = {word for word, name in before if name.endswith(".sst, unpacked")}
    assert unpacked >= set(WORDS[:-1]), "what the search sees of a database's tables"
    assert found(root, WORDS) == set()
    left = found(root, STAY)
    assert {word for word, _ in left} == set(STAY)
    assert {word for word, name in left if name.endswith(".sst, unpacked")} == set(STAY)
    assert not stores(folder / "g") & stores(root)
    workers.assert_tidy(root)
    assert not (workers.collection(root).path / "erasure").exists()


def test_the_record_is_intact_and_says_what_was_erased(purged):
    root, again = purged
    with again(root) as graph:
        checked = graph.integrity()
        assert checked.problems == ()
        (erased,) = checked.erased
        assert erased.reason == REASON
        assert min(erased.bundles, erased.batches, erased.texts) > 0


def test_a_head_that_was_saved_before_still_holds(made, purged):
    _, again = made
    root, _ = purged
    with again() as graph:
        head = graph.integrity().head
    with again(root) as graph:
        assert graph.integrity(head).ok


def test_tampering_is_still_caught(purged):
    root, again = purged
    with again(root) as graph:
        quads, checked = list(graph.opened.read().match()), graph.integrity()
        (entry,) = [q.subject for q in quads if q.object == Literal("erasure")]
        rewritten = read_erasure(graph.opened.read(), entry.value)
        batches = [q for q in quads if q.predicate == v.tg("hash")]
        head = Head(checked.sequence, checked.head)

        def check(changed: list[Quad]) -> set[tuple[str, str]]:
            store = OxigraphStore.memory(changed)
            result = check_integrity(store, graph.opened.librarian, CATALOGUE, head)
            return {(problem.kind, problem.what) for problem in result.problems}

        assert check(quads) == set()
        bundles = {NamedNode(name) for name in rewritten.hashes if ":bundle:" in name}
        mark = next(q for q in quads if q.graph_name in bundles and "[erased " in str(q.object))
        other = Quad(mark.subject, mark.predicate, Literal("Another text."), mark.graph_name)
        assert ("altered", "bundle") in check([q for q in quads if q != mark] + [other])
        assert ("missing", "bundle") in check([q for q in quads if q.graph_name != entry])
        said = next(q for q in batches if q.graph_name == entry)
        false = Quad(said.subject, said.predicate, Literal("0" * 64), said.graph_name)
        assert ("altered", "bundle") in check([q for q in quads if q != said] + [false])


@pytest.mark.slow
def test_what_was_answered_from_it_is_shown_with_marks_and_not_replayed(purged):
    root, again = purged
    replayed = []
    with again(root) as graph:
        for session in graph.sessions.summaries():
            trace = graph.trace(session.explain_id)
            page = graph.export(session.explain_id, "html").decode()
            if trace.sentences:
                graph.verify(session.explain_id, lexical=True)
            graph.why_not(session.explain_id, "Ernest Shackleton")
            if "[erased " in session.question:
                assert "[erased " in page
                assert trace.questioned or not trace.sentences
                with pytest.raises(UsageError, match="can't be replayed: text of it was erased"):
                    graph.replay(session.explain_id)
                with pytest.raises(UsageError, match="can't be measured: text of it was erased"):
                    measure_influence(graph, session.explain_id)
            elif "filter-document" in trace.parameters:
                replayed.append(graph.replay(session.explain_id).is_same)
        with pytest.raises(StoreError):
            graph.documents.read_text(graph.integrity().erased[0].document)
    assert replayed == [True]


def test_names_that_were_erased_are_marked_and_paths_stay(purged):
    root, again = purged
    with again(root) as graph:
        sessions = [s.explain_id for s in graph.sessions.summaries() if "[erased " in s.question]
        for session in sessions:
            trace = graph.trace(session)
            items = (*trace.selected, *trace.rejected)
            names = [m.label for m in trace.matches] + [item.label for item in items]
            for item in items:
                if item.kind == "edge":
                    names += [item.subject_label, item.predicate_label, item.object_label]
            for name in names:
                assert name
                assert "erased-" not in name
                assert not name.startswith(v.URN)
            cited = [c for sentence in trace.sentences for c in sentence.citations]
            for place in (*cited, *(place for item in items for place in item.evidence)):
                assert place.path.endswith((".md", ".txt"))
                assert all("erased-" not in name for name in place.way)
        edges = [row for row in graph.audit("influential-edges").rows if "erased" in row[0]]
        assert edges
        assert all("[erased " in fact and "erased-" not in fact for fact, *_ in edges)
    assert sessions


def test_others_still_answer_and_the_document_stays_out(made, purged, tmp_path):
    folder, _ = made
    _, again = purged
    root = shutil.copytree(purged[0], tmp_path / "g")
    said: list[str] = []
    with again(root) as graph:
        answer = graph.ask(ABOUT_OTHERS, history=[])
        assert "Shackleton" in answer.text
        quotes = {c.quote for s in answer.sentences for c in s.citations}
        assert quotes
        assert all(quote in KEPT for quote in quotes)
        left = set(graph.opened.read().match(None, None, None, v.KNOWLEDGE_GRAPH))
        report = graph.index([folder / "secret.md"], reinstate=True, message=said.append)
        assert (report.retracted, report.erased) == ((), (str(folder / "secret.md"),))
        assert "was erased and is never indexed again" in said[0]
        assert left == set(graph.opened.read().match(None, None, None, v.KNOWLEDGE_GRAPH))
        done = graph.purge("secret.md", reason=REASON)
        assert done.already
        assert graph.integrity().ok


def test_a_sentence_that_another_document_has_too_stays_in_the_record(purged):
    root, again = purged
    with again(root) as graph:
        documents = {d.path.rpartition("/")[2]: d.document for d in graph.documents.summaries()}
        quotes = {
            q.object.value
            for q in graph.opened.read().match(None, v.tg("quote"), None, v.SOURCE_GRAPH)
            if documents["secret.md"].removeprefix(v.document_iri(""))
            in next(
                graph.opened.read().match(q.subject, v.prov("wasDerivedFrom"), None, v.SOURCE_GRAPH)
            ).object.value
        }
    quotes = {" ".join(quote.split()) for quote in quotes}
    assert any(quote in SHARED for quote in quotes)
    assert all(quote in KEPT or quote.startswith("[erased ") for quote in quotes)


@pytest.mark.slow
def test_what_limits_cut_off_goes_as_a_whole_and_the_session_is_replayed(tmp_path):
    """The orders of a search name what is erased, where nothing else of its session does."""
    (tmp_path / "secret.md").write_text(SECRET)
    (tmp_path / "kept.txt").write_text(KEPT)
    few: dict[str, Any] = {"lightrag_search.low_keywords": ("Nimrod",), "lightrag_search.top_k": 1}
    few |= {"lightrag_search.chunk_top_k": 0, "lightrag_search.least_score": -1.0}
    settings: dict[str, Any] = {"embedding.provider": "hashing", **few}
    with tgraph.open(tmp_path / "g", create=True, settings=settings) as graph:
        graph.index([tmp_path / "secret.md", tmp_path / "kept.txt"])
        session = graph.ask(ABOUT_OTHERS, "lightrag-local", history=[]).session
        before = graph.why_not(session, "Frank Worsley")
        assert (before.cause, before.limit) == ("beyond-limit", "top-k")
        assert found(tmp_path / "g" / "collections", ("Tresk",))
        graph.purge("secret.md", reason=REASON)
    with tgraph.open(tmp_path / "g", settings=settings) as graph:
        assert not found(tmp_path / "g" / "collections", ("Tresk",))
        assert graph.integrity().ok
        assert graph.replay(session).is_same
        after = graph.why_not(session, "Frank Worsley")
        assert (after.cause, after.limit) == ("not-recorded", None)
        assert "erased with a document" in after.reason
        again = graph.ask(ABOUT_OTHERS, "lightrag-local", history=[]).session
        assert graph.why_not(again, "Frank Worsley").limit == "top-k"


@pytest.mark.slow
def test_what_two_documents_share_goes_with_the_second(tmp_path):
    (tmp_path / "a.txt").write_text("Ottoline Zorblatt discovered polonium.")
    (tmp_path / "b.txt").write_text("Pierre Curie worked in Paris.\n")
    said: list[str] = []
    with workers.open_graph(tmp_path / "g") as graph:
        graph.index([tmp_path / "a.txt", tmp_path / "b.txt"])
        graph.ask("Who discovered polonium?")
        (first,) = [d.document for d in graph.documents.summaries() if d.path.endswith("a.txt")]
        (tmp_path / "a.txt").write_text("Ottoline Zorblatt led Paris.")
        graph.index([tmp_path / "a.txt"])
        graph.purge("a.txt", reason=REASON, message=said.append)
        assert said == [
            f"Another document of the same path stays until that document is erased too: {first}"
        ]
        assert graph.trace().answer == "Ottoline Zorblatt discovered polonium."
        assert graph.integrity().ok
        graph.purge(first, reason=REASON)
        assert graph.trace().answer.startswith("[erased ")
        checked = graph.integrity()
        assert checked.ok
        assert len(checked.erased) == 2
    assert found(tmp_path / "g", ("Zorblatt", "Ottoline")) == set()


# --- refusals ---


@pytest.mark.slow
def test_every_reading_of_a_document_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "<table><tr><th>Zorblatt</th><th>Tresk</th></tr><tr><td>Fram</td><td>402</td></tr>"
    content = f"{SECRET.replace('# ', '')}<p>{table}</table>"
    (tmp_path / "secret.html").write_text(content)
    (tmp_path / "copy.html").write_text(content)
    (tmp_path / "kept.txt").write_text(KEPT)
    root, paths = tmp_path / "g", [tmp_path / "secret.html", tmp_path / "copy.html"]
    monkeypatch.setitem(files._READING_VERSIONS, "text/html", 1)
    with opened(root, None) as graph:
        graph.index([*paths, tmp_path / "kept.txt"])
        before = graph.ask("Who met Wilhelmina Tresk?", history=[])
        monkeypatch.setitem(files._READING_VERSIONS, "text/html", 3)
        assert len(graph.reread([paths[0]]).indexed) == 2
        graph.ask("Who met Wilhelmina Tresk?", history=[])
        first, second = {d.document for d in graph.documents.summaries()} - {
            graph.documents.read_extractions("kept.txt").document.document
        }
        with pytest.raises(UsageError, match="only the document contains"):
            graph.purge(str(paths[0]), all_copies=True, reason="of Wilhelmina Tresk")
        earlier = next(d for d in (first, second) if sha256(content.encode()).hexdigest() in d)
        assert len(graph.impact(earlier, all_copies=True).paths) == 2
        assert before.session in {a.session for a in graph.impact(str(paths[0])).answers}
        gone = graph.purge(earlier, all_copies=True, reason="asked for")
        assert before.session in gone.questioned
        assert graph.integrity().ok
        assert check_shapes(graph.opened.read(), CATALOGUE) == ()
        for path in paths:
            path.write_text(content)
        assert len(graph.index(paths).erased) == 2
        assert graph.purge(first, reason="asked for").already
        assert graph.purge(second, reason="asked for").already
    assert found(root, tuple(word for word in WORDS if word in content)) == set()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of two lines and one question; tests work on copies."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "a.txt").write_text("Ottoline Zorblatt discovered polonium.")
    (folder / "b.txt").write_text("Pierre Curie worked in Paris.\n")
    with workers.open_graph(folder / "g") as graph:
        graph.index([folder / "a.txt", folder / "b.txt"])
        graph.ask("Who discovered polonium?")
    return folder


@pytest.fixture
def small(two: Path, tmp_path: Path) -> Path:
    workers.copy_graph(two / "g", tmp_path / "g")
    return tmp_path


def test_nothing_is_erased_while_somebody_reads(small):
    said: list[str] = []
    with workers.open_graph(small / "g") as reader, workers.open_graph(small / "g") as graph:
        reader.sessions.summaries()
        with pytest.raises(StoreError, match="Another process has the graph open"):
            graph.purge("a.txt", reason=REASON, patience=0.0, message=said.append)
        assert graph.impact("a.txt").standing
    assert said == ["Another process has the graph open; waiting until the graph is closed."]


def test_nothing_is_erased_while_a_question_is_answered(small):
    with workers.open_graph(small / "g") as graph:
        stream = graph.stream("Who discovered polonium?")
        next(stream)
        with pytest.raises(StoreError, match="still running"):
            graph.purge("a.txt", reason=REASON, patience=0.0)
        list(stream)
        graph.purge("a.txt", reason=REASON)
    assert found(small / "g", ("Zorblatt",)) == set()


def test_a_reason_that_repeats_the_document_is_refused(small):
    with workers.open_graph(small / "g") as graph:
        with pytest.raises(UsageError, match="'zorblatt'"):
            graph.purge("a.txt", reason="Asked for by O. Zorblatt.")
        with pytest.raises(UsageError, match="reason of the decision is missing"):
            graph.purge("a.txt", reason=" ")
        assert graph.impact("a.txt").standing


def test_a_bundle_that_was_tampered_with_is_not_sealed_again(small):
    folder = GraphFolder.open(small / "g").collection("default")
    with open_writable_store(folder) as store:
        store.remove([next(filter(_is_bundle, store.match(None, v.tg("rank"), None, None)))])
    with (
        workers.open_graph(small / "g") as graph,
        pytest.raises(StoreError, match="differs from the sealed record"),
    ):
        graph.purge("a.txt", reason=REASON)
    assert not (folder.path / "erasure" / "commit.json").exists()


def _is_bundle(quad: Quad) -> bool:
    return isinstance(quad.graph_name, NamedNode) and ":bundle:" in quad.graph_name.value


@pytest.mark.slow
def test_the_command(small):
    root = ["-r", str(small / "g"), "--embedding-provider", "hashing"]

    def run(*arguments: str, code: int = 0, **options: Any) -> str:
        result = CliRunner().invoke(cli, ["remove", *arguments, *root], **options)
        assert result.exit_code == code, result.output
        return result.stderr

    assert "tgraph retract" in run("a.txt", code=2)
    assert "reason of the decision is missing" in run("a.txt", "--purge", code=2)
    said = run("a.txt", "--purge", "--reason", REASON, code=2)
    assert "Answers based on the document: 1." in said
    assert "Say --yes." in said
    said = run("a.txt", "--purge", "--reason", REASON, "--yes")
    assert "Answers called into question: 1." in said
    assert "was erased earlier" in run("a.txt", "--purge", "--reason", REASON, "--yes")
    with workers.open_graph(small / "g") as graph:
        assert graph.trace().answer.startswith("[erased ")
        assert check_shapes(graph.opened.read(), CATALOGUE) == ()
    checked = CliRunner().invoke(cli, ["audit", "integrity", "-r", str(small / "g")])
    assert checked.exit_code == 0
    assert f"not tampered with: {v.document_iri('')}" in checked.stdout
    assert found(small / "g", ("Zorblatt",)) == set()


def test_what_an_erased_text_may_have_said_is_not_denied(small):
    with workers.open_graph(small / "g") as graph:
        before = graph.sessions.summaries()[0].explain_id
        graph.purge("a.txt", reason=REASON)
        for expected in ("Ottoline Zorblatt", "Ottoline — discovered — polonium", "hid beneath"):
            with pytest.raises(UsageError, match=f"can't be decided.*was erased on .*{REASON}"):
                graph.why_not(before, expected)
        assert graph.why_not(before, "a.txt").cause == "used"
        assert graph.why_not(before, "Pierre Curie").cause not in ("not-in-corpus", "not-extracted")
        after = graph.ask("Who worked in Paris?", history=[]).session
        assert graph.why_not(after, "Ottoline Zorblatt").cause == "not-in-corpus"
        told = graph.why_not(after, "a.txt")
        assert told.cause == "not-in-corpus"
        assert f"had been retracted (on {told_day(graph)}: {REASON})" in told.reason


def told_day(graph: KnowledgeGraph) -> str:
    (erasure,) = graph.integrity().erased
    return erasure.time[:10]


@pytest.mark.slow
def test_a_document_whose_name_was_erased_is_known_to_have_been_erased(tmp_path):
    (tmp_path / "zorblatt.txt").write_text("Ottoline Zorblatt discovered polonium.")
    (tmp_path / "b.txt").write_text("Pierre Curie worked in Paris.\n")
    files = [tmp_path / "zorblatt.txt", tmp_path / "b.txt"]
    with workers.open_graph(tmp_path / "g") as graph:
        graph.index(files)
        erased = graph.impact("zorblatt.txt").document
        graph.purge("zorblatt.txt", reason=REASON)
        day = told_day(graph)
    root = ["-r", str(tmp_path / "g"), "--embedding-provider", "hashing"]

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, [*arguments, *root])
        assert result.exit_code == code, result.output
        return result.stderr

    again = ["--purge", "--yes", "--reason", REASON]
    said = run("remove", str(files[0]), *again, code=2)
    assert f"zorblatt.txt' was erased on {day} ({REASON}). It is {erased}." in said
    files[0].rename(tmp_path / "moved.txt")
    said = run("remove", "zorblatt.txt", *again, code=2)
    assert "There is no document 'zorblatt.txt'. There are: b.txt." in said
    assert f"{erased} was erased on {day} ({REASON}), with its name." in said
    assert "was erased earlier" in run("remove", erased, *again)
    out = run("index", str(tmp_path / "moved.txt"), "--reinstate")
    assert "1 left out as erased" in out
    assert "retracted" not in out


# --- kill -9 ---


def purge(tell: workers.Tell, root: Path, document: str) -> None:
    with workers.open_graph(root, create=False) as kg:
        tell(("purged", kg.purge(document, reason=REASON).already))


@pytest.mark.slow
def test_a_purge_killed_at_any_change_of_the_disk_can_be_finished(small, tmp_path):
    """Readers see all of it or nothing; whoever comes next may finish it."""
    left = {"pierre-curie worked-in paris"}
    before = {*left, "ottoline-zorblatt discovered polonium"}
    killed = 0
    for number in range(3, 10_000, 119):
        root = workers.copy_graph(small / "g", tmp_path / str(number))
        worker = workers.start(workers.killed_at, number, purge, root, "a.txt")
        worker.end()
        if ("whole",) in worker.told:
            break
        killed += 1
        assert workers.edges(root) in (left, before)
        assert worker.told == []
        with workers.open_graph(root, create=False) as graph:
            graph.ask("Who worked in Paris?")
            graph.purge("a.txt", reason=REASON)
            assert graph.integrity().ok
        assert found(root, ("Zorblatt", "Ottoline")) == set()
        assert workers.edges(root) == left
        workers.assert_tidy(root)
    assert killed > 5


# --- what is a trace ---


def test_traces_are_words_names_and_phrases_that_nobody_else_has():
    wording = TraceCollector()
    wording.add_text("On Monday March Vance saw the old zorblatt of the northern lights.")
    wording.keep_text("He saw the old zeppelin of the northern lights on Monday.")
    traces = wording.traces(["March Vance", "Monday"])
    assert traces.find("A ZORBLATT, of course") == "zorblatt"
    assert traces.find("They march; Vance too") is not None
    assert traces.find("the old zeppelin of the northern lights") is None
    assert traces.find("monday saw lights") is None
    assert wording.is_kept("of the northern lights on Monday")
    wording = TraceCollector()
    wording.add_text("they said that all of it was true")
    assert wording.traces([]).find("We know: all of it was true.") == "all of it was true"
    assert wording.traces([]).find("all of it is true") is None
    wording = TraceCollector()
    wording.add_text("国王在花园里种了一棵树")
    assert wording.traces([]).find("他说国王在花园里") is not None
    assert wording.traces([]).find("国王在房子里") is None
