"""Nothing of the record can be changed, added, taken away or moved without being named."""

from __future__ import annotations

import gzip
import json
import shutil
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

import tgraph
from tests.support.paths import EXAMPLES
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.integrity.check import Integrity, check_integrity
from tgraph.explain.integrity.entries import ChainEntry
from tgraph.explain.integrity.quads import BatchReplay, StoredQuads
from tgraph.explain.integrity.texts import SourceCheck
from tgraph.librarian import Librarian
from tgraph.record.chain import GENESIS, Head, chain_hash
from tgraph.settings import load_settings
from tgraph.store.journal import Journal
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import format_nquads
from tgraph.testing import HashingEmbedder, ScriptedModel

CATALOGUE = v.collection_iri("explainability")
OTHER = NamedNode("urn:other")
BATCH = ChainEntry("", 1, "batch", "", "", "", "2026-01-01T00:00:00Z", "", ())


def opened(root: Path, **options):
    loaded = load_settings(None)
    parts = Components(loaded, root / "c", chat=ScriptedModel(), embedder=HashingEmbedder())
    return tgraph.open(root, parts=parts, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of two versions of a document, with two sessions; tests work on copies."""
    folder = tmp_path_factory.mktemp("integrity")
    (folder / "a.txt").write_text("Marie Curie discovered Polonium.")
    with opened(folder / "g", create=True) as graph:
        graph.index([folder / "a.txt"])
        graph.ask("What did Marie Curie discover?", history=[])
        (folder / "a.txt").write_text("Marie Curie discovered Radium.")
        graph.index([folder / "a.txt"])
        graph.ask("What did Marie Curie discover?", history=[])
    return folder / "g"


@pytest.fixture
def copied(made, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "g")
    return tmp_path / "g"


class Held(Librarian):
    """A librarian whose contents were read once, for checks by the thousand."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        kept = Librarian(folder)
        self._held = {key: list(kept.lines(key)) for key in list(kept.keys())}

    def keys(self):
        return iter(self._held)

    def lines(self, key):
        return iter(self._held[key])


class Memory:
    """The graph's quads in memory, to be changed and checked."""

    def __init__(self, root: Path) -> None:
        with opened(root) as graph:
            self.quads = list(graph.opened.read().match())
            found = graph.integrity()
        self.head = Head(found.sequence, found.head)
        self.librarian = Held(root / "collections" / "default" / "librarian")

    def check(self, store: OxigraphStore, saved: str | None = None) -> Integrity:
        return check_integrity(store, self.librarian, CATALOGUE, self.head, saved)


@pytest.fixture(scope="module")
def memory(made) -> Memory:
    return Memory(made)


def named(found: Integrity) -> str:
    return " ".join(f"{p.kind} {p.what} {p.subject}" for p in found.problems)


def about(quad: Quad) -> str:
    """What a problem with the quad must name: the bundle or the entry that it is in, or itself."""
    graph = quad.graph_name
    assert isinstance(quad.subject, NamedNode)
    if isinstance(graph, DefaultGraph) or graph == v.SOURCE_GRAPH:
        return quad.subject.value
    return quad.subject.value if graph.value == CATALOGUE else graph.value


def test_an_untouched_record_is_intact(made, memory):
    with opened(made) as graph:
        found = graph.integrity()
    assert found.ok
    assert (found.problems, found.unreferenced) == ((), ())
    assert (found.bundles, found.quads) == (2, len(memory.quads) - catalogue_quads(memory))
    assert found == memory.check(OxigraphStore.memory(memory.quads))


def catalogue_quads(memory: Memory) -> int:
    return sum(quad.graph_name == NamedNode(CATALOGUE) for quad in memory.quads)


def sample_kinds(quads: list[Quad], most: int) -> list[Quad]:
    """Return up to ``most`` quads of each kind: of a graph, a property and types of terms."""
    kinds: dict[tuple[object, ...], list[Quad]] = {}
    for quad in quads:
        kind = quad.graph_name, quad.predicate, type(quad.subject), type(quad.object)
        kinds.setdefault(kind, []).append(quad)
    return [quad for alike in kinds.values() for quad in alike[:most]]


@pytest.mark.slow
def test_a_quad_of_each_kind_that_is_taken_away_is_missed(memory):
    store = OxigraphStore.memory(memory.quads)
    for quad in sample_kinds(memory.quads, 2):
        store.remove([quad])
        found = memory.check(store)
        assert not found.ok, quad
        assert about(quad) in named(found), quad
        store.extend([quad])


@pytest.mark.slow
def test_a_quad_of_each_kind_that_is_altered_is_noticed(memory):
    store = OxigraphStore.memory(memory.quads)
    for number, quad in enumerate(sample_kinds(memory.quads, 2)):
        parts: list[Any] = [quad.subject, quad.predicate, quad.object, quad.graph_name]
        parts[number % 4] = Literal("x") if number % 4 == 2 else OTHER
        changed = Quad(*parts)
        store.remove([quad])
        store.extend([changed])
        found = memory.check(store)
        assert not found.ok, quad
        store.remove([changed])
        store.extend([quad])


@pytest.mark.slow
def test_a_quad_more_is_noticed_in_every_graph_and_about_everything(memory):
    store = OxigraphStore.memory(memory.quads)
    present = set(memory.quads)
    subjects = {(q.subject, q.graph_name) for q in memory.quads}
    added = {Quad(subject, OTHER, Literal("x"), graph) for subject, graph in subjects}
    kinds = sample_kinds(memory.quads, 1)
    added |= {Quad(OTHER, q.predicate, q.object, q.graph_name) for q in kinds}
    added.add(Quad(OTHER, OTHER, OTHER, NamedNode(v.bundle_iri("a"))))
    added.add(Quad(OTHER, OTHER, OTHER, NamedNode(v.collection_iri("another"))))
    added.add(Quad(OTHER, OTHER, OTHER, BlankNode("b")))
    for quad in added - present:
        store.extend([quad])
        found = memory.check(store)
        assert not found.ok, quad
        store.remove([quad])


def forged(memory: Memory, keep: int) -> tuple[list[Quad], Head]:
    """The quads as they would be, with a chain made anew, if the first session said otherwise and
    only ``keep`` entries had ever been."""
    catalogue = NamedNode(CATALOGUE)
    by_subject: dict[str, list[Quad]] = {}
    for quad in memory.quads:
        if quad.graph_name == catalogue:
            by_subject.setdefault(quad.subject.value, []).append(quad)
    entries = sorted(by_subject.values(), key=lambda e: int(value(e, "sequence")))
    others = [quad for quad in memory.quads if quad.graph_name != catalogue]
    head, made = Head(0, GENESIS), []
    for number, entry in enumerate(entries[:keep], 1):
        node = entry[0].subject
        kept = [q for q in entry if q.predicate not in (v.tg("previousHash"), v.tg("chainHash"))]
        kept = [q for q in kept if q.predicate != v.tg("sessionStarted")]
        kept.append(Quad(node, v.tg("previousHash"), Literal(head.hash), catalogue))
        head = Head(number, chain_hash(kept))
        made += [*kept, Quad(node, v.tg("chainHash"), Literal(head.hash), catalogue)]
    return [*others, *made], head


def value(entry: list[Quad], name: str) -> str:
    objects = (quad.object for quad in entry if quad.predicate == v.tg(name))
    return next(term.value for term in objects if isinstance(term, Literal | NamedNode))


def test_a_chain_that_was_made_anew_shows_against_a_saved_head_only(memory):
    quads, head = forged(memory, memory.head.sequence)
    store = OxigraphStore.memory(quads)
    found = check_integrity(store, memory.librarian, CATALOGUE, head)
    assert found.ok
    found = check_integrity(store, memory.librarian, CATALOGUE, head, memory.head.hash)
    assert named(found) == f"missing head {memory.head.hash}"


def test_a_head_that_was_saved_before_the_last_entries_is_found(memory):
    store = OxigraphStore.memory(memory.quads)
    assert memory.check(store, memory.head.hash).saved_at == memory.head.sequence
    assert memory.check(store, GENESIS).saved_at == 0
    with pytest.raises(UsageError, match="64 hexadecimal digits"):
        memory.check(store, "abc")


def test_a_tail_that_was_cut_off_shows_against_the_pointer_and_a_saved_head(memory):
    last = max(
        (q for q in memory.quads if q.predicate == v.tg("sequence")),
        key=lambda quad: int(quad.object.value),
    ).subject
    kept = [q for q in memory.quads if q.subject != last and q.graph_name != last]
    found = memory.check(OxigraphStore.memory(kept), memory.head.hash)
    assert named(found).count(f"missing head {memory.head.hash}") == 2


def test_entries_that_changed_places_are_named(memory):
    numbers = {q.subject: q.object for q in memory.quads if q.predicate == v.tg("sequence")}
    one, two = sorted(numbers, key=lambda subject: int(numbers[subject].value))[1:3]
    swap = {one: numbers[two], two: numbers[one]}
    quads = [
        Quad(q.subject, q.predicate, swap[q.subject], q.graph_name)
        if q.predicate == v.tg("sequence") and q.subject in swap
        else q
        for q in memory.quads
    ]
    found = named(memory.check(OxigraphStore.memory(quads)))
    assert f"reordered entry {one.value}" in found
    assert f"reordered entry {two.value}" in found


@pytest.mark.slow
def test_each_text_of_the_librarian_is_missed_and_its_changes_are_seen(memory, copied):
    librarian = Librarian(copied / "collections" / "default" / "librarian")
    store = OxigraphStore.memory(memory.quads)
    for path in sorted(librarian.folder.glob("*/*")):
        key, content = path.name.removesuffix(".gz"), path.read_bytes()
        path.unlink()
        found = check_integrity(store, librarian, CATALOGUE, memory.head)
        assert f"missing text {key}" in named(found)
        plain = gzip.decompress(content) if path.suffix else content
        changed = plain[:-1] + bytes([plain[-1] ^ 1])
        path.write_bytes(gzip.compress(changed) if path.suffix else changed)
        found = check_integrity(store, librarian, CATALOGUE, memory.head)
        assert f"altered text {key}" in named(found)
        path.write_bytes(content)
    assert check_integrity(store, librarian, CATALOGUE, memory.head).ok


def test_a_text_more_is_named(memory, copied):
    librarian = Librarian(copied / "collections" / "default" / "librarian")
    store = OxigraphStore.memory(memory.quads)
    key = librarian.put_text("A text that nobody needs.")
    found = check_integrity(store, librarian, CATALOGUE, memory.head)
    assert (found.ok, found.unreferenced) == (True, (key,))
    (librarian.folder / key[:2] / "notes").write_text("x")
    (librarian.folder / key[:2] / ("f" * 64)).write_text("x")
    found = check_integrity(store, librarian, CATALOGUE, memory.head)
    assert named(found) == f"altered text {'f' * 64} added text notes"


def run(root: Path, *arguments: str, code: int):
    result = CliRunner().invoke(cli, ["audit", "integrity", "-r", str(root), *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_command_gives_the_head_to_save_and_takes_it_back(made):
    found = json.loads(run(made, "--json", code=0).stdout)
    assert f"{found['sequence']}: {found['head']}" in run(made, code=0).stdout
    assert "The saved head belongs to entry" in run(made, "--head", found["head"], code=0).stdout
    assert "missing head: " + "0" * 63 in run(made, "--head", "0" * 63 + "1", code=4).stdout
    assert "64 hexadecimal" in run(made, "--head", "12", code=2).stderr
    assert run(made, "--format", "csv", code=0).stdout == "problem,what,subject,detail\n"


@pytest.mark.parametrize("where", ["store", "snapshots/*/store"])
def test_the_command_finds_what_was_done_to_the_files(copied, memory, where):
    quad = next(q for q in memory.quads if q.predicate == v.tg("reasoning"))
    (folder,) = (copied / "collections" / "default").glob(where)
    store = OxigraphStore.open(folder)
    store.remove([quad])
    store.extend([Quad(quad.subject, quad.predicate, Literal("Forged."), quad.graph_name)])
    store.flush()
    store.close()
    result = run(copied, code=4)
    assert "Forged." in result.stdout
    assert "The record differs from the sealed record" in result.stderr


STATED = [Quad(OTHER, OTHER, Literal(n), DefaultGraph()) for n in range(12)]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sets(st.sampled_from(STATED)), st.sets(st.sampled_from(STATED)))),
    st.sets(st.sampled_from(STATED)),
    st.sampled_from([40, 16_000_000]),
)
@settings(max_examples=60, deadline=None)
def test_batches_leave_what_they_removed_and_then_added(batches, there, in_memory):
    """The same as one set after the other, digests in files or not."""
    with ExitStack() as stack:
        stack.enter_context(patch("tgraph.explain.integrity.quads._IN_MEMORY", in_memory))
        librarian = Librarian(Path(stack.enter_context(TemporaryDirectory())))
        replayed, left = stack.enter_context(closing(BatchReplay(librarian))), set[Quad]()
        for number, (removed, added) in enumerate(batches):
            lines = [f"+{format_nquads([q])}" for q in sorted(added, key=str)]
            lines += [f"-{format_nquads([q])}" for q in sorted(removed, key=str)]
            key = librarian.store_content("".join(lines).encode())
            replayed.play(replace(BATCH, subject=f"urn:batch:{number}", hash=key))
            left = (left - removed) | added
        stored = StoredQuads(OxigraphStore.memory(there), [DefaultGraph()])
        found = replayed.compare(stack.enter_context(closing(stored)))
    said = {(p.kind, p.subject) for p in found}
    assert len(found) == len(said)
    assert said == {
        *(("added", format_nquads([q]).strip()) for q in there - left),
        *(("missing", format_nquads([q]).strip()) for q in left - there),
    }


