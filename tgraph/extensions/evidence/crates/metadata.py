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

from tgraph.explain.render.templates import load_template
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


def describe_method(trace: Trace) -> bytes:
    """Return the session method as JSON: mode, steps and parameters."""
    description = {
        "mode": trace.mode,
        "steps": [{"kind": s.kind, "by": list(s.agents)} for s in trace.steps],
        "parameters": dict(trace.parameters),
    }
    return _encode_json(description)


def read_me(trace: Trace, about: About) -> bytes:
    """Return a README that explains the package to readers."""
    replay = f"It can't be replayed from itself: {about.no_replay}" if about.no_replay else ""
    readme_text = load_template("package.md").render(
        trace=trace, about=about, replay=replay, one_line=one_line
    )
    return readme_text.encode("utf-8", "replace")


def build_metadata(trace: Trace, about: About, files: Mapping[str, bytes]) -> bytes:
    """Return RO-Crate metadata for a package with these files and its manifest."""
    tools = _tool_entities(trace)
    run = list(_run_entities(trace, about, tools, files))
    graph = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": _entity_reference("./"),
            "conformsTo": [_entity_reference(_CRATE), _entity_reference(_WORKFLOW)],
        },
        _root_entity(trace, files, [entity["@id"] for entity in run]),
        *(
            {"@id": p, "@type": "CreativeWork", "name": n, "version": x}
            for p, (n, x) in _profile_items()
        ),
        _workflow_entity(trace, tools, files["method.json"]),
        *_about_it(about),
        *tools.values(),
        *_step_entities(trace, tools),
        *run,
        *(
            _file_entity(name, data)
            for name, data in sorted(files.items())
            if name != "method.json"
        ),
        _file_entity(MANIFEST, None),
    ]
    context = [f"{_CRATE}/context", "https://w3id.org/ro/terms/workflow-run/context"]
    return _encode_json({"@context": context, "@graph": graph})


def _encode_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")


def _profile_items() -> Iterator[tuple[str, tuple[str, str]]]:
    yield from _PROFILES.items()


def _entity_reference(target: str) -> Entity:
    return {"@id": target}


def _root_entity(trace: Trace, files: Mapping[str, bytes], mentioned: list[str]) -> Entity:
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Evidence of an answer: {one_line(trace.question, _LONGEST)}",
        "description": (
            f"The answer of the session {trace.explain_id} with the quotes that it rests on and"
            " the record of how it came about. `tgraph verify-crate` checks and replays it."
        ),
        "datePublished": _format_time(trace.ended or trace.started),
        "license": _entity_reference(_RIGHTS),
        "conformsTo": [_entity_reference(profile) for profile in _PROFILES],
        "mainEntity": _entity_reference("method.json"),
        "hasPart": [_entity_reference(name) for name in sorted([*files, MANIFEST])],
        "mentions": [_entity_reference(entity_id) for entity_id in mentioned],
    }


def _workflow_entity(trace: Trace, tools: Mapping[str, Entity], data: bytes) -> Entity:
    return {
        "@id": "method.json",
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        "name": f"The method {trace.mode}",
        "description": "The steps of the session and the parameters that it was asked with.",
        "encodingFormat": "application/json",
        "contentSize": str(len(data)),
        "sha256": sha256(data).hexdigest(),
        "programmingLanguage": _entity_reference(_LANGUAGE),
        "license": _entity_reference(_RIGHTS),
        "conformsTo": _entity_reference(_BIOSCHEMAS),
        "input": _entity_reference(_QUESTION),
        "output": _entity_reference(_ANSWER),
        "step": _one_or_more(
            [_entity_reference(f"#step-{n}") for n in range(1, len(trace.steps) + 1)]
        ),
        "hasPart": _one_or_more([_entity_reference(tool_id) for tool_id in tools]),
    }


