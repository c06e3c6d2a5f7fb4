"""``tgraph serve``, and access tokens that identify people."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tgraph.cli.options import chat_options, common, json_array, settings_of
from tgraph.cli.running import command, common_option, find_root
from tgraph.cli.terminal import build_table, print_json, print_message, print_renderable
from tgraph.errors import UsageError
from tgraph.rendering import one_line
from tgraph.settings import load_settings
from tgraph.store.folder import MARKER, GraphFolder

_MISSING = "The server needs packages that are not installed."
_INSTALL = "Run `pip install 'tgraph-rag[server]'`."
RIGHTS = ("read", "ask", "index", "govern")


def _server_module(name: str) -> Any:
    """A module of ``tgraph.extensions.server``, imported where a command needs it."""
    try:
        return import_module(f"tgraph.extensions.server.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tgraph"):
            raise
        raise UsageError(_MISSING, _INSTALL) from error


@command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8088,
    show_default=True,
    help="The port to listen on; 0: any free port.",
)
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    help=(
        "The file of tokens (`tgraph tokens create`); required for any other host than this "
        "machine."
    ),
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A name of this machine that browsers may use without tokens (repeatable).",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of server processes.",
)
@click.option(
    "--asking",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of questions that a process answers at the same time.",
)
@click.option(
    "--upload-mb",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="The size of the largest upload, in megabytes.",
)
@chat_options
@common
def serve(**options: Any) -> None:
    """Serve the graph: a workbench for the browser, REST, and the protocols of other programs.

    Where there is no graph yet, an empty graph is made: documents are brought in the browser.
    Without tokens, the server listens only on this machine, and every user has all rights. Sessions
    are recorded as on the command line. Ctrl-C or SIGTERM stops the server after running requests
    have ended, within a minute; no answer is lost.

    \b
    Examples:
      tgraph serve
      tgraph tokens create tokens.toml --person Ann --right read --right ask
      tgraph serve --host 0.0.0.0 --tokens tokens.toml --workers 2
    """
    run = _server_module("run")
    limits = _server_module("service").ServerLimits(
        asking=options["asking"], upload_mb=options["upload_mb"]
    )
    flags = {name: options[name] for name in options if name in _SETTINGS}
    collection = common_option("collection")
    serving = run.Serving(
        root=_find_or_make_graph(collection),
        host=options["host"],
        port=options["port"],
        tokens=options["tokens"],
        hosts=options["allow_host"],
        settings=settings_of(flags) | ({"collection": collection} if collection else {}),
        limits=limits,
        workers=options["workers"],
    )
    run.serve(serving, print_message)


def _find_or_make_graph(collection: str | None) -> Path:
    """Return the folder of the graph; a missing graph or default collection is made, empty."""
    root = find_root(create=True)
    assert root is not None
    if (root / MARKER).exists():
        folder = GraphFolder.open(root)
    else:
        folder = GraphFolder.create(root)
        print_message(f"Made an empty graph: {one_line(str(root))}")
    if not any(folder.collections()):
        folder.collection(collection or load_settings(root, {}).collection, create=True)
    return root


@command("mcp")
@chat_options
@common
def mcp(**options: Any) -> None:
    """Serve one agent by the Model Context Protocol, on standard input and output.

    Tools: ask, search, trace, why_not, verify, source, sparql, audit; resources: sessions,
    documents, pages and quotes; prompts for an analyst and an auditor. `tgraph serve` has the same
    at /mcp. Questions are recorded; the setting `person` names the person in the record.

    \b
    Example, as agents are configured:
      {"mcpServers": {"tgraph": {"command": "tgraph", "args": ["mcp", "--root", "my-graph"]}}}
    """
    doors = _server_module("mcp_doors")
    collection = common_option("collection")
    settings = settings_of(options) | ({"collection": collection} if collection else {})
    doors.over_stdio(find_root(), settings)


_SETTINGS = ("model", "base_url", "chat_provider", "embedding_provider", "embedding_model")


@click.group("tokens", context_settings={"help_option_names": ["-h", "--help"]})
def tokens() -> None:
    """Make, list and revoke the access tokens of `tgraph serve`."""


_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@command("create")
@_file
@click.option(
    "--person",
    required=True,
    metavar="NAME",
    help="The person recorded for requests with the token.",
)
@click.option(
    "-C",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="A collection that the token may use (repeatable).  [default: all]",
)
@click.option(
    "--right",
    "rights",
    multiple=True,
    type=click.Choice(RIGHTS),
    help="A right of the token (repeatable).  [default: read, ask]",
)
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="The last day of validity.")
def create(
    file: Path,
    person: str,
    collections: tuple[str, ...],
    rights: tuple[str, ...],
    expires: datetime | None,
) -> None:
    """Make a token and print the token once: the file keeps only the hash.

    Rights: `read` (sessions, documents, entities, audits, SPARQL), `ask` (questions, which are
    recorded), `index` (uploads), `govern` (retractions, corrections, collections).

    \b
    Example:
      tgraph tokens create tokens.toml --person "Ann Lee" -C cases --right read --right ask
    """
    access = _server_module("access")
    token = access.new_token()
    admitted = access.Access(person, collections or (access.ALL,), rights or ("read", "ask"))
    last = expires.date() if expires else None
    with access.edit_tokens(file) as tokens:
        tokens.append(access.Token(access.token_hash(token), admitted, last))
    click.echo(token)
    print_message("The token is shown only once. A running server accepts the token from now on.")


@command("list")
@_file
@json_array
def list_(file: Path, as_json: bool) -> None:
    """List the tokens by the beginning of their hashes.

    \b
    Example:
      tgraph tokens list tokens.toml
    """
    tokens = _read_tokens(file)
    if as_json:
        print_json([_plain_token(entry) for entry in tokens])
        return
    today = datetime.now(UTC).date()
    rows = (
        (
            entry.hash[:12],
            entry.access.person or "",
            ", ".join(entry.access.collections),
            ", ".join(entry.access.rights),
            ("" if entry.expires is None else entry.expires.isoformat())
            + ("" if entry.is_valid(today) else " (expired)"),
        )
        for entry in tokens
    )
    print_renderable(build_table(("Token", "Person", "Collections", "Rights", "Expires"), rows))


@command("revoke")
@_file
@click.argument("token", metavar="HASH")
def revoke(file: Path, token: str) -> None:
    """Revoke a token, named by the beginning of the hash.

    \b
    Example:
      tgraph tokens revoke tokens.toml 3f9a1c
    """
    _read_tokens(file)
    with _server_module("access").edit_tokens(file) as tokens:
        matches = [entry for entry in tokens if entry.hash.startswith(token.lower())]
        if len(matches) != 1 or len(token) < 4:
            raise UsageError(
                f"{token!r} is the beginning of {len(matches) or 'no'} tokens.",
                f"`tgraph tokens list {file}` lists them.",
            )
        tokens.remove(matches[0])
    print_message(f"The token {matches[0].hash[:12]} of {matches[0].access.person} is revoked.")


def _read_tokens(file: Path) -> list[Any]:
    if not file.exists():
        raise UsageError(f"There is no file {file}.", "`tgraph tokens create` makes the file.")
    stored_tokens: list[Any] = _server_module("access").read_tokens(file)
    return stored_tokens


def _plain_token(token: Any) -> dict[str, Any]:
    return {
        "hash": token.hash,
        "person": token.access.person,
        "collections": list(token.access.collections),
        "rights": list(token.access.rights),
        "expires": token.expires.isoformat() if token.expires else None,
    }


for _command in (create, list_, revoke):
    tokens.add_command(_command)
