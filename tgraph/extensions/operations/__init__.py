"""Operations: backups, replicas, repair, ``tgraph doctor``, and spans for OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tgraph.extensions import Extension

if TYPE_CHECKING:
    from pathlib import Path

    from click import Command

    from tgraph.engine.checks import HealthFinding
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.engine.progress import OnMessage, OnProgress
    from tgraph.extensions.operations.backup import Backup
    from tgraph.extensions.operations.replica_log import Shipment
    from tgraph.record.observer import RecordObservers
    from tgraph.settings import Settings


def back_up(
    kg: KnowledgeGraph,
    file: str | Path,
    *,
    progress: OnProgress | None = None,
    message: OnMessage | None = None,
) -> Backup:
    """Write the whole folder of a graph, all its collections, into a new file, while others go on;
    ``restore`` makes a folder of the file. Raise ``UsageError`` where the file is there already."""
    from pathlib import Path

    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.operations.backup import back_up

    message = message or kg.opened.message
    return back_up(kg.root, Path(file), progress=progress or ignore_progress, message=message)


def restore(
    file: str | Path,
    root: str | Path,
    *,
    accept_settings: bool = False,
    progress: OnProgress | None = None,
) -> Backup:
    """Make a folder of a backup. Every file is checked by its sum, and the integrity of each
    collection up to the head of its chain, before the folder has its name. Settings that name
    addresses, keys or files are restored with ``accept_settings`` alone.

    Raise ``UsageError`` where the folder holds something, ``StoreError`` where the file is no
    backup or is damaged, ``VerificationError`` where the record in the file is not intact.
    """
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.operations.backup import restore_backup

    return restore_backup(
        file, root, accept_settings=accept_settings, progress=progress or ignore_progress
    )


def ship(kg: KnowledgeGraph, url: str, *, progress: OnProgress | None = None) -> Shipment:
    """Write what is new in a graph to object storage, or a folder, from where replicas ``follow``,
    and take in what the replicas recorded."""
    from tgraph.engine.progress import count_progress, ignore_progress
    from tgraph.extensions.operations.replica_shipping import ship

    return ship(kg.opened, url, count_progress(progress or ignore_progress, "Shipping"))


def follow(kg: KnowledgeGraph, url: str, *, progress: OnProgress | None = None) -> Shipment:
    """Bring a replica up to date, and hand over what was recorded in the replica.

    Raise ``UsageError`` where the graph is no replica, ``VerificationError`` where what was shipped
    is not as it was sealed.
    """
    from tgraph.engine.progress import count_progress, ignore_progress
    from tgraph.extensions.operations.replicas import follow_log

    return follow_log(kg.opened, url, count_progress(progress or ignore_progress, "Following"))


def repair(kg: KnowledgeGraph, *, progress: OnProgress | None = None) -> list[HealthFinding]:
    """Make anew what is derived and damaged, and name what is truth and damaged; return the
    findings of both kinds. Writers wait meanwhile."""
    from tgraph.engine.progress import ignore_progress
    from tgraph.extensions.operations.collection_health import repair_collection

    return list(repair_collection(kg.opened, progress or ignore_progress))


def _backup() -> Command:
    from tgraph.extensions.operations.backup_commands import backup

    return backup


def _restore() -> Command:
    from tgraph.extensions.operations.backup_commands import restore

    return restore


def _ship() -> Command:
    from tgraph.extensions.operations.replica_commands import ship

    return ship


def _follow() -> Command:
    from tgraph.extensions.operations.replica_commands import follow

    return follow


def _doctor() -> Command:
    from tgraph.extensions.operations.doctor_command import doctor

    return doctor


def _observe(settings: Settings) -> RecordObservers | None:
    if not settings.telemetry.enabled:
        return None
    from tgraph.extensions.operations.telemetry.observers import SpanObservers

    return SpanObservers(settings.telemetry)


def _backup_schema() -> Any:
    from tgraph.extensions.operations.backup import Backup

    return Backup


def _doctor_schema() -> Any:
    from tgraph.engine.checks import HealthFinding

    return tuple[HealthFinding, ...]


EXTENSION = Extension(
    name="operations",
    commands={
        "backup": _backup,
        "restore": _restore,
        "ship": _ship,
        "follow": _follow,
        "doctor": _doctor,
    },
    observers={"telemetry": _observe},
    schemas={"backup": _backup_schema, "doctor": _doctor_schema},
)
