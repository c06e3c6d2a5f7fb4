"""Estimating indexing costs before spending anything; no model is asked, nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from tgraph import vocabulary as v
from tgraph.engine.index.document_ingest import choose_stale_readings, file_limits, load_anew
from tgraph.engine.index.extraction import chunks_of
from tgraph.engine.index.stale_readings import StaleReading
from tgraph.errors import IngestError, StoreError
from tgraph.index.sources import source_value
from tgraph.ingest.base import FileLimits
from tgraph.ingest.files import SourceFile, Unread, discover_files, load
from tgraph.ingest.parser_process import closing_parser
from tgraph.librarian import Librarian
from tgraph.model import Document
from tgraph.models.prompts import load_prompt
from tgraph.models.tokens import count_tokens
from tgraph.settings import Settings, load_settings
from tgraph.store.base import Store
from tgraph.store.folder import MARKER, GraphFolder
from tgraph.store.snapshot import Snapshot

REPLY_SHARE = 0.8
"""Reply tokens per token of text: an assumption, since only the model knows what it will find."""

CONTEXT_TOKENS = 100
"""Tokens of a reply with a context: an assumption."""

SUMMARIES = (2.1, 0.90, 0.25)
REPORTS = (1.26, 1.96, 0.95)
"""Calls for 1,000 tokens of chunks, and tokens in and out for each token, that summaries of
descriptions and community reports took for A Christmas Carol, extracted by real replies
(``docs/howto/use-recorded-replies.md``). Other texts repeat themselves more or less."""

PRICES = {
    "gpt-4.1": (2.0, 8.0),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
    "gpt-4o": (2.5, 10.0),
    "gpt-4o-mini": (0.15, 0.6),
}
"""US dollars for a million tokens in and out (OpenAI's price list, June 2025)."""

Prices = tuple[float | None, float | None]
Costs = tuple[int, int, int]
"""Calls, tokens in, tokens out."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of a run's readings and model calls.

    Token counts are exact for prompts and text, and assumed for replies; ``cost`` is in US
    dollars, None where no price is known. ``derived_calls`` are the calls for summaries and
    community reports, contained in ``calls``: their number and length depend on the replies,
    and are counted as another text needed them."""

    model: str | None
    documents: int
    unchanged: int
    failed: tuple[tuple[str, str], ...]
    chunks: int
    text_tokens: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    derived_calls: int

    def lines(self) -> list[str]:
        """Return the estimate as readable lines."""
        lines = [
            f"Documents:  {self.documents:,} new or changed, {self.unchanged:,} unchanged",
            f"Chunks:     {self.chunks:,} ({self.text_tokens:,} tokens)",
        ]
        if self.model is None:
            return [*lines, "Model:      none; the embedded default works without calls or cost"]
        lines += [
            f"Model:      {self.model}",
            f"Calls:      about {self.calls:,}, {self.derived_calls:,} of them for summaries and "
            "reports (by experience)",
            f"Tokens in:  about {self.input_tokens:,}",
            f"Tokens out: about {self.output_tokens:,}",
        ]
        if self.cost is None:
            return [*lines, "Cost:       unknown; say --price-in and --price-out (USD per million)"]
        return [*lines, f"Cost:       about {self.cost:,.2f} USD, without discounts and retries"]


def estimate_index(
    root: Path | None,
    paths: Sequence[str],
    overrides: Mapping[str, Any] | None = None,
    prices: Prices = (None, None),
) -> Estimate:
    """Estimate ``index`` costs for paths into the graph at ``root``, which need not exist.

    Chunks with cached replies are counted too, so the estimate is an upper bound."""
    settings = load_settings(root, overrides)
    counts = _ReadingCounts(settings)
    snapshot = _open_snapshot(root, settings.collection)
    with closing(snapshot) if snapshot else nullcontext(), closing_parser():
        store = snapshot.store if snapshot else None
        for file in discover_files(list(paths), follow_links=settings.ingest.follow_links):
            if not isinstance(file, Unread):
                counts.count_document(file.name, partial(_read_new_file, store, file, settings))
            elif not file.skipped:
                counts.failed.append((file.name, file.reason))
    return counts.estimate(prices)


def estimate_reread(
    root: Path | None,
    paths: Sequence[str],
    overrides: Mapping[str, Any] | None = None,
    prices: Prices = (None, None),
) -> Estimate:
    """Return the estimated cost of ``reread``: of all documents that an earlier version read
    differently, or of those at or below the paths. A document with copies counts once."""
    settings = load_settings(root, overrides)
    counts = _ReadingCounts(settings)
    snapshot = _open_snapshot(root, settings.collection)
    if snapshot is None:
        return counts.estimate(prices)
    assert root is not None
    librarian = Librarian(GraphFolder.open(root).collection(settings.collection).librarian)
    limits = file_limits(settings)
    with closing(snapshot), closing_parser():
        stale = choose_stale_readings(snapshot.store, paths)
        for reading in {each.document: each for each in stale}.values():
            counts.count_document(
                reading.path, partial(_load_new_reading, snapshot.store, librarian, reading, limits)
            )
    return counts.estimate(prices)


def _load_new_reading(
    store: Store, librarian: Librarian, reading: StaleReading, limits: FileLimits
) -> Document:
    return load_anew(store, librarian, reading, limits)[0]


class _ReadingCounts:
    """Token counts of the chunks of documents that would be read."""

    def __init__(self, settings: Settings) -> None:
        self.failed: list[tuple[str, str]] = []
        self._settings = settings
        self._document_sizes: list[list[int]] = []
        self._unchanged = 0

    def count_document(self, name: str, read: Callable[[], Document | None]) -> None:
        """Count a document; what ``read`` gives no document for is unchanged."""
        try:
            document = read()
        except (IngestError, StoreError) as error:
            self.failed.append((name, str(error)))
            return
        if document is None:
            self._unchanged += 1
        else:
            self._document_sizes.append(_chunk_sizes(document, self._settings))

    def estimate(self, prices: Prices) -> Estimate:
        return _estimate_costs(
            self._document_sizes, self._unchanged, tuple(self.failed), self._settings, prices
        )


def _estimate_costs(
    document_sizes: Sequence[Sequence[int]],
    unchanged: int,
    failed: tuple[tuple[str, str], ...],
    settings: Settings,
    prices: Prices,
) -> Estimate:
    chunks = [size for sizes in document_sizes for size in sizes]
    derived = _derived_costs(sum(chunks), settings)
    calls, tokens_in, tokens_out = _add_costs(_count_costs(document_sizes, settings), derived)
    model = settings.chat.model if settings.uses_model() else None
    return Estimate(
        model=model,
        documents=len(document_sizes),
        unchanged=unchanged,
        failed=failed,
        chunks=len(chunks),
        text_tokens=sum(chunks),
        calls=calls,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=cost_of(model, tokens_in, tokens_out, prices),
        derived_calls=derived[0],
    )


def _read_new_file(store: Store | None, file: SourceFile, settings: Settings) -> Document | None:
    """Return a file's document; None for content that the graph has, under whatever path: it is
    not read again."""
    limits = file_limits(settings)
    content = file.read(limits)
    document = v.document_iri(sha256(content).hexdigest())
    if store is not None and source_value(store, document, v.tg("contentHash")) is not None:
        return None
    return load(content, file.name, limits)


def _chunk_sizes(document: Document, settings: Settings) -> list[int]:
    """Return token counts of a document's chunks."""
    encoding = settings.chunk.encoding
    chunks = chunks_of(document, settings.chunk)
    before = count_tokens(chunks[0].preface, encoding) if chunks and chunks[0].preface else 0
    return [item.tokens + before for item in chunks]


def _count_costs(documents: Sequence[Sequence[int]], settings: Settings) -> Costs:
    """Return calls, input tokens and output tokens; a gleaning round sends text and findings."""
    if not settings.uses_model():
        return 0, 0, 0
    sizes = [size for document in documents for size in document]
    total = (0, 0, 0)
    if settings.extract.method == "standard":
        total = _rounds_tokens("extract_graph", settings.extract.gleanings, sizes, settings)
    if settings.claims.enabled:
        claims = _rounds_tokens("extract_claims", settings.claims.gleanings, sizes, settings)
        total = _add_costs(total, claims)
    contextual = settings.contextual_search
    if contextual.enabled and contextual.by_model:
        total = _add_costs(total, _contexts_tokens(documents, settings))
    return total


def _derived_costs(tokens: int, settings: Settings) -> Costs:
    """Return expected costs of description summaries and community reports."""
    if not settings.uses_model():
        return 0, 0, 0
    described = settings.summaries.enabled and settings.extract.method == "standard"
    total: Costs = (0, 0, 0)
    for calls, share_in, share_out in [SUMMARIES, REPORTS] if described else [REPORTS]:
        once = round(tokens * calls / 1000), round(tokens * share_in), round(tokens * share_out)
        total = _add_costs(total, once)
    return total


def _add_costs(one: Costs, other: Costs) -> Costs:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _contexts_tokens(documents: Sequence[Sequence[int]], settings: Settings) -> Costs:
    """Return context costs: one call per chunk, showing the document or its permitted part."""
    prompt = count_tokens(
        load_prompt("situate_chunk", settings.prompts).text, settings.chunk.encoding
    )
    token_limit = settings.contextual_search.max_document_tokens
    calls = sum(map(len, documents))
    shown_tokens = sum(
        len(sizes) * min(sum(sizes), token_limit) + sum(sizes) for sizes in documents
    )
    return calls, calls * prompt + shown_tokens, calls * CONTEXT_TOKENS


def _rounds_tokens(prompt: str, rounds: int, sizes: Sequence[int], settings: Settings) -> Costs:
    encoding = settings.chunk.encoding
    first, gleaning_tokens = (
        count_tokens(load_prompt(name, settings.prompts).text, encoding)
        for name in (prompt, f"{prompt}_more")
    )
    replies = [round(size * REPLY_SHARE) for size in sizes]
    once = sum(first + size for size in sizes)
    again = sum(gleaning_tokens + size + reply for size, reply in zip(sizes, replies, strict=True))
    # a later round finds a fraction of what the first found
    return (
        len(sizes) * (1 + rounds),
        once + rounds * again,
        sum(replies) + rounds * sum(reply // 4 for reply in replies),
    )


def cost_of(
    model: str | None, tokens_in: int, tokens_out: int, prices: Prices = (None, None)
) -> float | None:
    """Return the cost in US dollars; None for unknown prices."""
    if model is None:
        return 0.0
    listed_prices = PRICES.get(model, (None, None))
    price_in, price_out = (
        price if price is not None else listed
        for price, listed in zip(prices, listed_prices, strict=True)
    )
    if price_in is None or price_out is None:
        return None
    return (tokens_in * price_in + tokens_out * price_out) / 1e6


def _open_snapshot(root: Path | None, collection: str) -> Snapshot | None:
    if root is None or not (root / MARKER).is_file():
        return None
    folder = GraphFolder.open(root)
    if collection not in set(folder.collections()):
        return None
    return Snapshot.open(folder.collection(collection))
