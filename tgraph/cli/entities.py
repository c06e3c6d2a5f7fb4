"""``tgraph entities``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tgraph.cli.options import chat_options, common, json_array, settings_of
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import one_line, print_json, say, show, table, time

if TYPE_CHECKING:
    from tgraph.explain.trace.entities import Merge, Split


T = TypeVar("T")
Row = Callable[[T], Sequence[str]]

reason_option = click.option("--reason", required=True, help="Why; it is kept in the record.")


@click.group("entities", context_settings={"help_option_names": ["-h", "--help"]})
def entities() -> None:
    """Look at which names are one entity, and tell them apart."""


@command("merges")
@json_array
@common
def merges(as_json: bool) -> None:
    """List the names that stand for another entity, with the grounds and the time.

    \b
    Examples:
      tgraph entities merges
      tgraph entities merges --json | jq '.[] | select(.canonical_name == "Robert Falcon Scott")'
    """
    with opened() as graph:
        columns = "Name", "Entity", "Merged (UTC)", "Grounds"
        _print(graph.merges(), as_json, columns, _merge, "No names have been merged.")


@command("splits")
@json_array
@common
def splits(as_json: bool) -> None:
    """List the names that were told apart by hand, with who, why and when."""
    with opened() as graph:
        columns = "Name", "Other", "Split (UTC)", "By", "Reason"
        _print(graph.splits(), as_json, columns, _split, "No names have been split.")


@command("split")
@click.argument("name")
@click.argument("other", required=False)
@reason_option
@chat_options
@common
def split(name: str, other: str | None, reason: str, **flags: Any) -> None:
    """Undo the merge of NAME (with OTHER, if not with the entity that it stands for).

    The two stay apart in later index runs too, whatever the documents say, until `rejoin`. Who
    decided is on record if the setting `person` names them.

    \b
    Example:
      tgraph entities split "Scott" --reason "in letters.txt this is Walter Scott"
    """
    with opened(settings_of(flags)) as graph:
        say(f"Two entities from now on ({graph.split(name, other, reason=reason)}).")


@command("rejoin")
@click.argument("name")
@click.argument("other")
@reason_option
@chat_options
@common
def rejoin(name: str, other: str, reason: str, **flags: Any) -> None:
    """Take the split of NAME and OTHER back: whether they are one is up to the documents again."""
    with opened(settings_of(flags)) as graph:
        say(f"Taken back: {graph.rejoin(name, other, reason=reason)}.")


for _command in (merges, splits, split, rejoin):
    entities.add_command(_command)


def _print(
    found: Sequence[T], as_json: bool, columns: Sequence[str], row: Row[T], none: str
) -> None:
    """As a table, or as JSON."""
    if as_json:
        print_json(found)
    elif found:
        show(table(columns, map(row, found)))
    else:
        say(none)


def _merge(merge: Merge) -> Sequence[str]:
    names = one_line(merge.absorbed_name), one_line(merge.canonical_name)
    grounds = one_line("; ".join(ground.text for ground in merge.grounds))
    return *names, time(merge.merged), grounds


def _split(split: Split) -> Sequence[str]:
    names = map(one_line, split.names)
    return *names, time(split.decided), one_line(split.person), one_line(split.reason)
