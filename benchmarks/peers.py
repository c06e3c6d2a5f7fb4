"""Peers on the same text, in the same run: what ``benchmarks.modes`` prints beside.

Microsoft GraphRAG runs as its own command line (index, cold questions) and as its own
``graphrag.api`` (warm questions), with the settings of ``graphrag init``. LightRAG runs as the
library that it is, with its default storages, settings and cache. Each is run by the Python that
has it installed. Models are a scripted server without latency in a process of its own, which finds
the same names in a text as the one that tgraph is measured with. GraphRAG's always-on tracemalloc
is switched off, nothing is downloaded, and the tokens of chat prompts are counted as the scripted
servers do: four characters each.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.lightrag_driver import BREAK
from benchmarks.overhead import LAUNCHER, REPOSITORY, Cost, FailedError

GRAPHRAG_MODES = {mode: mode for mode in ("local", "global", "drift", "basic")}
LIGHTRAG_MODES = {
    "lightrag-local": "local",
    "lightrag-global": "global",
    "lightrag-hybrid": "hybrid",
    "lightrag-mix": "mix",
    "naive": "naive",
}
"""What the peer calls tgraph's modes."""

GRAPHRAG_DIMENSION = 3072
"""GraphRAG's default ``vector_size``."""

LIGHTRAG_DIMENSION = 1024
"""That of the hashed vectors which tgraph is measured with. LightRAG has no default of its own."""

LIGHTRAG_FRAME, LIGHTRAG_NAIVE_FRAME = 900, 850
"""What it counts of its total besides evidence: its own prompt (700; 650 of ``naive``), and 200
held back."""

LIGHTRAG_ENTITIES, LIGHTRAG_EDGES = 6 / 30, 8 / 30
"""Its default caps of entities and relations, as shares of its default budget."""

_RANKS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests that the server got: chat, embeddings, and the chat prompts' tokens."""

    chats: int
    embeddings: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.chats} + {self.embeddings} calls, {self.tokens:,} tokens"


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """Table cells, and the CPU seconds of warm questions, by tgraph's mode."""

    cells: dict[str, str]
    warm: dict[str, float]


