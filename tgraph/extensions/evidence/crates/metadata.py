"""The metadata of an evidence package: a Provenance Run Crate 0.5 (Workflow Run RO-Crate) on
RO-Crate 1.1. The session is the run of a workflow, its method; each step on record is a tool's run.

Everything in it is in the record too; it is there for programs that read crates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from tgraph.explain.render.templates import template
from tgraph.extensions.evidence.crates.container import MANIFEST
from tgraph.rendering import one_line

if TYPE_CHECKING:
    from tgraph.explain.trace.values import Trace, TraceStep
    from tgraph.extensions.evidence.crates.about import About

Entity = dict[str, Any]

_CRATE = "https://w3id.org/ro/crate/1.1"
_WORKFLOW = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    _WORKFLOW: ("Workflow RO-Crate", "1.0"),
}
_HOME = "https://pypi.org/project/tgraph-rag/"
_RIGHTS = "#rights"
_ENGINE, _RUN, _LANGUAGE = "#tgraph", "#run", "#method-language"
_QUESTION, _ANSWER = "#question", "#answer"
_DONE = "http://schema.org/CompletedActionStatus"
_FAILED = "http://schema.org/FailedActionStatus"
_LONGEST = 120

_FILES: Mapping[str, tuple[str, str, str]] = {
    "answer.txt": ("Answer", "text/plain", "The answer, as it was given."),
    "report.html": ("Report", "text/html", "How the answer came about, to be read by people."),
    "record.nq": (
        "Record",
        "application/n-quads",
        "The session's record in PROV-O with what it refers to, and its entry of the chain.",
    ),
    "knowledge.nq": (
        "Knowledge read",
        "application/n-quads",
        "The statements beside the record that the report and a replay read.",
    ),
    "reads.json": (
        "Reads",
        "application/json",
        "What was retrieved, and what else a replay reads.",
    ),
    "README.md": ("Read me", "text/markdown", "What this is, and how it is checked."),
    "crate.json": ("About", "application/json", "Which session this is of, and what it holds."),
    MANIFEST: ("Manifest", "text/plain", "The SHA-256 of every other file."),
}
_FOLDERS: Mapping[str, tuple[str, str, str]] = {
    "calls": ("Call", "application/json", "A request and its reply, under their SHA-256."),
    "pages": ("Page", "text/plain", "The text of a page, under its SHA-256."),
    "prompts": ("Prompt", "text/markdown", "A prompt, under its SHA-256."),
    "texts": ("Text", "text/plain", "A text that the record refers to, under its SHA-256."),
}


def method(trace: Trace) -> bytes:
    """The method of the session: its mode, its steps and its parameters."""
    said = {
        "mode": trace.mode,
        "steps": [{"kind": s.kind, "by": list(s.agents)} for s in trace.steps],
        "parameters": dict(trace.parameters),
    }
    return _json(said)


def read_me(trace: Trace, about: About) -> bytes:
    """What the package is, for whoever unpacks it."""
    replay = f"It can't be replayed from itself: {about.no_replay}" if about.no_replay else ""
    said = template("package.md").render(trace=trace, about=about, replay=replay, one_line=one_line)
    return said.encode("utf-8", "replace")


def metadata(trace: Trace, about: About, files: Mapping[str, bytes]) -> bytes:
    """The metadata of a package with these files, and the manifest."""
    tools = _tools(trace)
    run = list(_run(trace, about, tools, files))
    graph = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": _to("./"),
            "conformsTo": [_to(_CRATE), _to(_WORKFLOW)],
        },
        _root(trace, files, [each["@id"] for each in run]),
        *({"@id": p, "@type": "CreativeWork", "name": n, "version": x} for p, (n, x) in _known()),
        _workflow(trace, tools, files["method.json"]),
        *_about_it(about),
        *tools.values(),
        *_steps(trace, tools),
        *run,
        *(_file(name, data) for name, data in sorted(files.items()) if name != "method.json"),
        _file(MANIFEST, None),
    ]
    context = [f"{_CRATE}/context", "https://w3id.org/ro/terms/workflow-run/context"]
    return _json({"@context": context, "@graph": graph})


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")


def _known() -> Iterator[tuple[str, tuple[str, str]]]:
    yield from _PROFILES.items()


def _to(target: str) -> Entity:
    return {"@id": target}


def _root(trace: Trace, files: Mapping[str, bytes], mentioned: list[str]) -> Entity:
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Evidence of an answer: {one_line(trace.question, _LONGEST)}",
        "description": (
            f"The answer of the session {trace.explain_id} with the quotes that it rests on and"
            " the record of how it came about. `tgraph verify-crate` checks and replays it."
        ),
        "datePublished": _iso(trace.ended or trace.started),
        "license": _to(_RIGHTS),
        "conformsTo": [_to(profile) for profile in _PROFILES],
        "mainEntity": _to("method.json"),
        "hasPart": [_to(name) for name in sorted([*files, MANIFEST])],
        "mentions": [_to(each) for each in mentioned],
    }


def _workflow(trace: Trace, tools: Mapping[str, Entity], data: bytes) -> Entity:
    return {
        "@id": "method.json",
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        "name": f"The method {trace.mode}",
        "description": "The steps of the session and the parameters that it was asked with.",
        "encodingFormat": "application/json",
        "contentSize": str(len(data)),
        "sha256": sha256(data).hexdigest(),
        "programmingLanguage": _to(_LANGUAGE),
        "license": _to(_RIGHTS),
        "conformsTo": _to(_BIOSCHEMAS),
        "input": _to(_QUESTION),
        "output": _to(_ANSWER),
        "step": _one_or_more([_to(f"#step-{n}") for n in range(1, len(trace.steps) + 1)]),
        "hasPart": _one_or_more([_to(each) for each in tools]),
    }


def _about_it(about: About) -> Iterator[Entity]:
    yield {
        "@id": _LANGUAGE,
        "@type": "ComputerLanguage",
        "name": "tgraph method",
        "url": _to(_HOME),
        "identifier": _to(_HOME),
    }
    yield {"@id": _HOME, "@type": "WebPage", "name": "tgraph"}
    yield {
        "@id": _ENGINE,
        "@type": "SoftwareApplication",
        "name": "tgraph",
        "url": _HOME,
        "softwareVersion": about.tgraph,
    }
    yield {
        "@id": _RIGHTS,
        "@type": "CreativeWork",
        "name": "No licence",
        "description": "The package grants none; what it quotes belongs to whom it belonged.",
    }
    for name, parameter, kind in (("question", _QUESTION, "Text"), ("answer", _ANSWER, "File")):
        yield {
            "@id": parameter,
            "@type": "FormalParameter",
            "name": name,
            "additionalType": kind,
            "valueRequired": name == "question",
            "conformsTo": _to(_PARAMETER),
        }
    for profile in (_PARAMETER, _BIOSCHEMAS):
        yield {
            "@id": profile,
            "@type": "CreativeWork",
            "name": profile.split("/")[-2],
            "version": "1.0-RELEASE",
        }


_BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
_PARAMETER = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE"


def _tools(trace: Trace) -> dict[str, Entity]:
    """Who did the steps, by their names."""
    named = dict.fromkeys(_tool_of(step) for step in trace.steps)
    return {
        f"#tool-{number}": {
            "@id": f"#tool-{number}",
            "@type": "SoftwareApplication",
            "name": name,
            "url": _HOME,
            "softwareVersion": "as recorded",
        }
        for number, name in enumerate(named, 1)
    }


def _tool_of(step: TraceStep) -> str:
    return f"{step.kind} by {', '.join(step.agents) or 'tgraph'}"


def _steps(trace: Trace, tools: Mapping[str, Entity]) -> Iterator[Entity]:
    by_name = {each["name"]: each["@id"] for each in tools.values()}
    for number, step in enumerate(trace.steps, 1):
        yield {
            "@id": f"#step-{number}",
            "@type": "HowToStep",
            "name": step.kind,
            "position": str(number),
            "workExample": _to(by_name[_tool_of(step)]),
        }


def _run(
    trace: Trace, about: About, tools: Mapping[str, Entity], files: Mapping[str, bytes]
) -> Iterator[Entity]:
    """The run, its steps, and who started these."""
    by_name = {each["name"]: each["@id"] for each in tools.values()}
    results = [name for name in ("answer.txt", "report.html", "record.nq") if name in files]
    yield {
        "@id": _RUN,
        "@type": "CreateAction",
        "name": f"Session {about.uuid}",
        "identifier": about.session,
        "instrument": _to("method.json"),
        "description": f"The question asked in the mode {trace.mode}: {trace.status}.",
        "object": _to(f"{_QUESTION}-asked"),
        "result": _one_or_more([_to(name) for name in results]),
        **_when(trace.started, trace.ended, trace.error),
    }
    yield {
        "@id": f"{_QUESTION}-asked",
        "@type": "PropertyValue",
        "name": "question",
        "value": trace.question,
        "exampleOfWork": _to(_QUESTION),
    }
    for number, step in enumerate(trace.steps, 1):
        yield {
            "@id": f"#run-{number}",
            "@type": "CreateAction",
            "name": step.label or step.kind,
            "identifier": step.iri,
            "instrument": _to(by_name[_tool_of(step)]),
            "description": f"Step {number} of the method, by {', '.join(step.agents) or 'tgraph'}.",
            "object": _one_or_more([_to(name) for name in _used(trace, step, files)]),
            "result": _to("record.nq"),
            **_when(step.started, step.ended, trace.error if not step.ended else ""),
        }
        yield {
            "@id": f"#control-{number}",
            "@type": "ControlAction",
            "name": f"Starts step {number}",
            "instrument": _to(f"#step-{number}"),
            "object": _to(f"#run-{number}"),
            "actionStatus": _DONE,
        }
    yield {
        "@id": "#organise",
        "@type": "OrganizeAction",
        "name": "Runs the method",
        "instrument": _to(_ENGINE),
        "object": _one_or_more([_to(f"#control-{n}") for n in range(1, len(trace.steps) + 1)]),
        "result": _to(_RUN),
        **_when(trace.started, trace.ended, trace.error),
    }


def _used(trace: Trace, step: TraceStep, files: Mapping[str, bytes]) -> list[str]:
    """The prompts and calls of a step, as far as the package has them."""
    calls = [call for call in trace.calls if call.step == step.iri]
    prompts = {prompt.name: prompt.hash for prompt in trace.prompts}
    names = [f"prompts/{prompts[c.prompt]}.md" for c in calls if c.prompt in prompts]
    names += [f"calls/{call.content}.json" for call in calls]
    return [name for name in dict.fromkeys(names) if name in files] or [f"{_QUESTION}-asked"]


def _one_or_more(targets: list[Entity]) -> Entity | list[Entity]:
    """As RO-Crate writes what may be several."""
    return targets[0] if len(targets) == 1 else targets


def _when(started: str, ended: str, error: str) -> Entity:
    times = {"startTime": started, "endTime": ended}
    known: Entity = {name: _iso(time) for name, time in times.items() if time}
    status = {"actionStatus": _FAILED, "error": error} if error else {"actionStatus": _DONE}
    return known | status


def _iso(time: str) -> str:
    """The time to milliseconds, with the offset in figures, as readers of crates expect it."""
    return datetime.fromisoformat(time).isoformat(timespec="milliseconds")


def _file(name: str, data: bytes | None) -> Entity:
    folder = name.partition("/")[0]
    called, form, description = _FILES.get(name) or _FOLDERS[folder]
    found: Entity = {
        "@id": name,
        "@type": "File",
        "name": called,
        "description": description,
        "encodingFormat": form,
    }
    if data is not None:
        found |= {"contentSize": str(len(data)), "sha256": sha256(data).hexdigest()}
    if name == "answer.txt":
        found["exampleOfWork"] = _to(_ANSWER)
    if name == "README.md":
        found["about"] = _to("./")
    return found
