"""Token counts without a network: tiktoken with the rank files that ship with tgraph.

tiktoken would download its ranks; tgraph unpacks its own copies into a cache folder of the user's,
where tiktoken finds them and checks their hash. Text that looks like a special token counts as the
plain text it is. Where the ranks can't be used, counts are an estimate and the log says so.

Whoever loads the ranks leaves a table of them beside (a ``TokenTable``), from which later processes
count at a fraction of the cost: the same counts, without tiktoken.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import threading
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tgraph.errors import UsageError
from tgraph.models.base import well_formed
from tgraph.resources import data_file
from tgraph.store.files import sweep_files, write_atomic

if TYPE_CHECKING:
    from tiktoken import Encoding


_LONGEST = 400  # bytes of a piece; a longer one is left to tiktoken, whose time is linear
_NONE = 2**31
_MOST_KEPT = 50_000
_MUCH = 1_000_000
"""Characters counted or cut by a table from which on it pays to load the ranks, which take a fifth
of the time and 0.3 to 0.6 s to be loaded."""
_SHORT = 4  # bytes of what many words have in common
_DIGEST = 64


class TokenTable:
    """Ranks of a token encoding, with the pattern splitting text into pieces.

    tiktoken builds a hash map of 200,000 byte strings before counting the first word: 0.2 s and
    75 MB. Here the ranks lie in an array, ordered by the hashes of their byte strings; the
    array is read in a few milliseconds, and counts are the same. A word's token count is found
    by byte pair encoding (Sennrich et al., 2016; greedy by rank, as in tiktoken)."""

    def __init__(self, pattern: str, hashes: array[int], ranks: array[int]) -> None:
        import regex

        self._split = regex.compile(pattern)
        self._hashes = hashes
        self._ranks = ranks
        self._costs: dict[str, int] = {}
        self._starts: dict[str, tuple[int, ...]] = {}
        self._known: dict[bytes, int] = {}
        self.counted = 0

    def count(self, text: str) -> int | None:
        """Return the token count; None means a piece exceeds the table's length limit."""
        total = 0
        self.counted += len(text)
        for piece, times in Counter(self._split.findall(text)).items():
            cost = self._costs.get(piece)
            if cost is None:
                data = piece.encode()
                if len(data) > _LONGEST:
                    return None
                cost = len(self._find_cuts(data))
                if len(self._costs) < _MOST_KEPT:
                    self._costs[piece] = cost
            total += cost * times
        return total

    def offsets(self, text: str) -> list[int] | None:
        """Return token offsets like ``token_offsets``; None means a piece exceeds the table's
        length limit."""
        offsets: list[int] = []
        at = 0
        self.counted += len(text)
        for piece in self._split.findall(text):
            starts = self._starts.get(piece)
            if starts is None:
                data = piece.encode()
                if len(data) > _LONGEST:
                    return None
                starts = tuple(_code_points(data, cut) for cut in self._find_cuts(data))
                if len(self._starts) < _MOST_KEPT:
                    self._starts[piece] = starts
            if len(starts) == 1:
                offsets.append(at)
            else:
                offsets += [at + start for start in starts]
            at += len(piece)
        return offsets

    def _find_cuts(self, data: bytes) -> list[int]:
        """Return the start positions of a piece's tokens."""
        if self._find_rank(data) < _NONE:
            return [0]
        starts = list(range(len(data) + 1))
        pairs = [self._find_rank(data[i : i + 2]) for i in range(len(data) - 1)]
        while pairs:
            best = min(pairs)
            if best == _NONE:
                break
            at = pairs.index(best)
            del starts[at + 1], pairs[at]
            for i in (at - 1, at):
                if 0 <= i < len(pairs):
                    pairs[i] = self._find_rank(data[starts[i] : starts[i + 2]])
        return starts[:-1]

    def _find_rank(self, data: bytes) -> int:
        rank = self._known.get(data)
        if rank is None:
            digest = _hash_token(data)
            at = bisect_left(self._hashes, digest)
            is_present = at < len(self._hashes) and self._hashes[at] == digest
            rank = self._ranks[at] if is_present else _NONE
            if len(data) <= _SHORT and len(self._known) < _MOST_KEPT:
                self._known[data] = rank
        return rank


