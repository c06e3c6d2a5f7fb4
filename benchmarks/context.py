"""What the answering model gets: the share of gold sentences in its prompt, by budget and mode.

Each mode gathers evidence for a question within a budget of tokens; a gold sentence counts if its
words stand in the prompt, one after the other, wherever (a passage, a quote, a description).

- **One extraction for all**: the one that the data set brings (MuSiQue: GPT-3.5's, by HippoRAG), or
  that of tgraph's embedded default. The peers get it from a model server that answers their prompts
  of extraction with it. Nobody gets descriptions that it hasn't.
- **One embedder for all**: tgraph's (MiniLM); the peers' embeddings come from the same server.
- **One model for all**: scripted. It finds the same keywords for all, makes reports and summaries
  of what it is shown, and, where it is to choose edges, takes them in the order in which it gets
  them.
- **One budget**: tokens of evidence, beside what a prompt says itself. tgraph: the mode's
  ``max_context_tokens`` (``graph``: of the whole prompt), ``lightrag-*``: ``max_total_tokens``;
  GraphRAG: ``max_context_tokens``; LightRAG: ``max_total_tokens``. The caps of entities and edges
  of LightRAG, and of the modes after it, are the shares of the budget that they are by default.
  All else is everybody's default. Whole prompts are counted in the table (o200k).
- **The reader**: with ``--readers embedded,none`` the modes run with tgraph's reader beside the
  model and without; CPU is that of a question up to its prompt, in this process.

PYTHON is the one of an environment of its own (see ``benchmarks.modes``).

Run: python -m benchmarks.context --data DIR [--questions 100] [--misleading 20]
     [--articles 100] [--budgets 2000,4000,8000] [--modes local,ppr] [--peers-modes local,naive]
     [--readers embedded,none] [--set SETTING=VALUE] [--work DIR] [--misses FILE]
     [--graphrag PYTHON] [--lightrag PYTHON]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tgraph
from benchmarks.context_data import GoldQuestion, read_gold
from benchmarks.overhead import FailedError
from benchmarks.peer_stub import PeerServer
from benchmarks.peers import (
    LIGHTRAG_EDGES,
    LIGHTRAG_ENTITIES,
    GraphRag,
    LightRagShared,
    Peer,
    Pipe,
    piped,
    version,
)
from benchmarks.retrieval import GivenParts
from benchmarks.retrieval_data import DataSet, OpenIEExtractor
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.question_run import QuestionRun
from tgraph.engine.ask.streams import result_of
from tgraph.engine.components import Components
from tgraph.engine.open_collection import new_uuid
from tgraph.errors import TgraphError
from tgraph.extract.base import Extractor
from tgraph.ingest.chunk import page_chunks
from tgraph.model import Document, Extraction, Page
from tgraph.models.base import ChatRequest, Embedder, current_time
from tgraph.models.minilm import default_embedder
from tgraph.models.tokens import count_tokens
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.retrieve.base import Question
from tgraph.retrieve.modes.base import PROMPT
from tgraph.retrieve.modes.registry import MODES
from tgraph.settings import load_settings
from tgraph.testing import ScriptedModel
from tgraph.testing.script import parse_blocks
from tgraph.testing.scripted_steps import list_items

BUDGETS = (2_000, 4_000, 8_000)
OWN_MODES = (
    "local",
    "basic",
    "naive",
    "bm25",
    "graph",
    "ppr",
    "lightrag-local",
    "lightrag-global",
    "lightrag-hybrid",
    "lightrag-mix",
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_WORD = re.compile(r"[^\W_]+")


# --- figures ---


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a question's prompt had: the share of its gold sentences, and its tokens."""

    recall: float
    tokens: int
    cpu: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """A mode of a system, by budget; ``mode`` is tgraph's name of it."""

    system: str
    mode: str
    gathered: Mapping[int, Sequence[Gathered]]


def spell(text: str) -> str:
    """The words of a text, however it is escaped, spaced and punctuated."""
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else " ", text)
    return f" {' '.join(_WORD.findall(plain.casefold()))} "


