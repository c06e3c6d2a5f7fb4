"""How traces, audits and verdicts look in a notebook; ``tgraph.notebook`` makes the HTML safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tgraph.notebook import block, folded, mark, paragraph, place, quote, table, text

if TYPE_CHECKING:
    from tgraph.explain.audit import AuditResult
    from tgraph.explain.sessions import SessionSummary
    from tgraph.explain.traced import Trace, TracedEvidence
    from tgraph.explain.verified import Verification
    from tgraph.explain.whynot import WhyNot


def trace_html(trace: Trace) -> str:
    """The answer, its quotes, what was selected and rejected with reasons, steps and calls."""
    said, quotes = [], []
    for sentence in trace.sentences:
        marks = ""
        for cited in sentence.citations:
            quotes.append(cited)
            marks += mark(len(quotes))
        verdict = f" ({sentence.verdict})" if sentence.verdict else ""
        said.append(text(sentence.text) + marks + text(verdict))
    items = ("item", "rank", "score", "reason")
    selected = [(e.label, e.rank or "", f"{e.score:.2f}", e.reasoning) for e in trace.selected]
    rejected = [(e.label, e.rank or "", f"{e.score:.2f}", e.reasoning) for e in trace.rejected]
    steps = [
        (
            s.label,
            ", ".join(s.agents),
            ", ".join(s.prompts),
            s.input_tokens,
            s.output_tokens,
            s.started,
        )
        for s in trace.steps
    ]
    calls = [(c.label, c.agent, c.input_tokens, c.output_tokens, c.error) for c in trace.calls]
    parts = (
        (len(quotes), "quotes", "".join(map(_cited, range(1, len(quotes) + 1), quotes))),
        (len(selected), "selected", table(items, selected)),
        (len(rejected), "not selected", table(items, rejected)),
        (
            len(steps),
            "steps",
            table(("step", "agents", "prompts", "input", "output", "started"), steps),
        ),
        (len(calls), "calls", table(("call", "agent", "input", "output", "error"), calls)),
    )
    doubt = f"Called into question {trace.questioned}" if trace.questioned else ""
    return block(
        trace.question,
        paragraph(" ".join(said) or text(trace.answer or trace.error)),
        paragraph(f"<strong>{text(doubt)}</strong>") if doubt else "",
        *(folded(f"{number} {title}", html) for number, title, html in parts if number),
        note=f"mode {trace.mode} · {trace.status} · {trace.started} · {trace.explain_id}",
    )


def _cited(number: int, cited: TracedEvidence) -> str:
    where = place(cited.title, cited.path, cited.page, cited.start, cited.end)
    return quote(cited.quote, f"[{number}] {where}")


def sessions_html(sessions: Sequence[SessionSummary]) -> str:
    """Each session with its question, mode, how it ended, when, and its IRI."""
    rows = [
        (s.question, s.mode, _ended(s), s.started[:19].replace("T", " "), s.explain_id)
        for s in sessions
    ]
    columns = ("question", "mode", "status", "started", "session")
    many = f"{len(rows)} session{'' if len(rows) == 1 else 's'}"
    return block(many, table(columns, rows) if rows else "", note="Times are UTC.")


def _ended(session: SessionSummary) -> str:
    doubt = f", called into question {session.questioned}" if session.questioned else ""
    return (session.status or "open") + doubt


def audit_html(result: AuditResult) -> str:
    """The rows as a table, and whether the check, if it is one, holds."""
    audit = result.audit
    outcome = {None: "", True: "The check holds.", False: "The check fails."}[result.passed]
    rows = table(audit.columns, result.rows) if result.rows else paragraph("No rows.")
    return block(f"{audit.name}: {audit.title}", rows, note=f"{outcome} {audit.question}".strip())


def verification_html(found: Verification) -> str:
    """Each sentence with its verdict, why, and where support was lost."""
    rows = [
        (s.text, s.verdict, s.reason, f"{s.lost.step}: {s.lost.reason}" if s.lost else "")
        for s in found.sentences
    ]
    measures = (("citation recall", found.recall), ("citation precision", found.precision))
    told = ", ".join(f"{name} {value:.2f}" for name, value in measures if value is not None)
    return block(
        found.question,
        table(("sentence", "verdict", "reason", "lost at"), rows),
        note=f"{told} · judge {found.judge} · {found.session}",
    )


def why_not_html(found: WhyNot) -> str:
    """The cause in a sentence, what carried it as far as it came, and where documents say it."""
    carriers = [(c.kind, c.label, c.rank or "", c.reason) for c in found.items]
    places = [quote(p.quote, place(p.title, p.path, p.page, p.start, p.end)) for p in found.places]
    return block(
        f"Why not “{found.expected}”?",
        paragraph(f"<strong>{text(found.cause)}</strong>: {text(found.reason)}"),
        table(("kind", "item", "rank", "reason"), carriers) if carriers else "",
        *places,
        *(paragraph(text(note)) for note in found.notes),
        note=f"{found.question} · {found.session}",
    )
