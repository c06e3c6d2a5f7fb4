"""An influence analysis before anything is called: what can be measured, how, and at what price."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tgraph.engine.influencing import Doing, InfluenceRun
from tgraph.engine.progress import OnProgress
from tgraph.engine.regenerating import Recollection, Regenerator, Written
from tgraph.errors import UsageError
from tgraph.explain.influence import Influence, InfluenceEstimate
from tgraph.explain.influence_found import cited_by
from tgraph.explain.influence_plan import Plan, plan
from tgraph.explain.traced import Trace, TracedEvidence
from tgraph.model import Evidence
from tgraph.models.base import ChatModel
from tgraph.record.influence import InfluenceRecord
from tgraph.retrieve.modes.bypass import BYPASS


def resting_on(trace: Trace, written: Written) -> list[frozenset[int]]:
    """For each sentence the places in the selection of what rests on characters that it cites."""
    chosen = written.selection.selected
    return [
        frozenset(
            number
            for number, selected in enumerate(chosen)
            if any(_overlap(own, c) for own in selected.candidate.evidence for c in each.citations)
        )
        for each in trace.sentences
    ]


def _overlap(one: Evidence, other: TracedEvidence) -> bool:
    same = one.document == other.document and one.page == other.page
    return same and one.start < other.end and other.start < one.end


def check(trace: Trace) -> None:
    """``UsageError`` where there is no answer, or nothing that it could depend on."""
    if not trace.selected and trace.mode == BYPASS.name:
        raise UsageError(
            f"The language model answered alone ({trace.mode}): nothing was selected for the"
            " answer.",
            "Measure a session of another mode.",
        )
    if not trace.sentences:
        why = "found no evidence" if trace.status == "no-evidence" else f"is {trace.status}"
        raise UsageError(
            f"The session {why}: there is no answer to measure.", "Name one that has an answer."
        )


def check_same(trace: Trace, written: Written) -> None:
    """``UsageError`` where the selection is not the recorded one."""
    now = [selected.item.iri for selected in written.selection.selected]
    if now != [item.item for item in trace.selected]:
        raise UsageError(
            "The knowledge has changed since, and the selection can't be had as it was.",
            "Ask the question again, and measure that session.",
        )


@dataclass(frozen=True, slots=True)
class Influencing:
    """An analysis that could be made: who writes, and what would be run."""

    trace: Trace
    plan: Plan
    regenerator: Regenerator
    model: str | None
    doing: Doing
    samples: int
    notes: tuple[str, ...]

    def run(
        self, record: InfluenceRecord, explain_collection: str, progress: OnProgress
    ) -> Influence:
        """Make it; see ``InfluenceRun.run``."""
        made = InfluenceRun(
            self.trace,
            self.regenerator,
            self.plan,
            record,
            self.doing,
            progress,
            self.samples,
            self.notes,
        )
        return made.run(explain_collection)

    def told(self) -> str:
        """What it will cost, in a sentence; empty where it costs nothing."""
        cost = self.estimate()
        if cost.model is None:
            return ""
        known = f" ({cost.known:,} of them had before)" if cost.known else ""
        return (
            f"Calls of {cost.model}: {cost.calls:,}{known}, about {cost.input_tokens:,} tokens in,"
            f" {cost.output_tokens:,} out; at most {cost.later:,} more follow from what these show."
        )

    def estimate(self) -> InfluenceEstimate:
        """The cost."""
        from tgraph.models.tokens import count_tokens, encoding_for

        sizes, known = self._sizes()
        reply = count_tokens(self.trace.answer, encoding_for(self.model)) if self.model else 0
        tokens_in, tokens_out = sum(sizes), len(sizes) * reply
        return InfluenceEstimate(
            session=self.trace.explain_id,
            items=len(self.trace.selected),
            sentences=len(self.trace.sentences),
            method=self.plan.method,
            model=self.model,
            runs=len(self.plan.runs),
            calls=len(sizes) + known,
            known=known,
            later=self.plan.later if self.model else 0,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            cost=_cost(self.model, tokens_in, tokens_out),
        )

    def _sizes(self) -> tuple[list[int], int]:
        """The tokens of each prompt that is not known yet, and how many are."""
        if self.model is None:
            return [], 0
        from tgraph.models.tokens import count_tokens, encoding_for

        encoding = encoding_for(self.model)
        sizes, known = [], 0
        for run in self.plan.runs:
            request = self.regenerator.request(run)
            if request is None:
                continue
            if self.regenerator.is_known(run, request):
                known += 1
            else:
                sizes.append(sum(count_tokens(m["content"], encoding) for m in request.messages))
        return sizes, known


def _cost(model: str | None, tokens_in: int, tokens_out: int) -> float | None:
    from tgraph.engine.estimate import PRICES

    if model is None:
        return 0.0
    prices = PRICES.get(model)
    return (tokens_in * prices[0] + tokens_out * prices[1]) / 1e6 if prices else None


def prepare(
    trace: Trace,
    recollection: Recollection,
    cache: Path,
    budget: int | None,
    repeats: int,
    samples: int,
) -> Influencing:
    """The analysis of a session's answer. ``cache`` is the folder of replies."""
    if repeats < 1:
        raise UsageError("At least one run with nothing removed is needed.", "Raise --repeats.")
    chat = _chat(recollection)
    written = recollection.recollect()
    check_same(trace, written)
    notes = [*written.notes]
    doing = Doing()
    if chat is not None:
        parts = recollection.parts
        doing = Doing(int(parts.many["concurrency"]), parts.cancel)
        if chat.agent.iri != (then := recollection.session.chat or chat.agent).iri:
            notes.append(f"{then.name} wrote the answer, {chat.agent.name} writes it again.")
    made = plan(
        len(trace.selected),
        cited_by(trace),
        resting_on(trace, written),
        repeats=repeats,
        samples=samples,
        budget=budget if chat is not None else None,
        is_sure=chat is None,
    )
    model = chat.agent.name if chat is not None else None
    regenerator = Regenerator(written, chat, cache)
    return Influencing(trace, made, regenerator, model, doing, samples, tuple(notes))


def _chat(recollection: Recollection) -> ChatModel | None:
    """Who wrote the answer: the model as it is set now, None for the embedded default."""
    then = recollection.session.chat
    if then is None:
        return None
    chat = recollection.parts.chat
    if chat is None:
        raise UsageError(
            f"The answer was written by {then.name}, and no language model is set.",
            "Set `chat.base_url` or OPENAI_API_KEY.",
        )
    return chat
