"""``tgraph entities``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tgraph.cli.facts import print_correction, reason_option
from tgraph.cli.options import chat_options, common, json_array, settings_of
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    format_time,
    one_line,
    print_json,
    print_message,
    print_renderable,
)

if TYPE_CHECKING:
    from tgraph.explain.trace.entities import Merge, Split


T = TypeVar("T")
Row = Callable[[T], Sequence[str]]


@click.group("entities", context_settings={"help_option_names": ["-h", "--help"]})
def entities() -> None:
    """Make, edit and delete entities, look at which names are one, join them and tell them apart.

    What is decided is on record; `tgraph curations undo` takes it back.
    """


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
    with open_call_graph() as graph:
        columns = "Name", "Entity", "Merged (UTC)", "Grounds"
        _print_items(
            graph.entities.read_merges(), as_json, columns, _merge_row, "No names have been merged."
        )


@command("splits")
@json_array
@common
def splits(as_json: bool) -> None:
    """List the names that were told apart by hand, with who, why and when."""
    with open_call_graph() as graph:
        columns = "Name", "Other", "Split (UTC)", "By", "Reason"
        _print_items(
            graph.entities.read_splits(), as_json, columns, _split_row, "No names have been split."
        )


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
    with open_call_graph(settings_of(flags)) as graph:
        print_message(
            f"Two entities from now on ({graph.entities.split(name, other, reason=reason)})."
        )


@command("rejoin")
@click.argument("name")
@click.argument("other")
@reason_option
@chat_options
@common
def rejoin(name: str, other: str, reason: str, **flags: Any) -> None:
    """Take the split of NAME and OTHER back: whether they are one is up to the documents again."""
    with open_call_graph(settings_of(flags)) as graph:
        print_message(f"Taken back: {graph.entities.rejoin(name, other, reason=reason)}.")


type_option = click.option("--type", "kind", help="What it is, such as person or ship.")
description_option = click.option("--description", help="What is to be said of it.")
alias_option = click.option(
    "--alias", "aliases", multiple=True, help="What it is also called; may be given several times."
)


@command("create")
@click.argument("name")
@type_option
@description_option
@alias_option
@reason_option
@chat_options
@common
def create(
    name: str,
    kind: str | None,
    description: str | None,
    aliases: tuple[str, ...],
    reason: str,
    **flags: Any,
) -> None:
    """State that there is an entity NAME. What you say of it goes before what documents say.

    \b
    Example:
      tgraph entities create "Adrien de Gerlache" --type person --reason "the index lacks him"
    """
    with open_call_graph(settings_of(flags)) as graph:
        done = graph.entities.create(
            name, reason=reason, type=kind, description=description, aliases=aliases
        )
    print_correction(done)


@command("edit")
@click.argument("name")
@click.option("--label", help="What it is to be called.")
@type_option
@description_option
@alias_option
@click.option(
    "--no-alias", "not_aliases", multiple=True, help="What it is not called, whoever says so."
)
@reason_option
@chat_options
@common
def edit(
    name: str,
    label: str | None,
    kind: str | None,
    description: str | None,
    aliases: tuple[str, ...],
    not_aliases: tuple[str, ...],
    reason: str,
    **flags: Any,
) -> None:
    """Say what is true of the entity NAME in place of what documents say; the rest stays.

    The entity keeps its IRI and its other names. An empty --description takes away what is said.

    \b
    Examples:
      tgraph entities edit Fram --type ship --description "Nansen's ship." --reason "it is a ship"
      tgraph entities edit "Coats Land" --no-alias Coats --reason "a family, not the land"
    """
    with open_call_graph(settings_of(flags)) as graph:
        done = graph.entities.edit(
            name,
            reason=reason,
            label=label,
            type=kind,
            description=description,
            aliases=aliases,
            not_aliases=not_aliases,
        )
    print_correction(done)


@command("delete")
@click.argument("name")
@reason_option
@chat_options
@common
def delete(name: str, reason: str, **flags: Any) -> None:
    """Keep the entity NAME out of the graph, with all facts about it, under all names it has now.

    Documents that name it later don't bring it back; `tgraph curations undo` does. Answers that
    rest on facts about it are called into question.

    \b
    Example:
      tgraph entities delete "Chapter Three" --reason "a heading, not a thing"
    """
    with open_call_graph(settings_of(flags)) as graph:
        done = graph.entities.delete(name, reason=reason)
    print_correction(done)


@command("merge")
@click.argument("name")
@click.argument("other")
@reason_option
@chat_options
@common
def merge(name: str, other: str, reason: str, **flags: Any) -> None:
    """Make NAME and OTHER one entity, whatever documents call them.

    It is called by the fuller name of the two; `entities edit --label` calls it otherwise. What was
    told apart by `entities split` stays apart until `rejoin`.

    \b
    Example:
      tgraph entities merge "Titus Oates" "Lawrence Oates" --reason "his nickname"
    """
    with open_call_graph(settings_of(flags)) as graph:
        done = graph.entities.merge(name, other, reason=reason)
    print_correction(done)


for _command in (merges, splits, split, rejoin, merge, create, edit, delete):
    entities.add_command(_command)


def _print_items(
    found: Sequence[T], as_json: bool, columns: Sequence[str], row: Row[T], none: str
) -> None:
    """Print items as a table or JSON."""
    if as_json:
        print_json(found)
    elif found:
        print_renderable(build_table(columns, map(row, found)))
    else:
        print_message(none)


def _merge_row(merge: Merge) -> Sequence[str]:
    names = one_line(merge.absorbed_name), one_line(merge.canonical_name)
    grounds = one_line("; ".join(ground.text for ground in merge.grounds))
    return *names, format_time(merge.merged), grounds


def _split_row(split: Split) -> Sequence[str]:
    names = map(one_line, split.names)
    return *names, format_time(split.decided), one_line(split.person), one_line(split.reason)
