"""Vector sets on disk: data files named by their content, and a manifest that names them.

The manifest is replaced last and atomically, and data files are never changed in place. So a
reader, and a crash at any moment, sees the old set or the new one. On opening, files up to 64 MB
are checked whole by their CRC-32, larger ones by size and header; the graph of centroids is checked
whole before its first use, and ``verify`` checks every SHA-256.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tgraph.index.data_files import (
    CHECKED_WHOLE,
    DamagedIndexError,
    DataFile,
    build_damage_error,
    check_file,
    unwritable_error,
)
from tgraph.index.vectors.base import StaleIndexError
from tgraph.index.vectors.inverted_lists import IvfParameters
from tgraph.model import Agent
from tgraph.models.base import canonical_json
from tgraph.store.files import (
    read_json,
    sync_folder,
    write_json,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


FORMAT = 3


@dataclass(frozen=True, slots=True)
class Manifest:
    """A description of a vector set: knowledge generation, embedder and files.

    ``rows`` counts vectors, possibly shared by several IRIs; ``count`` counts IRIs. An empty
    set has dimension 0."""

    kind: str
    generation: int
    agent: Agent
    dimension: int
    rows: int
    count: int
    lists: IvfParameters
    files: Mapping[str, DataFile]
    format: int = FORMAT


def manifest_path(folder: Path, kind: str) -> Path:
    return folder / f"{kind}.json"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Makes the data files the current set of the kind, then removes those of earlier sets."""
    facts = asdict(manifest)
    try:
        sync_folder(folder)
        write_json(manifest_path(folder, manifest.kind), {**facts, "checksum": _hash_facts(facts)})
    except OSError as error:
        raise unwritable_error(folder, error) from error
    current = {file.name for file in manifest.files.values()}
    for pattern in (f"{manifest.kind}.*.*", f".{manifest.kind}.*.tmp"):
        for path in folder.glob(pattern):
            if path.name not in current:
                path.unlink(missing_ok=True)


def _hash_facts(facts: Mapping[str, Any]) -> str:
    return sha256(canonical_json(facts).encode()).hexdigest()


def read_manifest(folder: Path, kind: str) -> Manifest:
    """A kind's manifest. Raises ``StaleIndexError`` (missing) or ``DamagedIndexError``."""
    path = manifest_path(folder, kind)
    if not path.exists():
        raise StaleIndexError(f"There are no vectors of kind {kind} yet.", "Index again.")
    facts = read_json(path) or {}
    expected = facts.pop("checksum", None)
    if expected != _hash_facts(facts):
        raise DamagedIndexError(f"The manifest {path} is damaged.", "Index again.")
    if facts["format"] != FORMAT:
        raise StaleIndexError(f"{path} is of another format, {facts['format']}.", "Index again.")
    return Manifest(
        **{
            **facts,
            "agent": Agent(**facts["agent"]),
            "lists": IvfParameters(**facts["lists"]),
            "files": {role: DataFile(**file) for role, file in facts["files"].items()},
        }
    )


def check_fits(
    manifest: Manifest, generation: int | None, agent: Agent | None, dimension: int | None
) -> None:
    """Raise ``StaleIndexError`` if the set differs from expectations; None expects nothing."""
    kind = manifest.kind
    if generation is not None and manifest.generation != generation:
        raise StaleIndexError(
            f"The vectors of kind {kind} are of generation {manifest.generation} of the knowledge,"
            f" which is at {generation}.",
            "Index again.",
        )
    if agent is not None and manifest.agent != agent:
        raise StaleIndexError(
            f"The vectors of kind {kind} were made by {_agent_name(manifest.agent)}, not by"
            f" {_agent_name(agent)}.",
            "Index again, or choose that embedder.",
        )
    if dimension is not None and manifest.rows and manifest.dimension != dimension:
        raise StaleIndexError(
            f"The vectors of kind {kind} have dimension {manifest.dimension}, not {dimension}.",
            "Index again.",
        )


def _agent_name(agent: Agent) -> str:
    return " ".join(part for part in (agent.name, agent.version) if part)


def open_array(folder: Path, file: DataFile, *, verify: bool = False) -> NDArray[Any]:
    """Return a file's array, mapped read-only; raise ``DamagedIndexError`` if the file is
    wrong."""
    import numpy as np

    path = folder / file.name
    check_file(path, file, whole=file.size <= CHECKED_WHOLE, verify=verify)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if not verify and file.size > CHECKED_WHOLE:
            raise build_damage_error(path, str(error)) from error
        array = np.load(path, allow_pickle=False)  # an empty array can't be mapped
    return np.asarray(array)


def array_writer(array: NDArray[Any]) -> Callable[[Path], None]:
    """Writes the array to a file, for ``write_data``."""

    def write(path: Path) -> None:
        import numpy as np

        with path.open("wb") as file:  # numpy itself doesn't say why what it wrote was cut short
            np.save(SimpleNamespace(write=file.write), array, allow_pickle=False)

    return write
