"""``tgraph models``: the readers that tgraph doesn't bring itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tgraph.cli import terminal
from tgraph.cli.options import json_array
from tgraph.cli.running import command

if TYPE_CHECKING:
    from tgraph.models.reader_store import Pull, PulledReader


@click.group("models", context_settings={"help_option_names": ["-h", "--help"]})
def models() -> None:
    """Download reader models, and list downloaded reader models."""


@command("pull")
@click.argument("reader")
@click.option("--revision", default="", help="Branch, tag or commit.  [default: main]")
@click.option(
    "--sha256", default="", metavar="HASH", help="The expected hash of the network's file."
)
@click.option(
    "--file",
    default="",
    metavar="PATH",
    help="The network's file, such as onnx/model_quantized.onnx.  [default: model.onnx, or"
    " onnx/model.onnx]",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def pull(reader: str, revision: str, sha256: str, file: str, quiet: bool) -> None:
    """Download and pin a reader model: an extractive reader or a cross-encoder (ONNX).

    READER is a repository on the Hugging Face Hub (OWNER/NAME; HF_ENDPOINT names a mirror), the URL
    of a repository or of a file in a repository, or a folder. The network and tokenizer.json are
    tested, and saved in your data folder (XDG_DATA_HOME) with a file of their hashes, which are
    checked whenever the reader is loaded. To use the reader, set reader.model to the name of the
    reader.

    Exit code 5: the download failed.

    \b
    Examples:
      tgraph models pull OWNER/NAME --revision 1f2e3d4
      tgraph models pull OWNER/NAME --file onnx/model_quantized.onnx
      tgraph models pull ./my-reader
    """
    from tgraph.cli.progress import show_progress
    from tgraph.engine.progress import Progress
    from tgraph.models.hub import locate_reader
    from tgraph.models.reader_store import ReaderStore

    reader_source = locate_reader(reader, revision, file)
    with show_progress(quiet) as (progress, _):
        pulled = ReaderStore().pull(
            reader_source,
            sha256,
            lambda name, done, total: progress(Progress(f"{name}, bytes", done, total)),
        )
    click.echo(pulled.reader.name)
    _print_pull(pulled)


def _print_pull(made: Pull) -> None:
    reader, before = made.reader, made.before
    if before is not None and before.hashes != reader.hashes:
        terminal.print_message(f"The reader replaces {before.source}, {_revision_text(before)}.")
    for name, digest in reader.hashes.items():
        terminal.print_message(f"{name}: SHA-256 {digest}")
    terminal.print_message(f"Pinned, {_revision_text(reader)}: {reader.lock}")
    terminal.print_message(
        f"To use the reader: TGRAPH_READER__MODEL={reader.name}, or reader.model in tgraph.toml."
    )


def _revision_text(reader: PulledReader) -> str:
    return f"revision {reader.revision}" if reader.revision else "no revision"


@command("list")
@json_array
def list_pulled(as_json: bool) -> None:
    """List the downloaded reader models with revision and hashes.

    \b
    Example:
      tgraph models list --json | jq '.[].source'
    """
    from tgraph.models.reader_store import NETWORK, ReaderStore

    readers = ReaderStore().list_readers()
    if as_json:
        terminal.print_json(
            [{**asdict(pulled), "folder": str(pulled.folder)} for pulled in readers]
        )
        return
    rows = (
        (
            pulled.name,
            pulled.source,
            pulled.revision[:12] or "-",
            pulled.file,
            pulled.hashes[NETWORK][:12],
        )
        for pulled in readers
    )
    columns = ("Name", "Source", "Revision", "File", "SHA-256")
    terminal.print_renderable(terminal.build_table(columns, rows))


models.add_command(pull)
models.add_command(list_pulled)
