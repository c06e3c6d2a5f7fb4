"""A scripted model for Microsoft GraphRAG and LightRAG: answers in the formats they ask for.

It finds the same names in a text as the scripted model of ``tgraph.testing``, so that all systems
are measured with a graph of the same kind. ``python -m benchmarks.peer_stub DIMENSION`` serves it.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tgraph.testing import ScriptedServer, ServerRequest
from tgraph.testing.script import plausible_reply

_FOLLOW_UPS = 5
_SUMMARY_WORDS = 500
_FINDINGS = 8
_REAL_DATA = re.compile(r"Real Data\b")
_TEXT = re.compile(r"^Text: *\n?(.*?)(?:^#{6,}$|^The report should include)", re.DOTALL | re.M)
_DESCRIPTIONS = re.compile(r"^Description List: (.*?)^#{6,}$", re.DOTALL | re.M)
_ROW = re.compile(r"^(\d+),([^,]+),(.*)$", re.M)
_LIGHTRAG_TEXT = re.compile(r"^---Input Text---\n```\n(.*)^```$", re.DOTALL | re.M)
_LIGHTRAG_MOST = re.compile(r"at most (\d+) (total|entity) rows")
_LIGHTRAG_DESCRIPTION = re.compile(r'^\{"Description": .*\}$', re.M)
_LIGHTRAG_QUESTION = re.compile(r"^User Query: (.*)$", re.M)
_REPORT = re.compile(r"^(\d+)\|([^|]+)\|", re.M)
_NAME = re.compile(r"\b(?:[A-Z][a-z]{3,}|[A-Z]{4,})\b")
_WORD = re.compile(r"\w{4,}")


def scripted_graph(text: str) -> Any:
    """The graph that tgraph's scripted model finds in the text."""
    return _scripted("extract_graph", "TEXT", text)


class PeerServer(ScriptedServer):
    """A scripted server that answers the peers' prompts from what they hold."""

    def read_graph(self, text: str) -> Any:
        return scripted_graph(text)

    def write_reply(self, request: ServerRequest) -> str:
        return reply(request.step, request.body["messages"], self.read_graph)


def reply(
    step: str,
    messages: Sequence[Mapping[str, Any]],
    read_graph: Callable[[str], Any] = scripted_graph,
) -> str:
    """What the model answers a prompt of a peer, in the format that the prompt asks for.

    ``step`` is the name of the response format, empty where there is none; ``read_graph`` gives
    the entities and relationships of a text.
    """
    prompt = "\n".join(_content(message) for message in messages)
    if step == "CommunityReportResponse":
        return json.dumps(_community_report(prompt))
    if step == "PrimerResponse":
        return json.dumps({"intermediate_answer": _said(prompt), **_follow_ups(prompt)})
    if "<|COMPLETE|>" in prompt:
        gleaning = any(message["role"] == "assistant" for message in messages)
        return "<|COMPLETE|>" if gleaning else _tuples(prompt, read_graph)
    if "low_level_keywords" in prompt:
        return json.dumps(_keywords(prompt))
    if "Description List:" in prompt:
        return _summary(prompt)
    if '"points"' in prompt:
        return json.dumps({"points": _points(prompt, _content(messages[-1]))})
    if "follow_up_queries" in prompt:
        return json.dumps({"response": _said(prompt), **_follow_ups(prompt)})
    return _said(prompt)


