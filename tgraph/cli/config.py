"""``tgraph config``."""

from __future__ import annotations

from pathlib import Path

import click

from tgraph.cli import terminal
from tgraph.cli.options import common
from tgraph.cli.running import CommandGroup, command, common_option, find_root
from tgraph.errors import NotAGraphError


@click.group("config", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Show and import settings, and make signing keys."""


def _find_root() -> Path | None:
    try:
        return find_root()
    except NotAGraphError:
        return None


@command("show")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def show_settings(as_json: bool) -> None:
    """Show each setting with the value and the origin of the value.

    Defaults < tgraph.toml in the graph's folder < environment (TGRAPH_CHAT__MODEL, ...) < flags.
    Settings of a provider that is not in use are marked: without a key or an address for chat, the
    embedded default is used.

    \b
    Example:
      tgraph config show --json | jq '.["chat.model"]'
    """
    from tgraph.engine.effective_settings import effective_settings

    root = _find_root()
    effective = effective_settings(root, {"collection": common_option("collection")})
    if as_json:
        rows_by_name = {
            s.name: {"value": s.value, "origin": s.origin, "used": s.used} for s in effective
        }
        terminal.print_json(rows_by_name)
    else:
        terminal.print_message(
            f"Graph: {root}"
            if root
            else "There is no graph here; these are the settings without a graph."
        )
        rows = ((s.name, s.display_text, s.origin) for s in effective)
        terminal.print_renderable(terminal.build_table(("Setting", "Value", "Origin"), rows))


@command("signing-key")
@click.argument("file", type=click.Path(dir_okay=False))
def signing_key(file: str) -> None:
    """Make a pair of keys for signing the record.

    The private key is written to FILE, readable only by you, and the public key to FILE.pub. Set
    integrity.signing_key to FILE. Keep the public key in a place that users with write access to
    the graph can't change.

    \b
    Example:
      tgraph config signing-key ~/.config/tgraph/record.key
    """
    from shlex import quote

    from tgraph.record.signing import make_keys

    public, beside = make_keys(Path(file))
    click.echo(public.id)
    terminal.print_message(f"Private key: {file} (mode 600). Public key: {beside}.")
    setting = f"TGRAPH_INTEGRITY__SIGNING_KEY={quote(str(Path(file).absolute()))}"
    terminal.print_message(f"To sign the record: {setting}, or in tgraph.toml.")


config.add_command(show_settings)
config.add_command(signing_key)
