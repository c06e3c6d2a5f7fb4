"""Prints docs/reference/cli.md from the commands themselves."""

from __future__ import annotations

import click

from tgraph.cli.main import cli

HEAD = """# Commands

Made by `python docs/cli_reference.py > docs/reference/cli.md`; a test keeps it current. The scripts
`tg-invoke-graph-rag` (ask), `tg-list-explain-traces` (sessions), `tg-show-explain-trace` (trace),
`tg-show-extraction-provenance` (source) and `tg-invoke-sparql-query` (sparql) are the same commands
under TrustGraph's names.
"""


def page() -> str:
    return "\n".join([HEAD, *sections(cli, _context(cli, "tgraph"))])


def sections(command: click.Command, context: click.Context) -> list[str]:
    lines = [f"## {context.command_path}", "", "```text", command.get_help(context), "```", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            lines += sections(child, _context(child, name, context))
    return lines


def _context(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    return click.Context(
        command, parent, info_name=name, terminal_width=88, help_option_names=["-h", "--help"]
    )


if __name__ == "__main__":
    print(page(), end="")
