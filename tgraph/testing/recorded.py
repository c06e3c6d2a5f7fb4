"""Replies of a real model, recorded elsewhere, given again to the prompts that they fit.

A recording is known by its request; where the requests are not tgraph's, or are not kept, the
content tells: the reply about a passage speaks in the passage's words and names.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from tgraph.errors import UsageError
from tgraph.models.base import ChatRequest
from tgraph.testing.script import blocks
from tgraph.testing.scripted_model import ScriptedModel
from tgraph.testing.scripted_steps import rows_of

_WORD = re.compile(r"\w+")
Term = str | tuple[str, str]
_NOTHING = '{"entities": [], "relationships": [], "attributes": []}'
_ENOUGH = 0.08
_MOST_REPORTS = 5
_MOST_CITED = 5
_MOST_RESTING = 2
_HAN = re.compile(r"[\u4e00-\u9fff]")
_FOREIGN = re.compile(r"\s*\[Data:[^\]]*\]")


def read_recorded(path: str | Path) -> list[str]:
    """The replies of a JSON file: of nano-graphrag's cache (``{key: {"return": text, ...}}``), of
    any object of texts, or of a list of texts. ``UsageError`` where it holds something else."""
    data = json.loads(Path(path).read_text("utf-8"))
    values = list(data.values()) if isinstance(data, dict) else data
    entries = values if isinstance(values, list) else [None]
    replies = [entry.get("return") if isinstance(entry, dict) else entry for entry in entries]
    texts = [reply for reply in replies if isinstance(reply, str)]
    if len(texts) < len(replies):
        raise UsageError(f"{path} holds no recorded replies.", "It should hold an object of texts.")
    return texts


class RecordedModel(ScriptedModel):
    """A ``ChatModel`` whose replies were recorded: no key, no network, the same every time.

    ``replies`` are sorted by what they are: extractions in the tuple format, community reports,
    answers, and the rest, descriptions. A passage (the block ``TEXT`` of ``extract_graph``) gets
    the extraction that fits it best, the round for what was missed the one that fits second best; a
    passage that none fits gets an extraction of nothing. ``community_report`` gets the report that
    fits its data best. Its findings cite what they name: the ids that were recorded belong to
    another graph. A question gets the answer that fits it best, whose sentences cite the evidence
    that fits each. Steps that were not recorded, and data that no report fits, are answered as by
    ``ScriptedModel``. ``used`` holds every recorded reply that was given.
    """

    def __init__(self, replies: Iterable[str], *, name: str = "recorded") -> None:
        given = list(replies)
        self._extractions = _Matcher([reply for reply in given if "<|>" in reply])
        self._reports = _Matcher(list(filter(_is_report, given)))
        self._answers = _Matcher([reply for reply in given if _sentences(reply)])
        self.used: set[str] = set()
        super().__init__(name=name)

    def _say(self, request: ChatRequest) -> str:
        step = request.prompt.name
        if step in ("extract_graph", "extract_graph_more"):
            passage = blocks(request.messages).get("TEXT", "")
            fitting = self._extractions.fitting(passage, 2)
            given = fitting[step == "extract_graph_more" :][:1]
            self.used.update(given)
            return given[0] if given else _NOTHING
        if step == "community_report":
            data = blocks(request.messages)
            for report in self._reports.fitting("\n".join(data.values()), _MOST_REPORTS):
                cited = citing(report, data)
                if cited:
                    self.used.add(report)
                    return cited
        if step == "synthesise_answer":
            data = blocks(request.messages)
            for answer in self._answers.fitting(data.get("QUESTION", ""), 1):
                if answered := resting(answer, data):
                    self.used.add(answer)
                    return answered
        return super()._say(request)


def _is_report(reply: str) -> bool:
    try:
        found = json.loads(reply)["findings"]
        return all({"summary", "explanation"} <= set(finding) for finding in found)
    except (ValueError, TypeError, KeyError):
        return False


def citing(report: str, data: Mapping[str, str]) -> str:
    """A recorded report whose findings cite what they name of the prompt's data: the relationships
    whose ends they both name, else the entities. Empty where no finding names anything."""
    content = json.loads(report)
    ends = {row["id"]: _ends(row) for row in rows_of(data.get("RELATIONSHIPS", ""))}
    names = {row["id"]: [_plain(row.get("name", ""))] for row in rows_of(data.get("ENTITIES", ""))}
    findings = []
    for finding in content["findings"]:
        summary, explanation = (_FOREIGN.sub("", finding[k]) for k in ("summary", "explanation"))
        said = f" {_plain(f'{summary} {explanation}')} "
        ids = _named(ends, said) or _named(names, said)
        findings.append({"summary": summary, "explanation": explanation, "citations": ids})
    if not any(finding["citations"] for finding in findings):
        return ""
    return json.dumps({**content, "findings": findings}, ensure_ascii=False)


def _sentences(reply: str) -> list[dict[str, Any]]:
    """The sentences of a recorded answer; none where it isn't one."""
    try:
        rows = [json.loads(line) for line in reply.strip().split("\n")]
    except ValueError:
        return []
    return rows if all(isinstance(row, dict) and "sentence" in row for row in rows) else []


