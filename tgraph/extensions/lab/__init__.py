"""The lab: answers evaluated, their influences measured, prompts tuned, extractions compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tgraph.extensions import Extension
from tgraph.extensions.lab.influence import REPEATS

if TYPE_CHECKING:
    from pathlib import Path

    from click import Command

    from tgraph.engine.checks import HealthFinding
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.progress import OnProgress
    from tgraph.extensions.lab.evaluation.assessments import Evaluation
    from tgraph.extensions.lab.evaluation.run import Questions
    from tgraph.extensions.lab.extraction_comparison import ExtractionComparison
    from tgraph.extensions.lab.influence.values import Influence, InfluenceEstimate
    from tgraph.extensions.lab.prompt_tuning import SampleMethod, Tuning


def evaluate(
    kg: KnowledgeGraph,
    questions: Questions,
    mode: str = "graph",
    *,
    metrics: Sequence[str] = (),
    progress: OnProgress | None = None,
) -> Evaluation:
    """Judge answers: the answers that ``questions`` bring (RAGChecker's JSON), and the graph's own
    in the ``mode`` where they bring none.

    ``questions`` is a file (JSON, JSON Lines, TOML) or the questions themselves; ``metrics`` are
    RAGChecker's groups and names, all where none is given: what others need is not judged. What
    goes wrong with one question is in the evaluation and doesn't stop the others. The evaluation is
    recorded in a bundle of its own. Raise ``UsageError`` for a file that can't be used,
    ``EndpointError`` where the model fails again and again.
    """
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.lab.evaluation.run import GraphEvaluation

    return GraphEvaluation(kg.opened).run(questions, mode, progress or ignore_progress, metrics)


def measure_influence(
    kg: KnowledgeGraph,
    session: str = "last",
    *,
    budget: int | None = None,
    repeats: int = REPEATS,
    progress: OnProgress | None = None,
) -> Influence:
    """Return on which of the selected items the answer of a session depends: the answer is written
    again without each of them. The analysis is recorded in a bundle of its own.

    At most ``budget`` calls are made. The answer is written ``repeats`` times with nothing removed
    and, where these answers differ, as often without each item. Replies are kept, so that the same
    analysis costs nothing again. Raise ``UsageError`` where there is no answer, nothing was
    selected for it, the selection can't be had as it was, parts of the session were erased, or the
    budget is too small.
    """
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.lab.influence.run import analyse_influence

    return analyse_influence(
        kg.opened,
        session,
        budget=budget,
        repeats=repeats,
        progress=progress or ignore_progress,
    )


def estimate_influence(
    kg: KnowledgeGraph,
    session: str = "last",
    *,
    budget: int | None = None,
    repeats: int = REPEATS,
) -> InfluenceEstimate:
    """Return what ``measure_influence`` with the same arguments would cost; nothing is called or
    recorded."""
    from tgraph.extensions.lab.influence.run import prepare_analysis

    analysis = prepare_analysis(kg.opened, session, budget=budget, repeats=repeats)
    return analysis.estimate()


def tune_prompts(
    kg: KnowledgeGraph,
    *,
    select: SampleMethod = "random",
    limit: int = 15,
    dry_run: bool = False,
    force: bool = False,
    progress: OnProgress | None = None,
) -> Tuning:
    """Make prompts for a collection, from at most ``limit`` of its chunks, and write them where the
    next index run reads them: into the folder of the setting ``prompts``, else into ``prompts`` of
    the graph, which ``tgraph.toml`` then names. The tuning is recorded as an activity.

    ``dry_run`` writes and records nothing. Raise ``UsageError`` where nothing is indexed, or a file
    is there already and ``force`` is false.
    """
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.lab.prompt_tuning import tune_prompts

    return tune_prompts(
        kg.opened,
        kg.root,
        select=select,
        limit=limit,
        dry_run=dry_run,
        force=force,
        progress=progress or ignore_progress,
    )


def undo_tuning(kg: KnowledgeGraph) -> list[str]:
    """Delete the files of tuned prompts, except files that were changed since; return their paths.
    The record of the tuning stays."""
    from tgraph.extensions.lab.prompt_tuning import undo_tuning

    return undo_tuning(kg.opened, kg.root)


def compare_collections(
    root: str | Path, first: str, second: str, *, document: str = ""
) -> ExtractionComparison:
    """Return side by side what was read from the documents that stand in both collections (from the
    ``document`` alone, where one is named), each collection as it was last published.

    Raise ``UsageError`` where there is no such document in both, or both names are the same;
    ``StoreError`` for no such collection, or one into which nothing has been indexed.
    """
    from tgraph.extensions.lab.extraction_comparison import compare_collections

    return compare_collections(root, first, second, document=document)


def _compare() -> Command:
    from tgraph.extensions.lab.compare_command import compare

    return compare


def _evaluate() -> Command:
    from tgraph.extensions.lab.evaluate_command import evaluate

    return evaluate


def _influence() -> Command:
    from tgraph.extensions.lab.influence_command import influence

    return influence


def _tune() -> Command:
    from tgraph.extensions.lab.tune_command import tune

    return tune


def _examine_model(root: Path | None, collection: str | None) -> Iterator[HealthFinding]:
    from tgraph.extensions.lab.model_check import examine_model

    return examine_model(root, collection)


def _comparison_schema() -> Any:
    from tgraph.extensions.lab.extraction_comparison import ExtractionComparison

    return ExtractionComparison


def _evaluation_schema() -> Any:
    from tgraph.extensions.lab.evaluation.output import EvaluationOut

    return EvaluationOut


def _influence_schema() -> Any:
    from tgraph.extensions.lab.influence.values import Influence

    return Influence


def _estimate_schema() -> Any:
    from tgraph.extensions.lab.influence.values import InfluenceEstimate

    return InfluenceEstimate


EXTENSION = Extension(
    name="lab",
    commands={
        "compare": _compare,
        "evaluate": _evaluate,
        "influence": _influence,
        "tune": _tune,
    },
    health_checks={"model": _examine_model},
    schemas={
        "compare": _comparison_schema,
        "evaluation": _evaluation_schema,
        "influence": _influence_schema,
        "influence-estimate": _estimate_schema,
    },
    functions={
        "estimate_influence": estimate_influence,
        "measure_influence": measure_influence,
    },
)
