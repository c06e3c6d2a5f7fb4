"""Evidence packages: made of a session, checked and replayed from the file alone."""

from __future__ import annotations

import io
import json
import stat
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.errors import StoreError, UsageError
from tgraph.explain.integrity.entries import read_entries
from tgraph.extensions.evidence import make_package, verify_package
from tgraph.extensions.evidence.crates.container import MANIFEST, pack_files, zip_files
from tgraph.extensions.evidence.crates.contents import read_quads, serialise_quads
from tgraph.extensions.evidence.crates.verify import PackageVerification, check_files, check_package
from tgraph.record.chain import Chain, Head, hash_of_bundle
from tgraph.record.signing import load_public_key, make_keys
from tgraph.retrieve.filters import Filters
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock

TEXTS = {
    "curie.md": "# Marie Curie\n\nMarie Curie discovered Polonium in Paris in 1898. Pierre Curie"
    " worked with Marie Curie at the Sorbonne. The laboratory was a shed with a glass roof.\n",
    "oslo.txt": "Roald Amundsen sailed from Oslo. Roald Amundsen reached the South Pole in 1911."
    " The Fram carried Roald Amundsen to the Bay of Whales.\n",
}
QUESTION = "Where did Marie Curie discover Polonium?"
ONLY_CURIE = Filters(documents=("curie.md",))
UNQUOTED = b"shed with a glass roof"


