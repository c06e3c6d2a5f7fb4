"""Recorded replies of a real model, matched to prompts.

Recordings normally match by request; where requests differ from tgraph's or are missing,
content decides: a passage reply shares words and names with the passage."""

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
from tgraph.testing.script import parse_blocks
from tgraph.testing.scripted_model import ScriptedModel
from tgraph.testing.scripted_steps import rows_of

_WORD = re.compile(r"\w+")
TermText = str | tuple[str, str]
_NOTHING = '{"entities": [], "relationships": [], "attributes": []}'
_ENOUGH = 0.08
_MOST_REPORTS = 5
_MOST_CITED = 5
_MOST_RESTING = 2
_HAN = re.compile(r"[\u4e00-\u9fff]")
_FOREIGN = re.compile(r"\s*\[Data:[^\]]*\]")


def read_recorded(path: str | Path) -> list[str]:
    """Read recorded replies from a JSON file.

    Formats: nano-graphrag cache (``{key: {"return": text, ...}}``), any object of texts, or a
    list of texts. Raise ``UsageError`` for other contents."""
    data = json.loads(Path(path).read_text("utf-8"))
    values = list(data.values()) if isinstance(data, dict) else data
    entries = values if isinstance(values, list) else [None]
    replies = [entry.get("return") if isinstance(entry, dict) else entry for entry in entries]
    texts = [reply for reply in replies if isinstance(reply, str)]
    if len(texts) < len(replies):
        raise UsageError(f"{path} holds no recorded replies.", "It should hold an object of texts.")
    return texts


class RecordedModel(ScriptedModel):
    """A ``ChatModel`` with recorded replies: no key, no network, reproducible.

    ``replies`` are sorted by type: extractions in tuple format, community reports, answers, and
    other texts as descriptions. A passage (``TEXT`` block of ``extract_graph``) gets the best
    matching extraction, the follow-up round for missed items the second best; unmatched
    passages get an empty extraction. ``community_report`` gets the report matching its data
    best; findings cite named items, since recorded ids belong to another graph. A question gets
    the best matching answer, each sentence citing matching evidence. Unrecorded steps, and data
    without matching reports, are answered by ``ScriptedModel``. ``used`` contains every
    recorded reply given."""

    def __init__(self, replies: Iterable[str], *, name: str = "recorded") -> None:
        reply_list = list(replies)
        self._extractions = _Matcher([reply for reply in reply_list if "<|>" in reply])
        self._reports = _Matcher(list(filter(_is_report, reply_list)))
        self._answers = _Matcher([reply for reply in reply_list if _answer_sentences(reply)])
        self.used: set[str] = set()
        super().__init__(name=name)

    def _write_reply(self, request: ChatRequest) -> str:
        step = request.prompt.name
        if step in ("extract_graph", "extract_graph_more"):
            passage = parse_blocks(request.messages).get("TEXT", "")
            fitting = self._extractions.fitting(passage, 2)
            fitting_replies = fitting[step == "extract_graph_more" :][:1]
            self.used.update(fitting_replies)
            return fitting_replies[0] if fitting_replies else _NOTHING
        if step == "community_report":
            data = parse_blocks(request.messages)
            for report in self._reports.fitting("\n".join(data.values()), _MOST_REPORTS):
                cited = cite_report(report, data)
                if cited:
                    self.used.add(report)
                    return cited
        if step == "synthesise_answer":
            data = parse_blocks(request.messages)
            for answer in self._answers.fitting(data.get("QUESTION", ""), 1):
                if answered := cite_answer(answer, data):
                    self.used.add(answer)
                    return answered
        return super()._write_reply(request)


def _is_report(reply: str) -> bool:
    try:
        findings = json.loads(reply)["findings"]
        return all({"summary", "explanation"} <= set(finding) for finding in findings)
    except (ValueError, TypeError, KeyError):
        return False


