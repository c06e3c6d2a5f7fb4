"""Calls of models and embedders: what each asked and got is kept whole by the librarian."""

from __future__ import annotations

from tgraph import vocabulary as v
from tgraph.models.base import Call, canonical_json
from tgraph.record.activities import Activity
from tgraph.store.statements import Writer, iri


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


def call_iri(run: str, call: Call) -> str:
    return v.session_part_iri("call", run, call.request_hash[:40], call.occurrence)


def describe_call(out: Writer, run: str, whole: str, call: Call, content_hash: str) -> str:
    """State one call as an activity that is part of the session or run; returns its IRI."""
    subject = call_iri(run, call)
    milliseconds = round((call.ended - call.started).total_seconds() * 1000)
    activity = Activity(
        subject,
        ("Call",),
        f"{call.kind} call" + (f": {call.prompt.name}" if call.prompt else ""),
        call.started,
        call.ended,
        (call.agent,),
        (call.prompt,) if call.prompt else (),
        whole,
        error=str(call.reply["error"]) if "error" in call.reply else None,
    )
    activity.state(
        out,
        (v.tg("callKind"), call.kind),
        (v.tg("requestHash"), call.request_hash),
        (v.tg("contentHash"), content_hash),
        (v.tg("occurrence"), call.occurrence),
        (v.tg("inToken"), call.usage.input_tokens),
        (v.tg("outToken"), call.usage.output_tokens),
        (v.tg("llmDurationMs"), milliseconds),
        (v.tg("cached"), True if call.cached else None),
        (v.tg("repaired"), True if call.repaired else None),
    )
    out.add(whole, (v.tg("call"), iri(subject)))
    return subject
