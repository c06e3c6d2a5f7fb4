"""The values of an evaluation, and how a person or RAGChecker reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from tgraph.explain.evaluation import GROUPS, EvaluationItem, percent
from tgraph.explain.evaluation_files import ragchecker_item
from tgraph.explain.evaluation_ranking import RETRIEVAL
from tgraph.model import NO_USAGE, Agent, Usage
from tgraph.rendering import render
from tgraph.vocabulary import agent_iri

APPROXIMATE = (
    "These figures are approximations: sentences stand for statements and likeness for entailment,"
    " because no language model judged. Compare them with each other, not with figures that a model"
    " made."
)


@dataclass(frozen=True, slots=True)
class Assessment:
    """How one question came out: RAGChecker's metrics and those of the retrieval (0 to 1) as far as
    there is something to judge by, or ``error``: why it could not be judged."""

    item: EvaluationItem
    metrics: Annotated[Mapping[str, float], "RAGChecker's eleven; empty where none"] = field(
        default_factory=dict
    )
    retrieval: Annotated[Mapping[str, float], "by gold; empty where the question names none"] = (
        field(default_factory=dict)
    )
    error: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation: the assessments in the order of the questions, and what they come to.

    ``judges`` made the statements and checked them; there are none where the file brought every
    label. ``evaluation`` is the IRI under which it is on record, empty where it isn't.
    """

    assessments: tuple[Assessment, ...]
    mode: Annotated[str | None, "how questions were answered; null where none was asked"] = None
    judges: Annotated[tuple[Agent, ...], "empty where the file brought every label"] = ()
    usage: Usage = NO_USAGE
    evaluation: str = ""
    explain_collection: str = ""

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """RAGChecker's metrics by group, in percent: unweighted means over the questions that could
        be judged. A group is empty where none could."""
        return {
            group: percent([a.metrics for a in self.assessments], names)
            for group, names in GROUPS.items()
        }

    @property
    def retrieval(
        self,
    ) -> Annotated[
        dict[str, float], "percentages: recall@2, @5, @10, all_gold@8, mrr; empty without gold"
    ]:
        """The retrieval metrics in percent, over the questions that name gold."""
        return percent([a.retrieval for a in self.assessments], RETRIEVAL)

    @property
    def judged(self) -> Annotated[int, "questions with RAGChecker's metrics"]:
        """How many questions have RAGChecker's metrics."""
        return sum(bool(a.metrics) for a in self.assessments)

    @property
    def failed(self) -> tuple[Assessment, ...]:
        """What could not be judged; it is in no mean."""
        return tuple(a for a in self.assessments if a.error)

    @property
    def approximate(self) -> Annotated[bool, "whether a method judged, and no language model"]:
        """Whether a method, and no language model, did any of the judging, now or for the file."""
        method = agent_iri("method", "", "")
        return any(j.startswith(method) for a in self.assessments for j in a.item.judges)

    @property
    def dropped(self) -> Annotated[dict[str, int], "what was left out on the way, by reason"]:
        """What was left out on the way, by reason."""
        return dict(sum((Counter(a.dropped) for a in self.assessments), Counter[str]()))

    def to_ragchecker(self) -> dict[str, Any]:
        """The whole in RAGChecker's format."""
        rows = [ragchecker_item(a.item, a.metrics) for a in self.assessments]
        return {"results": rows, "metrics": self.metrics}

    def to_markdown(self) -> str:
        """A report for people."""
        return render(self, "markdown")