def test_each_quad_in_which_what_was_published_differs_is_named(memory):
    """Bundles and catalogues too, whichever side has it."""
    whole = OxigraphStore.memory(memory.quads)
    other = OxigraphStore.memory(memory.quads)
    chosen = {quad.graph_name: quad for quad in sorted(memory.quads, key=str)}
    chosen["blank"] = Quad(OTHER, OTHER, OTHER, BlankNode("b"))
    chosen["lost"] = Quad(OTHER, OTHER, OTHER, NamedNode(v.bundle_iri("lost")))
    for quad in chosen.values():
        for change in (other.remove, other.extend):
            change([quad])
            found = check_integrity(whole, memory.librarian, CATALOGUE, memory.head, written=other)
            there = [p for p in found.problems if "the snapshot that readers see" in p.detail]
            same = other.has_quad(quad) == whole.has_quad(quad)
            assert [p.subject for p in there] == ([] if same else [format_nquads([quad]).strip()])
        if quad not in memory.quads:
            other.remove([quad])


@pytest.mark.slow
def test_what_has_lost_its_class_is_found_by_its_marks(paged):
    stated, librarian = paged
    for kind in ("Document", "Page", "Chunk", "Evidence", "Accession"):
        lost = next(q for q in stated if q.predicate == v.RDF_TYPE and q.object == v.tg(kind))
        store = OxigraphStore.memory(q for q in stated if q != lost)
        for other in ((), [Quad(lost.subject, v.RDF_TYPE, v.tg("Chunk"), lost.graph_name)]):
            if kind != "Chunk":
                store.extend(other)
            details = [
                p.detail
                for p in SourceCheck(store, librarian).problems()
                if p.subject == lost.subject.value
            ]
            assert details.count(f"It has lost its class tg:{kind}.") == 1


