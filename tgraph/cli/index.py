"""``tgraph index``: indexing run with failure lines and summary, and cost estimate."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import chat_options, common, settings_of, strict_ontology
from tgraph.cli.running import Command, command, common_option, find_root, open_call_graph
from tgraph.cli.terminal import format_count, json_text, one_line, print_json, print_message
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.engine.index.indexed_paths import AbsentFiles
    from tgraph.engine.index.run import IndexReport


_MOST_READINGS = 5
"""Documents whose losses are told one by one."""


class _Index(Command):
    interrupted = (
        "Interrupted. No incomplete result was published. The same command continues the run "
        "with the saved extractions."
    )


@command("index", cls=_Index)
@click.argument("paths", metavar="PATH...", nargs=-1)
@click.option(
    "--estimate",
    is_flag=True,
    help="Print the expected cost (of --reread with that), and do nothing else.",
)
@click.option("--reinstate", is_flag=True, help="Include retracted documents again.")
@click.option(
    "--reread",
    is_flag=True,
    help="Only read documents anew that an earlier version read otherwise (all without PATH).",
)
@click.option(
    "--prune", is_flag=True, help="Retract documents whose files are gone from a folder given."
)
@click.option(
    "--watch", is_flag=True, help="Index the folders again after every change, until Ctrl-C."
)
@click.option(
    "--follow-links",
    is_flag=True,
    default=None,
    help="Follow links that lead out of a folder too.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object; with --watch, one on a line for each round.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show failures, but no progress.")
@click.option(
    "--chunk-size",
    type=click.IntRange(min=20),
    metavar="N",
    help="Largest number of tokens in a chunk.",
)
@click.option(
    "--chunk-overlap",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of tokens shared by neighbouring chunks.",
)
@click.option(
    "--chunk-by",
    type=click.Choice(["tokens", "sentences"]),
    help="Cut chunks by tokens or by sentences.",
)
@click.option(
    "--gleanings",
    type=click.IntRange(min=0),
    metavar="N",
    help="Extra rounds of extraction for each chunk.",
)
@click.option(
    "--method",
    type=click.Choice(["standard", "fast"]),
    help="fast: names and the co-occurrence of names, without a model.",
)
@strict_ontology
@click.option("--claims/--no-claims", default=None, help="Extract claims too (needs a model).")
@click.option("--claim-description", metavar="TEXT", help="A description of the claims to extract.")
@click.option(
    "--entity-specs",
    multiple=True,
    metavar="NAME",
    help="Extract only claims about this name or type (repeatable).",
)
@click.option(
    "--prepare",
    is_flag=True,
    default=None,
    help="Build the indexes that some modes otherwise build at the first question.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes for work without a model, and of threads for embeddings.",
)
@click.option("--executor", metavar="ADDRESS", help="A Dask cluster: dask://HOST:PORT.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Largest number of calls at the same time.",
)
@click.option(
    "--price-in",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Price of a million input tokens.",
)
@click.option(
    "--price-out",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Price of a million output tokens.",
)
@chat_options
@common
def index(paths: tuple[str, ...], **options: Any) -> None:
    """Index documents: files, folders, globs, or - for standard input.

    Text, Markdown, reStructuredText, AsciiDoc, LaTeX, HTML, EPUB, XML (JATS), PDF, DOCX, PPTX,
    XLSX, ODT, ODP, ODS, Parquet, CSV, JSON, JSON Lines and e-mail (EML, MBOX, MSG) are read.
    Unchanged files are skipped; a changed file replaces the earlier version. Unreadable files
    are listed, and all others are indexed; the exit code is then 1, and also if no chunk got a
    usable reply. After an interruption, the same command continues the run.

    Of a folder, documents whose files are gone are named; --prune retracts them, with this reason.
    A renamed file is recognised by its content and not read again. --watch keeps folders and graph
    together: each change is indexed, after a second without other changes.

    \b
    Examples:
      tgraph index docs/ --root my-graph
      tgraph index docs/ --estimate --model gpt-4.1-mini
      tgraph index --reread --estimate
      tgraph index docs/ --watch --prune
      tgraph index docs/ --executor dask://10.0.0.7:8786
      curl -s https://example.org/a.txt | tgraph index -
    """
    ways: dict[tuple[str, ...], Callable[[Sequence[str], dict[str, Any]], None]] = {
        (): _run_index,
        ("estimate",): _print_estimate,
        ("watch",): _watch_folders,
        ("reread",): _reread_documents,
        ("estimate", "reread"): partial(_print_estimate, reread=True),
    }
    chosen = tuple(way for way in ("estimate", "watch", "reread") if options.pop(way))
    if not paths and "reread" not in chosen:
        raise UsageError("Name the files or folders to index.", "tgraph index PATH...")
    if (run := ways.get(chosen)) is None:
        raise UsageError(f"{' and '.join(f'--{way}' for way in chosen)} exclude each other.")
    run(paths, options)


def _run_index(paths: Sequence[str], options: dict[str, Any]) -> None:
    """Index documents; exit code 1 if a file failed, or if the model could read no chunk."""
    from tgraph.cli.progress import show_progress

    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    flags = _pop_run_flags(options)
    _refuse_a_graph_of_nothing(paths, bool(options["follow_links"]))
    with (
        open_call_graph(settings_of(options), create=True) as graph,
        show_progress(quiet) as (progress, message),
    ):
        report = graph.index(list(paths), **flags, progress=progress, message=message)
        root = str(graph.root)
    _print_report(report, root, as_json=as_json, quiet=quiet)


def _print_report(report: IndexReport, root: str, *, as_json: bool, quiet: bool) -> None:
    """Print an index run's report; exit code 1 if a file failed, or if no chunk was readable."""
    say_failures(report)
    for line in describe_folders(report):
        print_message(line)
    if as_json:
        from tgraph.engine.json_index_runs import index_json

        print_json(index_json(report, root))
    elif not quiet:
        print_message(describe_run(report, root))
        for line in describe_losses(report):
            print_message(line)
    if _is_unread(report):
        print_message(
            "No chunk got a usable reply of the model, so the graph has only the text of these "
            "documents, for the modes basic, naive and contextual. Check the model and the "
            "prompts, then index the documents into a new graph."
        )
    if report.failed or _is_unread(report):
        click.get_current_context().exit(1)


