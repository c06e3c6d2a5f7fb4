"""Documents: ``tgraph documents``, ``source``, ``impact``, ``retract`` and ``remove``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import completion
from tgraph.cli.options import chat_options, common, connection, json_array, settings_of
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    confirm_action,
    format_count,
    format_time,
    one_line,
    print_json,
    print_lines,
    print_message,
    print_renderable,
    write_bytes,
)
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.engine.change.purge import Purge
    from tgraph.explain.audit.impact import Impact, SoleFact
    from tgraph.explain.trace.documents import DocumentSummary


SHOWN = 50
"""Facts that are listed as text; JSON has all of them."""


@click.group("documents", context_settings={"help_option_names": ["-h", "--help"]})
def documents() -> None:
    """List the documents, show how completely they were read, and set their authority."""


@command("list")
@click.option(
    "--all", "everything", is_flag=True, help="List retracted and replaced documents too."
)
@json_array
@common
def list_(everything: bool, as_json: bool) -> None:
    """List the documents with the time of indexing and the authority.

    \b
    Examples:
      tgraph documents list
      tgraph documents list --json | jq '.[] | select(.authority < 1).path'
    """
    with open_call_graph() as graph:
        documents = [entry for entry in graph.documents.summaries() if entry.standing or everything]
    if as_json:
        print_json(documents)
    else:
        print_documents(documents)


def print_documents(found: Sequence[DocumentSummary]) -> None:
    """Print documents as a table."""
    if not found:
        print_message("There are no documents yet. `tgraph index PATH...` indexes documents.")
        return
    columns = ["Path", "Title", "Taken in (UTC)", "Standing", "Authority"]
    rows = [
        [
            one_line(summary.path),
            one_line(summary.title),
            format_time(summary.taken),
            "" if summary.standing else "ended",
            "" if summary.authority == 1 else f"{summary.authority:g}",
        ]
        for summary in found
    ]
    if any(summary.losses or summary.warnings for summary in found):
        columns.append("Not read")
        for row, summary in zip(rows, found, strict=True):
            row.append(_reading_cell(summary))
    if any(summary.date for summary in found):
        columns.insert(2, "Date")
        for row, summary in zip(rows, found, strict=True):
            row.insert(
                2, one_line(summary.calendar_date or (summary.date and f"{summary.date} (?)"))
            )
    print_renderable(build_table(columns, rows))
    for summary in found:
        if summary.date_note:
            print_message(f"{one_line(summary.path)}: {one_line(summary.date_note)}")


def _reading_cell(summary: DocumentSummary) -> str:
    parts = [f"{summary.losses:,}"] if summary.losses else []
    return ", ".join([*parts, *(["warning"] if summary.warnings else [])])


@command("show")
@click.argument("document", metavar="DOC", shell_complete=completion.complete_documents)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def show(document: str, as_json: bool) -> None:
    """Show a document's metadata and pages, and what of its file is not in the stored text.

    The counts are made independently of the reader: units in the file against units in the text.
    DOC is named as for `impact`.

    \b
    Example:
      tgraph documents show contract.docx
    """
    from dataclasses import asdict

    from tgraph.explain.render.reading_report import report_lines

    with open_call_graph() as graph:
        tree = graph.documents.read_extractions(document)
        report = graph.documents.read_report(tree.document.document)
        metadata = graph.documents.read_metadata(tree.document.document)
    summary = tree.document
    pages = [page for page in tree.pages if page.number is not None]
    if as_json:
        print_json(
            {
                **asdict(summary),
                "characters": tree.characters,
                "metadata": metadata,
                "pages": [{"page": p.number, "characters": p.characters} for p in pages],
                "reading": asdict(report) if report else None,
            }
        )
        return
    empty = [str(page.number) for page in pages if not page.characters]
    print_lines(
        [
            f"{one_line(summary.title)}: {one_line(summary.path)}",
            f"{summary.media_type}, {tree.characters:,} characters"
            + (f", {format_count(len(pages), 'page')}" if pages else ""),
            *(
                f"{field.capitalize()}: {one_line(value)}"
                for field, value in metadata.items()
                if field != "title"
            ),
            *([f"Pages without text: {', '.join(empty)}"] if empty else []),
            *report_lines(report),
        ]
    )


@command("weigh")
@click.argument("target", metavar="DOC|PATTERN", shell_complete=completion.complete_documents)
@click.argument("authority", required=False, type=click.FloatRange(0, 1))
@click.option("--clear", is_flag=True, help="Remove the authority that was set.")
@click.option("--reason", required=True, help="The reason, kept in the record.")
@chat_options
@common
def weigh(target: str, authority: float | None, clear: bool, reason: str, **flags: Any) -> None:
    """Set the authority of documents: a number from 0 (ignored) to 1 (full authority).

    In later questions, the score of each item is multiplied by the authority of the item's
    documents; with 0, no answer uses the documents. Recorded sessions do not change. DOC is named
    as for `impact`. A PATTERN of paths (*, ?, [...]) applies to all matching documents, also to
    documents indexed later; an exact path has priority over patterns, and a longer pattern over a
    shorter pattern.

    \b
    Examples:
      tgraph documents weigh rumours.txt 0.3 --reason "hearsay"
      tgraph documents weigh "*/drafts/*" 0 --reason "superseded by the filings"
      tgraph documents weigh rumours.txt --clear --reason "confirmed since"
    """
    if clear is (authority is not None):
        raise UsageError("Give an authority from 0 to 1, or --clear.")
    with open_call_graph(settings_of(flags)) as graph:
        pattern = one_line(graph.documents.set_authority(target, authority, reason=reason))
        fitting = sum(
            1 for entry in graph.documents.summaries() if entry.standing and entry.authority != 1
        )
    outcome = "has full authority" if authority is None else f"has an authority of {authority:g}"
    print_message(f"{pattern} {outcome} from now on ({format_count(fitting, 'document')} weighed).")


documents.add_command(list_)
documents.add_command(show)
documents.add_command(weigh)


all_copies_option = click.option(
    "--all-copies", is_flag=True, help="Mean every path where the same content stands."
)


@command("impact")
@click.argument("document", metavar="DOC", shell_complete=completion.complete_documents)
@all_copies_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def impact(document: str, all_copies: bool, as_json: bool) -> None:
    """Show what depends on a document: facts without other evidence, and answers.

    DOC is a path, a title, the document's IRI or content hash, or an unambiguous beginning of one.
    A path means the document at that path alone: no fact falls with it while the same content
    stands at another path.

    \b
    Examples:
      tgraph impact endurance.md
      tgraph impact copy-of-endurance.md --all-copies
    """
    with open_call_graph() as graph:
        print_impact(graph.impact(document, all_copies=all_copies), as_json=as_json)


@command("retract")
@click.argument("document", metavar="DOC", shell_complete=completion.complete_documents)
@click.option("--reason", required=True, help="The reason, kept in the record.")
@all_copies_option
@chat_options
@common
def retract(document: str, reason: str, all_copies: bool, **flags: Any) -> None:
    """Retract a document: later answers do not use the document.

    One path is retracted. While the same content stands at another path, that content still
    answers, and the command names the other path; --all-copies retracts all of them.

    Facts without other evidence leave the graph, other knowledge is derived again, and answers
    based on the document are called into question in `sessions` and `trace`. The record stays, and
    names you if the setting `person` has your name. `index --reinstate` includes the document
    again.

    \b
    Example:
      tgraph retract endurance.md --reason "the log was forged"
    """
    with open_call_graph(settings_of(flags)) as graph:
        retraction = graph.retract(document, reason=reason, all_copies=all_copies)
    retracted = retraction.impact
    print_message(
        f"Retracted {', '.join(retracted.paths) or retracted.path}. "
        f"Facts without other evidence: {len(retracted.facts):,}. "
        f"Answers called into question: {len(retraction.questioned):,}."
    )
    if retracted.copies:
        print_message(
            f"{_describe_copies(retracted)}, and still answers; "
            "`tgraph retract --all-copies` retracts every copy."
        )


def _describe_copies(impact: Impact) -> str:
    from tgraph.explain.trace.documents import name_some

    return f"The same content stands at {name_some(impact.copies)}"


def print_impact(found: Impact, *, as_json: bool) -> None:
    """Print affected facts and answers as text, or complete data as JSON."""
    if as_json:
        print_json(found)
        return
    standing = "" if found.standing else " (retracted or replaced)"
    paths = ", ".join(found.paths) or found.path
    click.echo(f"{one_line(paths)}: {one_line(found.title)}{standing}")
    click.echo(f"Facts without other evidence: {len(found.facts):,}")
    _print_facts(found.facts)
    if found.copies:
        click.echo(f"{one_line(_describe_copies(found))}.")
        click.echo(f"Facts that stand by the same content there: {len(found.copied):,}")
        _print_facts(found.copied)
    click.echo(f"Facts with evidence in other documents: {found.shared:,}")
    click.echo(f"Answers based on the document: {len(found.answers):,}")
    for answer in found.answers:
        doubt = f", questioned since {format_time(answer.questioned)}" if answer.questioned else ""
        click.echo(f"  {answer.session} ({format_time(answer.started)}{doubt})")
        click.echo(f"    {one_line(answer.question)}")
        for sentence in answer.sentences:
            alone = " [no other evidence]" if sentence.alone else ""
            click.echo(f"    {sentence.index + 1}. {one_line(sentence.text)}{alone}")


def _print_facts(facts: Sequence[SoleFact]) -> None:
    for fact in facts[:SHOWN]:
        click.echo(f"  {one_line(fact.fact)}")
    if len(facts) > SHOWN:
        print_message(f"{format_count(len(facts) - SHOWN, 'more fact')}; --json lists all of them.")


@command("remove")
@click.argument("document", metavar="DOC", shell_complete=completion.complete_documents)
@click.option("--purge", is_flag=True, help="Erase the text everywhere, permanently.")
@click.option("--reason", help="The reason, kept in the record.")
@all_copies_option
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@chat_options
@common
def remove(
    document: str,
    purge: bool,
    reason: str | None,
    all_copies: bool,
    yes: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Erase a document permanently, also from the record (a right-to-erasure request).

    The document is retracted first. Then the text is removed from stored texts, quotes,
    descriptions, reports, answers, model calls, vectors, caches and snapshots; facts that other
    documents state too stay. Marks replace the erased text. Each affected session is sealed again,
    with an entry in the chain: `audit integrity` reports the erasure, and `replay` refuses the
    session. An erasure can't be undone.

    While the same content stands at another path, the path named is only retracted and no text is
    erased; --all-copies erases the content at all paths.

    No other process may have the graph open. After an interruption, run the same command again.

    \b
    Example:
      tgraph remove endurance.md --purge --reason "erasure request 17"
    """
    from tgraph.cli.progress import show_progress

    if not purge:
        raise UsageError(
            "Use `tgraph retract DOC` to retract a document, or --purge to erase a document "
            "permanently."
        )
    if not reason:
        raise UsageError("The reason of the decision is missing.", "Give the reason with --reason.")
    with open_call_graph(settings_of(flags)) as graph:
        if not yes:
            _confirm_removal(graph.impact(document, all_copies=all_copies))
        with show_progress(quiet) as (progress, message):
            removal = graph.purge(
                document, reason=reason, all_copies=all_copies, progress=progress, message=message
            )
    _say_done(removal)


