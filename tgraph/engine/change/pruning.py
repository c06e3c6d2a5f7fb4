"""Documents whose files are gone from an indexed folder: retracted on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tgraph.engine.change.entity_curation import CurationRun, question_unquestioned
from tgraph.engine.index.indexed_paths import AbsentFiles, existing_folders
from tgraph.engine.index.run import IndexReport, IndexRun
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnMessage, OnProgress
from tgraph.index.sources import standing_accessions
from tgraph.ingest.files import discover_files
from tgraph.rendering import one_line
from tgraph.store.snapshot import read_pointer


def index_paths(
    opened: OpenCollection,
    paths: Sequence[str],
    progress: OnProgress,
    message: OnMessage | None,
    *,
    reinstate: bool = False,
    prune: bool = False,
) -> IndexReport:
    """As ``KnowledgeGraph.index``."""
    files = discover_files(paths, follow_links=opened.settings.ingest.follow_links)
    report = IndexRun(opened.setup(progress, message)).run(
        files, reinstate=reinstate, folders=existing_folders(paths)
    )
    if not prune:
        return report
    for absent_files in report.absent:
        if not absent_files.is_folder_empty:
            report = _retract_absent(opened, absent_files, report, progress, message)
    return report


def _retract_absent(
    opened: OpenCollection,
    absent_files: AbsentFiles,
    report: IndexReport,
    progress: OnProgress,
    message: OnMessage | None,
) -> IndexReport:
    """Retract the documents whose files are gone from a folder; return the report with them.

    Answers are called into question first: after an interruption, the next run finds the files
    absent still and does the rest."""
    reason = f"The file is gone from {one_line(absent_files.folder)}."
    accessions = {indexed.accession for indexed in absent_files.paths}
    questioned: list[str] = []
    for document in sorted({indexed.document for indexed in absent_files.paths}):
        if accessions.issuperset(standing_accessions(opened.read(), document)):
            questioned += question_unquestioned(opened, document, reason)
    followed = CurationRun(opened.setup(progress, message)).prune(accessions, reason)
    if followed is None:
        return report
    pointer = read_pointer(opened.folder)
    return replace(
        report,
        absent=tuple(absent for absent in report.absent if absent != absent_files),
        pruned=(*report.pruned, *(indexed.path for indexed in absent_files.paths)),
        questioned=(*report.questioned, *questioned),
        communities=followed.clustered.communities,
        isolated=followed.clustered.isolated,
        generation=pointer.generation if pointer else 0,
    )
