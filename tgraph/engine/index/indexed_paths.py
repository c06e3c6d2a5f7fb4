"""Paths of indexed files: where a document was taken in, and which files are gone from a folder.

A place is the absolute path that a recorded path has, seen from the working directory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import document_of_accession, latest_accession, source_value, text_value
from tgraph.ingest.files import STDIN_NAME, FoundFile, SourceFile
from tgraph.store.base import Store

INDEX_RUN = "Index run"
"""The label of runs that take in files."""


@dataclass(frozen=True, slots=True, order=True)
class IndexedPath:
    """A path under which a file's content was taken in and stands."""

    path: str
    accession: str
    document: str


@dataclass(frozen=True, slots=True)
class Renaming:
    """A file that has another path and the same content: paths before and after."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AbsentFiles:
    """Standing documents whose files are gone from a folder.

    ``is_folder_empty`` means that the folder holds no documents at all any more."""

    folder: str
    paths: tuple[IndexedPath, ...]
    is_folder_empty: bool

    def without(self, paths: Collection[str]) -> AbsentFiles:
        """Return the files that are absent and not among the paths."""
        return replace(self, paths=tuple(p for p in self.paths if p.path not in paths))


class IndexedPaths:
    """The paths of files on record before a run; documents of other origin have none."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._label_by_run: dict[str, str] = {}
        self._absent: dict[str, list[IndexedPath]] = {}
        self._absent_places: set[str] = set()

    def find_recorded_path(self, name: str) -> str:
        """Return the path on record for the place that a file's name means; the name itself for
        a place that is new."""
        path = Literal(name)
        if any(self._store.match(None, v.tg("path"), path, v.SOURCE_GRAPH)):
            return name
        return self._path_by_place.get(_place_of(name), name)

    def find_absent(self, folder: str, files: Sequence[FoundFile]) -> AbsentFiles:
        """Return the standing documents of a folder that has no such files any more, without
        those returned for another folder; ``files`` are those that were discovered."""
        inside = os.path.join(_place_of(folder), "")  # noqa: PTH118  (ends with the separator)
        present = {_place_of(file.name) for file in files} | self._absent_places
        absent = {
            indexed: place
            for place, indexed in self._standing
            if place.startswith(inside) and place not in present and _is_missing(place)
        }
        self._absent_places.update(absent.values())
        is_folder_empty = not any(
            isinstance(file, SourceFile) and _place_of(file.name).startswith(inside)
            for file in files
        )
        for indexed in absent:
            key = text_value(self._store, indexed.document, v.tg("contentHash"))
            self._absent.setdefault(key, []).append(indexed)
        return AbsentFiles(folder, tuple(absent), is_folder_empty)

    def take_renamed(self, path: str, content: bytes) -> IndexedPath | None:
        """Return the absent path whose content now has a new path, once; None for a path that
        stands or content that no absent path has."""
        absent = self._absent.get(sha256(content).hexdigest())
        stands = absent and latest_accession(self._store, path) is not None
        return absent.pop(0) if absent and not stands else None

    @cached_property
    def _standing(self) -> list[tuple[str, IndexedPath]]:
        """Return standing paths with their places, in order of places."""
        ended = v.prov("invalidatedAtTime")
        return sorted(
            (
                _place_of(path),
                IndexedPath(path, accession, document_of_accession(self._store, accession)),
            )
            for path, accession in self._accessions()
            if source_value(self._store, accession, ended) is None
        )

    @cached_property
    def _path_by_place(self) -> dict[str, str]:
        """Return recorded paths by place, standing paths before ended paths."""
        every_path = {_place_of(path): path for path, _ in self._accessions()}
        return every_path | {place: indexed.path for place, indexed in self._standing}

    def _accessions(self) -> Iterator[tuple[str, str]]:
        """Yield (path, accession) pairs of indexed files."""
        for quad in self._store.match(None, v.tg("path"), None, v.SOURCE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            assert isinstance(quad.object, Literal)
            accession, path = quad.subject.value, quad.object.value
            if path != STDIN_NAME and self._is_of_file(accession):
                yield path, accession

    def _is_of_file(self, accession: str) -> bool:
        run = text_value(self._store, accession, v.prov("wasGeneratedBy"))
        if run not in self._label_by_run:
            self._label_by_run[run] = text_value(self._store, run, v.RDFS_LABEL)
        return self._label_by_run[run] == INDEX_RUN


def existing_folders(paths: Iterable[str]) -> list[str]:
    """Return the paths that are folders, each place once."""
    folders = {_place_of(path): path for path in reversed(list(paths)) if _is_folder(path)}
    return list(reversed(folders.values()))


def _is_folder(path: str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112  (a folder that may not be read is no error)


def _place_of(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100  (thousands a run)


def _is_missing(place: str) -> bool:
    """Return whether nothing is at a place; a place that can't be looked at may hold a file."""
    try:
        Path(place).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