def _confirm_removal(found: Impact) -> None:
    """Print facts and answers that fall with the document, and ask for confirmation.

    What stands at another path is not erased, so that nothing is asked."""
    if found.copies:
        return
    print_message(
        f"{one_line(', '.join(found.paths) or found.path)}: {one_line(found.title)}\n"
        f"Facts without other evidence: {len(found.facts):,}. "
        f"Answers based on the document: {len(found.answers):,}."
    )
    confirm_action("Erasing", "Erase the text everywhere, permanently?")


def _say_done(done: Purge) -> None:
    from tgraph.explain.integrity.erasures import format_counts

    counts = format_counts(done.bundles, done.batches, done.texts)
    if not done.erasure:
        print_message(
            f"Retracted {', '.join(done.impact.paths)}, and erased no text. "
            f"{_describe_copies(done.impact)}; --all-copies erases every copy."
        )
        return
    if done.already:
        print_message(f"{done.impact.document} was erased earlier ({counts}).")
        return
    print_message(
        f"Erased {done.impact.document}: {counts}. "
        f"Answers called into question: {len(done.questioned):,}. On record as {done.erasure}."
    )


@command("source")
@click.argument("document", metavar="DOC", shell_complete=completion.complete_documents)
@click.option(
    "--text", is_flag=True, help="Print the stored text, whose characters citations count."
)
@click.option(
    "--page", type=click.IntRange(min=1), metavar="N", help="With --text: print only this page."
)
@click.option("--format", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
@click.option("--show-content", is_flag=True, help="Show the beginning of each chunk's text.")
@click.option(
    "--max-content", type=click.IntRange(min=1), default=200, show_default=True, metavar="N"
)
@connection
@common
def source(
    document: str, text: bool, page: int | None, format: str, show_content: bool, max_content: int
) -> None:
    """Show what was extracted from a document, and from which characters.

    DOC is a path, a title, the document's IRI or content hash, or an unambiguous beginning of one.

    \b
    Examples:
      tgraph source endurance.md
      tgraph source nimrod.pdf --text --page 2
    """
    if page is not None and not text:
        raise click.UsageError("--page needs --text.")
    with open_call_graph() as graph:
        if text:
            write_bytes(graph.documents.read_text(document, page).encode("utf-8", "surrogatepass"))
            return
        source_text = graph.documents.read_extractions(document)
        if format == "json":
            print_json(source_text)
        else:
            from tgraph.explain.render.text_trees import source_tree

            print_renderable(
                source_tree(source_text, content=max_content if show_content else None)
            )