FORGERIES = [
    ("Evidence", "quote", lambda term: Literal(term.value[::-1])),
    ("Evidence", "quote", None),
    ("Evidence", "charOffset", lambda term: Literal(int(term.value) + 1)),
    ("Evidence", "charLength", lambda term: Literal(int(term.value) - 1)),
    ("Chunk", "charOffset", lambda term: Literal(int(term.value) + 1)),
    ("Chunk", "charLength", None),
    ("Document", "contentHash", lambda term: Literal("0" * 64)),
    ("Document", "contentHash", None),
    ("Document", "textHash", None),
    ("Document", "charLength", lambda term: Literal(int(term.value) - 1)),
    ("Accession", "path", lambda term: Literal(term.value[::-1])),
    ("Page", "textHash", None),
    ("Page", "charOffset", lambda term: Literal(int(term.value) + 1)),
    ("Page", "charLength", lambda term: Literal(int(term.value) - 1)),
    ("Page", "pageNumber", lambda term: Literal(int(term.value) + 5)),
]


@pytest.fixture(scope="module")
def paged(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Quad], Librarian]:
    """The quads and texts of a graph of a document with pages and one without."""
    folder = tmp_path_factory.mktemp("paged")
    (folder / "a.txt").write_text("Marie Curie discovered Polonium.")
    shutil.copy(EXAMPLES / "antarctica/nimrod.pdf", folder)
    with opened(folder / "g", create=True) as graph:
        graph.index([folder / "a.txt", folder / "nimrod.pdf"])
        graph.ask("What did Marie Curie discover?", history=[])
        return list(graph.opened.read().match()), graph.opened.librarian