def _reread_documents(paths: Sequence[str], options: dict[str, Any]) -> None:
    """Read documents anew that an earlier version read otherwise."""
    from tgraph.cli.progress import show_progress

    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    _pop_run_flags(options)
    with (
        open_call_graph(settings_of(options)) as graph,
        show_progress(quiet) as (progress, message),
    ):
        report = graph.reread(paths, progress=progress, message=message)
        root = str(graph.root)
    _print_report(report, root, as_json=as_json, quiet=quiet)
    if not report.indexed and not as_json and not quiet:
        print_message("No document would be read otherwise by this version.")


def _pop_run_flags(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of runs, and those of estimates, out of the options; return the former."""
    options.pop("price_in")
    options.pop("price_out")
    return {name: options.pop(name) for name in ("reinstate", "prune")}


def _watch_folders(folders: Sequence[str], options: dict[str, Any]) -> None:
    """Index folders after every change until Ctrl-C, with a line for each round.

    Failures and other lines are printed when they are new, not again in every round."""
    from tgraph.cli.progress import show_progress
    from tgraph.engine.folder_watch import check_folders
    from tgraph.engine.json_index_runs import index_json

    check_folders(folders)
    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    flags = _pop_run_flags(options)
    before: set[str] = set()
    lines: set[str] = set()

    def print_new(line: str) -> None:
        if line not in before | lines:
            print_message(line)
        lines.add(line)

    with (
        open_call_graph(settings_of(options), create=True) as graph,
        ExitStack() as bars,
        suppress(KeyboardInterrupt),
    ):
        progress, _ = bars.enter_context(show_progress(quiet))
        rounds = graph.follow(folders, **flags, progress=progress, message=print_new)
        for report in rounds:
            bars.close()
            for line in (
                *_describe_failures(report),
                *describe_folders(report),
                *describe_losses(report),
            ):
                print_new(line)
            before, lines = lines, set()
            if as_json:
                click.echo(json_text(index_json(report, str(graph.root)), indent=None))
            elif not quiet:
                print_message(
                    f"{time.strftime('%H:%M:%S')} {describe_run(report, str(graph.root))}"
                )
    print_message("Stopped. `tgraph index` takes in what changed meanwhile.")


def _is_unread(report: IndexReport) -> bool:
    from tgraph.engine.index.extraction import UNUSABLE

    return 0 < report.chunks == report.dropped.get(UNUSABLE, 0)


def _refuse_a_graph_of_nothing(paths: Sequence[str], follow_links: bool) -> None:
    """Raise ``TgraphError`` if a new graph would be created without input files.

    A typing error thus leaves no empty graph behind."""
    from tgraph.errors import TgraphError
    from tgraph.ingest.files import Unread, discover_files
    from tgraph.store.folder import MARKER

    root = find_root(create=True)
    if root is not None and (root / MARKER).is_file():
        return
    unread: list[Unread] = []
    for item in discover_files(paths, follow_links=follow_links):
        if not isinstance(item, Unread):
            return
        unread.append(item)
    for failure in unread:
        print_message(f"Failed: {failure.name}: {failure.reason}")
    raise TgraphError("There are no documents to index, so no graph was made.")


def say_failures(report: IndexReport) -> None:
    """Print failed files with reasons."""
    for line in _describe_failures(report):
        print_message(line)


def _describe_failures(report: IndexReport) -> list[str]:
    return [f"Failed: {failure.path}: {failure}" for failure in report.failed]


def describe_folders(report: IndexReport) -> Iterator[str]:
    """Yield a line for each kind of change of folders: files renamed, pruned, gone."""
    from tgraph.explain.trace.documents import name_some

    if report.renamed:
        renamed = name_some([f"{r.before} to {r.after}" for r in report.renamed])
        yield f"Renamed: {renamed}."
    if report.pruned:
        questioned = len(report.questioned)
        yield (
            f"Retracted {format_count(len(report.pruned), 'document')} whose files are gone: "
            f"{name_some(report.pruned)}. Answers called into question: {questioned:,}."
        )
    for absent in report.absent:
        one = len(absent.paths) == 1
        yield (
            f"{format_count(len(absent.paths), 'document')} of {one_line(absent.folder)} "
            f"{'is' if one else 'are'} gone from the folder, and still "
            f"{'answers' if one else 'answer'}: {name_some([p.path for p in absent.paths])}. "
            + _absent_remedy(absent)
        )


def _absent_remedy(absent: AbsentFiles) -> str:
    if absent.is_folder_empty:
        return (
            "The folder is empty, as one that is not mounted, so that --prune retracts nothing; "
            "`tgraph retract DOC` does."
        )
    return f"`tgraph index {shlex.quote(absent.folder)} --prune` retracts what is gone."


def describe_losses(report: IndexReport) -> Iterator[str]:
    """Yield lines on what of the files isn't in the stored texts, those of files with warnings
    first."""
    from tgraph.explain.render.reading_report import summarise_losses

    readings = sorted(report.readings.items(), key=lambda item: not item[1].warnings)
    for path, reading in readings[:_MOST_READINGS]:
        losses = summarise_losses(reading)
        sentences = [*([f"{losses}."] if losses else []), *map(one_line, reading.warnings)]
        yield f"{one_line(path)}: {' '.join(sentences)}"
    if (rest := len(readings) - _MOST_READINGS) > 0:
        yield f"Of {format_count(rest, 'other document')} something isn't in the text."
    if readings:
        yield "`tgraph documents show PATH` shows what, where and why."


def describe_run(report: IndexReport, root: str, taken_in: str = "indexed") -> str:
    """Describe an indexing run in a few sentences."""
    from tgraph.cli.progress import tokens_text

    indexed_text = f"{len(report.indexed)} {taken_in}"
    if report.superseded:
        indexed_text += f" ({len(report.superseded)} of them new versions)"
    outcomes = (
        (report.unchanged, "unchanged"),
        (report.renamed, "renamed"),
        (report.pruned, "gone and retracted"),
        (report.retracted, "left out as retracted"),
        (report.erased, "left out as erased"),
        (report.failed, "failed"),
    )
    parts = [indexed_text, *(f"{len(files)} {label}" for files, label in outcomes if files)]
    count_text = (
        f"{format_count(report.chunks, 'chunk')}, "
        f"{format_count(report.entities, 'entity', 'entities')}, "
        f"{format_count(report.relationships, 'relationship')}"
    )
    count_text += f", {format_count(report.claims, 'claim')}" if report.claims else ""
    text = f"Documents: {', '.join(parts)}. "
    text += f"Read, chunk by chunk: {count_text}. " if report.indexed or report.claims else ""
    text += f"{_community_text(report)}. Graph: {root}"
    if report.usage.calls:
        text += f" ({tokens_text(report.usage)}, {format_count(report.usage.calls, 'call')})"
    if report.dropped:
        counts = sorted(report.dropped.items(), key=lambda item: (-item[1], item[0]))
        text += f"\nDropped: {', '.join(f'{n:,} {r}' for r, n in counts)}."
    return text


def _community_text(report: IndexReport) -> str:
    alone = "1 entity stands" if report.isolated == 1 else f"{report.isolated:,} entities stand"
    text = f"Communities: {report.communities:,}"
    return f"{text} ({alone} alone)" if report.isolated else text


def _print_estimate(paths: Sequence[str], options: dict[str, Any], *, reread: bool = False) -> None:
    """Print expected costs of indexing, or of reading anew, before spending anything."""
    from tgraph.engine.index.cost_estimate import estimate_index, estimate_reread

    as_json = options.pop("as_json")
    options.pop("quiet")
    prices = options["price_in"], options["price_out"]
    _pop_run_flags(options)
    estimate_costs = estimate_reread if reread else estimate_index
    estimate = estimate_costs(
        find_root(create=not reread),
        paths,
        {**settings_of(options), "collection": common_option("collection")},
        prices,
    )
    if as_json:
        print_json(estimate)
    else:
        click.echo("\n".join(estimate.lines()))
    for path, reason in estimate.failed:
        print_message(f"Failed: {path}: {reason}")
    if estimate.failed:
        click.get_current_context().exit(1)
