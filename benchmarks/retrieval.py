"""How well each retrieval mode finds the passages that answer a question, as a table and a plot.

Each passage becomes a chunk in a real graph folder, of a document of its own or of the one that it
stands in; the graph is an extraction that
the data set brings (``--graph openie``) or the embedded default's (``--graph embedded``). A mode is
measured by the order of the passages among its chunk candidates, with its limits raised so that at
least 20 come back; a mode without chunk candidates by the order in which its evidence stands in
them; ``auto`` by what the mode retrieves that it chooses for the question, which is nothing where
that mode has no retrieval of its own. The formats of data sets are in ``retrieval_data.py``.

- R@k: the share of a question's gold passages among the first k (Pass@k is the same figure in
  Anthropic's words); all@8: the share of questions with every gold passage among the first 8;
  MRR: the mean of 1 / rank of the first gold passage, within 20.
- ± is the standard deviation of a figure over resampled sets of questions (bootstrap, 2,000
  samples, fixed seed): what another set of as many questions could give.
- CPU is the process's; index includes extraction and embedding (with the embedded model).
- With ``--tune SETTING=A,B`` (more than once: all combinations) every mode is cross-validated:
  the combination with the best mean of R@2, R@5 and R@10 on four fifths of the questions is
  measured on the last fifth, five times; ± is the standard deviation over ten divisions.

Run: python -m benchmarks.retrieval --data DIR [--graph openie|embedded] [--modes basic,ppr]
     [--work DIR] [--set ppr_search.damping=0.7] [--tune ppr_search.likeness=4,6,8]
     [--plot FILE.svg] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tgraph
from benchmarks.retrieval_data import Asked, DataSet, OpenIEExtractor, read_data
from benchmarks.retrieval_plot import plot
from tgraph import vocabulary as v
from tgraph.engine.ask import method_factory
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.methods import TwoStages
from tgraph.engine.components import Components
from tgraph.errors import TgraphError, UsageError
from tgraph.extract.base import Extractor
from tgraph.ingest.chunk import chunk_document
from tgraph.model import Candidate, Chunk, Document
from tgraph.models.base import no_sink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.modes.registry import AUTO, MODES
from tgraph.settings import load_settings

DEPTHS = (2, 5, 10, 20)
DEEP: Mapping[str, Any] = {
    "basic_search.k": 20,
    "contextual_search.k": 20,
    "ppr_search.passages": 20,
}
"""Settings that make a mode return at least 20 chunks."""

WHOLE: Mapping[str, Any] = {"chunk.size": 100_000, "chunk.overlap": 0}
SAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Score:
    """What one question came to; ``recall`` by depth, 0 to 1."""

    recall: Mapping[int, float]
    all_of_8: float
    reciprocal: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores of a mode, and the CPU seconds of its first question, which opens what the others
    find open."""

    scores: tuple[Score, ...]
    first: float


class GivenParts(Components):
    """Parts whose extractor is given."""

    given: Extractor | None = None

    @property
    def extractor(self) -> Extractor:
        return self.given if self.given is not None else super().extractor


def score(ranked: Sequence[str], gold: frozenset[str], cpu: float = 0.0) -> Score:
    """The figures of one question for the passages in their order, best first."""
    places = [place for place, passage in enumerate(ranked[: max(DEPTHS)], 1) if passage in gold]
    return Score(
        recall={k: sum(place <= k for place in places) / len(gold) for k in DEPTHS},
        all_of_8=float(gold <= set(ranked[:8])),
        reciprocal=1 / places[0] if places else 0.0,
        cpu=cpu,
    )


def passages_of(candidates: Iterable[Candidate], ids: Mapping[str, str]) -> Iterator[str]:
    """The passages of the chunk candidates, else of all evidence, each once, in their order.
    ``ids`` has a passage by its document or by its chunk."""
    found = list(candidates)
    chunks = [c for c in found if c.item.kind == "chunk"]
    named = (e.chunk if e.chunk in ids else e.document for c in chunks or found for e in c.evidence)
    yield from dict.fromkeys(ids[iri] for iri in named)


def measurable(mode: str, parts: Components) -> bool:
    """Whether a mode retrieves by itself, in one step, without a model."""
    try:
        return isinstance(method_of(mode, parts), TwoStages)
    except UsageError:
        return False