def _code_points(data: bytes, at: int) -> int:
    """Return the index of the code point at a byte offset of encoded text."""
    inside = 0x80 <= data[at] < 0xC0
    return len(data[:at].translate(None, _CONTINUATION)) - inside


def _hash_token(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def pack_table(pattern: str, ranks: Mapping[bytes, int]) -> bytes:
    """Return a token table as bytes, in the format read by ``unpack_table``."""
    rows = sorted((_hash_token(token), rank) for token, rank in ranks.items())
    head = {"pattern": pattern, "tokens": len(rows), "order": sys.byteorder}
    body = json.dumps(head).encode() + b"\n"
    body += array("Q", (key for key, _ in rows)).tobytes()
    body += array("I", (rank for _, rank in rows)).tobytes()
    return sha256(body).hexdigest().encode() + body


def unpack_table(data: bytes) -> TokenTable:
    """Return the token table unpacked from file bytes.

    Raise ``ValueError`` if the table is damaged or comes from a machine with another byte
    order."""
    body = memoryview(data)[_DIGEST:]
    if sha256(body).hexdigest().encode() != data[:_DIGEST]:
        raise ValueError("the table of tokens is damaged")
    end = data.index(b"\n", _DIGEST) - _DIGEST
    head: dict[str, Any] = json.loads(bytes(body[:end]))
    hashes, ranks = array("Q"), array("I")
    middle = end + 1 + head["tokens"] * hashes.itemsize
    hashes.frombytes(body[end + 1 : middle])
    ranks.frombytes(body[middle:])
    if head["order"] != sys.byteorder or len(ranks) != head["tokens"]:
        raise ValueError("the table of tokens is of another machine")
    return TokenTable(head["pattern"], hashes, ranks)


def read_table(path: Path) -> TokenTable | None:
    """Read a token table file; return None if no usable table exists."""
    try:
        return unpack_table(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None


DEFAULT_ENCODING = "o200k_base"

# The hashes are those that tiktoken itself expects (tiktoken_ext.openai_public).
_RANKS = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_SEGMENT = 65536
# Both encodings always start a new token between a letter or digit and one of these.
_SAFE_CUT = re.compile(r"(?<=[^\W_])(?=[ \n\r\t,.;:!?()，。、；：！？])")
_CONTINUATION = bytes(range(0x80, 0xC0))
# About what both encodings make of prose: a CJK character, or four other characters.
_ESTIMATED_TOKEN = re.compile(
    r"\s?(?:[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]|[^\s\u2e80-\u9fff]{1,4})|\s{1,4}"
)
_log = logging.getLogger(__name__)
_lock = threading.Lock()
_loaded: set[str] = set()


class _Tokenizer(Protocol):
    exact: bool

    def count(self, text: str) -> int: ...

    def offsets(self, text: str) -> Iterator[int]: ...


class _RankedTokens:
    """A tokenizer using tiktoken's ranks; handles texts up to segment length."""

    exact = True

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._shapes: dict[int, tuple[int, int]] = {}

    def count(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))

    def offsets(self, text: str) -> Iterator[int]:
        at = 0
        for token in self._encoding.encode_ordinary(text):
            inside, begun = self._shapes.get(token) or self._token_shape(token)
            yield at - inside
            at += begun

    def _token_shape(self, token: int) -> tuple[int, int]:
        """Return whether a token starts inside a code point, plus the number of code points
        starting in the token."""
        raw = self._encoding.decode_single_token_bytes(token)
        shape = int(0x80 <= raw[0] < 0xC0), len(raw.translate(None, _CONTINUATION))
        self._shapes[token] = shape
        return shape


class _EstimatedTokens:
    """A token estimator replacing the ranks: never equal to a real count, but close for prose."""

    exact = False

    def count(self, text: str) -> int:
        return sum(1 for _ in _ESTIMATED_TOKEN.finditer(text))

    def offsets(self, text: str) -> Iterator[int]:
        return (match.start() for match in _ESTIMATED_TOKEN.finditer(text))


def count_tokens(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """The number of tokens of ``text``; special tokens in it count as plain text.

    Exact as tiktoken counts (texts without any word boundary in 65,536 characters: to within a
    token per such stretch), unless ``is_exact`` says that it is an estimate. Linear in time.
    Raises ``UsageError`` for an encoding that doesn't ship with tgraph.
    """
    by_table = _by_table(text, encoding)
    if by_table is not None:
        return by_table
    tokenizer = _get_tokenizer(encoding)
    return sum(tokenizer.count(segment) for segment in _split_segments(text))


def _usable_table(encoding: str) -> TokenTable | None:
    """Return a usable token table; None means tiktoken ranks are loaded already, or loading is
    required."""
    table = None if encoding in _loaded else _load_table(encoding)
    return None if table is None or table.counted > _MUCH else table


def _offsets_by_table(text: str, encoding: str) -> list[int] | None:
    """Return token offsets without loading ranks; None means ranks must be loaded."""
    table = _usable_table(encoding)
    if table is None:
        return None
    results: list[int] = []
    base = 0
    for segment in _split_segments(text):
        offsets = table.offsets(segment)
        if offsets is None:
            return None
        results += [base + offset for offset in offsets]
        base += len(segment)
    return results


def _by_table(text: str, encoding: str) -> int | None:
    """Return the token count without loading ranks.

    Return None if ranks are loaded already or must be loaded."""
    table = _usable_table(encoding)
    if table is None:
        return None
    total = 0
    for segment in _split_segments(text):
        count = table.count(segment)
        if count is None:
            return None
        total += count
    return total


def token_offsets(text: str, encoding: str = DEFAULT_ENCODING) -> array[int]:
    """Where each token starts: one code-point offset per token, never decreasing.

    A token that starts inside a code point has that code point's offset, so cutting ``text`` at any
    of the offsets never splits a code point. Errors as for ``count_tokens``.
    """
    by_table = _offsets_by_table(text, encoding)
    return array(
        "I", _iterate_offsets(text, _get_tokenizer(encoding)) if by_table is None else by_table
    )


def truncate_text(text: str, max_tokens: int, encoding: str = DEFAULT_ENCODING) -> str:
    """The longest start of ``text``, cut between tokens, that counts at most ``max_tokens``.

    Whole code points only. Errors as for ``count_tokens``.
    """
    tokenizer = _get_tokenizer(encoding)
    starts = array("I")
    for offset in _iterate_offsets(text, tokenizer):
        starts.append(offset)
        if len(starts) > max_tokens:
            break
    else:
        return text
    keep = max(max_tokens, 0)
    while keep and count_tokens(text[: starts[keep]], encoding) > max_tokens:
        keep -= 1
    return text[: starts[keep]] if keep else ""


def encoding_for(model_name: str) -> str:
    """The encoding that budgets for a model are counted in: ``o200k_base`` or ``cl100k_base``.

    tiktoken's own table decides; any model it doesn't know counts as ``o200k_base``.
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model_name)
    except KeyError:
        return DEFAULT_ENCODING
    return name if name in _RANKS else DEFAULT_ENCODING


def is_exact(encoding: str = DEFAULT_ENCODING) -> bool:
    """Return whether token counts in the encoding are exact; False means estimates."""
    return _get_tokenizer(encoding).exact


def _split_segments(text: str) -> Iterator[str]:
    """Yield text segments of bounded length, cut at token ends where possible."""
    start = 0
    while len(text) - start > _SEGMENT:
        cut = _SAFE_CUT.search(text, start + _SEGMENT // 2, start + _SEGMENT)
        end = cut.start() if cut else start + _SEGMENT
        yield well_formed(text[start:end])
        start = end
    if start < len(text):
        yield well_formed(text[start:])


def _iterate_offsets(text: str, tokenizer: _Tokenizer) -> Iterator[int]:
    base = 0
    for segment in _split_segments(text):
        for offset in tokenizer.offsets(segment):
            yield base + offset
        base += len(segment)


@cache
def _get_tokenizer(encoding: str) -> _Tokenizer:
    if encoding not in _RANKS:
        raise UsageError(
            f"The token encoding '{encoding}' doesn't ship with tgraph.",
            f"Use one of {', '.join(sorted(_RANKS))}.",
        )
    try:
        ranked = _load_encoding(encoding)
        _loaded.add(encoding)
        _leave_table(encoding, ranked)
        return _RankedTokens(ranked)
    except (OSError, ValueError, ImportError) as error:
        _log.warning("Token counts in %s are estimates: %s", encoding, error)
        return _EstimatedTokens()


@cache
def _load_table(encoding: str) -> TokenTable | None:
    try:
        return read_table(_table_path(encoding)) if encoding in _RANKS else None
    except RuntimeError:  # nobody's home
        return None


def _table_path(encoding: str) -> Path:
    return _user_cache() / "tokens" / f"{encoding}-{_RANKS[encoding][:16]}"


def _leave_table(encoding: str, ranked: Encoding) -> None:
    """Write the token table for later processes, unless a table exists or the disk refuses
    writing."""
    with suppress(OSError, RuntimeError):
        path = _table_path(encoding)
        if not path.exists() or read_table(path) is None:
            sweep_files(path.parent)
            write_atomic(path, pack_table(ranked._pat_str, ranked._mergeable_ranks), durable=False)


def _load_encoding(encoding: str) -> Encoding:
    """Load a tiktoken encoding; install the ranks beforehand, so tiktoken needs no network."""
    with _lock:
        try:
            folder = _cache_folder()
            _install_ranks(encoding, folder)
        except (OSError, RuntimeError):
            with tempfile.TemporaryDirectory(prefix="tgraph-") as name:
                _install_ranks(encoding, Path(name))
                return _get_encoding(encoding, name)
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
        return _get_encoding(encoding, str(folder))


def _get_encoding(encoding: str, folder: str) -> Encoding:
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = folder
    try:
        return tiktoken.get_encoding(encoding)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def _cache_folder() -> Path:
    """The folder that tiktoken is told to use, else the user's cache (XDG base directories)."""
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if os.environ.get(name):
            return Path(os.environ[name])
    return _user_cache() / "tiktoken"


def _user_cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    root = base if base.is_absolute() else Path("~/.cache").expanduser()
    return root / "tgraph"


def _install_ranks(encoding: str, folder: Path) -> None:
    """Write complete ranks with the right hash to tiktoken's expected path."""
    target = folder / hashlib.sha1(_URL.format(encoding).encode()).hexdigest()  # noqa: S324
    if target.is_file() and _has_hash(target.read_bytes(), encoding):
        return
    ranks = _read_shipped_ranks(encoding)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as partial:
        partial.write(ranks)
    try:
        Path(partial.name).replace(target)
    except OSError:
        Path(partial.name).unlink(missing_ok=True)
        raise


def _read_shipped_ranks(encoding: str) -> bytes:
    packed = data_file(f"{encoding}.tiktoken.gz").read_bytes()
    try:
        ranks = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        ranks = b""
    if not _has_hash(ranks, encoding):
        raise ValueError(f"the rank file of {encoding} that ships with tgraph is damaged")
    return ranks


def _has_hash(ranks: bytes, encoding: str) -> bool:
    return hashlib.sha256(ranks).hexdigest() == _RANKS[encoding]
