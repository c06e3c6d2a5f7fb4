"""Records the behaviour of the program, so that two states of its code can be compared.

    python tools/recording.py make FOLDER         # runs everything, writes text files to FOLDER
    python tools/recording.py reopen FOLDER OUT   # runs commands on the graphs made in FOLDER
    python tools/recording.py compare OLD NEW     # prints differences; exit code 1 if there are any

The code that is recorded is the ``tgraph`` that Python imports: ``PYTHONPATH=CHECKOUT`` names
another one than is installed. Only public faces are used: installed scripts, ``tgraph``,
``tgraph.testing``, HTTP and MCP. The inputs are those beside this file.

Time, ``uuid4`` and random bytes are replaced before tgraph is imported: time stands still during a
command and is a minute later at the next one, and the UUIDs of a command follow from its number. So
records, their hashes included, are the same in each run, and little has to be normalised. Where the
code draws another number of UUIDs, hashes differ for no other reason; ``compare --loose`` numbers
UUIDs in the order of their appearance, masks hashes, and shows what else is different.

``make FOLDER --only NAME...`` records some parts alone, the same as they are with the others;
``compare`` also takes the folders of a section.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import difflib
import fcntl
import hashlib
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import resolve_name
from string import Template
from typing import Any
from unittest.mock import patch

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
WORKPLACE = Path(tempfile.gettempdir()) / "tgraph-recording"
"""Where the commands run, always the same place: paths are in records, and so in their hashes."""
MODES = (
    *("graph", "local", "global", "drift", "basic", "bm25", "contextual", "ppr", "raptor"),
    *("raptor-traversal", "lightrag-local", "lightrag-global", "lightrag-hybrid", "lightrag-mix"),
    *("naive", "bypass", "auto"),
)
MODEL_PORT = 47113
"""Of the scripted model: the address is in records."""
OLD_GRAPHS = ("graph-old", "model-graph-old")
"""The folders in a recording that hold graphs; they are not compared."""
LONGEST_DIFF = 60
"""Lines that are printed of the differences of a file."""

QUESTIONS = {
    "aurora": "What happened to the Aurora in May 1915?",
    "fram": "Who designed the Fram?",
    "crushed": "Which ships were crushed by the ice?",
    "themes": "What are the main themes?",
    "mongolia": "What is the capital of Mongolia?",
}

# --- inputs that the commands read ---

INPUTS = {
    "questions.txt": "Who designed the Fram?\nWhat is the capital of Mongolia?\n",
    "history.json": '[{"question": "Who built the Fram?", "answer": "Colin Archer built it."}]',
    "chat.txt": "Who designed the Fram?\nWhere was he born?\n/help\n/source 1\n/why-not Larvik\n"
    "/trace\n",
    "gold.toml": '[[question]]\nquery = "When did the Endurance sink?"\ngt_answer = "The Endurance'
    ' sank on 21 November 1915."\ngold_documents = ["endurance.md"]\n\n[[question]]\nquery = "Who'
    ' financed the Southern Cross expedition?"\ngt_answer = "Sir George Newnes financed it."\n',
    "single.toml": '[[question]]\nquery = "Who designed the Fram?"\ngt_answer = "Colin Archer."\n',
    "bad.nt": '<urn:a:a> <urn:a:b> "c" .\n<urn:a:a> oops\n',
    "rumour.txt": "Colin Archer designed the Aurora. The Fram was built in Oslo in 1890.\n",
    "new.txt": "The Quest was lost off Newfoundland in 1962. Frank Wild commanded the Quest.\n",
    "query.rq": "SELECT (COUNT(*) AS ?edges) WHERE { ?subgraph tg:contains ?edge }\n",
    "project/settings.yaml": "models:\n  default_chat_model: {type: openai_chat, model: qwen2.5,"
    " api_base: http://localhost:8000/v1, tokens_per_minute: auto}\nchunks: {size: 600}\n"
    "vector_store: {default_vector_store: {type: lancedb}}\n",
}
TEXTS = {
    "curie.md": "# Marie Curie\n\nMarie Curie discovered Polonium in Paris in 1898. Pierre Curie"
    " worked with Marie Curie at the Sorbonne. Marie Curie taught physics at the Sorbonne.\n",
    "becquerel.txt": "Henri Becquerel discovered radioactivity in Paris. Henri Becquerel shared the"
    " Nobel Prize with Marie Curie and Pierre Curie in 1903.\n",
    "oslo.txt": "Roald Amundsen sailed from Oslo. Roald Amundsen reached the South Pole in 1911."
    " The Fram carried Roald Amundsen to the Bay of Whales.\n",
}
TEXT_QUESTIONS = (
    "Where did Marie Curie discover Polonium?",
    "Who shared the Nobel Prize?",
    "What is the capital of Mongolia?",
)

# --- commands, a line each: ``< FILE`` is what a command reads, ``$session`` and ``$edge`` are of
# the last ``ask --json``, and ``$previous`` is the session of the one before it ---

INDEX = """
index examples/antarctica --estimate
index examples/antarctica
index examples/antarctica --json
index missing.txt
index examples/antarctica/fram.md examples/antarctica/endurance.md \
examples/antarctica/ships.csv -C fast --method fast --json
index examples/antarctica/fram.md examples/antarctica/endurance.md \
examples/antarctica/ships.csv -C ships
import examples/graphs -C graphs
import bad.nt -C graphs -q
import examples/graphs -C graphs --json
ask "What is the highest point of South Georgia?" -m graph -C graphs
index - -C graphs < new.txt
documents list -C graphs --json
collections list
collections list --json
"""
ASK = """
ask "$aurora"
ask "$themes"
ask "$mongolia"
ask "$mongolia" --json
ask "$aurora" --jsonl
ask "$aurora" -x --show-usage --no-streaming
ask "$themes" -m global --jsonl --dynamic-community-selection --community-level 1
ask - < questions.txt
ask - --jsonl < questions.txt
ask < new.txt
ask
ask "$fram" -m nothing
ask --json-schema
ask "$fram" -m basic --only-context
ask "$fram" -m graph --only-context --json
ask "$fram" -m local --only-prompt
ask "Where was it built?" --history history.json --json
ask "$fram" --as-of 1
ask "$fram" --as-of 0
ask "$fram" --as-of 2026-01-02T00:10:00Z
ask "Who was in command?" --document "nimrod*" --type person
ask "Who led the expeditions?" --since 1900 --until 1910-01-01
ask "Who led the expeditions?" --valid-at 1908 --languages en
ask "$fram" -g urn:graph:nothing
ask "$fram" -m graph --graph-seeds Fram --traversal-instructions '{"types": ["person"]}'
ask "$fram" -m graph --grounding-seeds Fram -e 5 --triple-limit 5 -s 20 -p 1 --edge-limit 3 --strict
ask "$fram" -m graph --edge-score-limit 10 --response-type "a list" --language de \
--general-knowledge
ask "$fram" -m local --include-entity Endurance --exclude-entity Fram \
--relationship-ranking-attribute weight
ask "Who designed the ship?" -m lightrag-local --low-keyword Fram --json
ask "$crushed" -m lightrag-hybrid --high-keyword ice --json
ask "$fram" -m raptor --start-layer 1 --num-layers 1
ask "$fram" -m raptor --threshold 0.3
ask "$fram" -m contextual --max-reranker-input 5
tg-invoke-graph-rag --explainable -q "$aurora" -e 20
suggest
suggest -n 3 --history history.json --json
chat < chat.txt
chat -m local -x --show-usage --no-history --document "nimrod*" < questions.txt
ask "$fram" -m graph --json
ask "$aurora" --json
"""
RECORD = """
sessions --limit 5
sessions --json
tg-list-explain-traces --format json --limit 3
trace $session
trace $session --all --max-answer 20
tg-show-explain-trace $session --format json
trace $session --format html -o out/report.html
trace nothing
export $session -o out/session.trig
export $session --classic --format turtle
export $session --core --format nquads
export $session --vocabulary trustgraph --format turtle
export $session --format crate -o out/evidence.zip
export $session --format crate --without-texts -o out/hashes.zip
verify-crate out/evidence.zip
verify-crate out/hashes.zip --json
verify $session
verify $session --json
verify $session --lexical
verify $previous --json
influence $session --estimate
influence $session
influence $previous --repeats 2 --json -q
replay $session
replay $session --json
replay $previous --live
replay $previous --live --json
diff $session $previous
diff $session $previous --json --exit-code
diff $session --all
why-not $session "Aeneas Mackintosh"
why-not $session "Oscar Wisting" --json
why-not $session examples/antarctica/scurvy.md --json
why-not $session "Amundsen — reached — South Pole"
why-not $session "Adrien de Gerlache"
why-not $session "the tubes of the boiler"
why-not $session "a word that is nowhere"
why-not $session "made fast to the shore"
evaluate gold.toml -m basic -o out/judged.json
evaluate out/judged.json --markdown
evaluate out/judged.json --json --metrics retriever,recall -q
trace last
"""
LOOK = """
history
history --json
diff --knowledge 0
diff --knowledge 0 1 --json
documents list
documents list --json --all
source nimrod.pdf
source examples/antarctica/ships.csv --format json
source nimrod.pdf --text --page 2
tg-show-extraction-provenance ross-sea-party.txt --show-content --max-content 50
source nothing.md
impact ross-sea-party.txt
impact ross-sea-party.txt --json
entities merges
entities merges --json
entities splits
facts list "Roald Amundsen"
facts list Fram --json
curations list
ontology list
ontology show
sparql "SELECT ?s ?o WHERE { ?s rdfs:label ?o } ORDER BY ?o ?s" -l 5
sparql "SELECT ?s ?o WHERE { ?s rdfs:label ?o } ORDER BY ?o ?s LIMIT 5" --format json
sparql "SELECT ?s ?o WHERE { ?s rdfs:label ?o } ORDER BY ?o ?s LIMIT 5" --format csv
sparql "SELECT ?s ?o WHERE { ?s rdfs:label ?o } ORDER BY ?o ?s LIMIT 5" --format tsv
sparql "SELECT ?s ?o WHERE { ?s rdfs:label ?o } ORDER BY ?o ?s LIMIT 5" --format xml
sparql "CONSTRUCT { ?s rdfs:label ?o } WHERE { ?s rdfs:label ?o FILTER(?o = 'Fram') }"
sparql "CONSTRUCT { ?s rdfs:label ?o } WHERE { ?s rdfs:label ?o FILTER(?o = 'Fram') }" \
--format ntriples
sparql "ASK { ?s a tg:Entity }"
sparql -q - < query.rq
tg-invoke-sparql-query -i query.rq --format csv
sparql "DELETE WHERE { ?s ?p ?o }"
sparql "SELECT nonsense"
compare fast ships
compare fast ships --json
compare fast ships --document fram.md --limit 2
export --knowledge --hash
export --knowledge --hash -C ships
export --knowledge --with-sources -C ships
export --knowledge --format turtle -C ships
export --knowledge --format nquads -C ships
export --knowledge --format graphml -C ships
export --knowledge --format csv --with-sources -o out/neo4j -C ships
export --knowledge --format graphrag -o out/tables -C ships
export --knowledge --format markdown -o out/notes -C ships
tune --dry-run --select top --limit 2 -C ships
doctor
doctor --json
doctor --model
config show
config show --json
completion bash
completion zsh
completion fish
models list
models list --json
models pull ./nothing
publish --to http://127.0.0.1:9/update
--version
nonsense
"""
ELSEWHERE = """
sessions -r nowhere
init out/started --prompts
config import project -r moved --dry-run
config import project -r moved --json
config signing-key record.key
tokens create tokens.toml --person "Ann Lee" -C default --right read --expires 2030-12-31
tokens list tokens.toml --json
tokens revoke tokens.toml nothing
"""
SMALL = """
index examples/antarctica/ross-sea-party.txt examples/antarctica/amundsen.md \
examples/antarctica/fram.md rumour.txt
ask "$fram" -m graph
ask "$aurora" --json
ask "What became of the ships?" -m global
"""
CHANGES = """
documents weigh rumour.txt 0.3 --reason "hearsay"
documents weigh "*/fram.md" 0.9 --reason "a popular account"
documents list --json
documents weigh rumour.txt --clear --reason "confirmed since"
facts add "Roald Amundsen" "studied medicine in" Christiania --description "For a time." \
--reason letters
facts add "Roald Amundsen" "was born on" 1872-07-16 --datatype date --weight 9 \
--reason register
facts edit "Roald Amundsen" "studied medicine in" Christiania --object Oslo --reason "its name now"
facts deny "Roald Amundsen" "studied medicine in" Oslo --reason "a misprint"
facts list "Roald Amundsen" --json
entities create "Adrien de Gerlache" --type person --alias Gerlache --description Belgian \
--reason missing
entities edit Fram --type ship --description "Nansen's ship." --alias "The ship" --reason register
entities merge "Adrien de Gerlache" "Colin Archer" --reason "a trial"
entities split "Adrien de Gerlache" "Colin Archer" --reason "a trial"
entities rejoin "Adrien de Gerlache" "Colin Archer" --reason "a trial"
entities splits --json
entities merges --json
entities delete "Adrien de Gerlache" --reason "a trial"
curations list
curations list --json --standing
curations show last
curations undo last --reason "a trial"
curations list --json
ask "Where did Roald Amundsen study medicine?"
ontology add examples/polar.ttl --reason "our terms"
ontology list --json
ontology show
ontology show polar --json
audit ontology all --json
ontology add examples/polar.ttl --strict-ontology --json -q
ontology remove polar --reason "a trial" -q
audit contradictions --json
sparql --update "INSERT DATA { <urn:x:a> rdfs:label 'A' }"
sparql --update "CLEAR ALL"
retract examples/antarctica/amundsen.md --reason "a trial"
sessions
trace last
audit retracted-answers --json
audit stale-answers --json
index examples/antarctica/amundsen.md
index --reinstate examples/antarctica/amundsen.md
index new.txt --json -q
history --json
diff --knowledge 1
audit knowledge
audit integrity --json
doctor --repair --json
collections copy default trial
collections rename trial second
collections create third
collections delete third --yes
collections list --json
backup saved.tar --json
restore saved.tar -r restored --json
audit integrity -r restored
ship shipped --json
follow shipped -r replica --json
ask "$fram" -m basic -r replica
follow shipped -r replica --json -q
ship shipped -q
remove ross-sea-party.txt --reason "no erasure"
remove ross-sea-party.txt --purge --yes --reason "erasure request 17"
audit integrity
sessions --json
trace $session
replay $session
ask "$aurora"
"""
MODEL = """
doctor --model
index examples/antarctica/fram.md examples/antarctica/ross-sea-party.txt --estimate \
--price-in 1 --price-out 2
index examples/antarctica/fram.md examples/antarctica/ross-sea-party.txt --claims
index examples/antarctica/ships.csv --json --gleanings 0
"""
MODEL_LOOK = """
ask "$aurora" -m graph --json
ask "$fram" -m graph -x --show-usage
ask "$fram" -m graph --jsonl
ask "$fram" -m graph --only-prompt
ask "$fram" -m basic --general-knowledge --response-type "a list"
suggest -n 2 --json
chat < chat.txt
trace $session --all
trace $session --format json
export $session --format nquads
replay $session
replay $session --json
replay $session --live --json
verify $session --json
influence $session --estimate --json
influence $session --json -q
why-not $session "Aeneas Mackintosh" --json
evaluate single.toml --json -q --concurrency 1
tune --limit 2 --json -q
tune --undo
audit costs
audit models-and-prompts --json
audit integrity --json
audit shapes $session
sessions --json
config show
"""
REOPENED = """
sessions
ask "$aurora" -m graph --json
ask "$aurora" -m basic --json
ask "$themes" -m global --json
trace last
audit integrity
audit knowledge
export --knowledge --hash
doctor
index new.txt
ask "What became of the Quest?"
retract new.txt --reason "a trial"
audit integrity
"""
TRACE_FORMATS = (
    *("text", "json", "html", "trig", "turtle", "nquads", "json-ld", "rdf-xml", "prov-n"),
    *("prov-json", "prov-xml", "dot", "svg"),
)
AUDIT_ARGUMENTS = {
    "answers-on-document": "ross-sea-party.txt",
    "answers-on-edge": "$edge",
    "documents-of-answer": "$session",
    "not-used": "$session",
    "shapes": "$session",
    "sessions": "Fram",
}
COLLECTION = "/api/v1/collections/default"
WEB_PAGES = f"""
/health /ready /v1/models /.well-known/void /sparql /sparql?query=ASK%20%7B%3Fs%20a%20tg:Entity%7D
/graphs?default /id/urn:trustgraph:entity:fram /workbench/ /nothing /api/v1/audits
/api/v1/collections {COLLECTION}/sessions {COLLECTION}/sessions/nothing {COLLECTION}/sessions/last
{COLLECTION}/sessions/last/trace {COLLECTION}/sessions/last/report
{COLLECTION}/sessions/last/export?format=turtle {COLLECTION}/sessions/last/why-not?text=Larvik
{COLLECTION}/documents {COLLECTION}/documents/fram.md {COLLECTION}/documents/fram.md/text
{COLLECTION}/documents/fram.md/impact {COLLECTION}/jobs {COLLECTION}/entities?text=Fram
{COLLECTION}/entities/urn:trustgraph:entity:fram/facts {COLLECTION}/merges {COLLECTION}/splits
{COLLECTION}/curations {COLLECTION}/history {COLLECTION}/diff?before=0 {COLLECTION}/knowledge
{COLLECTION}/audits/uncited {COLLECTION}/search?text=Aurora
"""
WEB_QUESTIONS: tuple[tuple[str, Any], ...] = (
    (f"{COLLECTION}/ask", {"question": QUESTIONS["aurora"], "mode": "graph"}),
    (f"{COLLECTION}/ask", {"question": QUESTIONS["aurora"], "stream": True}),
    (f"{COLLECTION}/ask", {"question": 7}),
    (f"{COLLECTION}/context", {"question": QUESTIONS["fram"], "mode": "basic"}),
    (f"{COLLECTION}/suggest", {}),
    (f"{COLLECTION}/sessions/last/verify", {}),
    (f"{COLLECTION}/sessions/last/replay", {}),
    (
        "/v1/chat/completions",
        {"model": "tgraph-auto", "messages": [{"role": "user", "content": QUESTIONS["aurora"]}]},
    ),
)
AGENT_REQUESTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (
        "initialize",
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "recording", "version": "1"},
        },
    ),
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("tools/call", {"name": "ask", "arguments": {"question": QUESTIONS["aurora"]}}),
    ("tools/call", {"name": "search", "arguments": {"query": "Aurora"}}),
    ("tools/call", {"name": "audit", "arguments": {"name": "uncited"}}),
)

# --- fixed time and UUIDs ---

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DAY = 24 * 60
_RealDatetime = datetime.datetime


class _DatetimeType(type):
    """Takes datetimes that libraries in C make for instances of the replacement."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _RealDatetime)


