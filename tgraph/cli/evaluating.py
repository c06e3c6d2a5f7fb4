"""What ``evaluate`` shows: the figures with what they mean, each question, what to know of them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from tgraph.cli.indexing import show_progress
from tgraph.cli.options import settings_of
from tgraph.cli.running import find_root, opened
from tgraph.cli.terminal import json_text, say, show, table, write_result
from tgraph.engine.progress import OnProgress
from tgraph.errors import NotAGraphError
from tgraph.explain.evaluated import Evaluation
from tgraph.explain.evaluation_report import QUESTION_COLUMNS, questions, remarks, rows


def run(file: Path, options: dict[str, Any]) -> None:
    """Evaluate and print; exit code 1 where a question could not be judged."""
    mode, quiet = options.pop("mode"), options.pop("quiet")
    as_json, markdown = options.pop("as_json"), options.pop("markdown")
    output = options.pop("output")
    if as_json and markdown:
        raise click.UsageError("Choose --json or --markdown.")
    with show_progress(quiet) as (progress, _):
        evaluation = _evaluate(file, mode, settings_of(options), progress)
    if output is not None:
        _write(evaluation, output)
    if as_json:
        from tgraph.cli.schemas import evaluation_shape

        click.echo(json_text(evaluation_shape().plain(evaluation)))
    elif markdown:
        click.echo(evaluation.to_markdown(), nl=False)
    else:
        _print(evaluation)
    if evaluation.failed:
        click.get_current_context().exit(1)


def _evaluate(file: Path, mode: str, settings: dict[str, Any], progress: OnProgress) -> Evaluation:
    try:
        find_root()
    except NotAGraphError:
        return _without_graph(file, settings, progress)
    with opened(settings) as graph:
        return graph.evaluate(file, mode, progress=progress)


def _without_graph(file: Path, settings: dict[str, Any], progress: OnProgress) -> Evaluation:
    """A file that brings its answers needs no graph; nothing is recorded then."""
    from tgraph.engine.evaluating_graph import evaluation_run
    from tgraph.engine.parts import Parts
    from tgraph.explain.evaluation_files import read_items
    from tgraph.settings import load_settings

    with tempfile.TemporaryDirectory() as folder:
        parts = Parts(load_settings(None, settings), Path(folder))
        try:
            evaluation = evaluation_run(parts, progress).run(read_items(file), None)
        finally:
            parts.close()
    say("There is no graph here, so the evaluation is not recorded.")
    return evaluation


def _write(evaluation: Evaluation, target: Path) -> None:
    if target.suffix == ".md":
        write_result(evaluation.to_markdown().encode(), target)
    else:
        write_result((json_text(evaluation.to_ragchecker()) + "\n").encode(), target)


def _print(evaluation: Evaluation) -> None:
    for title, found in rows(evaluation):
        show(table((title, "%", "meaning"), found))
        click.echo()
    show(table(QUESTION_COLUMNS, questions(evaluation)))
    for remark in remarks(evaluation):
        say(remark)