def resting(answer: str, data: Mapping[str, str]) -> str:
    """A recorded answer whose sentences cite, of the prompt's evidence, what says most of the same.
    Empty where nothing does of one of them."""
    shown = {json.dumps(row, ensure_ascii=False): row for row in rows_of(data.get("EVIDENCE", ""))}
    evidence = _Matcher(list(shown))
    lines = []
    for row in _sentences(answer):
        ids = [shown[text]["id"] for text in evidence.fitting(row["sentence"], _MOST_RESTING)]
        if not ids:
            return ""
        lines.append(json.dumps({**row, "citations": ids}, ensure_ascii=False))
    return "\n".join(lines)


def _ends(row: Mapping[str, Any]) -> list[str]:
    subject, *_, obj = str(row.get("edge", "")).split("|")
    return [_plain(subject), _plain(obj)]


def _plain(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text.lower()) if word != "the")


def _named(named: Mapping[str, Sequence[str]], said: str) -> list[str]:
    """The ids all whose names stand in the text, as whole words."""
    found = (i for i, names in named.items() if all(n and _stands(n, said) for n in names))
    return list(islice(found, _MOST_CITED))


def _stands(name: str, said: str) -> bool:
    return (name if _HAN.search(name) else f" {name} ") in said


class _Matcher:
    """Which of some texts speak of the same as another: by the words, and the pairs of neighbouring
    words, that they share, rare ones first.

    The weight of each is its inverse document frequency (Spärck Jones 1972) among the texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [(text, _terms(text)) for text in texts]
        counts = Counter(term for _, terms in self._texts for term in terms)
        self._weight = {term: math.log((len(texts) + 1) / n) for term, n in counts.items()}
        self._whole = [self._sum(terms) or 1.0 for _, terms in self._texts]

    def fitting(self, text: str, most: int) -> list[str]:
        """At most ``most`` of the texts, best first; those with hardly a word in common are out."""
        wanted = _terms(text)
        shared = [self._sum(terms & wanted) for _, terms in self._texts]
        near = [
            (-(weight**1.5) / whole, at)  # between the share of a text and the amount of it
            for at, (weight, whole) in enumerate(zip(shared, self._whole, strict=True))
            if weight > _ENOUGH * whole
        ]
        return [self._texts[at][0] for _, at in sorted(near)[:most]]

    def _sum(self, terms: Iterable[Term]) -> float:
        return math.fsum(self._weight[term] for term in terms)


def _terms(text: str) -> frozenset[Term]:
    words = [part for word in _WORD.findall(text.lower()) for part in _parts(word)]
    return frozenset([*words, *pairwise(words)])


def _parts(word: str) -> Iterable[str]:
    """The word, or its characters where it is of a script without spaces."""
    return word if _HAN.search(word) else (word,)
