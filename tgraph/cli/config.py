"""``tgraph config`` and ``tgraph doctor``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli import terminal
from tgraph.cli.options import common, json_array
from tgraph.cli.running import command, common_option, find_root, opened
from tgraph.errors import NotAGraphError

if TYPE_CHECKING:
    from tgraph.engine.checks import HealthFinding
    from tgraph.engine.graphrag_settings import ImportedSettings


@click.group("config", context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Look at the settings, and make what they name."""


def _root() -> Path | None:
    try:
        return find_root()
    except NotAGraphError:
        return None


@command("show")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def show(as_json: bool) -> None:
    """Show every setting, its value, and where that comes from.

    Defaults < tgraph.toml in the graph's folder < environment (TGRAPH_CHAT__MODEL, ...) < flags.
    What is set for a provider that isn't in use is marked so: without a key or an address for chat
    the embedded default does the work.

    \b
    Example:
      tgraph config show --json | jq '.["chat.model"]'
    """
    from tgraph.settings import effective_settings

    root = _root()
    found = effective_settings(root, {"collection": common_option("collection")})
    if as_json:
        told = {s.name: {"value": s.value, "origin": s.origin, "used": s.used} for s in found}
        terminal.print_json(told)
    else:
        terminal.say(f"Graph: {root}" if root else "No graph here; these are the settings without.")
        rows = ((s.name, s.shown, s.origin) for s in found)
        terminal.show(terminal.table(("Setting", "Value", "Origin"), rows))


@command("signing-key")
@click.argument("file", type=click.Path(dir_okay=False))
def signing_key(file: str) -> None:
    """Make a pair of keys that the record is signed with.

    The private key is written to FILE, for you alone, and the public key to FILE.pub. Set
    integrity.signing_key to FILE; keep the public key where whoever can write the graph can't.

    \b
    Example:
      tgraph config signing-key ~/.config/tgraph/record.key
    """
    from shlex import quote

    from tgraph.record.signing import make_keys

    public, beside = make_keys(Path(file))
    click.echo(public.id)
    terminal.say(f"Private key: {file} (mode 600). Public key: {beside}.")
    setting = f"TGRAPH_INTEGRITY__SIGNING_KEY={quote(str(Path(file).absolute()))}"
    terminal.say(f"To sign the record: {setting}, or in tgraph.toml.")


@command("import")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be set, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def import_(file: Path, dry_run: bool, as_json: bool) -> None:
    """Move the settings of a GraphRAG project here.

    FILE is settings.yaml (or .json) of Microsoft GraphRAG 0.3 to 3, or the project's folder;
    variables that it refers to are read from .env beside it and from the environment. tgraph.toml
    gets what has a place there; the rest is named, each with the reason. Keys are not copied: the
    command says which variable takes them. A tgraph.toml in which something is set already is left
    as it is.

    \b
    Examples:
      tgraph config import graphrag-project/ --dry-run
      tgraph config import graphrag-project/settings.yaml --root my-graph
      tgraph config import settings.yaml --json | jq '.left[].source'
    """
    from tgraph.engine.graphrag_settings import import_graphrag_settings
    from tgraph.engine.settings_file import write_settings
    from tgraph.settings import FILE

    found = import_graphrag_settings(file)
    target = None
    if not dry_run:
        root = find_root(create=True)
        assert root is not None
        target = root / FILE
        write_settings(target, found.values)
    if as_json:
        moved = [{**asdict(each), "value": each.shown} for each in found.moved]
        written = str(target) if target else None
        told = {**asdict(found), "file": str(found.file), "moved": moved, "written": written}
        terminal.print_json(told)
        return
    _tell_imported(found)
    terminal.say(f"Wrote {target}." if target else "Nothing was written.")


def _tell_imported(found: ImportedSettings) -> None:
    moved = ((m.source, m.setting, terminal.one_line(str(m.shown))) for m in found.moved)
    terminal.show(terminal.table(("GraphRAG", "tgraph", "Value"), moved))
    if found.left:
        click.echo("\nLeft out:")
        left = ((x.source, terminal.one_line(x.value), x.reason) for x in found.left)
        terminal.show(terminal.table(("GraphRAG", "Value", "Why"), left))
    for key in found.keys:
        named = f" (there: {key.named})" if key.named else ""
        terminal.say(f"Key: {key.source}{named} is not copied; set {key.variable}.")


def _repaired() -> list[HealthFinding]:
    from tgraph.cli.progress import show_progress

    with opened() as graph, show_progress(quiet=False) as (progress, _):
        return graph.repair(progress=progress)


config.add_command(show)
config.add_command(import_)
config.add_command(signing_key)


@command("doctor")
@click.option("--repair", is_flag=True, help="Make anew what is damaged and can be made anew.")
@json_array
@common
def doctor(repair: bool, as_json: bool) -> None:
    """Check that everything tgraph needs is in order. Exit code 1: something is not.

    With --repair every file of the graph's collection is read. What is derived and damaged is made
    anew: snapshot, vectors, look-ups, caches, and the store where its snapshot is whole. What is
    truth and damaged (contents, journals, the store) is named by its file, with what helps.

    \b
    Examples:
      tgraph doctor --root my-graph
      tgraph doctor --root my-graph --repair
    """
    from tgraph.engine.checks import examine

    findings = _repaired() if repair else []
    findings += examine(_root(), common_option("collection"))
    if as_json:
        terminal.print_json(findings)
    else:
        rows = ((f.status, f.subject, terminal.one_line(f.detail)) for f in findings)
        terminal.show(terminal.table(("", "What", "Finding"), rows))
    bad = [finding.subject for finding in findings if finding.status == "bad"]
    if bad:
        terminal.say(f"Not in order: {', '.join(bad)}.")
        click.get_current_context().exit(1)
