"""Signatures of the chain: who holds no key can't make the record anew."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import stat
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.audit.named_audits import find_audit, run_audit
from tgraph.explain.integrity.check import Integrity, check_integrity
from tgraph.explain.integrity.entries import read_entries
from tgraph.record.chain import CHAIN_HASH, GENESIS, Head, canonical_hash, chain_hash
from tgraph.record.signing import (
    KIND,
    load_public_key,
    load_signing_key,
    make_keys,
    statement_of,
)
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel

CATALOGUE = v.collection_iri("explainability")
QUESTION = "What did Marie Curie discover?"


def opened(root: Path, key: Path | None = None, **options):
    settings = {"integrity.signing_key": str(key)} if key else {}
    values = load_settings(None, settings)
    parts = Components(values, root / "c", chat=ScriptedModel(), embedder=HashingEmbedder())
    return tgraph.open(root, parts=parts, settings=settings, **options)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of which the second and the fourth part were signed, by two keys."""
    folder = tmp_path_factory.mktemp("signing")
    for name in ("one", "two"):
        make_keys(folder / name)
    (folder / "a.txt").write_text("Marie Curie discovered Polonium.")
    with opened(folder / "g", create=True) as graph:
        graph.index([folder / "a.txt"])
    for key in (folder / "one", None, folder / "two"):
        with opened(folder / "g", key) as graph:
            graph.ask(QUESTION, history=[])
    return folder


@pytest.fixture
def copied(home: Path, tmp_path: Path) -> Path:
    shutil.copytree(home, tmp_path / "home")
    return tmp_path / "home"


def check(home: Path, name: str = "two", head: str | None = None) -> Integrity:
    with opened(home / "g") as graph:
        found: Integrity = graph.integrity(head, public_key=home / f"{name}.pub")
    return found


# --- what is signed -------------------------------------------------------------------------------


def test_each_signature_covers_the_chain_before_it(home):
    with opened(home / "g") as graph:
        kinds = [entry.kind for entry in read_entries(graph.opened.read(), CATALOGUE)]
    assert kinds.count(KIND) == 2
    assert kinds[-1] == KIND
    first, last = kinds.index(KIND) + 1, len(kinds)
    one, two = check(home, "one").signatures, check(home, "two").signatures
    assert one is not None
    assert two is not None
    assert (one.covered, one.valid, one.others) == (first - 1, 1, 1)
    assert [(s.first, s.last, bool(s.signature)) for s in one.stretches] == [
        (1, first - 1, True),
        (first, last, False),
    ]
    assert (two.covered, two.valid, two.others) == (last - 1, 1, 1)
    assert [(s.first, s.last, bool(s.signature)) for s in two.stretches] == [
        (1, last - 1, True),
        (last, last, False),
    ]
    assert check(home).ok


