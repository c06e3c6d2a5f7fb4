"""A quote is what the stored text says at its place, or it is no quote: forged evidence and altered
texts are left out or end in an error that names the place, wherever they would be shown."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, Quad

import tgraph
from benchmarks.forgeries import make as make_small
from benchmarks.forgeries import trials
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.errors import EvidenceError
from tgraph.store.base import text_of
from tgraph.store.oxigraph import OxigraphStore

RULES = {"chat.provider": "embedded", "embedding.provider": "hashing", "reader.model": "none"}
TRUE = "The lighthouse of Corvo was built in 1891 by Ines Vidal."
FORGED = TRUE.replace("1891", "1791")
TEXT = f"{TRUE} Ines Vidal was born in Lisbon.\n"
QUESTION = "When was the lighthouse of Corvo built?"
PLACE = "“Corvo”, characters 0–"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of one document that was asked once."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "corvo.txt").write_text(TEXT)
    with tgraph.open(folder / "g", create=True, settings=RULES) as graph:
        graph.index([folder / "corvo.txt"])
        assert TRUE in graph.ask(QUESTION, "graph").text
    return folder / "g"


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "g")
    return tmp_path / "g"


def forge_quotes(root: Path) -> None:
    """Another year, of the same length, in every quote on record."""
    folder = root / "collections" / "default"
    for place in (folder / "store", *folder.glob("snapshots/*/store")):
        store = OxigraphStore.open(place)
        quotes = [q for q in store.match(None, v.tg("quote")) if "1891" in str(q.object)]
        store.remove(quotes)
        store.extend(
            Quad(q.subject, q.predicate, Literal(text_of(q.object).replace("1891", "1791")), q[3])
            for q in quotes
        )
        store.flush()
        store.close()
        assert quotes
    for table in folder.glob("**/lookups*"):  # derived: without them the statements are read
        table.unlink()


def alter_text(root: Path) -> None:
    """Another year in the librarian's text, under the hash of the true one."""
    for path in root.glob("collections/default/librarian/*/*"):
        packed = path.read_bytes()
        content = gzip.decompress(packed) if path.suffix == ".gz" else packed
        if content == TEXT.encode():
            path.write_bytes(content.replace(b"1891", b"1791"))


def run(root: Path, *arguments: str):
    rules = {f"TGRAPH_{name.upper().replace('.', '__')}": value for name, value in RULES.items()}
    return CliRunner(env=rules).invoke(cli, [*arguments, "-r", str(root)])


def test_forged_evidence_is_left_out_with_a_note(copied):
    forge_quotes(copied)
    with tgraph.open(copied, settings=RULES) as graph:
        for _ in range(2):  # the second question has what the first one has read
            answer = graph.ask(QUESTION, "graph", history=[])
            assert "1791" not in answer.text
            assert any(PLACE in note.text for note in answer.notes)
            assert all(c.quote in TEXT for s in answer.sentences for c in s.citations)


def test_a_strict_question_ends_with_the_place(copied):
    forge_quotes(copied)
    strict = {**RULES, "integrity.strict": True}
    with tgraph.open(copied, settings=strict) as graph, pytest.raises(EvidenceError, match=PLACE):
        graph.ask(QUESTION, "graph", history=[])
    found = run(copied, "ask", QUESTION, "-m", "graph", "--strict")
    assert found.exit_code == 4
    assert PLACE in found.stderr
    assert "1791" not in found.output


@pytest.mark.parametrize("forge", [forge_quotes, alter_text])
def test_nothing_shows_a_quote_that_the_text_does_not_have(copied, forge):
    forge(copied)
    commands = (
        ["trace", "last"],
        ["trace", "last", "--format", "html"],
        ["source", "corvo.txt"],
        ["export", "last"],
        ["export", "last", "--vocabulary", "trustgraph"],
        ["verify", "last", "--lexical"],
        ["why-not", "last", "Lisbon"],
        ["replay", "last"],
    )
    for command in commands:
        found = run(copied, *command)
        assert found.exit_code == 4, (command, found.output)
        assert "“Corvo”" in found.output, command
        assert "1791" not in found.output, command


def test_a_text_that_was_altered_is_not_answered_from(copied):
    alter_text(copied)
    with tgraph.open(copied, settings=RULES) as graph:
        answer = graph.ask(QUESTION, "graph", history=[])
        assert answer.no_evidence
        assert any("“Corvo”" in note.text for note in answer.notes)
        with pytest.raises(EvidenceError, match="“Corvo”"):
            graph.ask(QUESTION, "basic", history=[])


@pytest.mark.slow
def test_single_changes_are_refused_or_found(tmp_path):
    counts: Counter[str] = Counter()
    for way, change, what, quad in trials(make_small(tmp_path), 36, 14):
        assert what != "nothing", (way, change, quad)
        counts[what] += 1
    assert counts["refused"] > 5
    assert counts["found"] == 24
