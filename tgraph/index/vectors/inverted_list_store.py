"""A vector store of sets in memory and in folders, large sets in inverted lists.

A set is derived: it knows the generation of the knowledge and the embedder that it belongs to, and
is made anew, from the vectors of unchanged texts, when either changes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from tgraph.index.data_files import DamagedIndexError, KeptFiles, build_damage_error, check_file
from tgraph.index.vectors import files
from tgraph.index.vectors.base import (
    HASH_BYTES,
    EmbeddingProgress,
    TextWindows,
    VectorIndex,
    ignore_progress,
    text_hash,
)
from tgraph.index.vectors.inverted_lists import InvertedLists, IvfParameters
from tgraph.index.vectors.keys import Keys, expand_ranges
from tgraph.index.vectors.vector_set import VectorSet
from tgraph.model import Agent
from tgraph.models.base import CallSink, Embedder, no_sink
from tgraph.models.embedding import embed_windows

if TYPE_CHECKING:
    from pathlib import Path

    from numpy import float32, int64, uint32
    from numpy.typing import NDArray

Rows = tuple[int, ...]
"""Those of the windows of a text, in their order."""

_BATCH_TEXTS, _BATCH_CHARACTERS = 1024, 65_536
_LARGE = ("vectors", "centroids", "lists")
_NEVER = 2**62
"""A number of rows that no set has."""
_log = logging.getLogger(__name__)


def build_vectors(
    kind: str,
    items: Iterable[tuple[str, str]],
    embedder: Embedder,
    previous: VectorIndex | None = None,
    progress: EmbeddingProgress = ignore_progress,
    sink: CallSink = no_sink,
    *,
    exact: bool = False,
    parameters: IvfParameters | None = None,
) -> VectorSet:
    """As ``VectorStore.build_vectors``; the parameters of the lists are those of ``previous``
    where none are given.

    Each distinct text is embedded once, in windows where the text is longer than the embedder
    reads.
    """
    before = None if previous is None else _vector_set(previous)
    chosen = parameters or (before.parameters if before else IvfParameters())
    if exact:
        chosen = replace(chosen, threshold=_NEVER)
    texts, digests = _by_hash(items)
    known_rows = _rows_by_text(before) if before and before.agent == embedder.agent else {}
    fresh = {digest: text for digest, text in texts.items() if digest not in known_rows}
    parts, places = _embed_texts(embedder, fresh, progress, sink)
    if known_rows and before is not None and _fits(before, parts):
        parts, places = _join(before, parts, known_rows, places)
    elif known_rows:
        parts, places = _embed_texts(embedder, texts, progress, sink)
    del texts, fresh  # of a million edges these are half a gigabyte
    return _arrange(kind, embedder, sorted(digests), parts, places, chosen)


def exact_index(kind: str, agent: Agent, keys: Keys, windows: TextWindows) -> VectorSet:
    """An index of these windows of the keys, in memory, all of whose searches are exact."""
    import numpy as np

    return VectorSet(
        kind,
        agent,
        keys,
        np.repeat(np.arange(len(keys), dtype=np.uint32), windows.counts),
        windows.hashes,
        np.arange(len(windows.vectors), dtype=np.uint32),
        windows.vectors,
        IvfParameters(threshold=_NEVER),
        lambda: None,
    )


def _vector_set(index: VectorIndex) -> VectorSet:
    """The index itself where it is a vector set, else a vector set of its windows."""
    import numpy as np

    if isinstance(index, VectorSet):
        return index
    windows = index.read_windows(np.arange(len(index)))
    vectors = exact_index(index.kind, index.agent, index.keys, windows)
    return replace(vectors, parameters=IvfParameters())


def _by_hash(
    items: Iterable[tuple[str, str]],
) -> tuple[dict[bytes, str], set[tuple[str, bytes]]]:
    """Return texts by hash, plus (IRI, hash) pairs."""
    texts: dict[bytes, str] = {}
    line_keys: set[tuple[str, bytes]] = set()
    for iri, text in items:
        digest = text_hash(text)
        texts[digest] = text
        line_keys.add((iri, digest))
    return texts, line_keys


def revise_vectors(
    previous: VectorIndex,
    items: Iterable[tuple[str, str]],
    touched: Collection[str],
    embedder: Embedder,
    progress: EmbeddingProgress = ignore_progress,
    sink: CallSink = no_sink,
) -> VectorSet | None:
    """As ``VectorStore.revise_vectors``. Large sets keep their rows and their lists, to which rows
    are added, until the added rows and the rows of no text are an eighth."""
    before = _vector_set(previous)
    texts, digests = _by_hash(items)
    known_rows = _rows_of_texts(before, texts)
    fresh = {digest: text for digest, text in texts.items() if digest not in known_rows}
    parts, places = _embed_texts(embedder, fresh, progress, sink)
    if not _fits(before, parts):
        return None
    moved = _shift_rows(places, before.count)
    joined = _with_lines(before, touched, sorted(digests), {**known_rows, **moved}, parts)
    return joined if _is_worth_keeping(joined) else compact_vectors(joined)


LARGEST_ADDITION = 8
"""Of how many parts of a set one may have come, or be of no use, since its lists were made."""


def _rows_of_texts(vectors: VectorSet, wanted: Collection[bytes]) -> dict[bytes, Rows]:
    """Return window rows of the wanted texts contained in the set."""
    import numpy as np

    if not wanted or not len(vectors.hashes):
        return {}
    halves = np.ascontiguousarray(vectors.hashes).view(np.uint64)[:, 0]
    digests = np.frombuffer(b"".join(wanted), dtype=np.uint64).reshape(-1, 2)[:, 0]
    rows_by_text: dict[bytes, dict[int, None]] = {}
    for line in np.flatnonzero(np.isin(halves, digests)).tolist():
        if (digest := vectors.hashes[line].tobytes()) in wanted:
            rows_by_text.setdefault(digest, {})[int(vectors.rows[line])] = None
    return {digest: tuple(rows) for digest, rows in rows_by_text.items()}


def _with_lines(
    previous: VectorSet,
    touched: Collection[str],
    wanted: Sequence[tuple[str, bytes]],
    places: Mapping[bytes, Rows],
    fresh: Sequence[NDArray[float32]],
) -> VectorSet:
    """Return the set with replaced lines for touched IRIs, plus fresh rows."""
    import numpy as np

    lines = [(iri, digest, row) for iri, digest in wanted for row in places[digest]]
    known_places = {iri: place for iri in touched if (place := previous.keys.find(iri)) is not None}
    new = {iri for iri, _ in wanted}
    keys, moved = previous.keys.with_changes(known_places.keys() - new, new - known_places.keys())
    line_mask = ~np.isin(previous.owners, np.array(list(known_places.values()), dtype=np.int64))
    line_owners = np.array([keys.find(iri) for iri, _, _ in lines], dtype=np.uint32)
    owners = moved[previous.owners[line_mask]].astype(np.uint32)
    at = np.searchsorted(owners, line_owners)
    block = np.frombuffer(b"".join(digest for _, digest, _ in lines), dtype=np.uint8)
    rows = np.array([row for _, _, row in lines], dtype=np.uint32)
    added = [part for part in (previous.more, *fresh) if part is not None and len(part)]
    return replace(
        previous,
        keys=keys,
        owners=np.insert(owners, at, line_owners),
        hashes=np.insert(previous.hashes[line_mask], at, block.reshape(-1, HASH_BYTES), axis=0),
        rows=np.insert(previous.rows[line_mask], at, rows),
        more=np.concatenate(added).astype(np.float32) if added else None,
    )


def _is_worth_keeping(vectors: VectorSet) -> bool:
    """Return whether most listed rows are used, with few rows added since."""
    import numpy as np

    size = len(vectors.matrix)
    if size < vectors.parameters.threshold:
        return False
    used = len(np.unique(vectors.rows[vectors.rows < size]))
    return (vectors.count - used) * LARGEST_ADDITION <= size


def compact_vectors(index: VectorIndex) -> VectorSet:
    """As ``VectorStore.compact_vectors``: the set as ``build_vectors`` makes it, with rows in the
    order of their texts' hashes, or of lists of all of them."""
    import numpy as np

    vectors = _vector_set(index)
    used, lines = np.unique(vectors.rows, return_index=True)
    halves = np.ascontiguousarray(vectors.hashes[lines]).view(">u8").reshape(-1, 2)
    order = np.lexsort((lines, halves[:, 1], halves[:, 0]))
    place = np.empty(len(used), dtype=np.uint32)
    place[order] = np.arange(len(used), dtype=np.uint32)
    rows = place[np.searchsorted(used, vectors.rows)]
    matrix, rows, lists = _in_lists(vectors.take_rows(used[order]), rows, vectors.parameters)
    return replace(
        vectors, rows=rows, matrix=matrix, more=None, open_lists=lambda: lists, kept=None
    )