def opened(home: Path, way: str, **options):
    own = {"integrity.signing_key": str(home / "key")} if way == "model" else {}
    clock, ids = ticking_clock(), count()
    values = load_settings(None, own)
    chat = ScriptedModel(clock=clock) if way == "model" else None
    parts = Components(values, home / "cache", chat=chat, embedder=HashingEmbedder())
    return tgraph.open(
        home / way,
        parts=parts,
        settings=own,
        clock=clock,
        uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
        **options,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages of sessions of two graphs, one asked with a model and signed; the graphs are gone,
    and have changed between question and export."""
    folder = tmp_path_factory.mktemp("crates")
    make_keys(folder / "key")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    for way in ("model", "embedded"):
        with opened(folder, way, create=True) as graph:
            graph.index([folder / "curie.md"])
            asked = {
                "graph": graph.ask(QUESTION, "graph", history=[]).session,
                "global": graph.ask(QUESTION, "global", history=[]).session,
            }
            if way == "model":
                asked["nothing"] = graph.ask("zxcvb qwrtp?", "basic", history=[]).session
                asked["context"] = graph.gather_context(QUESTION, "basic", history=[]).session
            else:
                asked["filtered"] = graph.ask(QUESTION, filters=ONLY_CURIE, history=[]).session
            graph.opened.fold()
            graph.index([folder / "oslo.txt"])
            for name, session in asked.items():
                made = make_package(graph, session)
                assert not made.no_replay
                (folder / f"{way}-{name}.zip").write_bytes(made.data)
            assert (
                make_package(graph, asked["graph"]).data
                == (folder / f"{way}-graph.zip").read_bytes()
            )
            bare = make_package(graph, asked["graph"], texts=False)
            (folder / f"{way}-bare.zip").write_bytes(bare.data)
        (folder / way).rename(folder / f"{way} elsewhere")
    return folder


def states(found: PackageVerification) -> dict[str, str]:
    return {check.name: check.state for check in found.checks}


def said(found: PackageVerification, name: str) -> str:
    return next(check.said for check in found.checks if check.name == name)


def files_of(package: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(package) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != MANIFEST}


PACKAGES = [
    *("model-graph", "model-global", "model-nothing", "model-context"),
    *("embedded-graph", "embedded-global", "embedded-filtered"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_is_checked_and_replayed_where_its_graph_is_not(home, name):
    found = check_package(home / f"{name}.zip")
    assert found.problems == []
    assert states(found)["Replay"] == "ok"
    taken = "Retrieval is taken from the record" in said(found, "Replay")
    assert taken is ("global" not in name)
    assert ("writing" in said(found, "Replay")) is ("context" not in name)


@pytest.mark.slow
def test_the_command_tells_each_check_and_verifies_the_signature(home, tmp_path):
    package, key = home / "model-graph.zip", home / "key.pub"
    shown = CliRunner().invoke(cli, ["verify-crate", str(package), "--public-key", str(key)])
    assert shown.exit_code == 0, shown.output
    assert "signed the chain up to entry" in shown.stdout
    assert "with the model's recorded replies" in shown.stdout
    asked = ["verify-crate", str(home / "embedded-graph.zip"), "--json", "--public-key", str(key)]
    other = CliRunner().invoke(cli, asked)
    assert other.exit_code == 4
    checks = json.loads(other.stdout)["checks"]
    assert [check["name"] for check in checks if check["state"] == "failed"] == ["Signature"]


@pytest.mark.slow
def test_an_exported_file_is_its_owners(home, tmp_path):
    arguments = ["export", "last", "--format", "crate", "-r", str(home / "embedded elsewhere")]
    made = CliRunner().invoke(cli, [*arguments, "-o", str(tmp_path / "e.zip")])
    assert made.exit_code == 0, made.output
    assert stat.S_IMODE((tmp_path / "e.zip").stat().st_mode) == 0o600
    assert "SHA-256 of its manifest: " in made.stderr
    assert CliRunner().invoke(cli, arguments).exit_code == 2


def test_without_texts_there_is_no_more_of_a_document_than_the_record_quotes(home):
    whole, bare = (home / f"model-{name}.zip" for name in ("graph", "bare"))
    assert UNQUOTED in whole.read_bytes()
    assert UNQUOTED not in bare.read_bytes()
    assert not [name for name in files_of(bare) if name.startswith(("pages/", "calls/"))]
    found = check_package(bare)
    assert found.ok
    unchecked = [name for name, state in states(found).items() if state == "not checked"]
    assert unchecked == ["Signature", "Quotes", "Replay"]
    assert "The package was made without texts" in said(found, "Replay")


# --- whatever is altered, removed or added is found -----------------------------------------------


def test_each_file_altered_removed_or_added_is_found_by_name(home, tmp_path):
    files = files_of(home / "model-graph.zip")
    listed = zipfile.ZipFile(home / "model-graph.zip").read(MANIFEST)
    target = tmp_path / "e.zip"

    def problems(changed: dict[str, bytes]) -> set[tuple[str, str]]:
        target.write_bytes(zip_files({**changed, MANIFEST: listed}))
        return {(p.kind, p.subject) for p in check_files(target).problems}

    assert problems(files) == set()
    for name, data in files.items():
        assert problems({**files, name: data + b" "}) == {("altered", name)}
        assert problems({k: d for k, d in files.items() if k != name}) == {("missing", name)}
    extra = f"texts/{sha256(b'x').hexdigest()}.txt"
    assert problems({**files, extra: b"x"}) == {("added", extra)}


def _repacked(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


@settings(max_examples=150)
@given(data=st.data())
def test_any_byte_that_is_altered_is_found(home, data):
    whole = bytearray((home / "embedded-graph.zip").read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    changed = home / "altered.zip"
    changed.write_bytes(whole)
    with suppress(StoreError):
        assert check_files(changed).problems


Forgery = Callable[[dict[str, bytes]], None]


def _in(prefix: str, old: bytes, new: bytes) -> Forgery:
    """Replaces what the files of that name have; such as are named by a hash keep their name."""

    def forge(files: dict[str, bytes]) -> None:
        names = [n for n in files if n.startswith(prefix) and old in files[n]]
        assert names
        for name in names:
            lines = files[name].replace(old, new)
            if name.endswith(".nq"):
                lines = b"".join(sorted(set(lines.splitlines(keepends=True))))
            files[name] = lines

    return forge


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "a page": (_in("pages/", b"Polonium", b"Radium!!"), "Quotes"),
    "the answer": (_in("answer.txt", b"Polonium", b"Radium!!"), "Answer"),
    "a model's reply": (_in("calls/", b'"reply":{', b'"reply":{"x":1,'), "Replay"),
    "a prompt": (_in("prompts/", b"the", b"teh"), "Replay"),
    "the report": (_in("report.html", b"Polonium", b"Radium"), "Report"),
    "the metadata": (_in("ro-crate-metadata.json", b"Polonium", b"Radium"), "Report"),
    "the session": (_in("record.nq", b'"Where did', b'"When did'), "Record"),
    "the chain": (_in("record.nq", b'chainHash> "', b'chainHash> "0'), "Record"),
    "what was retrieved": (_in("reads.json", b"Polonium in Paris", b"Radium in Paris"), "Quotes"),
    "an edge": (_in("record.nq", b"entity:polonium> )>>", b"entity:radium> )>>"), "Record"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGERIES)
def test_what_is_forged_together_with_the_manifest_is_found_by_what_it_says(home, tmp_path, name):
    forge, check = FORGERIES[name]
    files = files_of(home / "model-graph.zip")
    forge(files)
    (tmp_path / "e.zip").write_bytes(pack_files(files))
    found = check_package(tmp_path / "e.zip")
    assert states(found)[check] == "failed", found.checks
    named_by_hash = name in ("a page", "a model's reply", "a prompt")
    assert states(found)["Files"] == ("failed" if named_by_hash else "ok")


@pytest.mark.slow
def test_a_chain_made_anew_lacks_the_signature(home, tmp_path):
    files = files_of(home / "model-graph.zip")
    lines = files["record.nq"].splitlines(keepends=True)
    files["record.nq"] = b"".join(x for x in lines if b":signature:" not in x.split(b" ")[0])
    (tmp_path / "e.zip").write_bytes(pack_files(files))
    key = load_public_key(home / "key.pub")
    assert states(check_package(tmp_path / "e.zip", key))["Signature"] == "failed"
    assert states(check_package(home / "model-graph.zip", key))["Signature"] == "ok"


def test_a_session_behind_the_signature_is_not_covered_by_it(home, tmp_path):
    """A session that was forged and appended to a true, signed chain."""
    files = files_of(home / "model-graph.zip")
    session = json.loads(files["crate.json"])["session"]
    bundle, catalogue = session.replace("session", "bundle"), v.collection_iri("explainability")
    quads = read_quads(files["record.nq"].replace(b'"Where did', b'"When did'))
    left = [
        q for q in quads if q.graph_name != NamedNode(catalogue) or q.subject != NamedNode(bundle)
    ]
    store = OxigraphStore.memory(left)
    chain = Chain(store, catalogue, ticking_clock())
    last = read_entries(store, catalogue)[-1]
    chain.back_to(Head(last.sequence, last.chain))
    hashed = hash_of_bundle(store, NamedNode(bundle), "session").hash
    entry = chain.entry(bundle, "session", hashed, (v.tg("session"), NamedNode(session)))
    files["record.nq"] = serialise_quads([*left, *entry])
    (tmp_path / "e.zip").write_bytes(pack_files(files))
    found = states(check_package(tmp_path / "e.zip", load_public_key(home / "key.pub")))
    assert (found["Record"], found["Signature"]) == ("ok", "failed")


# --- what anybody may send ------------------------------------------------------------------------


def _deflated(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


ODD: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "no zip": lambda files: b"PK" + bytes(100),
    "an empty file": lambda files: b"",
    "a compressed member": lambda files: _deflated({"answer.txt": bytes(10_000_000)}),
    "a path out of it": lambda files: _repacked({**files, "../../etc/passwd": b"x"}),
    "an absolute path": lambda files: _repacked({**files, "/x": b"x"}),
    "a program": lambda files: _repacked({**files, "calls/run.py": b"x"}),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_package_ends_in_a_sentence(home, tmp_path, name):
    package = tmp_path / "e.zip"
    package.write_bytes(ODD[name](files_of(home / "model-graph.zip")))
    with pytest.raises(StoreError, match="no evidence package") as error:
        check_package(package)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_what_the_process_of_the_check_says_is_raised(tmp_path):
    (tmp_path / "e.zip").write_bytes(b"")
    with pytest.raises(StoreError, match="no evidence package"):
        verify_package(tmp_path / "e.zip")
    with pytest.raises(UsageError, match="can't be read"):
        check_package(tmp_path / "none.zip")


_DEEP = b"<urn:a> <urn:b> " + b"<<( <urn:a> <urn:b> " * 50_000 + b"<urn:c>" + b" )>>" * 50_000
ODDER: dict[str, dict[str, bytes]] = {
    "a session that is a path": {
        "crate.json": b'{"session": "urn:trustgraph:session:../../x", "catalogue":'
        b' "urn:trustgraph:collection:a", "tgraph": "1", "texts": true, "no_replay": "",'
        b' "format": 1}'
    },
    "deep JSON": {"crate.json": b"[" * 200_000},
    "deep triples": {"record.nq": _DEEP + b" .\n"},
    "no record": {"record.nq": b""},
    "a list for an object": {"reads.json": b"[]"},
    "numbers for texts": {"reads.json": b'{"retrievals": [1], "queries": {"a": {}}}'},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODDER)
def test_what_is_odd_in_a_package_is_a_finding(home, tmp_path, name):
    files = {**files_of(home / "model-graph.zip"), **ODDER[name]}
    (tmp_path / "e.zip").write_bytes(pack_files(files))
    found = check_package(tmp_path / "e.zip")
    assert not found.ok
    assert all(len(problem.detail) < 400 for problem in found.problems)


# --- erasures -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_session_whose_text_was_erased_is_checked_and_not_replayed(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    with opened(tmp_path, "embedded", create=True) as graph:
        graph.index([tmp_path / "curie.md"])
        session = graph.ask(QUESTION, "graph", history=[]).session
        graph.purge("curie.md", reason="asked for")
        made = make_package(graph, session)
    assert "erased" in made.no_replay
    assert b"Polonium" not in made.data
    (tmp_path / "e.zip").write_bytes(made.data)
    found = check_package(tmp_path / "e.zip")
    assert found.problems == []
    assert "rewritten by an erasure" in said(found, "Record")
    assert states(found)["Replay"] == "not checked"


def test_an_interrupted_session_has_a_package_that_says_so(tmp_path):
    (tmp_path / "curie.md").write_text(TEXTS["curie.md"])
    with opened(tmp_path, "embedded", create=True) as graph:
        graph.index([tmp_path / "curie.md"])
        stream = graph.stream(QUESTION, "graph")
        session = next(each.explain_id for each in stream if each.explain_id)
        stream.close()
        graph.opened.fold()
        made = make_package(graph, session)
    assert "interrupted" in made.no_replay
    (tmp_path / "e.zip").write_bytes(made.data)
    assert check_package(tmp_path / "e.zip").problems == []


def test_a_question_that_was_searched_for_by_words_is_replayed(tmp_path):
    (tmp_path / "pont.txt").write_text(
        "La tour fut construite par Gustave Eiffel en 1889 à Paris.\n"
        "Le pont fut dessiné par Jean Resal.\n"
    )
    with tgraph.open(tmp_path / "g", create=True) as graph:
        graph.index([tmp_path / "pont.txt"])
        answer = graph.ask("Qui a dessiné le pont ?", "basic")
        assert "Jean Resal" in answer.text
        package = make_package(graph, answer.session)
    (tmp_path / "p.zip").write_bytes(package.data)
    assert states(check_package(tmp_path / "p.zip"))["Replay"] == "ok"
