"""Influence analysis: which selected items does an answer depend on? The answer is regenerated
without each item and compared.

A chat endpoint gives no probabilities for text it did not write, so an outcome is the set of answer
sentences repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from tgraph.answer.support import LexicalJudge
from tgraph.engine.ask.question_run import answer_of, on_record, usage_of
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, Progress, ignore_progress
from tgraph.engine.session_reader import SessionReader
from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.explain.integrity.erasures import check_whole
from tgraph.explain.trace.values import Trace, TraceQuotation
from tgraph.extensions.lab.influence import REPEATS
from tgraph.extensions.lab.influence.ablations import (
    AblatedRun,
    Ablation,
    Plan,
    calls_model,
    calls_of,
    plan_ablations,
    repeat_ablations,
)
from tgraph.extensions.lab.influence.attribution import (
    ClaimOverlap,
    StillSaid,
    noise_of,
    runs_like,
    weigh_items,
)
from tgraph.extensions.lab.influence.regeneration import Regenerator, SelectionReplay, Written
from tgraph.extensions.lab.influence.result import Findings, build_influence, cited_by, encode_bits
from tgraph.extensions.lab.influence.values import Influence, InfluenceEstimate
from tgraph.model import Evidence
from tgraph.models.base import ChatModel
from tgraph.models.concurrency import do_nothing, run_parallel
from tgraph.record.assessments import InfluenceRecord
from tgraph.retrieve.modes.bypass import BYPASS

STAGE = "Ablating"
UNUSABLE = "ablation whose reply can't be used"


def resting_on(trace: Trace, written: Written) -> list[frozenset[int]]:
    """Return selection positions per sentence: selected items whose evidence overlaps cited
    characters."""
    chosen = written.selection.selected
    return [
        frozenset(
            number
            for number, selected in enumerate(chosen)
            if any(
                _quotes_overlap(evidence, c)
                for evidence in selected.candidate.evidence
                for c in sentence.citations
            )
        )
        for sentence in trace.sentences
    ]


def _quotes_overlap(one: Evidence, other: TraceQuotation) -> bool:
    same = one.document == other.document and one.page == other.page
    return same and one.start < other.end and other.start < one.end


def check_measurable(trace: Trace) -> None:
    """Raise ``UsageError`` if a session has no answer, or no selection influencing the answer."""
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
    """Raise ``UsageError`` if the selection differs from the recorded selection."""
    now = [selected.item.iri for selected in written.selection.selected]
    if now != [item.item for item in trace.selected]:
        raise UsageError(
            "The knowledge has changed since, and the selection can't be had as it was.",
            "Ask the question again, and measure that session.",
        )


@dataclass(frozen=True, slots=True)
class InfluenceAnalysis:
    """A prepared influence analysis: regenerator, planned runs and model.

    ``concurrency`` limits parallel runs, ``cancel`` ends pending ones."""

    trace: Trace
    regenerator: Regenerator
    plan: Plan
    model: str | None = None
    concurrency: int = 1
    cancel: Callable[[], None] = do_nothing
    notes: tuple[str, ...] = ()

    def describe_costs(self) -> str:
        """Return a sentence about estimated costs; empty if free."""
        cost = self.estimate()
        if cost.model is None:
            return ""
        cached_text = f" ({cost.known:,} of them had before)" if cost.known else ""
        return (
            f"Calls of {cost.model}: {cost.calls:,}{cached_text}, about {cost.input_tokens:,}"
            " tokens in,"
            f" {cost.output_tokens:,} out; at most {cost.later:,} more follow from what these show."
        )

    def estimate(self) -> InfluenceEstimate:
        """Return the estimated cost of this analysis."""
        from tgraph.engine.index.cost_estimate import cost_of
        from tgraph.models.tokens import count_tokens, encoding_for

        sizes, known_count = self._estimate_prompt_sizes()
        reply = count_tokens(self.trace.answer, encoding_for(self.model)) if self.model else 0
        tokens_in, tokens_out = sum(sizes), len(sizes) * reply
        return InfluenceEstimate(
            session=self.trace.explain_id,
            items=len(self.trace.selected),
            sentences=len(self.trace.sentences),
            method="leave-one-out",
            model=self.model,
            runs=len(self.plan.runs),
            calls=len(sizes) + known_count,
            known=known_count,
            later=self.plan.later if self.model else 0,
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            cost=cost_of(self.model, tokens_in, tokens_out),
        )

    def _estimate_prompt_sizes(self) -> tuple[list[int], int]:
        """Return token counts of prompts without cached replies, and the number of cached ones."""
        if self.model is None:
            return [], 0
        from tgraph.models.tokens import count_tokens, encoding_for

        encoding = encoding_for(self.model)
        sizes, known_count = [], 0
        for run in self.plan.runs:
            request = self.regenerator.request(run)
            if request is None:
                continue
            if self.regenerator.is_known(run, request):
                known_count += 1
            else:
                sizes.append(sum(count_tokens(m["content"], encoding) for m in request.messages))
        return sizes, known_count


class InfluenceRun:
    """An influence analysis run."""

    def __init__(
        self, analysis: InfluenceAnalysis, record: InfluenceRecord, progress: OnProgress
    ) -> None:
        self._analysis = analysis
        self._plan = analysis.plan
        self._trace = trace = analysis.trace
        self._regenerator = analysis.regenerator
        self._record = record
        self._progress = progress
        self._notes = [*analysis.notes, *analysis.plan.notes]
        self._cited = cited_by(trace)
        self._whole = frozenset(range(len(trace.selected)))
        self._again = ClaimOverlap([sentence.text for sentence in trace.sentences])
        self._outcomes: dict[AblatedRun, StillSaid | None] = {}
        self._ablations: list[Ablation] = []
        self._lock = Lock()

    def run(self, explain_collection: str) -> Influence:
        """Return recorded influence weights. Raise ``EndpointError`` if the model is
        unreachable.

        Replies received earlier are kept, and the next analysis does not request them again."""
        record = self._record
        answer = answer_of(self._trace)
        with on_record(record, "analysis"):
            record.start(
                answer,
                self._regenerator.agent,
                LexicalJudge.agent,
                {"repeats": len(self._plan.list_ablations("none")), "measure": self._again.measure},
                explain_collection,
            )
            influence = self._measure_influence()
            self._put_on_record(influence, answer)
        return influence

    def _measure_influence(self) -> Influence:
        self._run_ablations(self._plan.list_ablations("none"))
        noise = noise_of(self._plan, self._outcomes)
        if noise is None:
            raise ModelError(
                "No reply to the whole selection could be used.",
                "Try again, or use a larger model.",
            )
        single_ablations = self._plan.list_ablations("one")
        self._run_ablations(single_ablations)
        is_stable = self._regenerator.is_sure or self._repeat_losses(single_ablations)
        self._run_ablations(self._plan.ablations)
        weights = weigh_items(self._plan, self._outcomes, noise, is_stable=is_stable)
        findings = Findings(
            self._trace, noise, weights, self._ablations, self._outcomes, self._cited
        )
        lost = sum(outcome is None for outcome in self._outcomes.values())
        return build_influence(
            findings,
            writer=self._regenerator.agent.name,
            measure=self._again.measure,
            analysis=self._record.analysis,
            usage=usage_of(self._record),
            dropped={UNUSABLE: lost} if lost else {},
            notes=tuple(self._notes),
        )

    def _repeat_losses(self, single_ablations: Sequence[Ablation]) -> bool:
        """Repeat the ablations that lost a sentence, once where all equal runs have equal results,
        otherwise while a sentence is lost in most runs. Return whether equal runs had equal
        results."""
        suspects = single_ablations
        for repeat in range(1, 2 * self._plan.repeats):
            suspects = [a for a in suspects if calls_model(a.run) and self._loses_sentence(a)]
            again = repeat_ablations(suspects, repeat)
            if not self._has_budget(again):
                self._notes.append(
                    "The budget left too few calls to tell the weights from noise well."
                )
                break
            self._run_ablations(again)
            if repeat == 1 and self._has_equal_results():
                return True
        return self._has_equal_results()

    def _loses_sentence(self, ablation: Ablation) -> bool:
        """Tell whether most runs without this item lose the same sentence."""
        outcomes = runs_like(ablation.run, self._outcomes)
        return any(2 * sum(column) < len(column) for column in zip(*outcomes, strict=True))

    def _has_equal_results(self) -> bool:
        """Tell whether equal runs repeated the same sentences."""
        return all(len(set(runs_like(run, self._outcomes))) <= 1 for run in self._outcomes)

    def _has_budget(self, ablations: Sequence[Ablation]) -> bool:
        """Tell whether the budget covers these ablations and the planned ablations."""
        if self._plan.budget is None:
            return True
        pending = [a for a in (*self._plan.ablations, *ablations) if a.run not in self._outcomes]
        return sum(map(calls_model, self._outcomes)) + calls_of(pending) <= self._plan.budget

    def _run_ablations(self, ablations: Sequence[Ablation]) -> None:
        """Run pending ablations, several concurrently."""
        self._ablations += [a for a in ablations if a not in self._ablations]
        runs = [run for run in dict.fromkeys(a.run for a in ablations) if run not in self._outcomes]
        self._regenerator.prepare(runs)
        finished = len(self._outcomes)
        total = max(finished + len(runs), len(self._plan.runs))
        self._progress(Progress(STAGE, finished, total, self._record.usage))
        concurrency, cancel = self._analysis.concurrency, self._analysis.cancel
        run_parallel(runs, lambda run: self._run_ablation(run, total), concurrency, cancel)

    def _run_ablation(self, run: AblatedRun, total: int) -> None:
        record = self._record
        ablations = (*self._plan.ablations, *self._ablations)
        kinds = sorted({a.kind for a in ablations if a.run == run})
        mask = encode_bits([n in run.kept for n in range(len(self._whole))])
        ablation = record.ablation(kinds, mask, run.repeat)
        outcome: StillSaid | None = None
        try:
            texts = self._regenerator.write(run, lambda call: record.call(call, ablation))
            with self._lock:
                outcome = self._again.flag_repeated(texts)
        except EndpointError:
            raise
        except ModelError:
            outcome = None
        finally:
            record.record_ablation(ablation, None if outcome is None else encode_bits(outcome))
        with self._lock:
            self._outcomes[run] = outcome
            self._progress(Progress(STAGE, len(self._outcomes), total, record.usage))

    def _put_on_record(self, found: Influence, answer: str) -> None:
        record = self._record
        record.parameters({"method": found.method})
        for item in found.items:
            if item.weight is not None:
                above = item.influential
                record.influence(item.selection, answer, item.weight, item.floor, above=above)
        for sentence in found.sentences:
            for dependency in sentence.depends_on:
                record.influence(
                    dependency.selection,
                    sentence.sentence,
                    dependency.weight,
                    sentence.floor,
                    above=True,
                )
        measures = {
            "necessity": found.cited_set.necessity,
            "sufficiency": found.cited_set.sufficiency,
            "parametric-share": found.parametric,
            "noise-floor": min(found.noise_floor, 1.0),
        }
        known_measures = {name: value for name, value in measures.items() if value is not None}
        record.result(known_measures, found.dropped)
        record.finish("completed")


def analyse_influence(
    opened: OpenCollection,
    session: str,
    *,
    budget: int | None = None,
    repeats: int = REPEATS,
    progress: OnProgress = ignore_progress,
) -> Influence:
    """Write the answer of a session again without parts of its selection, on record; arguments and
    errors are those of ``tgraph.extensions.lab.measure_influence``."""
    analysis = prepare_analysis(opened, session, budget=budget, repeats=repeats)
    if cost_text := analysis.describe_costs():
        opened.message(cost_text)
    run = InfluenceRun(analysis, opened.record(InfluenceRecord), progress)
    return run.run(opened.settings.explain_collection)


def prepare_analysis(
    opened: OpenCollection,
    session: str,
    *,
    budget: int | None = None,
    repeats: int = REPEATS,
) -> InfluenceAnalysis:
    """Return the analysis of a session on record; nothing is called or recorded."""
    sessions = SessionReader(opened)
    summary, trace = sessions.find(session), sessions.trace(session)
    check_whole(opened.read(), summary.bundle, summary.explain_id, "measured")
    check_measurable(trace)
    recollection = SelectionReplay.from_summary(opened, summary)
    if repeats < 1:
        raise UsageError("At least one run with nothing removed is needed.", "Raise `repeats`.")
    chat = _answer_model(recollection)
    written = recollection.recollect()
    check_same(trace, written)
    notes = [*written.notes]
    concurrency, cancel = 1, do_nothing
    if chat is not None:
        options = recollection.parts.concurrent_options
        concurrency, cancel = options["concurrency"], options["cancel"]
        if chat.agent.iri != (then := recollection.session.chat or chat.agent).iri:
            notes.append(f"{then.name} wrote the answer, {chat.agent.name} writes it again.")
    plan = plan_ablations(
        len(trace.selected),
        cited_by(trace),
        resting_on(trace, written),
        repeats=repeats,
        budget=budget if chat is not None else None,
        is_sure=chat is None,
    )
    model = chat.agent.name if chat is not None else None
    regenerator = Regenerator(written, chat, opened.folder.cache / "replies")
    return InfluenceAnalysis(trace, regenerator, plan, model, concurrency, cancel, tuple(notes))


def _answer_model(recollection: SelectionReplay) -> ChatModel | None:
    """Return the currently configured chat model if a model wrote the answer, or None for the
    embedded default."""
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