class Pipe:
    """A process that answers each line with a line of JSON."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._errors = errors
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout

    def line(self) -> str:
        line = self._out.readline()
        if not line:
            self._errors.seek(0)
            raise FailedError(f"A process ended: {self._errors.read().strip()[-500:]}")
        return line.strip()

    def ask(self, value: Any = None) -> Any:
        self._in.write(json.dumps(value) + "\n")
        self._in.flush()
        return json.loads(self.line())


@contextmanager
def piped(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Pipe]:
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=dict(environment),
        ) as process,
    ):
        try:
            yield Pipe(process, errors)
        finally:
            process.terminate()


class Peer(ABC):
    """A peer's graph of some files in a folder, and what it costs to index and ask it.

    ``names`` are the peer's names of tgraph's modes, ``kept_replies`` files of replies that it
    would give again.
    """

    names: Mapping[str, str]
    kept_replies: Sequence[str] = ()

    def __init__(self, python: str, root: Path, files: Sequence[Path], dimension: int) -> None:
        self.python, self.root, self.files, self.dimension = python, root, files, dimension
        self.environment = offline(root.parent / f"{root.name}-offline")
        root.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def prepare(self, url: str) -> None:
        """Has its models be those at ``url``."""

    @abstractmethod
    def index(self) -> Cost: ...

    def index_passages(self) -> Cost:
        """As ``index``, for many files each of which is one chunk."""
        return self.index()

    def forget_replies(self) -> None:
        """Have what was asked before asked again."""
        for name in self.kept_replies:
            (self.root / name).unlink(missing_ok=True)

    @abstractmethod
    def cold(self, mode: str, question: str) -> Cost:
        """The cost of a process that asks one question."""

    @abstractmethod
    def driver(self) -> list[str]:
        """A command that answers lines of JSON, each a mode, a question and perhaps limits of it,
        with their CPU time."""

    @abstractmethod
    def limits(self, mode: str, budget: int) -> dict[str, int]:
        """The limits by which the evidence in a prompt of tgraph's ``mode`` has at most so many
        tokens."""

    def figures(self, server: Pipe, questions: Sequence[str], modes: Sequence[str]) -> PeerFigures:
        """The cost of the index, and for each of tgraph's modes that it has that of a cold question
        and the median of those after the first, warm."""
        server.ask()
        cost = self.index()
        index = f"{cost.cpu:.1f} s, {cost.memory:.0f} MB, {Asked(*server.ask())}"
        return self._modes(server, questions, modes, PeerFigures({"index": index}, {}))

    def _modes(
        self, server: Pipe, questions: Sequence[str], modes: Sequence[str], figures: PeerFigures
    ) -> PeerFigures:
        named = {mode: self.names[mode] for mode in modes if mode in self.names}
        colds = {mode: self.cold(name, questions[0]) for mode, name in named.items()}
        with piped(self.driver(), self.environment) as driver:
            for mode, name in named.items():
                driver.ask([name, f"Once more: {questions[0]}"])  # peers keep replies
                cpu, asked = self._warm(server, driver, name, questions[1:])
                cold = f"cold {colds[mode].cpu:.2f} s, {colds[mode].memory:.0f} MB"
                figures.cells[mode] = f"{cold}; warm {cpu:.3f} s, {asked}"
                figures.warm[mode] = cpu
        return figures

    def _warm(
        self, server: Pipe, driver: Pipe, mode: str, questions: Sequence[str]
    ) -> tuple[float, Asked]:
        times, counts = [], []
        for question in questions:
            server.ask()
            told = driver.ask([mode, question])
            if not told["characters"]:
                raise FailedError(f"The peer's answer is empty ({mode}: {question}).")
            times.append(told["cpu"])
            counts.append(Asked(*server.ask()))
        most = Asked(
            max(c.chats for c in counts),
            max(c.embeddings for c in counts),
            round(statistics.median(c.tokens for c in counts)),
        )
        return statistics.median(times), most

    def run(self, *arguments: str, given: str = "") -> Cost:
        """The cost of a command; raises ``FailedError`` where it doesn't end well."""
        done = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCHER, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=True,
            env=self.environment,
        )
        code, cpu, kilobytes = done.stdout.split()
        if code != "0":
            raise FailedError(f"{' '.join(arguments[1:5])} failed: {self.logged(done.stderr)}")
        return Cost(float(cpu), int(kilobytes) / 1024)

    def logged(self, said: str) -> str:
        """What went wrong, from the end of what it said."""
        return said.strip()[-500:]


class GraphRag(Peer):
    """A GraphRAG project."""

    names = GRAPHRAG_MODES

    def prepare(self, url: str) -> None:
        """The settings of ``graphrag init``, with both models at ``url``; copies of the files."""
        (self.root / "input").mkdir(exist_ok=True)
        self._run("init", "--model", "gpt-4.1", "--embedding", "text-embedding-3-large", "--force")
        settings = self.root / "settings.yaml"
        key = re.compile(r"^( +)auth_method: api_key.*$", re.MULTILINE)
        text, models = key.subn(rf"\g<0>\n\1api_base: {url}", settings.read_text("utf-8"))
        if models != 2:
            raise FailedError(f"The settings of graphrag init name {models} models instead of 2.")
        head = f"vector_store:\n  vector_size: {self.dimension}\n"
        settings.write_text(text.replace("vector_store:\n", head, 1), "utf-8")
        (self.root / ".env").write_text("GRAPHRAG_API_KEY=none\n", "utf-8")
        for file in self.files:
            shutil.copy(file, self.root / "input" / f"{file.stem}.txt")

    def index(self) -> Cost:
        return self._run("index")

    def cold(self, mode: str, question: str) -> Cost:
        return self._run("query", question, "--method", mode)

    def driver(self) -> list[str]:
        return [self.python, _driver("graphrag"), str(self.root)]

    def limits(self, mode: str, budget: int) -> dict[str, int]:
        return {"max_context_tokens": budget}

    def _run(self, *arguments: str) -> Cost:
        return self.run(self.python, "-m", "graphrag", *arguments, "--root", str(self.root))

    def logged(self, said: str) -> str:
        """The last error in its logs, which go with the folder, or the end of what it said."""
        logs = sorted((self.root / "logs").glob("*.log"))
        lines = [row for log in logs for row in log.read_text("utf-8", "replace").splitlines()]
        errors = [row for row in lines if "Error:" in row]
        return errors[-1] if errors else super().logged(said)


