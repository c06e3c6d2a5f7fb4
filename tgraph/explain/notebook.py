"""How traces, audits and verdicts look in a notebook; ``tgraph.notebook`` makes the HTML safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tgraph.notebook import block, folded, mark, paragraph, place, quote, table, text

if TYPE_CHECKING:
    from tgraph.explain.audit import AuditResult
    from tgraph.explain.impact import Impact
    from tgraph.explain.integrity import Integrity
    from tgraph.explain.sessions import SessionSummary
    from tgraph.explain.signed import Signatures
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


def integrity_html(found: Integrity) -> str:
    """Whether the record is as it was sealed, what is not, what was erased or signed, and the head
    of the chain to save."""
    problems = [(p.kind, p.what, p.subject, p.detail) for p in found.problems]
    erased = [(e.time, e.document, e.reason, e.bundles, e.batches, e.texts) for e in found.erased]
    columns = ("erased", "document", "reason", "bundles", "batches", "texts")
    checked = (
        f"{_many(found.bundles, 'bundle')} and {_many(found.batches, 'batch', 'batches')} with"
        f" {_many(found.quads, 'quad')}, {_many(found.texts, 'text')} checked"
    )
    saved = (
        f"The saved head is that of entry {found.saved_at}." if found.saved_at is not None else ""
    )
    unused = "\n".join(found.unreferenced)
    kept = f"{_many(len(found.unreferenced), 'text')} that nothing on record needs"
    return block(
        "The record is intact."
        if found.ok
        else f"The record is not as it was sealed: {_many(len(found.problems), 'problem')}.",
        table(("problem", "of", "which", "detail"), problems) if problems else "",
        table(columns, erased) if erased else "",
        paragraph(text(saved)) if saved else "",
        paragraph(text(_signed(found.signatures, found.sequence))) if found.signatures else "",
        folded(kept, quote(unused, "")) if unused else "",
        note=f"{checked} · head of the chain, after entry {found.sequence}: {found.head}",
    )


def _signed(signatures: Signatures, entries: int) -> str:
    """How much of a chain a key has signed."""
    valid = _many(signatures.valid, "valid signature")
    covered = f"{signatures.covered} of {_many(entries, 'entry', 'entries')} covered"
    return f"Key {signatures.key}: {valid}, {covered}."


def impact_html(found: Impact) -> str:
    """The facts that rest on the document alone, and the answers, with the sentences that cite it
    and whether each cites nothing else."""
    facts = table(("fact", "edge"), [(fact.fact, fact.edge) for fact in found.facts])
    rows = [
        (a.question, s.text, "nothing else" if s.alone else "others too", a.session, a.questioned)
        for a in found.answers
        for s in a.sentences
    ]
    rows += [
        (a.question, "", "selected, not cited", a.session, a.questioned)
        for a in found.answers
        if not a.sentences
    ]
    columns = ("question", "sentence", "cites", "session", "called into question")
    counts = f"{_many(len(found.facts), 'fact')} on it alone, {found.shared} on others too"
    standing = "" if found.standing else " · not part of the knowledge any more"
    return block(
        f"What rests on {found.title or found.path}",
        folded(_many(len(found.facts), "fact"), facts) if found.facts else "",
        folded(_many(len(found.answers), "answer"), table(columns, rows)) if rows else "",
        note=f"{found.path} · {counts} · {_many(len(found.answers), 'answer')}{standing}"
        f" · {found.document}",
    )


def _many(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"