def test_the_record_names_the_key_and_keeps_the_private_one_out(home, caplog):
    caplog.set_level(logging.DEBUG)
    key = load_signing_key(home / "two")
    private = [
        (home / "two").read_bytes().splitlines()[1],
        base64.b64encode(key._private.private_bytes_raw()),
        key._private.private_bytes_raw(),
    ]
    with opened(home / "g", home / "two") as graph:
        rows = list(
            graph.sparql(
                "SELECT ?key ?text WHERE { ?s a tg:Signature ; prov:wasAttributedTo ?key ."
                " ?key a tg:SigningKey, prov:Agent ; tg:publicKey ?text }"
            )
        )
        assert str(home / "two") not in "".join(map(str, graph.opened.read().match()))
    assert key.public.agent in {row["key"].value for row in rows}
    assert key.public.text in {row["text"].value for row in rows}
    files = [path for path in (home / "g").rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        data = path.read_bytes()
        assert not any(secret in data for secret in private), path
    assert not any(secret.decode("latin-1") in caplog.text for secret in private)
    assert "_private" not in repr(key)


@pytest.mark.slow
def test_signatures_conform_to_the_shapes_and_nothing_is_signed_twice(copied):
    with opened(copied / "g", copied / "two") as graph:
        before = graph.integrity().sequence
    with opened(copied / "g", copied / "two") as graph:
        assert graph.integrity().sequence == before
        shapes = run_audit(graph.opened.read(), CATALOGUE, find_audit("shapes"), ["all"])
    assert shapes.passed, shapes.rows


def test_a_signature_is_deterministic_and_of_one_head(home):
    key = load_signing_key(home / "one")
    statement = statement_of(CATALOGUE, Head(3, "ab" * 32))
    assert key.sign(statement) == load_signing_key(home / "one").sign(statement)
    assert key.public.verify_signature(statement, key.sign(statement))
    for other in (
        statement_of(CATALOGUE, Head(4, "ab" * 32)),
        statement_of(CATALOGUE, Head(3, "ac" * 32)),
        statement_of(f"{CATALOGUE}2", Head(3, "ab" * 32)),
    ):
        assert not key.public.verify_signature(other, key.sign(statement))
    assert not key.public.verify_signature(statement, "no base64!")
    assert not key.public.verify_signature(statement, "")


# --- what is found out ----------------------------------------------------------------------------


class Forger:
    """Whoever can write the store and has tgraph's code, but not the key."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with opened(home / "g") as graph:
            self.quads = list(graph.opened.read().match())
            self.librarian = graph.opened.librarian
        self.key = load_public_key(home / "two.pub")

    def tamper(self) -> None:
        """Change the question of the first session."""
        place = next(
            n
            for n, quad in enumerate(self.quads)
            if quad.predicate == v.tg("query") and quad.object == Literal(QUESTION)
        )
        old = self.quads[place]
        self.quads[place] = Quad(old.subject, old.predicate, Literal("Who?"), old.graph_name)

    def compute_again(self, *, without_signatures: bool = False) -> Integrity:
        """Seal everything anew, as tgraph would, and check it with the key."""
        store = OxigraphStore.memory(self.quads)
        catalogue, head = NamedNode(CATALOGUE), Head(0, GENESIS)
        for entry in read_entries(store, CATALOGUE):
            store.remove(entry.quads)
            if entry.kind == KIND and without_signatures:
                continue
            said = {quad.predicate: quad.object for quad in entry.quads}
            kinds = [quad for quad in entry.quads if quad.predicate == v.RDF_TYPE]
            said[v.tg("previousHash")] = Literal(head.hash)
            said[v.tg("sequence")] = Literal(str(head.sequence + 1), datatype=v.xsd("integer"))
            if entry.kind not in ("batch", KIND):
                bundle = store.match(None, None, None, NamedNode(entry.subject))
                said[v.tg("hash")] = Literal(canonical_hash(bundle))
            subject = NamedNode(entry.subject)
            fresh = kinds + [
                Quad(subject, name, value, catalogue)
                for name, value in said.items()
                if name not in (CHAIN_HASH, v.RDF_TYPE)
            ]
            head = Head(head.sequence + 1, chain_hash(fresh))
            store.extend([*fresh, Quad(subject, CHAIN_HASH, Literal(head.hash), catalogue)])
        return check_integrity(store, self.librarian, CATALOGUE, head, key=self.key)


def test_a_chain_computed_again_is_consistent_and_still_found_out(home):
    honest = Forger(home)
    assert honest.compute_again().ok, "what the forger does would not be found out by hashes"
    forger = Forger(home)
    forger.tamper()
    found = forger.compute_again()
    assert not found.ok
    assert {(p.kind, p.what) for p in found.problems} == {("altered", "signature")}
    assert found.signatures is not None
    assert found.signatures.valid == 0
    assert found.signatures.covered == 0


def test_a_chain_without_its_signatures_is_found_out(home):
    forger = Forger(home)
    forger.tamper()
    found = forger.compute_again(without_signatures=True)
    assert [(p.kind, p.what) for p in found.problems] == [("missing", "signature")]


def test_a_tail_that_was_cut_off_shows_against_a_saved_head(home):
    whole = check(home)
    forger = Forger(home)
    entries = read_entries(OxigraphStore.memory(forger.quads), CATALOGUE)
    kept = next(n for n, entry in enumerate(entries) if entry.kind == KIND) + 1
    gone = {entry.subject for entry in entries[kept:]}
    store = OxigraphStore.memory(
        quad
        for quad in forger.quads
        if getattr(quad.subject, "value", "") not in gone
        and getattr(quad.graph_name, "value", "") not in gone
    )
    key = load_public_key(home / "one.pub")
    head = Head(kept, entries[kept - 1].chain)
    for saved, lost in ((None, False), (entries[kept - 1].chain, False), (whole.head, True)):
        found = check_integrity(store, forger.librarian, CATALOGUE, head, saved, key=key)
        problems = {(p.kind, p.what) for p in found.problems if p.what == "head"}
        assert problems == ({("missing", "head")} if lost else set())


def test_nothing_is_covered_by_a_signature_after_an_entry_that_was_changed(home):
    forger = Forger(home)
    place, old = next(
        (n, quad) for n, quad in enumerate(forger.quads) if quad.predicate == v.tg("quadCount")
    )
    count = Literal("9999", datatype=v.xsd("integer"))
    forger.quads[place] = Quad(old.subject, old.predicate, count, old.graph_name)
    store = OxigraphStore.memory(forger.quads)
    head = Head(check(home).sequence, check(home).head)
    found = check_integrity(store, forger.librarian, CATALOGUE, head, key=forger.key)
    assert {("altered", "entry"), ("altered", "signature")} == {
        (p.kind, p.what) for p in found.problems
    }
    assert found.signatures is not None
    assert found.signatures.covered == 0


def test_another_key_has_signed_nothing(home, tmp_path):
    make_keys(tmp_path / "other")
    with opened(home / "g") as graph:
        found = graph.integrity(public_key=tmp_path / "other.pub")
    assert [(p.kind, p.what) for p in found.problems] == [("missing", "signature")]


def test_an_erasure_leaves_the_signatures_as_they_are(copied):
    with opened(copied / "g", copied / "two") as graph:
        graph.purge("a.txt", reason="asked for")
    found = check(copied)
    assert found.ok, found.problems
    assert found.erased
    assert found.signatures is not None
    assert found.signatures.valid >= 2
    assert found.signatures.covered == found.sequence - 1


# --- keys -----------------------------------------------------------------------------------------


def test_a_pair_is_made_for_its_owner_and_never_overwritten(tmp_path):
    file = tmp_path / "record.key"
    result = CliRunner().invoke(cli, ["config", "signing-key", str(file)])
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    public = load_public_key(tmp_path / "record.key.pub")
    assert load_signing_key(file).public == public
    assert result.stdout.strip() == public.id
    before = file.read_bytes()
    again = CliRunner().invoke(cli, ["config", "signing-key", str(file)])
    assert again.exit_code != 0
    assert "never overwritten" in again.stderr
    assert file.read_bytes() == before
    file.unlink()
    with pytest.raises(UsageError, match="File exists"):
        make_keys(file)
    assert not file.exists(), "no half of a pair is left"


def test_keys_of_openssh_are_read_too(tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "id_ed25519", tmp_path / "id_ed25519.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        + b" someone@somewhere\n"
    )
    assert load_signing_key(private).public == load_public_key(public)


def wrong_keys(folder: Path) -> dict[str, Path]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files = {
        "can't be read": folder / "missing",
        "holds no": folder / "text",
        "no Ed25519 private": folder / "curve",
        "passphrase": folder / "locked",
    }
    files["holds no"].write_text("not a key\n")
    curve = ec.generate_private_key(ec.SECP256R1())
    files["no Ed25519 private"].write_bytes(
        curve.private_bytes(pem, pkcs8, serialization.NoEncryption())
    )
    locked = ed25519.Ed25519PrivateKey.generate()
    files["passphrase"].write_bytes(
        locked.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"secret"))
    )
    return files


def test_a_key_that_is_of_no_use_is_one_sentence_before_anything_is_recorded(copied, tmp_path):
    for said, file in wrong_keys(tmp_path).items():
        with pytest.raises(UsageError, match=said):
            load_signing_key(file)
        with opened(copied / "g", file) as graph:
            before = len(graph.sessions.summaries())
            with pytest.raises(UsageError, match=said):
                graph.ask(QUESTION, history=[])
            with pytest.raises(UsageError, match=said):
                graph.index([copied / "a.txt"])
            assert len(graph.sessions.summaries()) == before, (
                "what is there can be read without the key"
            )
    with pytest.raises(UsageError, match="no Ed25519 public key"):
        load_public_key(tmp_path / "text")
    with pytest.raises(UsageError, match="can't be read"):
        load_public_key(tmp_path / "missing")


def test_without_the_package_there_is_one_sentence(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(UsageError, match="need the package cryptography"):
        load_signing_key(home / "one")


def test_the_file_names_the_key_relative_to_the_graph(copied):
    (copied / "g" / "tgraph.toml").write_text('[integrity]\nsigning_key = "../one"\n')
    assert load_settings(copied / "g").integrity.signing_key == copied / "g" / ".." / "one"


# --- the command ----------------------------------------------------------------------------------


def test_the_command_says_what_is_covered(copied):
    arguments = ["audit", "integrity", "-r", str(copied / "g"), "--public-key"]
    shown = CliRunner().invoke(cli, [*arguments, str(copied / "one.pub")])
    assert shown.exit_code == 0, shown.output
    assert "1 valid" in shown.stdout
    assert "covered by no signature" in shown.stdout
    assert "1 signatures belong to other keys" in shown.stdout
    printed = CliRunner().invoke(cli, [*arguments, str(copied / "two.pub"), "--json"])
    found = json.loads(printed.stdout)
    assert found["signatures"]["valid"] == 1
    from tgraph.engine.schemas import build_schemas

    jsonschema.validate(found, build_schemas()["integrity"])
    make_keys(copied / "three")
    failed = CliRunner().invoke(cli, [*arguments, str(copied / "three.pub")])
    assert failed.exit_code == 4
    wrong = CliRunner().invoke(cli, [*arguments, str(copied / "a.txt")])
    assert wrong.exit_code == 2
    assert "no Ed25519 public key" in wrong.stderr
