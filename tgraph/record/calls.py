"""Calls of models and embedders: what each asked and got is kept whole by the librarian."""

from __future__ import annotations

from tgraph import vocabulary as v
from tgraph.model import Prompt
from tgraph.models.base import Call, canonical_json
from tgraph.record.agents import associations
from tgraph.store.statements import Statements, iri


def call_content(call: Call) -> str:
    """The librarian's record of the call: request and reply without times, so it can replay."""
    others = canonical_json(
        {
            "agent": call.agent.iri,
            "kind": call.kind,
            "occurrence": call.occurrence,
            "prompt": call.prompt.iri if call.prompt else None,
            "reply": call.reply,
        }
    )
    return f'{others[:-1]},"request":{call.request_text}}}'  # in the order of the names


def call_iri(run: str, call: Call, request_hash: str = "") -> str:
    """The IRI of a call; ``request_hash`` is the call's, where it has been computed."""
    key = request_hash or call.request_hash
    return v.session_part_iri("call", run, key[:40], call.occurrence)


def describe_call(
    out: Statements, run: str, whole: str, call: Call, content_hash: str, request_hash: str = ""
) -> str:
    """State one call as an activity that is part of the session or run; returns its IRI.

    ``request_hash`` is the call's, where it has been computed: prompts are long.
    """
    key = request_hash or call.request_hash
    subject = call_iri(run, call, key)
    milliseconds = round((call.ended - call.started).total_seconds() * 1000)
    out.add(
        subject,
        (v.RDF_TYPE, [v.prov("Activity"), v.tg("Call")]),
        (v.RDFS_LABEL, f"{call.kind} call" + (f": {call.prompt.name}" if call.prompt else "")),
        (v.dcterms("isPartOf"), iri(whole)),
        (v.prov("startedAtTime"), call.started),
        (v.prov("endedAtTime"), call.ended),
        (v.tg("callKind"), call.kind),
        (v.tg("requestHash"), key),
        (v.tg("contentHash"), content_hash),
        (v.tg("occurrence"), call.occurrence),
        (v.tg("inToken"), call.usage.input_tokens),
        (v.tg("outToken"), call.usage.output_tokens),
        (v.tg("llmDurationMs"), milliseconds),
        (v.tg("cached"), True if call.cached else None),
        (v.tg("repaired"), True if call.repaired else None),
        (v.tg("error"), str(call.reply["error"]) if "error" in call.reply else None),
    )
    prompts: tuple[Prompt, ...] = (call.prompt,) if call.prompt else ()
    associations(out, subject, call.agent, prompts)
    out.add(whole, (v.tg("call"), iri(subject)))
    return subject