def evaluate(mode: str, kg: tgraph.KnowledgeGraph, parts: Components, data: DataSet) -> Measured:
    """The score of every question. ``UsageError`` for a mode that retrieves nothing by itself."""
    if mode != AUTO and not measurable(mode, parts):
        raise UsageError(f"The mode {mode} has no retrieval of its own to measure.")
    context = _context(mode, kg, parts)
    ids = {v.document_iri(passage.sha256): passage.id for passage in data.passages}
    for whole in data.wholes:
        places = zip(whole.chunks(), whole.passages, strict=True)
        ids |= {chunk.iri: passage for chunk, (passage, *_) in places}
    scores: list[Score] = []
    first = 0.0
    for place, asked in enumerate((data.questions[0], *data.questions)):
        fresh = context.for_question(no_sink)
        start = time.process_time()
        candidates = _candidates(asked, mode, parts, fresh)
        spent = time.process_time() - start
        if place == 0:
            first = spent
        else:
            ranked = list(passages_of(candidates, ids))
            scores.append(score(ranked, asked.gold, spent))
    return Measured(tuple(scores), first)


def _context(mode: str, kg: tgraph.KnowledgeGraph, parts: Components) -> Context:
    """What the mode reads, built where it was not; for ``auto`` what those read that it takes."""
    taken = parts.settings.auto.modes if mode == AUTO else (mode,)
    context = [kg.context(each) for each in taken][-1]
    context.settings = parts.settings
    return context


def _candidates(
    asked: Asked, mode: str, parts: Components, context: Context
) -> tuple[Candidate, ...]:
    if mode == AUTO:
        mode = method_factory.choose_method(Question(asked.question), parts, context).mode
    method = method_of(mode, parts)
    if not isinstance(method, TwoStages):
        return ()
    return method.retriever.retrieve(_question(asked, method, context), context).candidates


def _question(asked: Asked, method: TwoStages, context: Context) -> Question:
    question = Question(asked.question)
    if method.keywords is not None:
        words = method.keywords.find(question, context, no_sink)
        return Question(asked.question, (), words.all_keywords, words)
    if method.concepts is not None:
        return Question(asked.question, (), method.concepts.find(question, context, no_sink))
    return question


# --- the graph ----------------------------------------------------------------------------------


@contextmanager
def graph_of(
    data: DataSet, how: str, work: Path, settings: Mapping[str, Any]
) -> Iterator[tuple[tgraph.KnowledgeGraph, Components, float]]:
    """The data set's graph, open, with the CPU seconds that indexing took (0: it was there)."""
    parts = GivenParts(load_settings(None, {**DEEP, **WHOLE, **settings}), work / "cache")
    if how == "openie":
        if data.openie is None:
            raise UsageError(f"{data.name} brings no extraction.", "Use --graph embedded.")
        parts.given = OpenIEExtractor(data.openie)
    start = time.process_time()
    files = data.write_documents(work / "documents")
    with tgraph.open(work / "graph", create=True, settings=WHOLE, parts=parts) as kg:
        with cut_as_given(data):
            report = kg.index(files)
        if report.failed:
            raise report.failed[0]
        spent = time.process_time() - start if report.indexed else 0.0
        yield kg, parts, spent


@contextmanager
def cut_as_given(data: DataSet) -> Iterator[None]:
    """While it lasts, documents are cut into the passages of the data set."""
    known = {whole.sha256: whole for whole in data.wholes}

    def cut(document: Document, *options: object) -> list[Chunk]:
        if document.sha256 in known:
            return known[document.sha256].chunks()
        return chunk_document(document, *options)  # type: ignore[arg-type]

    with patch("tgraph.engine.index.extraction.chunk_document", cut):
        yield


# --- figures ------------------------------------------------------------------------------------


def figures(scores: Sequence[Score]) -> dict[str, float]:
    """The means in percent, and the median CPU seconds of a question."""
    means = {f"R@{k}": statistics.fmean(s.recall[k] for s in scores) * 100 for k in DEPTHS}
    means["all@8"] = statistics.fmean(s.all_of_8 for s in scores) * 100
    means["MRR"] = statistics.fmean(s.reciprocal for s in scores) * 100
    return means


def spread(scores: Sequence[Score]) -> dict[str, float]:
    """The standard deviation of each figure over resampled sets of questions."""
    generator = random.Random(0)
    drawn = [figures(generator.choices(scores, k=len(scores))) for _ in range(SAMPLES)]
    return {name: statistics.stdev(d[name] for d in drawn) for name in drawn[0]}


def combinations(tunes: Sequence[str]) -> list[dict[str, str]]:
    """Every combination of the values of ``SETTING=A,B``; one empty one where there are none."""
    pairs = [tune.split("=", 1) for tune in tunes]
    choices = [[(name, value) for value in values.split(",")] for name, values in pairs]
    return [dict(chosen) for chosen in product(*choices)]


