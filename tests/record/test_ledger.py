"""How journals and staged changes enter the store: sealed, chained, once, in any circumstance."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
)

from tests.support.workers import CATALOGUE, assert_chain, mentioned, open_graph, snapshot
from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.librarian import Librarian
from tgraph.model import Retrieval, Selection
from tgraph.record import ledger as ledger_module
from tgraph.record.chain import GENESIS, Chain, Head, canonical_hash, chain_hash, read_head
from tgraph.record.ledger import Folded, Ledger
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.store import writer as writer_module
from tgraph.store.base import text_of
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.journal import MARK, Journal
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import to_bytes
from tgraph.store.writer import WorkingCopy, open_writable_store
from tgraph.testing import ticking_clock


@pytest.fixture
def folder(tmp_path: Path) -> CollectionFolder:
    return GraphFolder.create(tmp_path / "g").collection("default", create=True)


@pytest.fixture
def ledger(folder: CollectionFolder) -> Ledger:
    return Ledger(folder, CATALOGUE, ticking_clock())


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def record(
    folder: CollectionFolder,
    number: int,
    clock: Callable[[], datetime] | None = None,
    *,
    end: bool = True,
) -> Path:
    """A session's journal, finished or not, let go of."""
    session = SessionRecord(folder.journals, uuid(number), clock or ticking_clock())
    session.start(
        SessionDescription("Who?", "graph", {"edge-limit": 5}, 1, "default", "explainability")
    )
    session.retrieval(Retrieval((), 0))
    if end:
        session.finish("completed")
    session.close()
    return folder.journals / f"{uuid(number)}.journal"


def root(folder: CollectionFolder) -> Path:
    return folder.path.parent.parent


def statuses(folder: CollectionFolder) -> list[str]:
    return list(assert_chain(root(folder)).values())


def test_folding_seals_publishes_and_deletes(folder: CollectionFolder, ledger: Ledger) -> None:
    assert not ledger.waiting()
    record(folder, 1)
    record(folder, 2, end=False)
    assert ledger.waiting()
    assert ledger.fold() == Folded(2, 1, 0)
    assert not ledger.waiting()
    assert list(folder.journals.iterdir()) == []
    assert sorted(statuses(folder)) == ["aborted", "completed"]


def test_folding_a_journal_again_changes_nothing(folder: CollectionFolder, ledger: Ledger) -> None:
    path = record(folder, 1)
    kept = path.read_bytes()
    ledger.fold()
    with snapshot(root(folder)) as before:
        path.write_bytes(kept)
        assert ledger.fold() == Folded(0, 0, 0)
        with snapshot(root(folder)) as after:
            assert set(before.store.match()) == set(after.store.match())
    assert not path.exists()


def test_a_session_without_a_frame_leaves_nothing(folder: CollectionFolder, ledger: Ledger) -> None:
    Journal(folder.journals / f"{uuid(1)}.journal").close()
    assert ledger.fold() == Folded(0, 0, 0)
    assert statuses(folder) == []
    assert list(folder.journals.iterdir()) == []