def _about_it(about: About) -> Iterator[Entity]:
    yield {
        "@id": _LANGUAGE,
        "@type": "ComputerLanguage",
        "name": "tgraph method",
        "url": _entity_reference(_HOME),
        "identifier": _entity_reference(_HOME),
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
            "conformsTo": _entity_reference(_PARAMETER),
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


def _tool_entities(trace: Trace) -> dict[str, Entity]:
    """Return tool entities by ID, for software that performed session steps."""
    tool_names = dict.fromkeys(_tool_of(step) for step in trace.steps)
    return {
        f"#tool-{number}": {
            "@id": f"#tool-{number}",
            "@type": "SoftwareApplication",
            "name": name,
            "url": _HOME,
            "softwareVersion": "as recorded",
        }
        for number, name in enumerate(tool_names, 1)
    }


def _tool_of(step: TraceStep) -> str:
    return f"{step.kind} by {', '.join(step.agents) or 'tgraph'}"


def _step_entities(trace: Trace, tools: Mapping[str, Entity]) -> Iterator[Entity]:
    by_name = {tool["name"]: tool["@id"] for tool in tools.values()}
    for number, step in enumerate(trace.steps, 1):
        yield {
            "@id": f"#step-{number}",
            "@type": "HowToStep",
            "name": step.kind,
            "position": str(number),
            "workExample": _entity_reference(by_name[_tool_of(step)]),
        }


def _run_entities(
    trace: Trace, about: About, tools: Mapping[str, Entity], files: Mapping[str, bytes]
) -> Iterator[Entity]:
    """Yield entities for the session run, its steps, and their agents."""
    by_name = {tool["name"]: tool["@id"] for tool in tools.values()}
    results = [name for name in ("answer.txt", "report.html", "record.nq") if name in files]
    yield {
        "@id": _RUN,
        "@type": "CreateAction",
        "name": f"Session {about.uuid}",
        "identifier": about.session,
        "instrument": _entity_reference("method.json"),
        "description": f"The question asked in the mode {trace.mode}: {trace.status}.",
        "object": _entity_reference(f"{_QUESTION}-asked"),
        "result": _one_or_more([_entity_reference(name) for name in results]),
        **_action_status(trace.started, trace.ended, trace.error),
    }
    yield {
        "@id": f"{_QUESTION}-asked",
        "@type": "PropertyValue",
        "name": "question",
        "value": trace.question,
        "exampleOfWork": _entity_reference(_QUESTION),
    }
    for number, step in enumerate(trace.steps, 1):
        yield {
            "@id": f"#run-{number}",
            "@type": "CreateAction",
            "name": step.label or step.kind,
            "identifier": step.iri,
            "instrument": _entity_reference(by_name[_tool_of(step)]),
            "description": f"Step {number} of the method, by {', '.join(step.agents) or 'tgraph'}.",
            "object": _one_or_more(
                [_entity_reference(name) for name in _step_inputs(trace, step, files)]
            ),
            "result": _entity_reference("record.nq"),
            **_action_status(step.started, step.ended, trace.error if not step.ended else ""),
        }
        yield {
            "@id": f"#control-{number}",
            "@type": "ControlAction",
            "name": f"Starts step {number}",
            "instrument": _entity_reference(f"#step-{number}"),
            "object": _entity_reference(f"#run-{number}"),
            "actionStatus": _DONE,
        }
    yield {
        "@id": "#organise",
        "@type": "OrganizeAction",
        "name": "Runs the method",
        "instrument": _entity_reference(_ENGINE),
        "object": _one_or_more(
            [_entity_reference(f"#control-{n}") for n in range(1, len(trace.steps) + 1)]
        ),
        "result": _entity_reference(_RUN),
        **_action_status(trace.started, trace.ended, trace.error),
    }


def _step_inputs(trace: Trace, step: TraceStep, files: Mapping[str, bytes]) -> list[str]:
    """Return packaged prompts and calls of a step."""
    calls = [call for call in trace.calls if call.step == step.iri]
    prompts = {prompt.name: prompt.hash for prompt in trace.prompts}
    names = [f"prompts/{prompts[c.prompt]}.md" for c in calls if c.prompt in prompts]
    names += [f"calls/{call.content}.json" for call in calls]
    return [name for name in dict.fromkeys(names) if name in files] or [f"{_QUESTION}-asked"]


def _one_or_more(targets: list[Entity]) -> Entity | list[Entity]:
    """Return a single target alone, several as a list, as RO-Crate requires."""
    return targets[0] if len(targets) == 1 else targets


def _action_status(started: str, ended: str, error: str) -> Entity:
    times = {"startTime": started, "endTime": ended}
    action_times: Entity = {name: _format_time(time) for name, time in times.items() if time}
    status = {"actionStatus": _FAILED, "error": error} if error else {"actionStatus": _DONE}
    return action_times | status


def _format_time(time: str) -> str:
    """Return ISO time in milliseconds with numeric offset, as RO-Crate readers expect."""
    return datetime.fromisoformat(time).isoformat(timespec="milliseconds")


def _file_entity(name: str, data: bytes | None) -> Entity:
    folder = name.partition("/")[0]
    called, form, description = _FILES.get(name) or _FOLDERS[folder]
    entity: Entity = {
        "@id": name,
        "@type": "File",
        "name": called,
        "description": description,
        "encodingFormat": form,
    }
    if data is not None:
        entity |= {"contentSize": str(len(data)), "sha256": sha256(data).hexdigest()}
    if name == "answer.txt":
        entity["exampleOfWork"] = _entity_reference(_ANSWER)
    if name == "README.md":
        entity["about"] = _entity_reference("./")
    return entity
