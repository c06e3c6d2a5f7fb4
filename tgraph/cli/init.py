"""``tgraph init``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from tgraph.cli.options import common
from tgraph.cli.running import command, common_option, find_root
from tgraph.cli.terminal import format_count, one_line, print_message
from tgraph.errors import UsageError


@command("init")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--prompts", is_flag=True, help="Copy tgraph's prompts to the folder too, for editing."
)
@common
def init(folder: Path | None, prompts: bool) -> None:
    """Make the FOLDER of a graph, with a file of all settings.

    Without FOLDER, the folder is --root or TGRAPH_ROOT, else ./tgraph-graph. The file tgraph.toml
    lists each setting with meaning and default, commented out. Existing files are not overwritten.
    `tgraph index` also works without `init`.

    \b
    Examples:
      tgraph init
      tgraph init my-graph --prompts
      tgraph config import graphrag-project/settings.yaml --root my-graph
    """
    from tgraph.engine.settings_file import init_graph

    if folder is not None and common_option("root"):
        raise UsageError("The folder is named twice.", "Leave out --root.")
    root = folder or find_root(create=True)
    assert root is not None
    result = init_graph(root, prompts=prompts)
    lines = [one_line(str(path)) for path in result.written if path.name != "README.md"]
    if len(lines) > _FEW:
        print_message(
            f"Wrote {lines[0]} and {format_count(len(lines) - 1, 'prompt')} in {result.prompts}."
        )
    elif lines:
        print_message(f"Wrote {', '.join(lines)}.")
    for path in (path for path in result.kept if path.name != "README.md"):
        print_message(f"Unchanged: {one_line(str(path))}")
    if result.unnamed_prompts:
        print_message('To use the prompts, set `prompts = "prompts"` in tgraph.toml.')
    _next_steps(result.folder)


_FEW = 3


def _next_steps(folder: Path) -> None:
    root = quote(one_line(str(folder)))
    print_message("\nNext:")
    print_message(f"  edit {root}/tgraph.toml             # a model, what is extracted, limits")
    print_message(f"  tgraph doctor --root {root}         # is everything there?")
    print_message(f"  tgraph index DOCUMENTS --root {root}")
    print_message(f'  tgraph ask "..." --root {root}')