class _FixedDatetime(_RealDatetime, metaclass=_DatetimeType):
    """A datetime whose present is set; pickled as the real one."""

    __slots__ = ()
    moment = START

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        moment = _FixedDatetime.moment.astimezone(tz)
        return cls.combine(moment.date(), moment.time(), tz)


_FixedDatetime.__module__, _FixedDatetime.__qualname__ = "datetime", "datetime"
_seeds: Iterator[str] = iter(())


def set_minute(minute: int) -> None:
    """Make this minute after ``START`` the present; UUIDs follow from it."""
    global _seeds
    _FixedDatetime.moment = START + datetime.timedelta(minutes=minute)
    _seeds = (f"{minute} {number}" for number in itertools.count())


def make_bytes(count: int | None = None) -> bytes:
    return hashlib.shake_256(next(_seeds).encode()).digest(count or 32)


def make_uuid() -> uuid.UUID:
    return uuid.UUID(bytes=make_bytes(16), version=4)


@contextmanager
def fix_time(minute: int = 0) -> Iterator[None]:
    """Replace the present and what is random in this process, before tgraph is imported."""
    assert "tgraph" not in sys.modules, "tgraph would keep the real time"
    set_minute(minute)
    with (
        patch("datetime.datetime", _FixedDatetime),
        patch("uuid.uuid4", make_uuid),
        patch("secrets.token_bytes", make_bytes),
    ):
        yield