def cite_report(report: str, data: Mapping[str, str]) -> str:
    """Return a recorded report with findings citing prompt data.

    Findings cite relationships with both ends named, otherwise named entities. Return an empty
    string if no finding names anything."""
    content = json.loads(report)
    ends = {row["id"]: _edge_ends(row) for row in rows_of(data.get("RELATIONSHIPS", ""))}
    names = {
        row["id"]: [_normalise_text(row.get("name", ""))]
        for row in rows_of(data.get("ENTITIES", ""))
    }
    findings = []
    for finding in content["findings"]:
        summary, explanation = (_FOREIGN.sub("", finding[k]) for k in ("summary", "explanation"))
        finding_text = f" {_normalise_text(f'{summary} {explanation}')} "
        ids = _find_cited_ids(ends, finding_text) or _find_cited_ids(names, finding_text)
        findings.append({"summary": summary, "explanation": explanation, "citations": ids})
    if not any(finding["citations"] for finding in findings):
        return ""
    return json.dumps({**content, "findings": findings}, ensure_ascii=False)


def _answer_sentences(reply: str) -> list[dict[str, Any]]:
    """Return sentences of a recorded answer; return none for other replies."""
    try:
        rows = [json.loads(line) for line in reply.strip().split("\n")]
    except ValueError:
        return []
    return rows if all(isinstance(row, dict) and "sentence" in row for row in rows) else []


def cite_answer(answer: str, data: Mapping[str, str]) -> str:
    """Return a recorded answer, each sentence citing the most similar prompt evidence.

    Return an empty string if a sentence lacks similar evidence."""
    rows_by_text = {
        json.dumps(row, ensure_ascii=False): row for row in rows_of(data.get("EVIDENCE", ""))
    }
    evidence = _Matcher(list(rows_by_text))
    lines = []
    for row in _answer_sentences(answer):
        ids = [
            rows_by_text[text]["id"] for text in evidence.fitting(row["sentence"], _MOST_RESTING)
        ]
        if not ids:
            return ""
        lines.append(json.dumps({**row, "citations": ids}, ensure_ascii=False))
    return "\n".join(lines)


def _edge_ends(row: Mapping[str, Any]) -> list[str]:
    subject, *_, obj = str(row.get("edge", "")).split("|")
    return [_normalise_text(subject), _normalise_text(obj)]


def _normalise_text(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text.lower()) if word != "the")


def _find_cited_ids(named: Mapping[str, Sequence[str]], said: str) -> list[str]:
    """Return ids with all names occurring in the text, matching whole words."""
    matching_ids = (
        i for i, names in named.items() if all(n and _contains_name(n, said) for n in names)
    )
    return list(islice(matching_ids, _MOST_CITED))


def _contains_name(name: str, said: str) -> bool:
    return (name if _HAN.search(name) else f" {name} ") in said


class _Matcher:
    """A text matcher by shared words and word pairs, favouring rare ones.

    Weights are inverse document frequencies (Spärck Jones 1972) among the texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [(text, _collect_terms(text)) for text in texts]
        counts = Counter(term for _, terms in self._texts for term in terms)
        self._weight = {term: math.log((len(texts) + 1) / n) for term, n in counts.items()}
        self._whole = [self._sum_weights(terms) or 1.0 for _, terms in self._texts]

    def fitting(self, text: str, most: int) -> list[str]:
        """Return at most ``most`` matching texts, best first, excluding texts with hardly any
        shared words."""
        query_terms = _collect_terms(text)
        shared = [self._sum_weights(terms & query_terms) for _, terms in self._texts]
        near = [
            (-(weight**1.5) / total, at)  # between the share of a text and the amount of it
            for at, (weight, total) in enumerate(zip(shared, self._whole, strict=True))
            if weight > _ENOUGH * total
        ]
        return [self._texts[at][0] for _, at in sorted(near)[:most]]

    def _sum_weights(self, terms: Iterable[TermText]) -> float:
        return math.fsum(self._weight[term] for term in terms)


def _collect_terms(text: str) -> frozenset[TermText]:
    words = [part for word in _WORD.findall(text.lower()) for part in _split_word(word)]
    return frozenset([*words, *pairwise(words)])


def _split_word(word: str) -> Iterable[str]:
    """Return the word, or its characters for scripts without spaces."""
    return word if _HAN.search(word) else (word,)