def cross_validated(
    found: Sequence[Sequence[Score]], folds: int = 5, divisions: int = 10
) -> tuple[dict[str, float], dict[str, float]]:
    """The figures, and their standard deviations over the divisions, of questions that had no part
    in the choice: ``found`` has the scores of the same questions for each combination."""
    count = len(found[0])
    generator = random.Random(0)
    drawn = []
    for _ in range(divisions):
        order = generator.sample(range(count), count)
        scores: list[Score] = []
        for fold in range(folds):
            held = order[fold::folds]
            seen = [place for place in order if place not in set(held)]
            best = max(found, key=lambda each: _worth([each[place] for place in seen]))
            scores += [best[place] for place in held]
        drawn.append(figures(scores))
    means = {name: statistics.fmean(d[name] for d in drawn) for name in drawn[0]}
    return means, {name: statistics.stdev(d[name] for d in drawn) for name in drawn[0]}


def _worth(scores: Sequence[Score]) -> float:
    return statistics.fmean(s.recall[2] + s.recall[5] + s.recall[10] for s in scores)


def tune(
    mode: str,
    options: argparse.Namespace,
    kg: tgraph.KnowledgeGraph,
    parts: Components,
    data: DataSet,
) -> None:
    """Print the figures of every combination, and those of cross-validation."""
    found = {}
    for chosen in combinations(options.tune):
        named = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in chosen.items())
        changed = Components(
            load_settings(None, {**DEEP, **_pairs(options.set), **chosen}),
            kg.root / "cache",
            embedder=parts.embedder,
        )
        found[f"{mode}: {named}"] = evaluate(mode, kg, changed, data)
    print(table(found))
    means, around = cross_validated([each.scores for each in found.values()])
    print(f"\n{mode}, cross-validated:")
    print(", ".join(f"{name} {means[name]:.1f} ± {around[name]:.1f}" for name in means) + "\n")


def table(found: Mapping[str, Measured]) -> str:
    """The modes' figures as Markdown; CPU seconds of the median question, and of the first."""
    names = list(figures(next(iter(found.values())).scores))
    lines = [f"| mode | {' | '.join(names)} | CPU s | first |", f"|---{'|---' * (len(names) + 2)}|"]
    for mode, measured in found.items():
        means, around = figures(measured.scores), spread(measured.scores)
        cells = [f"{means[name]:.1f} ± {around[name]:.1f}" for name in names]
        cpu = statistics.median(s.cpu for s in measured.scores)
        lines.append(f"| {mode} | {' | '.join(cells)} | {cpu:.3f} | {measured.first:.2f} |")
    return "\n".join(lines)


def chart(title: str, found: Mapping[str, Measured]) -> str:
    """Recall by depth of each mode, as SVG."""
    means = {mode: figures(measured.scores) for mode, measured in found.items()}
    return plot(title, {m: {k: means[m][f"R@{k}"] for k in DEPTHS} for m in means})


def _modes(named: str, parts: Components) -> list[str]:
    return named.split(",") if named else [mode for mode in MODES if measurable(mode, parts)]


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    return dict(text.split("=", 1) for text in texts)


def run(options: argparse.Namespace, work: Path) -> None:
    """Measure what the options say, and print and write the figures."""
    data = read_data(options.data.resolve())
    how = options.graph or ("openie" if data.openie else "embedded")
    print(
        f"{data.name}: {len(data.passages):,} passages, {len(data.questions):,} questions,"
        f" the graph is {'the extraction it brings' if how == 'openie' else 'the embedded default'}"
        "'s\n"
    )
    found: dict[str, Measured] = {}
    work = work / f"{data.name}-{how}"
    with graph_of(data, how, work, _pairs(options.set)) as (kg, parts, spent):
        if spent:
            print(f"Index: {spent:.0f} CPU s\n")
        for mode in _modes(options.modes, parts):
            if options.tune:
                tune(mode, options, kg, parts, data)
            else:
                found[mode] = evaluate(mode, kg, parts, data)
    if not found:
        return
    print(table(found))
    if options.plot:
        options.plot.write_text(chart(f"{data.name}, {how}", found), "utf-8")
    if options.json:
        rows = {
            mode: {**figures(each.scores), "spread": spread(each.scores)}
            for mode, each in found.items()
        }
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of a data set")
    parser.add_argument("--graph", choices=["openie", "embedded"], help="default: what there is")
    parser.add_argument("--modes", default="", help="default: all that retrieve in one step")
    parser.add_argument("--work", type=Path, help="keep the graph here, and use it again")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--tune", action="append", default=[], metavar="SETTING=A,B")
    parser.add_argument("--plot", type=Path, help="write recall by depth as SVG")
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            run(options, options.work or Path(folder))
    except TgraphError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
