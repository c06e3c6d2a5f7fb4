"""``tgraph evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import chat_options, common, mode_option, settings_of
from tgraph.cli.running import command, find_root, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    json_text,
    print_json,
    print_message,
    print_renderable,
    write_result,
)
from tgraph.errors import NotAGraphError

if TYPE_CHECKING:
    from tgraph.engine.progress import OnProgress
    from tgraph.extensions.lab.evaluation.assessments import Evaluation


@command("evaluate")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@mode_option("The mode for questions without a response, as in `ask`.", "graph")
@click.option(
    "--metrics",
    multiple=True,
    metavar="NAME",
    help=(
        "Compute only these metrics: overall, retriever, generator or single names, also "
        "separated by commas (repeatable). Model calls for other metrics are left out."
    ),
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help=(
        "Write all results to this file as RAGChecker's JSON; a name ending in .md: only the "
        "report."
    ),
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Largest number of calls at the same time.",
)
@chat_options
@common
def evaluate(file: Path, **options: Any) -> None:
    """Judge answers by RAGChecker's metrics, and the retrieval by gold passages or documents.

    FILE is RAGChecker's JSON, or a list of questions (JSON, JSON Lines, TOML) with query and
    gt_answer, gold_passages or gold_documents. Questions without a response are asked. A language
    model splits answers into statements and checks the statements; without a model, both steps are
    approximated. The result is recorded with the judged sessions. Exit code 1: some answers could
    not be judged.

    \b
    Examples:
      tgraph evaluate questions.toml -m local -o judged.json
      tgraph evaluate checking_inputs.json --model gpt-4.1-mini
      tgraph evaluate judged.json --markdown
      tgraph evaluate questions.toml --metrics retriever,faithfulness
    """
    _run_evaluation(file, options)


def _run_evaluation(file: Path, options: dict[str, Any]) -> None:
    """Evaluate and print results; exit code 1 if a question could not be judged."""
    mode, quiet = options.pop("mode"), options.pop("quiet")
    as_json, markdown = options.pop("as_json"), options.pop("markdown")
    output = options.pop("output")
    metrics = [name.strip() for text in options.pop("metrics") for name in text.split(",")]
    if as_json and markdown:
        raise click.UsageError("Choose --json or --markdown.")
    from tgraph.cli.progress import show_progress

    with show_progress(quiet) as (progress, _):
        evaluation = _evaluate_file(file, mode, metrics, settings_of(options), progress)
    if output is not None:
        _write_evaluation(evaluation, output)
    if as_json:
        from tgraph.extensions.lab.evaluation.output import evaluation_json

        print_json(evaluation_json(evaluation))
    elif markdown:
        click.echo(evaluation.to_markdown(), nl=False)
    else:
        _print_evaluation(evaluation)
    if evaluation.failed_assessments:
        click.get_current_context().exit(1)


def _evaluate_file(
    file: Path, mode: str, metrics: list[str], settings: dict[str, Any], progress: OnProgress
) -> Evaluation:
    try:
        find_root()
    except NotAGraphError:
        return _without_graph(file, metrics, settings, progress)
    with open_call_graph(settings) as graph:
        from tgraph.extensions.lab.evaluation.run import GraphEvaluation

        return GraphEvaluation(graph.opened).run(file, mode, progress, metrics)


def _without_graph(
    file: Path, metrics: list[str], settings: dict[str, Any], progress: OnProgress
) -> Evaluation:
    """Evaluate a file containing answers, without a graph; nothing is recorded."""
    import tempfile

    from tgraph.engine.components import Components
    from tgraph.extensions.lab.evaluation.files import read_items
    from tgraph.extensions.lab.evaluation.metrics import chosen_metrics, need_answer
    from tgraph.extensions.lab.evaluation.run import evaluation_run
    from tgraph.settings import load_settings

    with tempfile.TemporaryDirectory() as folder:
        parts = Components(load_settings(None, settings), Path(folder))
        try:
            chosen = chosen_metrics(metrics)
            items = read_items(file, answered=need_answer(chosen))
            evaluation = evaluation_run(parts, progress, chosen).run(items, None)
        finally:
            parts.close()
    print_message("There is no graph here, so the evaluation is not recorded.")
    return evaluation


def _write_evaluation(evaluation: Evaluation, target: Path) -> None:
    if target.suffix == ".md":
        write_result(evaluation.to_markdown().encode(), target)
    else:
        write_result((json_text(evaluation.to_ragchecker()) + "\n").encode(), target)


def _print_evaluation(evaluation: Evaluation) -> None:
    from tgraph.extensions.lab.evaluation.assessments import (
        QUESTION_COLUMNS,
        evaluation_remarks,
        metric_rows,
        question_rows,
    )

    for title, table_rows in metric_rows(evaluation):
        print_renderable(build_table((title, "%", "meaning"), table_rows))
        click.echo()
    print_renderable(build_table(QUESTION_COLUMNS, question_rows(evaluation)))
    for remark in evaluation_remarks(evaluation):
        print_message(remark)