# --- normalising and writing ---

_NORMAL_FORMS = (
    (re.escape(str(WORKPLACE)), "<workplace>"),
    (r" at 0x[0-9a-f]+", ""),
    (r"<function [\w.<>]+>", "<function>"),
    (rf"(?<=127\.0\.0\.1:)(?!{MODEL_PORT}\b|9\b)\d+", "<port>"),
    (r"(?<![\d.])\d+\.\d+\.\d+(?:\.?(?:dev|post|rc|a|b)\d+)?\b(?!\.\d)", "<version>"),
    (r"[\d,.]+ GB free", "<size> GB free"),
    (r"about [\d,]+ tokens a second", "about <number> tokens a second"),
    (r'(?<="created":)\d{10}', "<time>"),
    (r"\[\d\d/\d\d/\d\d \d\d:\d\d:\d\d\]", "[<time>]"),
    # the files of a store depend on when it was compacted
    (r'(?<="bytes":)( ?)\d+', r"\1<size>"),
    (r'(?<="files": )\d+', "<number>"),
    (r"(?<=\d  )( *)\d[\d.,]* [kMG]B$", r"\1<size>"),
    (r"^((?:Copying|Backing up|(?:Verifying|Restoring) kB): )[\d,]+", r"\1<number>"),
    (r"^[0-9a-f]{64}(?=\n--- stderr\nPrivate key)", "<public key>"),
)


