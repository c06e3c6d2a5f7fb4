"""``tgraph entities``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tgraph.cli import completion
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
    from tgraph.explain.trace.entities import BearerOfName, Merge, Split


T = TypeVar("T")
RowFormat = Callable[[T], Sequence[str]]


@click.group("entities", context_settings={"help_option_names": ["-h", "--help"]})
def entities() -> None:
    """Make, edit, delete, merge and split entities.

    Each decision is recorded; `tgraph curations undo` reverses a decision.
    """


@command("merges")
@json_array
@common
def merges(as_json: bool) -> None:
    """List the merged names with the entity, the reason and the time of the merge.

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
    """List the splits made by hand, with person, reason and time."""
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
    """Undo the merge of NAME with OTHER, or with the entity that NAME was merged into.

    Both entities stay separate in later index runs, until `rejoin`. The record names you if the
    setting `person` has your name.

    \b
    Example:
      tgraph entities split "Scott" --reason "in letters.txt this is Walter Scott"
    """
    with open_call_graph(settings_of(flags)) as graph:
        curation = graph.entities.split(name, other, reason=reason)
        print_message(f"Split into two entities ({curation}).")


@command("part")
@click.argument("name")
@click.option(
    "--document",
    "documents",
    metavar="DOC",
    multiple=True,
    required=True,
    shell_complete=completion.complete_documents,
    help="A document that means this bearer (repeatable).",
)
@click.option(
    "--as", "qualifier", metavar="WORDS", required=True, help="Words that tell the bearer apart."
)
@reason_option
@chat_options
@common
def part(name: str, documents: tuple[str, ...], qualifier: str, reason: str, **flags: Any) -> None:
    """Tell the bearer of NAME in some documents apart from others of the same name.

    The bearer becomes an entity "NAME (WORDS)", also in later index runs, until `curations undo`.

    \b
    Example:
      tgraph entities part "Li Wei" --document kunlun.txt --as "Kunlun Foods" --reason "a namesake"
    """
    with open_call_graph(settings_of(flags)) as graph:
        label = graph.entities.part(name, documents, qualifier=qualifier, reason=reason)
        print_message(f"Parted: {one_line(label)}. `tgraph curations undo last` takes this back.")


@command("bearers")
@json_array
@common
def bearers(as_json: bool) -> None:
    """List names that several people bear, with the documents that mean each, and the reason.

    Documents tell bearers apart where their facts exclude each other: the same full-time post at
    different organisations, or years of birth or death ten or more apart.
    """
    with open_call_graph() as graph:
        columns = "Name", "Bearer", "Documents", "Parted (UTC)", "By", "Reason"
        _print_items(
            graph.entities.read_bearers(),
            as_json,
            columns,
            _bearer_row,
            "No name has several bearers.",
        )


@command("rejoin")
@click.argument("name")
@click.argument("other")
@reason_option
@chat_options
@common
def rejoin(name: str, other: str, reason: str, **flags: Any) -> None:
    """Undo the split of NAME and OTHER: the documents decide again whether to merge."""
    with open_call_graph(settings_of(flags)) as graph:
        print_message(f"Undone: {graph.entities.rejoin(name, other, reason=reason)}.")


type_option = click.option("--type", "kind", help="The type of the entity, such as person or ship.")
description_option = click.option("--description", help="The description of the entity.")
alias_option = click.option(
    "--alias", "aliases", multiple=True, help="Another name of the entity (repeatable)."
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
    """Add the entity NAME. Your values have priority over values in documents.

    \b
    Example:
      tgraph entities create "Adrien de Gerlache" --type person --reason "the index lacks him"
    """
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.entities.create(
            name, reason=reason, type=kind, description=description, aliases=aliases
        )
    print_correction(correction)


@command("edit")
@click.argument("name")
@click.option("--label", help="The name to show for the entity.")
@type_option
@description_option
@alias_option
@click.option(
    "--no-alias",
    "not_aliases",
    multiple=True,
    help="A name to remove from the entity, even if documents use the name.",
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
    """Replace values of the entity NAME that documents state; other values stay.

    The entity keeps the IRI and all other names. An empty --description removes the description.

    \b
    Examples:
      tgraph entities edit Fram --type ship --description "Nansen's ship." --reason "it is a ship"
      tgraph entities edit "Coats Land" --no-alias Coats --reason "a family, not the land"
    """
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.entities.edit(
            name,
            reason=reason,
            label=label,
            type=kind,
            description=description,
            aliases=aliases,
            not_aliases=not_aliases,
        )
    print_correction(correction)


@command("delete")
@click.argument("name")
@reason_option
@chat_options
@common
def delete(name: str, reason: str, **flags: Any) -> None:
    """Remove the entity NAME, and all facts about the entity, under all current names.

    Documents indexed later do not restore the entity; `tgraph curations undo` does. Answers based
    on facts about the entity are called into question.

    \b
    Example:
      tgraph entities delete "Chapter Three" --reason "a heading, not a thing"
    """
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.entities.delete(name, reason=reason)
    print_correction(correction)


@command("merge")
@click.argument("name")
@click.argument("other")
@reason_option
@chat_options
@common
def merge(name: str, other: str, reason: str, **flags: Any) -> None:
    """Merge the entities NAME and OTHER into one entity.

    The merged entity has the fuller of both names; `entities edit --label` changes the name.
    Entities separated by `entities split` stay separate until `rejoin`.

    \b
    Example:
      tgraph entities merge "Titus Oates" "Lawrence Oates" --reason "his nickname"
    """
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.entities.merge(name, other, reason=reason)
    print_correction(correction)


for _command in (merges, splits, bearers, split, rejoin, part, merge, create, edit, delete):
    entities.add_command(_command)


def _print_items(
    found: Sequence[T], as_json: bool, columns: Sequence[str], row: RowFormat[T], none: str
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


def _bearer_row(bearer: BearerOfName) -> Sequence[str]:
    names = one_line(bearer.name), one_line(bearer.label), one_line(", ".join(bearer.paths))
    by = one_line(bearer.person or "a user") if bearer.by_hand else "documents"
    return *names, format_time(bearer.decided), by, one_line(bearer.reason)


def _split_row(split: Split) -> Sequence[str]:
    names = map(one_line, split.names)
    return *names, format_time(split.decided), one_line(split.person), one_line(split.reason)