class LightRag(Peer):
    """A LightRAG working folder. As it is shipped, each of its calls makes a TLS context."""

    names = LIGHTRAG_MODES
    kept_replies = ("kv_store_llm_response_cache.json",)
    clients = "own"

    def prepare(self, url: str) -> None:
        self.environment |= {"OPENAI_API_BASE": url, "OPENAI_API_KEY": "none"}

    def index(self) -> Cost:
        return self.run(*self.driver(), *map(str, self.files))

    def index_passages(self) -> Cost:
        texts = (file.read_text("utf-8") for file in self.files)
        return self.run(*self.driver(), "-", given=BREAK.join(texts))

    def cold(self, mode: str, question: str) -> Cost:
        return self.run(*self.driver(), given=json.dumps([mode, question]) + "\n")

    def driver(self) -> list[str]:
        own = [str(self.root), str(self.dimension), self.clients]
        return [self.python, _driver("lightrag"), *own]

    def limits(self, mode: str, budget: int) -> dict[str, int]:
        frame = LIGHTRAG_NAIVE_FRAME if mode == "naive" else LIGHTRAG_FRAME
        return {
            "max_total_tokens": budget + frame,
            "max_entity_tokens": round(budget * LIGHTRAG_ENTITIES),
            "max_relation_tokens": round(budget * LIGHTRAG_EDGES),
        }


class LightRagShared(LightRag):
    """LightRAG with one TLS context for all its calls, through options of its own."""

    clients = "shared"


def _driver(name: str) -> str:
    return str(Path(__file__).with_name(f"{name}_driver.py"))


def offline(folder: Path) -> dict[str, str]:
    """An environment without network: tgraph's own tiktoken files, litellm's own cost table.

    Its ``sitecustomize`` makes ``tracemalloc.start`` do nothing, in every Python that is started.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        "import tracemalloc\n\ntracemalloc.start = lambda *_: None\n", "utf-8"
    )
    for name in ("cl100k_base", "o200k_base"):
        packed = REPOSITORY / "tgraph" / "data" / f"{name}.tiktoken.gz"
        named = hashlib.sha1(_RANKS.format(name).encode()).hexdigest()  # tiktoken's own file name
        (folder / named).write_bytes(gzip.decompress(packed.read_bytes()))
    mine = ("TGRAPH_", "OPENAI_", "GRAPHRAG_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    return kept | {
        "PYTHONPATH": str(folder),
        "TIKTOKEN_CACHE_DIR": str(folder),
        "CUSTOM_TIKTOKEN_CACHE_DIR": str(folder),  # litellm overwrites the other from it
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_PROXY": "127.0.0.1",
    }


def version(python: str, package: str) -> str:
    """The version of a package that this Python has. Raises ``FailedError`` where it has none."""
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise FailedError(f"{python} can't import {package}: install it there with pip.") from error
    return done.stdout.strip()


def figures(
    made: type[Peer],
    python: str,
    files: Sequence[Path],
    folder: Path,
    questions: Sequence[str],
    modes: Sequence[str],
) -> PeerFigures:
    """A peer's cost of indexing the files and of each mode that it has."""
    dimension = GRAPHRAG_DIMENSION if made is GraphRag else LIGHTRAG_DIMENSION
    stub = [sys.executable, "-m", "benchmarks.peer_stub", str(dimension)]
    with piped(stub, {**os.environ, "PYTHONPATH": str(REPOSITORY)}) as server:
        url = server.line()
        peer = made(python, folder, files, dimension)
        peer.prepare(url)
        return peer.figures(server, questions, modes)
