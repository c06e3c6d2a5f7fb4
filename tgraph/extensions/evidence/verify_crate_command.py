"""``tgraph verify-crate``: an evidence package checked, and replayed, without its graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli.options import common
from tgraph.cli.running import command
from tgraph.cli.terminal import format_count, one_line, print_json, print_lines, print_message
from tgraph.errors import VerificationError

if TYPE_CHECKING:
    from tgraph.extensions.evidence.crates.verify import PackageVerification

_SHOWN = 20
"""Problems of one check that are listed as text; JSON has all of them."""
_MARKS = {"ok": "ok", "failed": "FAILED", "not checked": "-"}


@command("verify-crate")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--public-key",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The public key of the record's signatures.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@common
def verify_crate(file: Path, public_key: Path | None, as_json: bool) -> None:
    """Check and replay an evidence package, using only the file.

    No graph, no network and no key of a model are needed. The command computes again: the hash of
    each file, the session's RDFC-1.0 hash against the entry of the chain, the signature (with
    --public-key), each quote against the page, the answer and the report against the record, the
    SHACL shapes, and the session itself, with the recorded replies. The output names all values
    taken from the record.

    Exit code 4: a check failed.

    \b
    Examples:
      tgraph verify-crate evidence.zip
      tgraph verify-crate evidence.zip --public-key record.pub
    """
    from tgraph.extensions.evidence.crates.verify_worker import verify_package

    print_verification(verify_package(file, public_key), as_json=as_json)


def print_verification(found: PackageVerification, *, as_json: bool) -> None:
    """Print package checks with results.

    Raises ``VerificationError`` if a check failed."""
    if as_json:
        print_json(found)
    else:
        print_lines(_verification_lines(found))
    if not found.ok:
        problems = format_count(len(found.problems), "problem")
        raise VerificationError(f"The package differs from the original package: {problems}.")
    unchecked = [check.name for check in found.checks if check.state == "not checked"]
    if unchecked:
        print_message(f"Not checked: {', '.join(unchecked)}.")


def _verification_lines(found: PackageVerification) -> Iterator[str]:
    if found.session:
        yield f"Session   {found.session}"
        yield f"Question  {one_line(found.question)}"
    yield f"Manifest  {found.manifest}"
    for check in found.checks:
        yield f"{_MARKS[check.state]:<7} {check.name:<10} {one_line(check.said)}"
        for problem in check.problems[:_SHOWN]:
            yield f"        {problem.kind} {problem.what}: {one_line(problem.subject)}"
            yield f"            {one_line(problem.detail)}"
        if len(check.problems) > _SHOWN:
            yield f"        and {len(check.problems) - _SHOWN} more; --json lists all of them."