def _in_lists(
    matrix: NDArray[float32], rows: NDArray[uint32], parameters: IvfParameters
) -> tuple[NDArray[float32], NDArray[uint32], InvertedLists | None]:
    """Return a large matrix reordered by inverted lists, plus the new positions of ``rows``.

    The given matrix is ordered by text hash; a small matrix stays in this order."""
    import numpy as np

    built_lists = (
        InvertedLists.build(matrix, parameters) if len(matrix) >= parameters.threshold else None
    )
    if built_lists is None:
        return np.ascontiguousarray(matrix), rows, None
    lists, order = built_lists
    place = np.empty(len(order), dtype=np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    return matrix[order], place[rows], lists


def _rows_by_text(vectors: VectorSet) -> dict[bytes, Rows]:
    """Return window rows by text hash."""
    rows_by_text: dict[bytes, Rows] = {}
    for row, line in zip(vectors.rows.tolist(), vectors.hashes, strict=True):
        text_rows = rows_by_text.get(digest := line.tobytes(), ())
        if row not in text_rows:
            rows_by_text[digest] = (*text_rows, row)
    return rows_by_text


def _fits(previous: VectorSet, fresh: Sequence[NDArray[float32]]) -> bool:
    """Return whether old and fresh rows have equal dimensions: a server's model may have
    changed."""
    return not fresh or fresh[0].shape[1] == previous.dimension


def _join(
    previous: VectorSet,
    fresh: Sequence[NDArray[float32]],
    known: Mapping[bytes, Rows],
    places: Mapping[bytes, Rows],
) -> tuple[list[NDArray[float32]], dict[bytes, Rows]]:
    """Return previous rows followed by fresh rows, plus row numbers by text."""
    before = [part for part in (previous.matrix, previous.more) if part is not None]
    return [*before, *fresh], {**known, **_shift_rows(places, previous.count)}


def _shift_rows(places: Mapping[bytes, Rows], by: int) -> dict[bytes, Rows]:
    return {digest: tuple(row + by for row in rows) for digest, rows in places.items()}


def _embed_texts(
    embedder: Embedder, texts: Mapping[bytes, str], progress: EmbeddingProgress, sink: CallSink
) -> tuple[list[NDArray[float32]], dict[bytes, Rows]]:
    """Return window vectors in batches, plus row numbers by text; short texts are embedded
    first."""
    import numpy as np

    parts: list[NDArray[float32]] = []
    places: dict[bytes, Rows] = {}
    row = 0
    for batch in _batches(texts):
        rows, owners = embed_windows(embedder, [texts[digest] for digest in batch], sink)
        for digest, count in zip(batch, np.bincount(owners, minlength=len(batch)), strict=True):
            places[digest] = tuple(range(row, row + int(count)))
            row += int(count)
        parts.append(rows)
        progress(len(places), len(texts))
    return parts, places


def _batches(texts: Mapping[bytes, str]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for digest in sorted(texts, key=lambda key: (len(texts[key]), key)):
        if batch and (len(batch) == _BATCH_TEXTS or size > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(digest)
        size += len(texts[digest])
    if batch:
        yield batch


def _arrange(
    kind: str,
    embedder: Embedder,
    wanted: Sequence[tuple[str, bytes]],
    parts: list[NDArray[float32]],
    places: Mapping[bytes, Rows],
    parameters: IvfParameters,
) -> VectorSet:
    """Return a set with a line for each (IRI, text hash) pair, in pair order.

    The rows are ordered by hash, or by inverted list. ``parts`` is emptied."""
    import numpy as np

    digests = sorted({digest for _, digest in wanted})
    windows = np.array([len(places[digest]) for digest in digests], dtype=np.int64)
    ends = np.cumsum(windows)
    number = {digest: place for place, digest in enumerate(digests)}
    texts = np.fromiter((number[digest] for _, digest in wanted), np.int64, len(wanted))
    group = np.fromiter(chain.from_iterable(map(places.__getitem__, digests)), np.int64)
    counts = windows[texts]
    iris = [iri for iri, _ in groupby(wanted, key=itemgetter(0))]
    lengths = [sum(1 for _ in group) for _, group in groupby(wanted, key=itemgetter(0))]
    owners = np.repeat(np.repeat(np.arange(len(iris), dtype=np.uint32), lengths), counts)
    block = np.frombuffer(b"".join(digest for _, digest in wanted), dtype=np.uint8)
    hashes = np.repeat(block.reshape(-1, HASH_BYTES), counts, axis=0)
    keys = Keys.from_iris(iris)
    lines = expand_ranges((ends - windows)[texts], counts).astype(np.uint32)
    matrix, lines, lists = _in_lists(_gather_rows(parts, group), lines, parameters)
    return VectorSet(
        kind,
        embedder.agent,
        keys,
        owners,
        hashes,
        lines,
        matrix,
        parameters,
        lambda: lists,
    )


def _gather_rows(parts: list[NDArray[float32]], rows: NDArray[int64]) -> NDArray[float32]:
    """Return the given rows gathered from all parts.

    Each part is released as soon as it is copied, so that hardly more than one copy of each row
    exists."""
    import numpy as np

    dimension = parts[0].shape[1] if parts else 0
    matrix = np.empty((len(rows), dimension), dtype=np.float32)
    order = np.argsort(rows, kind="stable")
    first = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        low, high = np.searchsorted(rows, (first, first + len(part)), sorter=order)
        positions = order[low:high]
        matrix[positions] = part[rows[positions] - first]
        first += len(part)
    return matrix


def open_vectors(
    folder: Path,
    kind: str,
    *,
    generation: int | None = None,
    agent: Agent | None = None,
    dimension: int | None = None,
    verify: bool = False,
) -> VectorSet:
    """As ``VectorStore.open_vectors``; the arrays are mapped from their files."""
    manifest = files.read_manifest(folder, kind)
    files.check_fits(manifest, generation, agent, dimension)
    arrays = {
        role: files.open_array(folder, file, verify=verify)
        for role, file in manifest.files.items()
        if role != "centroids"
    }
    shape = (manifest.rows, manifest.dimension)
    if arrays["vectors"].shape != shape:
        raise build_damage_error(
            folder / manifest.files["vectors"].name, f"its shape isn't {shape}"
        )
    if centroids := manifest.files.get("centroids"):
        check_file(folder / centroids.name, centroids, whole=False, verify=verify)
    return VectorSet(
        kind,
        manifest.agent,
        Keys(arrays["keys"], arrays["ends"]),
        arrays["owners"],
        arrays["hashes"],
        arrays["rows"],
        arrays["vectors"],
        manifest.lists,
        lambda: _open_lists(folder, manifest, arrays["lists"]) if "lists" in arrays else None,
        arrays.get("more"),
        KeptFiles(folder, {r: f for r, f in manifest.files.items() if r in _LARGE}),
    )


def _open_lists(
    folder: Path, manifest: files.Manifest, starts: NDArray[int64]
) -> InvertedLists | None:
    """Open the inverted lists; return None, with a logged notice, for unusable lists."""
    file = manifest.files["centroids"]
    try:
        check_file(folder / file.name, file, whole=True)
    except DamagedIndexError as error:
        _log.warning("%s Until then searches are exact, which is slower.", error)
        return None
    return InvertedLists.open(folder / file.name, manifest.dimension, starts)