def judge_prompt(question: GoldQuestion, prompt: str, cpu: float = 0.0) -> Gathered:
    words = spell(prompt)
    missing = tuple(each for each in question.sentences if spell(each) not in words)
    recall = 1 - len(missing) / len(question.sentences)
    return Gathered(recall, count_tokens(prompt), cpu, missing)


def table(found: Sequence[Measured], budgets: Sequence[int]) -> str:
    """Recall in percent by budget, the tokens of the prompts, and CPU where it is known."""
    heads = ["mode", "system", *(f"{budget:,}" for budget in budgets), "prompt tokens", "CPU s"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for each in sorted(found, key=lambda m: list(MODES).index(m.mode)):
        recalls = [
            f"{statistics.fmean(g.recall for g in each.gathered[budget]) * 100:.1f}"
            for budget in budgets
        ]
        tokens = [
            f"{statistics.fmean(g.tokens for g in each.gathered[budget]):,.0f}"
            for budget in budgets
        ]
        cpu = statistics.median(g.cpu for budget in budgets for g in each.gathered[budget])
        cells = [each.mode, each.system, *recalls, " / ".join(tokens), f"{cpu:.3f}" if cpu else ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# --- the extraction, the model and the embedder that all have ---


def extractor_of(data: DataSet, work: Path) -> Extractor:
    """The extraction that the data set brings, else the embedded default's."""
    if data.openie is not None:
        return OpenIEExtractor(data.openie)
    return Components(load_settings(None, {}), work / "cache").extractor


def write_extraction(data: DataSet, extractor: Extractor, file: Path) -> None:
    """Write what is extracted of each passage, in the form that the peers are given."""
    rows = []
    for passage in data.passages:
        page = Page(None, passage.content)
        document = Document(passage.sha256, "", "text/plain", (page,))
        text = passage.content
        [chunk] = page_chunks(document, page, [(0, len(text), count_tokens(text))])
        graph = as_graph(extractor.extract(chunk, passage.title))
        rows.append(json.dumps({"text": _squeeze(text), "graph": graph}) + "\n")
    file.write_text("".join(rows), "utf-8")


def _squeeze(text: str) -> str:
    return " ".join(text.removeprefix("# ").split())


def as_graph(found: Extraction) -> Any:
    """An extraction in the form in which the scripted model says it; ends are entities too."""
    links = [
        {
            "subject": str(each.subject),
            "object": each.object if isinstance(each.object, str) else each.object.value,
            "description": each.description or f"{each.subject} {each.predicate} {each.object}",
            "keywords": list(each.keywords) or [str(each.predicate)],
            "strength": each.strength,
        }
        for each in found.relationships
    ]
    kinds = {each.name: (each.type, each.description) for each in found.entities}
    names = [*kinds, *(str(link[end]) for link in links for end in ("subject", "object"))]
    return {
        "entities": [
            {"name": name, "type": kind, "description": description or name}
            for name in dict.fromkeys(names)
            for kind, description in [kinds.get(name, ("concept", ""))]
        ],
        "relationships": links,
    }


class SharedServer(PeerServer):
    """The model and the embedder of the peers: the extraction in ``file``, and ``embedder``."""

    def __init__(self, file: Path, embedder: Embedder) -> None:
        super().__init__(dimension=embedder.dimension)
        self._embedder = embedder
        self._lock = threading.Lock()
        rows = map(json.loads, file.read_text("utf-8").splitlines())
        self._graphs = {row["text"]: row["graph"] for row in rows}

    def read_graph(self, text: str) -> Any:
        return self._graphs.get(_squeeze(text), {"entities": [], "relationships": []})

    def embed(self, texts: Sequence[str], size: int) -> Sequence[Sequence[float]]:
        with self._lock:
            rows: list[list[float]] = self._embedder.embed(texts).tolist()
        return rows

    def last_prompt(self) -> str:
        """The last prompt that it was to answer."""
        asked = next(r for r in reversed(self.requests) if r.step != "embeddings")
        return "\n".join(str(message["content"]) for message in asked.body["messages"])


def take_edges(request: ChatRequest) -> str:
    """The reply of a model that chooses all edges, in the order in which it is shown them."""
    rows = list_items(parse_blocks(request.messages))
    return "\n".join(json.dumps({"id": row["id"], "score": 1.0}) for row in rows) or '{"none": 1}'


@contextmanager
def made_once(mark: Path) -> Iterator[bool]:
    """Whether something is yet to be made; afterwards it has been."""
    yield not mark.is_file()
    mark.touch()


# --- tgraph ---


@contextmanager
def graph_of(
    data: DataSet, extractor: Extractor, work: Path, settings: Mapping[str, Any]
) -> Iterator[tgraph.KnowledgeGraph]:
    """The data set's graph, open, with the scripted model beside it."""
    model = ScriptedModel({"select_edges": take_edges})
    parts = GivenParts(load_settings(None, settings), work / "cache", chat=model)
    parts.given = extractor
    files = data.write_documents(work / "documents")
    with tgraph.open(work / "graph", create=True, settings=settings, parts=parts) as kg:
        with made_once(work / "tgraph.indexed") as missing:
            report = kg.index(files) if missing else None
            if report and report.failed:
                raise report.failed[0]
        yield kg


def budget_settings(mode: str, budget: int) -> dict[str, Any]:
    """The settings by which a mode keeps within the budget."""
    section = MODES[mode].main_section
    if section != "lightrag_search":
        return {f"{section}.max_context_tokens": budget}
    return {
        f"{section}.max_total_tokens": budget + PROMPT,
        f"{section}.max_entity_tokens": round(budget * LIGHTRAG_ENTITIES),
        f"{section}.max_relationship_tokens": round(budget * LIGHTRAG_EDGES),
    }


def own_modes(
    kg: tgraph.KnowledgeGraph,
    system: str,
    modes: Sequence[str],
    budgets: Sequence[int],
    questions: Sequence[GoldQuestion],
) -> Iterator[Measured]:
    for mode in modes:
        kg.context(mode)
        gathered = {}
        for budget in budgets:
            with kg.view(budget_settings(mode, budget)) as view:
                gather_prompt(view, mode, questions[0])  # opens what others find
                gathered[budget] = [gather_prompt(view, mode, each) for each in questions]
        print(f"{system}: {mode}", file=sys.stderr, flush=True)
        yield Measured(system, mode, gathered)


def gather_prompt(kg: tgraph.KnowledgeGraph, mode: str, question: GoldQuestion) -> Gathered:
    """As ``KnowledgeGraph.gather_context``, with a record that is thrown away."""
    method, asked = method_of(mode, kg.opened.parts), Question(question.text)
    with TemporaryDirectory() as journals:
        start = time.process_time()
        context = kg.context(mode)
        record = SessionRecord(Path(journals), new_uuid(), current_time)
        described = SessionDescription(question.text, mode, {}, context.generation, "", "")
        shown = result_of(QuestionRun(method, asked, context, record, described).context())
        spent = time.process_time() - start
    return judge_prompt(question, "\n".join(m["content"] for m in shown.messages), spent)


# --- peers ---


@dataclass(frozen=True, slots=True)
class PeerKind:
    """A peer, and the modes that it has, by tgraph's names."""

    name: str
    package: str
    made: type[Peer]
    modes: Sequence[str]


PEERS = (
    PeerKind("GraphRAG", "graphrag", GraphRag, ("local", "basic")),
    PeerKind("LightRAG", "lightrag-hku", LightRagShared, tuple(LightRagShared.names)),
)


def peer_modes(
    kind: PeerKind,
    python: str,
    data: DataSet,
    work: Path,
    embedder: Embedder,
    modes: Sequence[str],
    budgets: Sequence[int],
    questions: Sequence[GoldQuestion],
) -> Iterator[Measured]:
    name = f"{kind.name} {version(python, kind.package)}"
    with SharedServer(work / "extraction.jsonl", embedder) as server:
        files = data.write_documents(work / "documents")
        root = work / kind.made.__name__
        peer = kind.made(python, root, files, dimension=embedder.dimension)
        peer.prepare(server.base_url)
        with made_once(work / f"{kind.name}.indexed") as missing:
            if missing:
                peer.index_passages()
        peer.forget_replies()
        with piped(peer.driver(), peer.environment) as driver:
            for mode in [each for each in kind.modes if each in modes]:
                print(f"{name}: {mode}", file=sys.stderr, flush=True)
                yield Measured(
                    name,
                    mode,
                    {
                        budget: [
                            _ask_peer(peer, driver, server, mode, budget, each)
                            for each in questions
                        ]
                        for budget in budgets
                    },
                )


def _ask_peer(
    peer: Peer, driver: Pipe, server: SharedServer, mode: str, budget: int, question: GoldQuestion
) -> Gathered:
    server.requests.clear()
    driver.ask([peer.names[mode], question.text, peer.limits(mode, budget)])
    return judge_prompt(question, server.last_prompt())


# --- the run ---


def write_misses(file: Path, found: Sequence[Measured], questions: Sequence[GoldQuestion]) -> None:
    """A line of JSON for each question: what is missing, by system, mode and budget."""
    rows = []
    for place, question in enumerate(questions):
        missing = {
            f"{each.system} {each.mode} {budget}": gathered[place].missing
            for each in found
            for budget, gathered in each.gathered.items()
            if gathered[place].missing
        }
        rows.append({"question": question.text, "missing": missing})
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file.write_text("".join(lines), "utf-8")


def run(options: argparse.Namespace, folder: Path) -> None:
    data, questions = read_gold(
        options.data.resolve(), options.questions, options.misleading, options.articles
    )
    budgets = [int(budget) for budget in options.budgets.split(",")]
    work = folder / f"{data.name}-{len(questions)}-{len(data.passages)}"
    count = sum(len(question.sentences) for question in questions)
    print(
        f"{data.name}: {len(data.passages):,} passages, {len(questions):,} questions,"
        f" {count:,} gold sentences\n",
        flush=True,
    )
    work.mkdir(parents=True, exist_ok=True)
    extractor = extractor_of(data, work)
    if not (file := work / "extraction.jsonl").is_file():
        write_extraction(data, extractor, file)
    found: list[Measured] = []
    modes = options.modes.split(",") if options.modes else []
    for reader in options.readers.split(",") if modes else []:
        given = dict(pair.split("=", 1) for pair in options.set)
        settings = {"ppr_search.steps": "false", "reader.model": reader, **given}
        with graph_of(data, extractor, work, settings) as kg:
            system = f"tgraph, reader {reader}"
            found += own_modes(kg, system, modes, budgets, questions)
    embedder, peers_modes = default_embedder(), options.peers_modes.split(",")
    for kind in PEERS:
        if python := getattr(options, kind.package):
            found += peer_modes(kind, python, data, work, embedder, peers_modes, budgets, questions)
    print(table(found, budgets))
    if options.misses:
        write_misses(options.misses, found, questions)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of a data set")
    parser.add_argument("--questions", type=int, default=100, help="questions that are asked")
    parser.add_argument(
        "--misleading",
        type=int,
        default=20,
        help="MuSiQue: most of such paragraphs for a question",
    )
    parser.add_argument("--articles", type=int, default=100, help="SQuAD: most articles")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--modes", default=",".join(OWN_MODES), help="tgraph's; may be none")
    named = ",".join(mode for kind in PEERS for mode in kind.modes)
    parser.add_argument("--peers-modes", default=named, help="the peers', by tgraph's names")
    parser.add_argument("--readers", default="none", help="tgraph's, beside the model")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--work", type=Path, help="keep the graphs here, and use them again")
    parser.add_argument("--misses", type=Path, help="write what is missing, by question")
    for kind in PEERS:
        parser.add_argument(f"--{kind.name.lower()}", default="", dest=kind.package)
    options = parser.parse_args()
    try:
        with TemporaryDirectory() as folder:
            run(options, (options.work or Path(folder)).resolve())
    except (TgraphError, FailedError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