def _content(message: Mapping[str, Any]) -> str:
    """A message's text, which may come in parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def _real(prompt: str) -> str:
    """The text that the prompt is about, which stands after its examples."""
    data = _REAL_DATA.split(prompt, maxsplit=1)[-1]
    found = _TEXT.search(data)
    return found.group(1).strip() if found else ""


def _tuples(prompt: str, read_graph: Callable[[str], Any]) -> str:
    """The entities and relationships of the text that the prompt asks about."""
    if found := _LIGHTRAG_TEXT.search(prompt):
        return _lightrag_tuples(read_graph(found.group(1)), prompt)
    graph = read_graph(_real(prompt))
    rows = [("entity", e["name"], e["type"], e["description"]) for e in graph["entities"]]
    links = [
        ("relationship", r["subject"], r["object"], r["description"], str(r["strength"]))
        for r in graph["relationships"]
    ]
    records = (f'("{row[0]}"<|>' + "<|>".join(map(_flat, row[1:])) + ")" for row in rows + links)
    return "\n##\n".join(records) + "\n<|COMPLETE|>"


def _scripted(step: str, block: str, text: str) -> Any:
    asked = [{"content": f"<<<{block}\n{text}\n{block}>>>"}]
    return json.loads(plausible_reply(step, asked))


def _lightrag_tuples(graph: Any, prompt: str) -> str:
    """As many of them as the prompt allows, and relationships of what is among them only."""
    most = {kind: int(number) for number, kind in _LIGHTRAG_MOST.findall(prompt)}
    entities = graph["entities"][: most["entity"]]
    names = {entity["name"] for entity in entities}
    rows = [("entity", e["name"], e["type"], e["description"]) for e in entities]
    links = [
        ("relation", r["subject"], r["object"], ", ".join(r["keywords"]), r["description"])
        for r in graph["relationships"]
        if {r["subject"], r["object"]} <= names
    ]
    records = ("<|#|>".join(map(_flat, row)) for row in [*rows, *links][: most["total"]])
    return "\n".join([*records, "<|COMPLETE|>"])


def _keywords(prompt: str) -> dict[str, list[str]]:
    """What tgraph's scripted model finds in the same question."""
    question = _LIGHTRAG_QUESTION.findall(prompt)[-1]
    return {
        f"{level}_level_keywords": found
        for level, found in _scripted("extract_keywords", "QUESTION", question).items()
    }


def _flat(text: str) -> str:
    return " ".join(text.replace("##", " ").replace("<|", " ").split())


def _summary(prompt: str) -> str:
    found = _DESCRIPTIONS.search(prompt)
    listed = json.loads(found.group(1)) if found else _lightrag_descriptions(prompt)
    words = " ".join(dict.fromkeys(listed)).split()
    return " ".join(words[:_SUMMARY_WORDS])


def _lightrag_descriptions(prompt: str) -> list[str]:
    return [json.loads(row)["Description"] for row in _LIGHTRAG_DESCRIPTION.findall(prompt)]


def _community_report(prompt: str) -> dict[str, Any]:
    rows = _ROW.findall(_real(prompt))
    names = list(dict.fromkeys(name for _, name, _ in rows)) or ["Nobody"]
    findings = [
        {"summary": name, "explanation": f"{about} [Data: Entities ({number})]"}
        for number, name, about in rows[:_FINDINGS]
    ]
    return {
        "title": " and ".join(names[:2]),
        "summary": f"This is about {', '.join(names[:10])}.",
        "findings": findings,
        "rating": 5.0,
        "rating_explanation": "It is as important as any other.",
    }


def _points(prompt: str, question: str) -> list[dict[str, Any]]:
    """A point of each report, scored by the words that the report's title shares with it."""
    wanted = set(_WORD.findall(question.lower()))
    return [
        {
            "description": f"It is about {title} [Data: Reports ({number})].",
            "score": 10 + 10 * len(wanted & set(_WORD.findall(title.lower()))),
        }
        for number, title in _REPORT.findall(prompt)
    ]


def _follow_ups(prompt: str) -> dict[str, Any]:
    """A score, and as many questions as the prompt asks for at least, about names in it."""
    questions = [f"What did {name.title()} do?" for name in _some_names(prompt, _FOLLOW_UPS)]
    return {"score": 50, "follow_up_queries": questions}


def _said(prompt: str) -> str:
    names = _some_names(prompt, _FINDINGS)
    return " ".join(f"{name.title()} is named there [Data: Sources (1)]." for name in names)


def _some_names(prompt: str, count: int) -> list[str]:
    """Names that stand in the prompt, others for another prompt."""
    names = sorted({name.upper() for name in _NAME.findall(prompt)}) or ["NOBODY"]
    start = zlib.crc32(prompt.encode()) % len(names)
    return (names[start:] + names[:start])[:count]


def serve(dimension: int) -> None:
    """Prints the base URL; then, for each line it reads, what has been asked since the last."""
    seen = 0
    with PeerServer(dimension=dimension) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            asked = server.requests[seen:]
            seen += len(asked)
            prompts = [r.body["messages"] for r in asked if r.step != "embeddings"]
            tokens = sum(sum(len(_content(m)) for m in ms) // 4 + 1 for ms in prompts)
            print(json.dumps([len(prompts), len(asked) - len(prompts), tokens]), flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