@pytest.mark.parametrize(("kind", "name", "change"), FORGERIES)
def test_what_is_not_what_the_texts_say_is_named_whoever_accounts_for_it(paged, kind, name, change):
    quads, librarian = paged
    things = {q.subject for q in quads if q.predicate == v.RDF_TYPE and q.object == v.tg(kind)}
    quad = max((q for q in quads if q.subject in things and q.predicate == v.tg(name)), key=str)
    rest = [q for q in quads if q != quad]
    if change:
        rest.append(Quad(quad.subject, quad.predicate, change(quad.object), quad.graph_name))
    found = list(SourceCheck(OxigraphStore.memory(rest), librarian).problems())
    assert any(p.what == kind.casefold() and p.subject == quad.subject.value for p in found)
    assert not list(SourceCheck(OxigraphStore.memory(quads), librarian).problems())


def test_a_citation_that_is_not_what_the_text_says_is_named(paged):
    quads, librarian = paged
    quad = next(q for q in quads if q.predicate == v.oa("exact"))
    forged = Quad(quad.subject, quad.predicate, Literal(quad.object.value[::-1]), quad.graph_name)
    store = OxigraphStore.memory([*(q for q in quads if q != quad), forged])
    (found,) = SourceCheck(store, librarian).problems()
    assert found.subject == quad.subject.value.removesuffix(":quote")
    assert "characters 0–" in found.detail


def test_a_sealed_bundle_that_speaks_of_another_session_is_named(copied: Path) -> None:
    uuid, time = "5f0c1d8e-0000-4000-8000-000000000000", "2026-01-01T00:00:00+00:00"
    bundle, standing = v.bundle_iri(uuid), v.standing_iri("5f0c1d8e-0000-4000-8000-000000000001")
    said = f"<{bundle}> {{ <{standing}> <{v.PROV}wasInvalidatedBy> <{v.session_iri(uuid)}> }}\n"
    with opened(copied) as graph:
        journals = graph.opened.folder.journals
        journals.mkdir(exist_ok=True)
        with closing(Journal(journals / f"{uuid}.journal")) as journal:
            head = {"uuid": uuid, "subject": v.session_iri(uuid), "bundle": bundle}
            head |= {"type": "session", "catalogue": CATALOGUE, "started": time}
            journal.append({**head, "time": time, "quads": said, "shared": "", "texts": {}})
        [problem] = graph.integrity().problems
    assert (problem.kind, problem.what, problem.subject) == ("added", "bundle", bundle)
    assert standing in problem.detail
