"""``tgraph ship`` and ``tgraph follow``: read replicas over a folder or object storage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common
from tgraph.cli.running import ResumableCommand, command, open_call_graph
from tgraph.cli.terminal import format_count, print_json, print_message

if TYPE_CHECKING:
    from tgraph.extensions.operations.replica_log import Shipment


@command("ship", cls=ResumableCommand)
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@common
def ship(url: str, as_json: bool, quiet: bool) -> None:
    """Write new data to a folder or object storage for replicas (`tgraph follow`).

    URL is any location that fsspec supports: a folder, s3://, gs://, abfs://, sftp://. Shipped data
    is not written again; after an erasure, everything is deleted and shipped again. Sessions
    recorded by replicas are added to the chain of the graph.

    \b
    Examples:
      tgraph ship /mnt/shared/my-graph
      tgraph ship s3://bucket/my-graph --json
    """
    from tgraph.cli.progress import show_progress
    from tgraph.engine.progress import count_progress
    from tgraph.extensions.operations.replica_shipping import ship as ship_changes

    with open_call_graph() as graph, show_progress(quiet) as (progress, _):
        shipment = ship_changes(graph.opened, url, count_progress(progress, "Shipping"))
    _print_shipment(shipment, "Shipped", "taken in", as_json=as_json)


@command("follow", cls=ResumableCommand)
@click.argument("url")
@click.option(
    "--every",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Repeat the transfer every SECONDS seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each transfer.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@common
def follow(url: str, every: float | None, as_json: bool, quiet: bool) -> None:
    """Keep a replica of the graph that `ship` writes to URL, in --root (default ./tgraph-graph).

    The replica gives the same answers as the graph. Each transfer is checked: order, gaps, the seal
    of each session and batch, the hash of each content (exit code 4). Sessions recorded in the
    replica are sent to the graph in the next round, and are listed after the graph has added the
    sessions to the chain. A replica changes nothing else. With --every, the command tries again if
    the storage can't be reached.

    \b
    Examples:
      tgraph follow /mnt/shared/my-graph --root replica
      tgraph follow s3://bucket/my-graph --root replica --every 30
    """
    from tgraph.errors import EndpointError

    if every is None:
        _follow_once(url, as_json=as_json, quiet=quiet)
        return
    while True:
        try:
            _follow_once(url, as_json=as_json, quiet=quiet)
        except EndpointError as error:
            print_message(f"{error} Next try in {every:g} s.")
        time.sleep(every)


def _follow_once(url: str, *, as_json: bool, quiet: bool) -> None:
    from tgraph.cli.progress import show_progress
    from tgraph.engine.progress import count_progress
    from tgraph.extensions.operations.replicas import follow_log as follow_changes

    with open_call_graph(create=True) as graph, show_progress(quiet) as (progress, _):
        shipment = follow_changes(graph.opened, url, count_progress(progress, "Following"))
    _print_shipment(shipment, "Followed", "handed over", as_json=as_json)


def _print_shipment(done: Shipment, what: str, journals: str, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    anew = " Everything anew, since something was erased." if done.anew else ""
    print_message(
        f"{what}: {format_count(done.entries, 'entry', 'entries')} of the chain,"
        f" {format_count(done.files, 'file')}; sessions {journals}: {done.journals}."
        f" Segment {done.segment}.{anew}"
    )
