"""How often `tgraph verify` blames the step that is to blame.

Each fault falsifies the reply of exactly one step of indexing or asking; every later step repeats
what it was shown. The model is scripted and answers over HTTP, and so is the judge, by words. With
``--changed`` other texts take the place of those that were asked before each verification.

    python -m benchmarks.verify_faults [--changed]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tgraph
from tgraph.answer.support import LexicalJudge
from tgraph.explain.assess.verification import JudgedSentence
from tgraph.models.base import no_sink
from tgraph.testing import ScriptedServer
from tgraph.testing.script import parse_blocks, plausible_reply
from tgraph.testing.server import ServerRequest

Reply = dict[str, Any]
Falsify = Callable[[ServerRequest, str, str], "str | None"]
"""From a request, the honest reply and the lie to the false reply; None where this reply is not the
one to falsify."""

TEXTS = {
    "curie.txt": "Marie Curie discovered Polonium in 1898. Marie Curie loved Paris.\n",
    "pierre.txt": "Pierre Curie taught Marie Curie. Marie Curie worked in Paris.\n",
}
PEOPLE = [
    start + end
    for start in ("Bal", "Cor", "Dun", "Fen", "Gar", "Hal")
    for end in ("ric", "mont", "ham", "wick")
]
PEOPLE[12:14] = "Marie Curie", "Polonium"


def circles() -> str:
    """Two circles of three groups, so that communities have parts with reports of their own."""
    groups = [PEOPLE[4 * g : 4 * g + 4] for g in range(6)]
    lines = [f"{groups[0][0]} met {groups[3][0]}."]
    for g, members in enumerate(groups):
        lines += [f"{a} led {b}." for n, a in enumerate(members) for b in members[n + 1 :]]
        for other in range(g + 1, g - g % 3 + 3):
            lines += [f"{members[n]} taught {groups[other][n]}." for n in range(4)]
    told = "Marie Curie discovered Polonium in 1898."
    return "\n".join(lines).replace("Marie Curie led Polonium.", told) + "\n"


QUESTION = "What did Marie Curie discover?"
TAUGHT = "Pierre Curie taught Marie Curie."
LIE = "Marie Curie discovered Polonium in Moscow."


@dataclass(frozen=True)
class Fault:
    """A reply that is falsified: of which step, how, and what a verification has to blame.

    ``writer`` says how the answer tells the lie, where it doesn't just repeat it from what it is
    shown; ``sentence`` is what it then says.
    """

    name: str
    step: str
    falsify: Falsify
    mode: str
    blamed: str
    lie: str = LIE
    writer: Falsify | None = None
    sentence: str = ""
    texts: Mapping[str, str] = field(default_factory=lambda: TEXTS)
    settings: Mapping[str, object] = field(default_factory=dict)


# --- a model that repeats what it is shown --------------------------------------------------------


def shown(request: ServerRequest) -> list[Reply]:
    """The rows of a prompt, those inside a report's row after it."""
    rows = []
    for block in parse_blocks(request.body["messages"]).values():
        for line in block.split("\n"):
            row = json.loads(line) if line.startswith("{") else {}
            rows += [row, *row.get("findings", ())] if row else []
    return rows


def _holding(request: ServerRequest, lie: str) -> list[str]:
    """The ids of the smallest rows that say it."""
    key = _flat(lie)
    rows = [row for row in shown(request) if "id" in row and key in _flat(_said(row))]
    return [str(row["id"]) for row in sorted(rows, key=lambda row: len(_said(row)))][:1]


def _said(row: Reply) -> str:
    return json.dumps(row, ensure_ascii=False)


