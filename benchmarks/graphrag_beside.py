"""Microsoft GraphRAG on the same text, in the same run: what ``benchmarks.modes`` prints beside.

GraphRAG runs as its own command line (index, cold questions) and as its own ``graphrag.api`` (warm
questions), by the Python that has it installed, with the settings of ``graphrag init``. Models are
a scripted server without latency in a process of its own, which finds the same names in a text as
the one that tgraph is measured with. Its always-on tracemalloc is switched off, nothing is
downloaded, and the tokens of chat prompts are counted as the scripted servers do: four characters
each.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.overhead import LAUNCHER, REPOSITORY, Cost, FailedError

MODES = ("local", "global", "drift", "basic")
DRIVER = Path(__file__).with_name("graphrag_driver.py")

_RANKS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests that the server got: chat, embeddings, and the chat prompts' tokens."""

    chats: int
    embeddings: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.chats} + {self.embeddings} calls, {self.tokens:,} tokens"


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


class GraphRag:
    """A GraphRAG project in a folder, and what it costs to index and ask it."""

    def __init__(self, python: str, root: Path, server: Pipe) -> None:
        self._python, self._root, self._server = python, root, server
        self._environment = offline(root.parent / f"{root.name}-offline")

    def prepare(self, files: Sequence[Path], url: str) -> None:
        """The settings of ``graphrag init``, with both models at ``url``; copies of the files."""
        (self._root / "input").mkdir(parents=True)
        self._run("init", "--model", "gpt-4.1", "--embedding", "text-embedding-3-large", "--force")
        settings = self._root / "settings.yaml"
        key = re.compile(r"^( +)auth_method: api_key.*$", re.MULTILINE)
        text, models = key.subn(rf"\g<0>\n\1api_base: {url}", settings.read_text("utf-8"))
        if models != 2:
            raise FailedError(f"The settings of graphrag init name {models} models instead of 2.")
        settings.write_text(text, "utf-8")
        (self._root / ".env").write_text("GRAPHRAG_API_KEY=none\n", "utf-8")
        for file in files:
            shutil.copy(file, self._root / "input")

    def index(self) -> str:
        self._server.ask()
        cost = self._run("index")
        return f"{cost.cpu:.1f} s, {cost.memory:.0f} MB, {Asked(*self._server.ask())}"

    def modes(self, questions: Sequence[str], modes: Sequence[str]) -> dict[str, str]:
        """For each mode: a cold question, and the median of those after the first, warm."""
        colds = {mode: self._run("query", questions[0], "--method", mode) for mode in modes}
        figures = {}
        with piped([self._python, str(DRIVER), str(self._root)], self._environment) as driver:
            for mode in modes:
                driver.ask([mode, questions[0]])
                cpu, asked = self._warm(driver, mode, questions[1:])
                cold = f"cold {colds[mode].cpu:.2f} s, {colds[mode].memory:.0f} MB"
                figures[mode] = f"{cold}; warm {cpu:.3f} s, {asked}"
        return figures

    def _warm(self, driver: Pipe, mode: str, questions: Sequence[str]) -> tuple[float, Asked]:
        times, counts = [], []
        for question in questions:
            self._server.ask()
            told = driver.ask([mode, question])
            if not told["characters"]:
                raise FailedError(f"GraphRAG's answer is empty ({mode}: {question}).")
            times.append(told["cpu"])
            counts.append(Asked(*self._server.ask()))
        most = Asked(
            max(c.chats for c in counts),
            max(c.embeddings for c in counts),
            round(statistics.median(c.tokens for c in counts)),
        )
        return statistics.median(times), most

    def _run(self, *arguments: str) -> Cost:
        command = [self._python, "-m", "graphrag", *arguments, "--root", str(self._root)]
        done = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCHER, *command],
            capture_output=True,
            text=True,
            check=True,
            env=self._environment,
        )
        code, cpu, kilobytes = done.stdout.split()
        if code != "0":
            raise FailedError(f"graphrag {arguments[0]} failed: {self._logged(done.stderr)}")
        return Cost(float(cpu), int(kilobytes) / 1024)

    def _logged(self, said: str) -> str:
        """The last error in its logs, which go with the folder, or the end of what it said."""
        logs = sorted((self._root / "logs").glob("*.log"))
        lines = [row for log in logs for row in log.read_text("utf-8", "replace").splitlines()]
        errors = [row for row in lines if "Error:" in row]
        return errors[-1] if errors else said.strip()[-500:]


def offline(folder: Path) -> dict[str, str]:
    """An environment without network: tgraph's own tiktoken files, litellm's own cost table.

    Its ``sitecustomize`` makes ``tracemalloc.start`` do nothing, in every Python that is started.
    """
    folder.mkdir(parents=True)
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


def version(python: str) -> str:
    """The version of graphrag that this Python has. Raises ``FailedError`` where it has none."""
    asked = "from importlib.metadata import version; print(version('graphrag'))"
    try:
        done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise FailedError(f"{python} can't import graphrag: install it there with pip.") from error
    return done.stdout.strip()


def figures(
    python: str, files: Sequence[Path], folder: Path, questions: Sequence[str], modes: Sequence[str]
) -> dict[str, str]:
    """GraphRAG's cost of indexing the files and of each mode that it has, as table cells."""
    stub = [sys.executable, "-m", "benchmarks.graphrag_stub"]
    with piped(stub, {**os.environ, "PYTHONPATH": str(REPOSITORY)}) as server:
        url = server.line()
        graphrag = GraphRag(python, folder, server)
        graphrag.prepare(files, url)
        asked = [mode for mode in MODES if mode in modes]
        return {"index": graphrag.index(), **graphrag.modes(questions, asked)}
