"""``tgraph doctor``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli import terminal
from tgraph.cli.options import common, json_array
from tgraph.cli.running import command, common_option, find_root, open_call_graph
from tgraph.errors import NotAGraphError, UsageError
from tgraph.plugins import HEALTH_CHECKS

if TYPE_CHECKING:
    from tgraph.engine.checks import HealthCheck, HealthFinding


@command("doctor")
@click.option("--repair", is_flag=True, help="Make anew what is damaged and can be made anew.")
@click.option(
    "--model", "model", is_flag=True, help="Find out by a few calls what the model server can do."
)
@json_array
@common
def doctor(repair: bool, model: bool, as_json: bool) -> None:
    """Check that everything tgraph needs is in order. Exit code 1: something is not.

    With --repair every file of the graph's collection is read. What is derived and damaged is made
    anew: snapshot, vectors, look-ups, caches, and the store where its snapshot is whole. What is
    truth and damaged (contents, journals, the store) is named by its file, with what helps.

    With --model only the server of the settings is looked at: model and key, structured output,
    streaming, context and embeddings, by a few calls, one of them as long as the longest usual
    prompt. Each fault is told with the setting that mends it.

    \b
    Examples:
      tgraph doctor --root my-graph
      tgraph doctor --root my-graph --repair
      tgraph doctor --model --json | jq '.[] | select(.status == "bad")'
    """
    if repair and model:
        raise UsageError("--repair and --model don't go together.", "Run one after the other.")
    findings = [
        *(_examine_model() if model else [*(_repair_graph() if repair else []), *_examine_all()])
    ]
    if as_json:
        terminal.print_json(findings)
    else:
        rows = ((f.status, f.subject, terminal.one_line(_describe_finding(f))) for f in findings)
        terminal.print_renderable(terminal.build_table(("", "What", "Finding"), rows))
    bad = [finding.subject for finding in findings if finding.status == "bad"]
    if bad:
        terminal.print_message(f"Not in order: {', '.join(bad)}.")
        click.get_current_context().exit(1)


def _root() -> Path | None:
    try:
        return find_root()
    except NotAGraphError:
        return None


def _repair_graph() -> list[HealthFinding]:
    from tgraph.cli.progress import show_progress
    from tgraph.extensions.operations.collection_health import repair_collection

    with open_call_graph() as graph, show_progress(quiet=False) as (progress, _):
        return list(repair_collection(graph.opened, progress))


def _examine_all() -> Iterator[HealthFinding]:
    from tgraph.extensions.operations.health import examine_installation

    return examine_installation(_root(), common_option("collection"))


def _examine_model() -> Iterator[HealthFinding]:
    check: HealthCheck = HEALTH_CHECKS.require("model", "lab")
    return check(_root(), common_option("collection"))


def _describe_finding(finding: HealthFinding) -> str:
    if not finding.remedy:
        return finding.detail
    return f"{finding.detail.rstrip('.')}. {finding.remedy}"
