"""Evidence for others: a session as a crate that is verified anywhere, an HTML report, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tgraph.extensions import Extension

if TYPE_CHECKING:
    from pathlib import Path

    from click import Command
    from pyoxigraph import Quad

    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.session_reader import SessionReader, WrittenSession
    from tgraph.explain.export.formats import Names
    from tgraph.extensions.evidence.crates.package import EvidencePackage
    from tgraph.extensions.evidence.crates.verify import PackageVerification


def make_package(
    kg: KnowledgeGraph, session: str = "last", *, texts: bool = True
) -> EvidencePackage:
    """Return a session as an evidence package, a Provenance Run Crate: answer, quotes, pages,
    record, prompts, calls and report. The same session gives the same bytes.

    Without ``texts`` the package has the hashes of pages and calls only. ``verify_package`` checks
    and replays the package. Raise ``EvidenceError`` where a quote in the record is not what the
    stored text says.
    """
    from tgraph.extensions.evidence.crates.package import make_package

    return make_package(kg.opened, kg.sessions.find(session), texts=texts)


def verify_package(file: str | Path, public_key: str | Path | None = None) -> PackageVerification:
    """Check an evidence package and replay the session, from the file alone; with the file of a
    ``public_key`` the signatures too."""
    from tgraph.extensions.evidence.crates.verify_worker import verify_package

    return verify_package(file, public_key)


def _verify_crate() -> Command:
    from tgraph.extensions.evidence.verify_crate_command import verify_crate

    return verify_crate


def _write_html(sessions: SessionReader, session: str, texts: bool) -> WrittenSession:
    from tgraph.engine.session_reader import WrittenSession
    from tgraph.extensions.evidence.session_report import draw_report

    return WrittenSession(draw_report(sessions, session).encode())


def _write_crate(sessions: SessionReader, session: str, texts: bool) -> WrittenSession:
    from tgraph.extensions.evidence.crates.package import write_package

    return write_package(sessions, session, texts=texts)


def _draw_dot(quads: Sequence[Quad], names: Names | None) -> bytes:
    from tgraph.extensions.evidence.picture import build_picture, to_dot

    return to_dot(build_picture(quads, names) if names else build_picture(quads))


def _draw_svg(quads: Sequence[Quad], names: Names | None) -> bytes:
    from tgraph.extensions.evidence.layout import to_svg
    from tgraph.extensions.evidence.picture import build_picture

    return to_svg(build_picture(quads, names) if names else build_picture(quads))


EXTENSION = Extension(
    name="evidence",
    commands={"verify-crate": _verify_crate},
    session_formats={"html": _write_html, "crate": _write_crate},
    pictures={"dot": _draw_dot, "svg": _draw_svg},
)