def normalise_text(text: str) -> str:
    """The text without what depends on the machine or the run."""
    for pattern, form in _NORMAL_FORMS:
        text = re.sub(pattern, form, text, flags=re.MULTILINE)
    return text


def describe_file(path: Path) -> str:
    """What a file holds: its text, its members, or its hash."""
    if not zipfile.is_zipfile(path):
        return describe_bytes(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        members = [(name, describe_bytes(archive.read(name))) for name in archive.namelist()]
    return "".join(f"--- member {name}\n{text}" for name, text in members)


def describe_bytes(data: bytes) -> str:
    with suppress(UnicodeDecodeError):
        return data.decode() + "\n"
    return f"sha256 {hashlib.sha256(data).hexdigest()}\n"


def list_files(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files below a folder, with what changes when they do."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


def format_json(value: Any) -> str:
    return json.dumps(convert_value(value), indent=1, ensure_ascii=False) + "\n"


def convert_value(value: Any) -> Any:
    """The value as JSON has it: of a dataclass its type and its fields."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **convert_value(fields)}
    if isinstance(value, Mapping):
        return {str(key): convert_value(entry) for key, entry in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [convert_value(entry) for entry in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


# --- running commands ---


def list_scripts() -> dict[str, EntryPoint]:
    """The installed scripts of tgraph by name."""
    scripts = entry_points(group="console_scripts")
    return {script.name: script for script in scripts if script.value.startswith("tgraph.")}


def find_click_command(script: str) -> tuple[Any, dict[str, Any]]:
    """The click command that an installed script runs, and the options that it is run with."""
    import click

    calls: list[tuple[Any, dict[str, Any]]] = []

    def keep_call(command: Any, *_: Any, **options: Any) -> None:
        calls.append((command, options))

    with patch.object(click.Command, "main", keep_call):
        list_scripts()[script].load()()
    return calls[0]


class Recording:
    """Writes what is done to the folder of a section; each section has a day of its own."""

    def __init__(self, folder: Path, day: int) -> None:
        self.folder = folder
        self.section = ""
        self.names = dict(QUESTIONS)
        self._minute = day * DAY
        self._number = 0

    def begin_section(self, section: str, root: str = "", **settings: str) -> None:
        """Begin a section, on the graph in the folder ``root``, with these settings."""
        for name in list(os.environ):
            if name.startswith(("TGRAPH_", "OPENAI_", "OTEL_", "GRAPHRAG_")):
                del os.environ[name]
        os.environ |= {f"TGRAPH_{name.upper()}": value for name, value in settings.items()}
        os.environ |= {"TGRAPH_ROOT": root} if root else {}
        self.section, self._number = section, 0
        self._minute = (self._minute // DAY + 1) * DAY
        print(f"{section} (after {os.times().user:.0f} s of processor time)", file=sys.stderr)

    def take_minute(self) -> int:
        """Go on to the next minute."""
        self._minute += 1
        set_minute(self._minute)
        return self._minute

    def write_text(self, name: str, text: str) -> None:
        name = re.sub(r"[^\w.-]+", "-", name).strip("-")[:80]
        path = self.folder / self.section / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(normalise_text(text), "utf-8")

    def run_lines(self, lines: str | Iterable[str]) -> None:
        for line in lines.strip().splitlines() if isinstance(lines, str) else lines:
            self.run_line(line)

    def run_line(self, line: str) -> str:
        """Run a command; write its exit code, its output and the files that it made in ``out``.

        Its standard output is returned.
        """
        from click.testing import CliRunner

        words = shlex.split(Template(line).safe_substitute(self.names))
        stdin = None
        if "<" in words:
            *words, _, source = words
            stdin = Path(source).read_bytes()
        script, *arguments = words if words[0] in list_scripts() else ("tgraph", *words)
        command, options = find_click_command(script)
        self.take_minute()
        before = list_files(Path("out"))
        result = CliRunner().invoke(command, arguments, input=stdin, **options)
        parts = [f"$ {script} {shlex.join(arguments)}\nexit code {result.exit_code}\n"]
        if result.exception and not isinstance(result.exception, SystemExit):
            parts += traceback.format_exception_only(result.exception)
        parts += [f"--- stdout\n{result.stdout}", f"--- stderr\n{result.stderr}"]
        for path, state in list_files(Path("out")).items():
            if before.get(path) != state:
                parts.append(f"--- file {path}\n{describe_file(path)}")
        self._number += 1
        self.write_text(f"{self._number:03} {line}", "".join(parts))
        if words[0] == "ask" and "--json" in words and result.exit_code in (0, 3):
            self._keep_names(json.loads(result.stdout))
        return result.stdout

    def _keep_names(self, answer: Mapping[str, Any]) -> None:
        self.names["previous"] = self.names.get("session", "")
        self.names["session"] = answer["explain_id"]
        edges = [edge for row in answer.get("selection", ()) if (edge := row.get("edge"))]
        self.names |= {"edge": edges[0]} if edges else {}


# --- commands ---


def record_commands(recording: Recording) -> None:
    """Record the commands, on a graph of the examples by the embedded default."""
    recording.begin_section("cli-index", "graph")
    recording.run_lines(INDEX)
    recording.begin_section("cli-modes", "graph")
    recording.run_lines(f'ask "$fram" -m {mode} -x --show-usage' for mode in MODES)
    recording.run_lines(f'ask "$crushed" -m {mode} --json' for mode in MODES)
    recording.begin_section("cli-ask", "graph")
    recording.run_lines(ASK)
    recording.begin_section("cli-record", "graph")
    recording.run_lines(f"trace $session --format {form}" for form in TRACE_FORMATS)
    recording.run_lines(RECORD)
    recording.begin_section("cli-audits", "graph")
    audits = re.findall(r"^  ([a-z-]+)(?: \[|$| [A-Z])", recording.run_line("audit --list"), re.M)
    for name, option in itertools.product(audits, ("", " --json")):
        recording.run_line(f"audit {name} {AUDIT_ARGUMENTS.get(name, '')}{option}")
    recording.run_lines(
        ("audit sessions --format csv", "audit nothing", "audit integrity --head 0")
    )
    recording.begin_section("cli-look", "graph")
    recording.run_lines(LOOK)
    shutil.copytree("graph", recording.folder / OLD_GRAPHS[0])
    recording.begin_section("cli-elsewhere")
    recording.run_lines(ELSEWHERE)


def record_changes(recording: Recording) -> None:
    """Record the commands that change a graph, on a small one."""
    recording.begin_section("cli-changes", "small")
    recording.run_lines(SMALL)
    recording.run_lines(CHANGES)


def record_model_commands(recording: Recording) -> None:
    """Record the commands that a scripted model works for, over HTTP."""
    from tgraph.testing import ScriptedServer

    with ScriptedServer(port=MODEL_PORT) as server:
        model = {"chat__base_url": server.base_url, "chat__model": "scripted"}
        model |= {"chat__api_key": "none", "chat__concurrency": "1"}
        recording.begin_section("model", "model-graph", **model, embedding__provider="hashing")
        recording.run_lines(MODEL)
        recording.run_lines(f'ask "$aurora" -m {mode} --json' for mode in MODES)
        recording.run_lines(f'ask "$fram" -m {mode}' for mode in MODES)
        recording.run_lines(MODEL_LOOK)
    shutil.copytree("model-graph", recording.folder / OLD_GRAPHS[1])


def record_help(recording: Recording) -> None:
    """Record the help of every command."""
    recording.begin_section("help")
    for script in sorted(list_scripts()):
        record_help_of(recording, script, find_click_command(script)[0], [])


def make_context(command: Any, names: list[str]) -> Any:
    """Return the context of a command below the groups of these names."""
    import click

    context = None
    for name in names:
        context = click.Context(command, parent=context, info_name=name)
    return context


def record_help_of(recording: Recording, script: str, command: Any, path: list[str]) -> None:
    """Record the help of a command and of those below it."""
    import click
    from click.testing import CliRunner

    root, options = find_click_command(script)
    result = CliRunner().invoke(root, [*path, "--help"], **options)
    recording.write_text(" ".join([script, *path]), result.output)
    if isinstance(command, click.Group):
        context = make_context(command, [script, *path])
        for name in sorted(command.list_commands(context)):
            record_help_of(recording, script, command.get_command(context, name), [*path, name])


# --- public names ---


def record_public_names(recording: Recording) -> None:
    """Record what the packages offer, and what the settings are."""
    import tgraph
    import tgraph.testing

    recording.begin_section("public")
    for module in (tgraph, tgraph.testing):
        names = {name: describe_value(getattr(module, name)) for name in sorted(module.__all__)}
        recording.write_text(module.__name__, format_json(names))
    with tgraph.open("empty", create=True) as graph:
        recording.write_text("settings", format_json(type(graph.settings).model_json_schema()))


def describe_value(value: Any) -> Any:
    """The signature of a callable; of a class those of its public members too."""
    if isinstance(value, property):
        return f"property {describe_value(value.fget)}"
    if isinstance(value, (classmethod, staticmethod)):
        return f"{type(value).__name__} {describe_value(value.__func__)}"
    if not callable(value):
        return type(value).__name__
    try:
        signature = str(inspect.signature(value))
    except ValueError:
        signature = "(...)"
    if not isinstance(value, type):
        return signature
    members = [name for name in dir(value) if not name.startswith("_")]
    signatures = {name: describe_value(inspect.getattr_static(value, name)) for name in members}
    return {"signature": signature, "members": signatures}


# --- the library ---


def record_library(recording: Recording) -> None:
    """Record answers and records of two small graphs, without a model and with a scripted one."""
    record_small_graph(recording, scripted=False)
    record_small_graph(recording, scripted=True)


def record_small_graph(recording: Recording, *, scripted: bool) -> None:
    """Record answers and records of a graph with a ticking clock and counted UUIDs."""
    import tgraph
    from tgraph.testing import ticking_clock

    section = f"library-{'scripted' if scripted else 'embedded'}"
    recording.begin_section(section, reader__model="none", chat__concurrency="1")
    recording.take_minute()
    folder, numbers = Path(section), itertools.count()
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    with tgraph.open(
        folder / "graph",
        create=True,
        clock=ticking_clock(),
        uuid=lambda: f"00000000-0000-4000-8000-{next(numbers):012d}",
        **make_models_option(folder, scripted=scripted),
    ) as graph:
        recording.write_text("index", format_json(graph.index([folder / name for name in TEXTS])))
        for mode in MODES:
            for question in TEXT_QUESTIONS:
                call = partial(ask_graph, graph, mode, question)
                recording.write_text(f"ask {mode} {question}", describe_outcome(call))
            recording.write_text(f"integrity {mode}", describe_outcome(graph.integrity))
        for name, method in LIBRARY_CALLS.items():
            recording.write_text(f"method {name}", describe_outcome(partial(method, graph)))
        recording.write_text("quads", list_quads(graph))


def make_models_option(folder: Path, *, scripted: bool) -> dict[str, Any]:
    """The option of ``tgraph.open`` that takes models, found by the name of its type."""
    import tgraph
    from tgraph.testing import HashingEmbedder, ScriptedModel

    with tgraph.open(folder / "empty", create=True) as graph:
        settings = graph.settings
    components_class = next(
        vars(module)["Components"]
        for name, module in sorted(sys.modules.items())
        if name.startswith("tgraph.") and "Components" in vars(module)
    )
    model = ScriptedModel() if scripted else None
    models = components_class(settings, folder / "cache", chat=model, embedder=HashingEmbedder())
    parameters = inspect.signature(tgraph.KnowledgeGraph).parameters.values()
    (option,) = (p.name for p in parameters if "Components" in str(p.annotation))
    return {option: models}


def describe_outcome(call: Callable[[], Any]) -> str:
    """The value that a call returns, or the error that it raises."""
    try:
        return format_json(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}\n"


def ask_graph(graph: Any, mode: str, question: str) -> Any:
    """An answer, and what its record and its replay come to."""
    answer = graph.ask(question, mode, history=[])
    quads = sorted(graph.export(answer.session, "nquads").splitlines())
    replay = graph.replay(answer.session)
    hashes = {"recorded": replay.recorded_hash, "replayed": replay.replayed_hash}
    return {
        "answer": answer,
        "replay": {"same": replay.is_same, "problem": replay.problem, **hashes},
        "record": {"quads": len(quads), "sha256": hashlib.sha256(b"\n".join(quads)).hexdigest()},
    }


def list_quads(graph: Any) -> str:
    """The number of quads of a collection, their hash, and the quads, sorted."""
    rows = graph.sparql("SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }")
    lines = sorted(" ".join(map(str, row)) + " .\n" for row in rows)
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return f"{len(lines)} quads, sha256 {digest}\n{''.join(lines)}"


def call_extension(graph: Any, method: str, function: str, *arguments: Any) -> Any:
    """Return the result of a method of 0.1.0, or of the function of an extension in its place."""
    if hasattr(graph, method):
        return getattr(graph, method)(*arguments)
    return resolve_name(f"tgraph.extensions.{function.replace('.', ':')}")(graph, *arguments)


LIBRARY_CALLS: dict[str, Callable[[Any], Any]] = {
    "sessions": lambda graph: graph.sessions.summaries(3),
    "trace": lambda graph: graph.trace(graph.ask(TEXT_QUESTIONS[0], "graph").session),
    "why_not": lambda graph: graph.why_not("last", "Henri Becquerel"),
    "verify": lambda graph: graph.verify("last"),
    "influence": lambda graph: call_extension(graph, "influence", "lab.measure_influence", "last"),
    "compare": lambda graph: graph.sessions.compare(graph.sessions.summaries(2)[1].explain_id),
    "context_of": lambda graph: graph.gather_context(TEXT_QUESTIONS[0]),
    "suggest": lambda graph: graph.suggest(2),
    "stream": lambda graph: graph.stream(TEXT_QUESTIONS[0], "basic"),
    "documents": lambda graph: graph.documents.summaries(),
    "source": lambda graph: graph.documents.read_extractions("curie.md"),
    "impact": lambda graph: graph.impact("curie.md"),
    "facts": lambda graph: graph.entities.read_facts("Marie Curie"),
    "add_fact": lambda graph: graph.entities.add_fact(
        "Pierre Curie", "died in", "Paris", reason="known"
    ),
    "curations": lambda graph: graph.history.read_curations(),
    "undo": lambda graph: graph.history.undo_curation("last", reason="a trial"),
    "history": lambda graph: graph.history.read_generations(),
    "knowledge_diff": lambda graph: graph.history.compare(1),
    "merges": lambda graph: graph.entities.read_merges(),
    "audit": lambda graph: graph.audit("uncited"),
    "retract": lambda graph: graph.retract("oslo.txt", reason="a trial"),
    "knowledge_hash": lambda graph: call_extension(
        graph, "knowledge_hash", "interchange.hash_knowledge"
    ),
    "integrity": lambda graph: graph.integrity(),
    "knowledge": lambda graph: graph.audit("knowledge"),
}

# --- servers ---


def start_server(recording: Recording, *arguments: str) -> subprocess.Popen[str]:
    """Start ``tgraph`` with these arguments in a process of its own, at a fixed time."""
    minute = str(recording.take_minute())
    call = [sys.executable, str(Path(__file__).resolve()), "run", minute, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(call, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def record_servers(recording: Recording) -> None:
    """Record what servers answer, on a small graph."""
    recording.begin_section("server-index", "served")
    recording.run_lines(SMALL)
    record_web(recording)
    record_agent(recording)


def record_web(recording: Recording) -> None:
    """Record what the server answers to HTTP."""
    recording.begin_section("web", "served")
    with start_server(recording, "serve", "--port", "0") as process:
        assert process.stderr is not None
        first_line = process.stderr.readline()
        address = first_line.split()[-1].rstrip("/")
        document = request_page(address, "/api/v1/openapi.json").partition("\n\n")[2]
        recording.write_text("openapi", format_json(json.loads(document)))
        requests = [*((path, None) for path in WEB_PAGES.split()), *WEB_QUESTIONS]
        for number, (path, body) in enumerate(requests):
            text = f"{path}\n{request_page(address, path, body)}"
            recording.write_text(f"{number:03} {path}", text)
        process.terminate()
        _, errors = process.communicate()
    recording.write_text("process", f"{first_line}{errors}exit code {process.returncode}\n")


def request_page(address: str, path: str, body: Any = None) -> str:
    """Status, headers and body of an answer over HTTP."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(address + path, data, headers)  # noqa: S310
    try:
        reply = urllib.request.urlopen(request)  # noqa: S310
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        lines = [f"{name}: {value}" for name, value in sorted(reply.headers.items())]
        return "\n".join([str(reply.status), *lines, "", describe_bytes(reply.read())])


def record_agent(recording: Recording) -> None:
    """Record what the server for agents answers on its standard output."""
    recording.begin_section("agent", "served")
    with start_server(recording, "mcp") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (method, parameters) in enumerate(AGENT_REQUESTS):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
            print(json.dumps(message), file=process.stdin, flush=True)
            reply: dict[str, Any] = {}
            while reply.get("id") != number:
                reply = json.loads(process.stdout.readline())
            recording.write_text(f"{number:03} {method}", format_json(reply))
            if method == "initialize":
                message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                print(json.dumps(message), file=process.stdin, flush=True)
        process.communicate()
    recording.write_text("process", f"exit code {process.returncode}\n")


# --- the whole ---


@contextmanager
def enter_workplace() -> Iterator[None]:
    """Work in a fresh ``WORKPLACE``, alone; afterwards it is gone."""
    with WORKPLACE.with_suffix(".lock").open("w") as lock:
        print(f"Waiting until nobody else works in {WORKPLACE}", file=sys.stderr)
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(WORKPLACE, ignore_errors=True)
        (WORKPLACE / "out").mkdir(parents=True)
        shutil.copytree(EXAMPLES, WORKPLACE / "examples")
        for name, text in INPUTS.items():
            (WORKPLACE / name).parent.mkdir(exist_ok=True)
            (WORKPLACE / name).write_text(text, "utf-8")
        os.chdir(WORKPLACE)
        os.environ |= {"COLUMNS": "100", "XDG_DATA_HOME": str(WORKPLACE / "data")}
        with fix_time():
            import tgraph

            print(f"Recording {tgraph.__file__}", file=sys.stderr)
            os.environ["PYTHONPATH"] = str(Path(tgraph.__file__).parent.parent)
            yield
        shutil.rmtree(WORKPLACE)


PARTS: dict[str, Callable[[Recording], None]] = {
    "help": record_help,
    "public": record_public_names,
    "commands": record_commands,
    "changes": record_changes,
    "model": record_model_commands,
    "library": record_library,
    "servers": record_servers,
}


def make_recording(folder: Path, names: Iterable[str]) -> None:
    """Record these parts; where one fails, its section gets a file ``failure``."""
    for number, (name, record_part) in enumerate(PARTS.items(), 1):
        recording = Recording(folder, 10 * number)
        try:
            if name in names:
                record_part(recording)
        except Exception:
            recording.write_text("failure", traceback.format_exc())


def reopen_graphs(source: Path, folder: Path) -> None:
    """Record what commands do with the graphs that a recording has left."""
    recording = Recording(folder, 100)
    for name in OLD_GRAPHS:
        shutil.copytree(source / name, name)
        settings = {"embedding__provider": "hashing"} if name.startswith("model") else {}
        recording.begin_section(f"reopened-{name}", name, **settings)
        sessions = json.loads(recording.run_line("sessions --json --limit 1000"))
        recording.run_lines(f"replay {session['explain_id']} --json" for session in sessions)
        recording.run_lines(REOPENED)


def compare_recordings(old: Path, new: Path, *, loose: bool) -> int:
    """Print how two recordings differ; how many files do."""
    names = sorted({path.relative_to(side) for side in (old, new) for path in list_texts(side)})
    if not names:
        raise SystemExit(f"There is no recording in {old} or {new}.")
    count = 0
    for name in names:
        if not ((old / name).is_file() and (new / name).is_file()):
            print(f"=== {name}: only in {old if (old / name).is_file() else new}")
            count += 1
            continue
        before, after = (split_text((side / name).read_text("utf-8"), loose) for side in (old, new))
        if before != after:
            lines = list(list_differences(before, after))
            print(f"=== {name}: {len(lines)} lines of differences")
            print("\n".join(line[:300] for line in lines[:LONGEST_DIFF]))
            count += 1
    print(f"{count} of {len(names)} files differ.")
    return count


def list_texts(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.txt"):
        if path.relative_to(folder).parts[0] not in OLD_GRAPHS:
            yield path


def split_text(text: str, loose: bool) -> list[str]:
    """The lines to be compared; long ones of JSON are cut at their keys."""
    if loose:
        numbers: dict[str, int] = {}
        form = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        text = re.sub(form, lambda m: f"<uuid {numbers.setdefault(m[0], len(numbers))}>", text)
        text = re.sub(r"\b[0-9a-f]{64}\b", "<hash>", text)
    parts: list[str] = []
    for line in normalise_text(text).splitlines():
        parts += re.split(r'(?<=[,{\[]) ?(?=["{])', line) if len(line) > 200 else [line]
    return parts


def list_differences(before: list[str], after: list[str]) -> Iterator[str]:
    """A unified diff; of long texts the lines that only one side has."""
    if len(before) + len(after) < 10_000:
        yield from difflib.unified_diff(before, after, "old", "new", lineterm="", n=1)
        return
    for mark, lines, others in (("-", before, set(after)), ("+", after, set(before))):
        yield from (mark + line for line in lines if line not in others)


def run_script(minute: int, arguments: list[str]) -> None:
    """Run ``tgraph`` with these arguments at a fixed time."""
    with fix_time(minute):
        command, options = find_click_command("tgraph")
        command.main(arguments, **options)


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    actions = arguments.add_subparsers(dest="action", required=True)
    folders = {"make": ["folder"], "reopen": ["folder", "out"], "compare": ["old", "new"]}
    parsers = {name: actions.add_parser(name) for name in folders}
    for name, parser in parsers.items():
        for folder in folders[name]:
            parser.add_argument(folder, type=Path)
    parsers["make"].add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parsers["compare"].add_argument("--loose", action="store_true")
    options = arguments.parse_args()
    if options.action == "compare":
        return int(compare_recordings(options.old, options.new, loose=options.loose) > 0)
    source = options.folder.resolve()
    target = source if options.action == "make" else options.out.resolve()
    target.mkdir(parents=True)
    with enter_workplace():
        if options.action == "make":
            make_recording(target, options.only)
        else:
            reopen_graphs(source, target)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run_script(int(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(main())