@pytest.mark.parametrize("frame", [0, 1, 2])
def test_a_damaged_journal_is_recorded_as_such_and_kept(
    folder: CollectionFolder, ledger: Ledger, frame: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = record(folder, 1)
    data = bytearray(path.read_bytes())
    starts = [i for i in range(len(data)) if data.startswith(MARK, i)]
    data[starts[frame] + 20] ^= 1
    path.write_bytes(bytes(data))
    with caplog.at_level(logging.WARNING):
        assert ledger.fold() == Folded(1, int(frame == 2), 0, 1)
    assert "damaged" in caplog.text
    assert path.with_suffix(".damaged").read_bytes() == bytes(data)
    assert not ledger.waiting()
    assert statuses(folder) == ["aborted" if frame == 2 else "completed"]
    session, bundle = NamedNode(v.session_iri(uuid(1))), NamedNode(v.bundle_iri(uuid(1)))
    with snapshot(root(folder)) as found:
        assert next(found.store.match(session, v.RDF_TYPE, v.tg("Session"), bundle), None)
        assert next(found.store.match(session, v.prov("startedAtTime"), None, bundle), None)
        (dropped,) = found.store.match(session, v.tg("dropped"), None, bundle)
        assert isinstance(dropped.object, NamedNode)
        (count,) = found.store.match(dropped.object, v.tg("count"), None, bundle)
        assert count.object == Literal("1", datatype=v.xsd("integer"))


def test_a_journal_that_makes_no_sense_does_not_block_the_others(
    folder: CollectionFolder, ledger: Ledger
) -> None:
    strange = Journal(folder.journals / f"{uuid(1)}.journal")
    strange.append({"type": "session", "started": "yesterday", "bundle": "no IRI", "quads": "<"})
    strange.close()
    folder.journals.joinpath(f"{uuid(3)}.journal").write_bytes(b"something else altogether")
    record(folder, 2)
    assert ledger.fold() == Folded(1, 0, 0, 2)
    assert statuses(folder) == ["completed"]
    assert len(list(folder.journals.glob("*.damaged"))) == 2


def test_many_journals_are_folded_in_parts(
    folder: CollectionFolder, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was folded before a failure is published, and its journals are gone."""
    monkeypatch.setattr(ledger_module, "AT_ONCE", 4)
    for number in range(10):
        path = record(folder, number)
        os.utime(path, ns=(number, number))
    real, calls = Ledger.publish, []

    def fails_later(self: Ledger, store: OxigraphStore) -> None:
        calls.append(1)
        if len(calls) == 4:
            raise ZeroDivisionError
        real(self, store)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "publish", fails_later)
        with pytest.raises(ZeroDivisionError):
            ledger.fold()
    assert len(statuses(folder)) == 8
    assert len(list(folder.journals.iterdir())) == 2
    ledger.fold()
    assert statuses(folder) == ["completed"] * 10


def test_a_clock_that_is_put_back_ends_no_session_before_its_start(
    folder: CollectionFolder, ledger: Ledger
) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    times = iter(noon - timedelta(hours=hour) for hour in range(100))
    record(folder, 1, lambda: next(times), end=False)
    ledger.fold()
    session = NamedNode(v.session_iri(uuid(1)))
    with snapshot(root(folder)) as found:
        start, end = (
            next(found.store.match(session, v.prov(name), None, None)).object
            for name in ("startedAtTime", "endedAtTime")
        )
    assert isinstance(start, Literal)
    assert isinstance(end, Literal)
    assert start.value <= end.value


def test_each_explainability_collection_has_its_chain(folder: CollectionFolder) -> None:
    for number, name in enumerate(("one", "two", "one")):
        session = SessionRecord(folder.journals, uuid(number), ticking_clock())
        session.start(SessionDescription("Who?", "graph", {}, 1, "default", name))
        session.finish("completed")
        session.close()
    Ledger(folder, v.collection_iri("one"), ticking_clock()).fold()
    assert len(assert_chain(root(folder), v.collection_iri("one"))) == 2
    with snapshot(root(folder)) as found:
        assert read_head(found.store, NamedNode(v.collection_iri("two"))).sequence == 1
        assert mentioned(found.store, v.session_iri(uuid(1)))


def test_journals_that_vanish_meanwhile_are_no_error(
    folder: CollectionFolder, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(folder, 1)
    real = Path.glob

    def late(self: Path, pattern: str) -> Iterator[Path]:
        found = list(real(self, pattern))
        path.unlink(missing_ok=True)
        return iter(found)

    monkeypatch.setattr(Path, "glob", late)
    assert not ledger.waiting()


def test_one_altered_quad_breaks_the_seal(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Marie Curie discovered polonium.\n")
    with open_graph(tmp_path / "g") as kg:
        kg.index([tmp_path / "a.txt"])
        answer = kg.ask("Who discovered polonium?")
        kg.opened.read()
        bundle = NamedNode(v.bundle_iri(answer.session.rpartition(":")[2]))
        assert_chain(tmp_path / "g")
        with kg.opened.ledger.open() as (store, _):
            (query,) = store.match(None, v.tg("query"), None, bundle)
            store.remove([query])
            store.extend([Quad(query.subject, query.predicate, Literal("Who?"), bundle)])
            kg.opened.ledger.publish(store)
    with pytest.raises(AssertionError):
        assert_chain(tmp_path / "g")


# --- the chain ------------------------------------------------------------------------------------

QUADS = st.lists(
    st.builds(
        lambda s, o: Quad(NamedNode(f"urn:{s}"), NamedNode("urn:p"), Literal(o)),
        st.integers(0, 9),
        st.text(st.characters(exclude_categories=["Cs"])),
    )
)


@given(QUADS, st.randoms(use_true_random=False))
def test_the_canonical_hash_is_of_the_set(quads: list[Quad], random: Random) -> None:
    shuffled = [*quads, *quads]
    random.shuffle(shuffled)
    assert canonical_hash(shuffled) == canonical_hash(quads)
    more = Quad(NamedNode("urn:new"), NamedNode("urn:p"), Literal("x"))
    assert canonical_hash([*quads, more]) != canonical_hash(quads)


@given(QUADS, st.booleans())
def test_the_canonical_hash_is_that_of_the_canonical_dataset(
    quads: list[Quad], named: bool
) -> None:
    about = NamedNode("urn:a") if named else BlankNode()
    stated = [*quads, Quad(about, NamedNode("urn:p"), Literal("_:x"))]
    dataset = Dataset(stated)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    lines = sorted(to_bytes(dataset).splitlines(keepends=True))
    assert canonical_hash(stated) == sha256(b"".join(lines)).hexdigest()


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 8, 9, 33])
def test_the_head_is_found_at_any_length(length: int) -> None:
    store = OxigraphStore.memory()
    chain = Chain(store, CATALOGUE, ticking_clock())
    expected = Head(0, GENESIS)
    for number in range(length):
        entry = chain.entry(f"urn:b:{number}", "session", "0" * 64)
        store.extend(entry)
        expected = Head(number + 1, chain_hash(entry))
    assert read_head(store, NamedNode(CATALOGUE)) == expected == chain.head


def test_an_entry_that_was_not_written_is_forgotten() -> None:
    chain = Chain(OxigraphStore.memory(), CATALOGUE, ticking_clock())
    before = chain.mark()
    chain.entry("urn:b:1", "session", "0" * 64)
    assert chain.has_entry("urn:b:1")
    chain.back_to(before)
    assert not chain.has_entry("urn:b:1")
    assert chain.head == before


def test_a_staged_change_waits_and_is_applied_sealed_and_published(
    folder: CollectionFolder, ledger: Ledger
) -> None:
    new = Quad(NamedNode("urn:x:a"), NamedNode("urn:x:p"), Literal("new"), DefaultGraph())
    batch = {"batch": "urn:x:batch", "hash": "0" * 64, "catalogue": CATALOGUE, "run": "urn:x:run"}
    with open_writable_store(folder) as store:
        copy = WorkingCopy(folder, "run", store)
        copy.add([new])
        copy.commit(dict(batch))
        copy.close()
    assert ledger.waiting()
    assert ledger.fold() == Folded(0, 0, 1)
    assert not ledger.waiting()
    assert list(folder.staging.iterdir()) == []
    with snapshot(root(folder)) as found:
        assert list(found.store.match(new.subject)) == [new]
        assert ledger.generation(found.store) == 1


@pytest.mark.parametrize("meanwhile", ["nothing", "death", "another"])
def test_a_large_change_is_not_loaded_again_unless_the_store_has_changed_meanwhile(
    folder: CollectionFolder, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    monkeypatch.setattr(writer_module, "REPLACES", 0)
    old, new, noted = (
        Quad(NamedNode(f"urn:x:{name}"), NamedNode("urn:x:p"), Literal(name), DefaultGraph())
        for name in ("old", "new", "noted")
    )
    batch = {"batch": "urn:x:batch", "hash": "0" * 64, "catalogue": CATALOGUE, "run": "urn:x:run"}
    with ledger.open() as (store, _):
        store.extend([old])
        ledger.publish(store)
        copy = WorkingCopy(folder, "run", store)
    copy.add([new])
    copy.remove([old])
    copy.note([noted])
    copy.commit(dict(batch))
    copy.close()
    if meanwhile == "another":
        with open_writable_store(folder) as store:
            ledger.publish(store)
    elif meanwhile == "death":
        folder.store.rename(copy.path / "former")
    loaded: list[Path] = []
    load = OxigraphStore.load

    def counted(store: OxigraphStore, path: Path) -> None:
        loaded.append(path)
        load(store, path)

    monkeypatch.setattr(OxigraphStore, "load", counted)
    for _ in range(2):
        assert ledger.fold() == Folded(0, 0, 1) or not ledger.waiting()
    assert len(loaded) == (meanwhile == "another")
    assert list(folder.staging.iterdir()) == []
    with snapshot(root(folder)) as found:
        for quad, there in ((old, 0), (new, 1), (noted, 1)):
            assert len(list(found.store.match(quad.subject))) == there


def test_who_finds_another_writing_is_told_and_waits_no_longer_than_asked(
    folder: CollectionFolder, ledger: Ledger
) -> None:
    waited: list[bool] = []
    with open_writable_store(folder), pytest.raises(StoreError, match="has been writing"):
        ledger.fold(timeout=0.05, waiting=lambda: waited.append(True))
    assert waited == [True]


def test_what_a_dead_process_left_is_swept(folder: CollectionFolder, ledger: Ledger) -> None:
    record(folder, 1)
    left = folder.journals / f".{uuid(2)}.journal.tmp"
    left.write_bytes(b"TG")
    ledger.fold()
    assert not left.exists()


@pytest.mark.parametrize(("edges", "label"), [(0, "Retrieved items"), (2, "Retrieved edges")])
def test_what_was_retrieved_and_selected_is_called_what_it_is(
    folder: CollectionFolder, ledger: Ledger, edges: int, label: str
) -> None:
    session = SessionRecord(folder.journals, uuid(1), ticking_clock())
    session.start(SessionDescription("Who?", "basic", {}, 1, "default", "explainability"))
    with session.step("Traversal") as step:
        session.retrieval(Retrieval((), edges, items=3))
        assert session.selection(step, Selection(())) == session.selection_iri
    session.finish("no-evidence")
    session.close()
    ledger.fold()
    with snapshot(root(folder)) as found:
        said = {
            (subject, name.value.rpartition("#")[2].rpartition("/")[2]): text_of(quad.object)
            for subject in (session.retrieval_iri, session.selection_iri)
            for name in (v.RDFS_LABEL, v.tg("itemCount"))
            for quad in found.store.match(NamedNode(subject), name, None)
        }
    assert said == {
        (session.retrieval_iri, "label"): label,
        (session.retrieval_iri, "itemCount"): "3",
        (session.selection_iri, "label"): "Selected edges",
    }


def test_a_step_is_informed_by_the_one_named_or_else_by_the_one_before(
    folder: CollectionFolder, ledger: Ledger
) -> None:
    session = SessionRecord(folder.journals, uuid(1), ticking_clock())
    session.start(SessionDescription("Who?", "drift", {}, 1, "default", "explainability"))
    with session.step("Priming") as first:
        pass
    with session.step("Asking", after=first) as second:
        pass
    with session.step("Asking", after=first) as third:
        pass
    with session.step("Synthesising") as last:
        pass
    session.finish("completed")
    session.close()
    ledger.fold()
    with snapshot(root(folder)) as found:
        informed = found.store.match(None, v.prov("wasInformedBy"), None)
        said = {(text_of(quad.subject), text_of(quad.object)) for quad in informed}
    assert said == {(second, first), (third, first), (last, third)}


def test_texts_of_a_session_reach_the_librarian(folder: CollectionFolder, ledger: Ledger) -> None:
    session = SessionRecord(folder.journals, uuid(1), ticking_clock())
    session.start(SessionDescription("Who?", "graph", {}, 1, "default", "explainability"))
    with session.step("Synthesising") as step:
        session.answer(step, "An answer with a lone surrogate: \udce9.", [])
    session.finish("completed")
    session.close()
    ledger.fold()
    with snapshot(root(folder)) as found:
        node = NamedNode(v.answer_text_iri(uuid(1)))
        (key,) = found.store.match(node, v.tg("contentHash"))
    assert isinstance(key.object, Literal)
    text = Librarian(folder.librarian).get_text(key.object.value)
    assert text == "An answer with a lone surrogate: \udce9."