def _flat(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def _finding(reply: Reply, lie: str, ids: Sequence[str]) -> None:
    finding = {"summary": lie, "explanation": lie, "citations": list(ids)}
    reply["findings"] = [finding, *reply["findings"]][:5]
    reply["summary"] = f"{lie} {reply['summary']}"


def _point(reply: Reply, lie: str, ids: Sequence[str]) -> None:
    row = {"description": lie, "score": 95, "citations": list(ids)}
    reply["points"] = [row, *reply["points"]]


def _statement(reply: Reply, lie: str, ids: Sequence[str]) -> None:
    row = {"statement": lie, "citations": list(ids)}
    reply["response"] = [row, *reply["response"]]
    reply["score"] = 90


def _passage(reply: Reply, lie: str, ids: Sequence[str]) -> None:
    reply["summary"] = f"{lie} {reply['summary']}"


SAYS: Mapping[str, Callable[[Reply, str, Sequence[str]], None]] = {
    "community_report": _finding,
    "map_points": _point,
    "drift_primer": _statement,
    "drift_action": _statement,
    "summarise_cluster": _passage,
}
"""How each step says a sentence that rests on the rows with these ids."""


def honest(request: ServerRequest, lie: str) -> str:
    """What a model replies that repeats the lie wherever it is shown it, and makes up nothing."""
    schema = request.body.get("response_format", {}).get("json_schema", {}).get("schema")
    reply = plausible_reply(request.step, request.body["messages"], schema)
    ids = _holding(request, lie)
    if request.step == "synthesise_answer" and ids:
        return _sentence(lie, ids)
    is_shown = any(_flat(lie) in _flat(_said(row)) for row in shown(request))
    if request.step in SAYS and is_shown:
        return said(request.step, reply, lie, ids)
    return reply


def said(step: str, reply: str, lie: str, ids: Sequence[str]) -> str:
    """The reply with the sentence in it."""
    value = json.loads(reply)
    SAYS[step](value, lie, ids)
    return json.dumps(value)


def _sentence(text: str, ids: Sequence[str]) -> str:
    return json.dumps({"sentence": text, "citations": list(ids)})


def judge(request: ServerRequest) -> str:
    """The judge by words, in the place of a model."""
    data = parse_blocks(request.body["messages"])
    texts = [json.loads(line)["text"] for line in data["TEXTS"].split("\n")]
    found = LexicalJudge().judge("", data["STATEMENT"], texts, no_sink)
    verdicts = {"supported": "full", "quoted": "full", "partly": "partial", "unsupported": "none"}
    return json.dumps({"reason": found.reason, "support": verdicts[found.verdict]})


# --- the faults -----------------------------------------------------------------------------------


def _about(row: Reply) -> bool:
    return "Marie Curie" in _said(row) and "Polonium" in _said(row)


def _made_up(request: ServerRequest, reply: str, lie: str) -> str | None:
    """The step says it of the first row that is about the same."""
    ids = [str(row["id"]) for row in shown(request) if "id" in row and _about(row)]
    if not any(_about(row) for row in shown(request)):
        return None
    return said(request.step, reply, lie, ids[-1:])


def _below(request: ServerRequest, reply: str, lie: str) -> str | None:
    """Of the lowest reports alone."""
    if parse_blocks(request.body["messages"]).get("REPORTS", "").startswith("{"):
        return None
    return _made_up(request, reply, lie)


def _above(request: ServerRequest, reply: str, lie: str) -> str | None:
    """Of a report that was made from reports."""
    if not parse_blocks(request.body["messages"]).get("REPORTS", "").startswith("{"):
        return None
    ids = [str(row["id"]) for row in shown(request) if "Marie Curie" in str(row.get("title"))]
    return said(request.step, reply, lie, ids) if ids else None


def _of_passages(request: ServerRequest, reply: str, lie: str) -> str | None:
    """Of the first cluster that is about the same."""
    if not any(_about(row) for row in shown(request)):
        return None
    return said(request.step, reply, lie, ())


def _extraction(kind: str, **changes: object) -> Falsify:
    """One description, or one statement, of what is extracted from the text about Polonium."""

    def falsify(request: ServerRequest, reply: str, lie: str) -> str | None:
        value = json.loads(reply)
        for row in value[kind]:
            if "Polonium" in _said(row):
                row.update(changes or {"description": lie})
                return json.dumps(value)
        return None

    return falsify


def _attribute(request: ServerRequest, reply: str, lie: str) -> str | None:
    if "Polonium" not in reply:
        return None
    value = json.loads(reply)
    quote = "Marie Curie discovered Polonium in 1898."
    value["attributes"] = [
        {
            "subject": "Polonium",
            "predicate": "discovered in",
            "value": "1950",
            "datatype": "gYear",
            "quote": quote,
        }
    ]
    return json.dumps(value)


def _missed(request: ServerRequest, reply: str, lie: str) -> str | None:
    if "Polonium" not in parse_blocks(request.body["messages"]).get("TEXT", ""):
        return None
    row = {
        "subject": "Marie Curie",
        "predicate": "sold",
        "object": "Polonium",
        "description": lie,
        "keywords": [],
        "strength": 9,
        "quote": "Marie Curie discovered Polonium in 1898.",
    }
    return json.dumps({"entities": [], "relationships": [row], "attributes": []})


def _claim(request: ServerRequest, reply: str, lie: str) -> str | None:
    value = json.loads(reply)
    for row in value["claims"]:
        if "Polonium" in row["quote"]:
            row["description"] = lie
            return json.dumps(value)
    return None


def _summary(request: ServerRequest, reply: str, lie: str) -> str | None:
    value = json.loads(reply)
    if "Marie Curie" not in parse_blocks(request.body["messages"])["SUBJECT"]:
        return None
    value["sentences"][0]["text"] = lie
    return json.dumps(value)


def _reasoning(request: ServerRequest, reply: str, lie: str) -> str | None:
    """Of the selection; the writer is not shown it and says the same."""
    rows = _rows(reply)
    for row in rows:
        row["reasoning"] = lie
    return _lines(reply, rows)


def _rows(reply: str) -> list[Reply]:
    return [json.loads(line) for line in reply.split("\n") if line]


def _lines(reply: str, rows: Sequence[Reply]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def _invented(request: ServerRequest, reply: str, lie: str) -> str | None:
    ids = [str(row["id"]) for row in shown(request) if "id" in row]
    return _sentence(lie, ids[:3])


def _joined(request: ServerRequest, reply: str, lie: str) -> str | None:
    """The lie and something true in one sentence, on the citations of both."""
    edges = [row for row in shown(request) if "edge" in row and "Pierre" in _said(row)]
    entities = [row for row in shown(request) if _flat(lie) in _flat(str(row.get("entity")))]
    return _sentence(f"{lie[:-1]}, and {TAUGHT}", [str(r["id"]) for r in (entities[0], edges[0])])


def _wrong_place(request: ServerRequest, reply: str, lie: str) -> str | None:
    """What one edge says, on the citation of another."""
    row = next(row for row in shown(request) if "Polonium" in _said(row))
    return _sentence(lie, [str(row["id"])])


def _uncited(request: ServerRequest, reply: str, lie: str) -> str | None:
    return _sentence(lie, [])


SUMMARIES: Mapping[str, object] = {"summaries.enabled": True}
CLAIMS: Mapping[str, object] = {"claims.enabled": True}
LEVELS: Mapping[str, object] = {
    "reports.max_input_tokens": 1000,
    "global_search.community_level": 0,
}
NESTED = {"circles.txt": circles()}

FAULTS: Sequence[Fault] = (
    Fault(
        "edge description", "extract_graph", _extraction("relationships"), "global", "extraction"
    ),
    Fault("edge description", "extract_graph", _extraction("relationships"), "drift", "extraction"),
    Fault("entity description", "extract_graph", _extraction("entities"), "local", "extraction"),
    Fault(
        "entity description",
        "extract_graph",
        _extraction("entities"),
        "lightrag-hybrid",
        "extraction",
    ),
    Fault(
        "invented edge",
        "extract_graph",
        _extraction("relationships", object="Radium"),
        "graph",
        "extraction",
        "Marie Curie discovered Radium.",
    ),
    Fault(
        "value of an attribute",
        "extract_graph",
        _attribute,
        "graph",
        "extraction",
        "Polonium discovered in 1950.",
    ),
    Fault(
        "edge found in a second look",
        "extract_graph_more",
        _missed,
        "graph",
        "extraction",
        "Marie Curie sold Polonium.",
        settings={"extract.gleanings": 1},
    ),
    Fault("claim", "extract_claims", _claim, "local", "extraction", settings=CLAIMS),
    Fault("summary of descriptions", "summarise_descriptions", _summary, "local", "summary"),
    Fault("report", "community_report", _below, "global", "report"),
    Fault("report", "community_report", _below, "drift", "report"),
    Fault("report", "community_report", _below, "local", "report"),
    Fault(
        "sub-report",
        "community_report",
        _below,
        "global",
        "sub-report",
        texts=NESTED,
        settings=LEVELS,
    ),
    Fault(
        "report on reports",
        "community_report",
        _above,
        "global",
        "report",
        texts=NESTED,
        settings=LEVELS,
    ),
    Fault("point", "map_points", _made_up, "global", "point"),
    Fault("intermediate answer", "drift_action", _made_up, "drift", "point"),
    Fault("answer of the primer", "drift_primer", _made_up, "drift", "point"),
    Fault("summary of a cluster", "summarise_cluster", _of_passages, "raptor", "summary"),
    Fault("summary of a cluster", "summarise_cluster", _of_passages, "raptor-traversal", "summary"),
    Fault(
        "reasoning of a selection",
        "select_edges",
        _reasoning,
        "graph",
        "selection",
        writer=_invented,
    ),
    Fault(
        "report that is half true",
        "community_report",
        _below,
        "global",
        "report",
        "Marie Curie discovered Polonium in 1898 in Moscow.",
    ),
    Fault(
        "description joined with what is true",
        "extract_graph",
        _extraction("entities"),
        "local",
        "extraction",
        writer=_joined,
        sentence=f"{LIE[:-1]}, and {TAUGHT}",
    ),
    Fault("invented sentence", "synthesise_answer", _invented, "graph", "answer"),
    Fault("invented sentence", "synthesise_answer", _invented, "global", "answer"),
    Fault("invented sentence", "synthesise_answer", _invented, "basic", "answer"),
    Fault("sentence that cites nothing", "synthesise_answer", _uncited, "local", "answer"),
    Fault(
        "citation of another edge",
        "synthesise_answer",
        _wrong_place,
        "graph",
        "answer",
        TAUGHT,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What a verification said of the false sentence; None where the answer does not have it."""

    fault: Fault
    sentence: JudgedSentence | None
    others: tuple[JudgedSentence, ...]

    @property
    def blamed(self) -> str:
        if self.sentence is None:
            return "(not in the answer)"
        return self.sentence.lost.step if self.sentence.lost else f"({self.sentence.verdict})"

    @property
    def right(self) -> bool:
        return self.blamed == self.fault.blamed


class _Liar:
    """Falsifies the first reply of the step that it can, and is honest from then on."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.lied = 0

    def replies(self) -> dict[str, Callable[[ServerRequest], str]]:
        steps = {self._fault.step, *SAYS, "synthesise_answer"}
        return {**dict.fromkeys(steps, self._reply), "judge_support": judge}

    def _reply(self, request: ServerRequest) -> str:
        fault = self._fault
        reply = honest(request, fault.lie)
        if request.step == fault.step and not self.lied:
            false = fault.falsify(request, reply, fault.lie)
            if false is not None:
                self.lied += 1
                return false
        if fault.writer and request.step == "synthesise_answer":
            return fault.writer(request, reply, fault.lie) or reply
        return reply


def run(fault: Fault, folder: Path, *, changed: Mapping[str, str] | None = None) -> Outcome:
    """Index, ask and verify with that one fault; texts that are ``changed`` after asking are
    indexed before verifying."""
    liar = _Liar(fault)
    with ScriptedServer(liar.replies()) as server, _opened(folder, fault, server) as kg:
        _index(kg, folder, fault.texts)
        answer = kg.ask(QUESTION, fault.mode, history=[])
        _index(kg, folder, changed or {})
        assert liar.lied == 1, f"{fault.name}: {liar.lied} replies were falsified"
        found = kg.verify(answer.session).sentences
    told = _flat(fault.sentence or fault.lie)
    false = next((s for s in found if _flat(s.text) == told), None)
    return Outcome(fault, false, tuple(s for s in found if s is not false))


def _index(kg: tgraph.KnowledgeGraph, folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)
    if texts:
        kg.index([folder / name for name in texts])


def _opened(folder: Path, fault: Fault, server: ScriptedServer) -> tgraph.KnowledgeGraph:
    values: dict[str, object] = {
        "chat.base_url": server.base_url,
        "chat.model": "scripted",
        "chat.concurrency": 1,
        "embedding.provider": "hashing",
        "extract.gleanings": 0,
        **fault.settings,
    }
    return tgraph.open(folder / "graph", create=True, settings=values)


def main() -> None:
    """Print each fault with what was blamed, and the share that was blamed rightly."""
    outcomes = []
    for each in _outcomes(changed="--changed" in sys.argv[1:]):
        outcomes.append(each)
        fault = each.fault
        mark = "" if each.right else f"  WRONG: {fault.blamed} was to blame"
        print(f"{fault.name:30} {fault.mode:18} {each.blamed:12}{mark}")
    right = sum(each.right for each in outcomes)
    print(f"{right} of {len(outcomes)} blamed on the right step")
    sys.exit(right < len(outcomes) * 0.9)


def later(fault: Fault) -> Mapping[str, str]:
    """Texts in the place of the fault's: they say the lie, and more of whom it is on."""
    lie = fault.sentence or fault.lie
    return dict.fromkeys(fault.texts, f"{lie} Marie Curie taught Fenham and left Paris.\n")


def _outcomes(*, changed: bool) -> Iterator[Outcome]:
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            yield run(fault, Path(folder), changed=later(fault) if changed else None)


if __name__ == "__main__":
    main()
