"""From chunks to contexts: each chunk that has none by who is asked now gets one, on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.engine.claiming import stored_chunk
from tgraph.engine.workshop import Workshop
from tgraph.errors import EndpointError, ModelError
from tgraph.index.contexts import (
    Setting,
    Situator,
    StructuralSituator,
    names_that_matter,
    standing_contexts,
)
from tgraph.index.sources import (
    Texts,
    chunks_of_document,
    standing_documents,
    text_value,
)
from tgraph.model import Chunk
from tgraph.record.agents import agent_quads
from tgraph.record.contexts import Situated, context_link, context_quads, is_recorded
from tgraph.store.base import Store, select

STAGE = "Situating"
UNUSABLE = "context whose reply can't be used"


@dataclass(frozen=True, slots=True)
class _Made:
    """A context's text and who wrote it; ``error`` where that is not who was asked."""

    text: str
    by: Situator
    error: str = ""


def lacks_contexts(store: Store) -> bool:
    """Whether there are chunks and none of them has a context."""
    linked = store.match(None, v.tg("context"), None, v.KNOWLEDGE_GRAPH)
    if next(linked, None) is not None:
        return False
    return next(standing_chunks(store), None) is not None


def situate(shop: Workshop, *, wanted: bool = False) -> int:
    """Bring the contexts up to date with the standing chunks; how many were made.

    They are kept where ``contextual_search.enabled`` says so, where ``wanted``, and where they were
    made before.
    """
    store = shop.copy.store
    linked = standing_contexts(store)
    if not (linked or wanted or shop.settings.contextual_search.enabled):
        return 0
    standing = {chunk: document for document, chunk in standing_chunks(store)}
    for chunk, context in linked.items():
        if chunk not in standing:
            shop.copy.remove([context_link(chunk, context)])
    situator = shop.parts.situator
    key = situator.key
    known = {chunk for chunk, iri in linked.items() if _made_with(store, iri) == key}
    missing = [chunk for chunk in standing if chunk not in known]
    work = list(_settings(shop, missing, standing)) if missing else []
    shop.show(STAGE, 0, len(work))
    results = shop.each(
        work,
        lambda setting: _situate(shop, situator, setting),
        by_model=situator.agent.kind == "model",
    )
    for done, (setting, made, began) in enumerate(results, 1):
        chunk = setting.chunk.iri
        _record(shop, chunk, standing[chunk], made, began, linked.get(chunk))
        shop.show(STAGE, done, len(work))
    return len(work)


def standing_chunks(store: Store) -> Iterator[tuple[str, str]]:
    """(document, chunk), in the order of their IRIs."""
    for document in sorted(standing_documents(store)):
        for chunk in sorted(chunks_of_document(store, document)):
            yield document, chunk


def _made_with(store: Store, context: str) -> str:
    return text_value(store, context, v.tg("inputHash"))


def _settings(
    shop: Workshop, missing: Sequence[str], standing: dict[str, str]
) -> Iterator[Setting]:
    """The chunks that lack a context, each in its document."""
    store = shop.copy.store
    texts = Texts(store, shop.librarian)
    most = shop.settings.contextual_search.names
    wanted = set(missing)
    for document in dict.fromkeys(standing[chunk] for chunk in missing):
        chunks = [
            stored_chunk(store, texts, chunk) for chunk in chunks_of_document(store, document)
        ]
        named = _names(store, document)
        names = names_that_matter(((c.text, named.get(c.iri, ())) for c in chunks), most)
        title = text_value(store, document, v.dcterms("title"))
        whole, starts = _joined(texts, document, chunks)
        for chunk in sorted(chunks, key=lambda chunk: chunk.index):
            if chunk.iri in wanted:
                start = starts[chunk.page] + chunk.start
                yield Setting(chunk, title, whole, start, names)


def _joined(
    texts: Texts, document: str, chunks: Sequence[Chunk]
) -> tuple[str, dict[int | None, int]]:
    """The pages' texts as one, and where each page that has chunks starts in it."""
    whole, starts = "", {}
    for page in sorted({chunk.page for chunk in chunks}, key=lambda number: number or 0):
        starts[page] = len(whole)
        whole += texts.of_page(document, page) + "\n\n"
    return whole.rstrip("\n"), starts


def _names(store: Store, document: str) -> dict[str, list[str]]:
    """The names that were found in each chunk of the document."""
    chunks = list(chunks_of_document(store, document))
    nodes = [NamedNode(chunk) for chunk in chunks]
    found: dict[str, list[str]] = {}
    for row in select(store, "index/names-in-chunks", {"chunks": nodes}) if nodes else []:
        chunk, name = row["chunk"], row["name"]
        assert isinstance(chunk, NamedNode)
        assert isinstance(name, Literal)
        found.setdefault(chunk.value, []).append(name.value)
    return found


def _situate(shop: Workshop, situator: Situator, setting: Setting) -> _Made:
    """The context; a reply that can't be used costs its context, not the run."""
    try:
        return _Made(situator.situate(setting, shop.record.call), situator)
    except EndpointError:
        raise
    except ModelError as error:
        number = setting.chunk.index + 1
        shop.message(f"{setting.title}, chunk {number}, is situated by its document: {error}")
        standin = StructuralSituator(shop.settings.contextual_search.names)
        return _Made(standin.situate(setting), standin, str(error))


def _record(
    shop: Workshop, chunk: str, document: str, made: _Made, began: datetime, before: str | None
) -> None:
    shop.record.write_calls(shop.copy)
    situated = Situated(chunk, document, made.text, made.by.key, made.error)
    if not is_recorded(shop.copy.store, situated.iri):
        agent, prompts = made.by.agent, made.by.prompts
        quads = context_quads(situated, shop.run, agent, prompts, began, shop.clock())
        shop.copy.add([*quads, *agent_quads([agent]), *shop.record.prompts(prompts)])
    if made.error:
        shop.record.dropped[UNUSABLE] += 1
    if before is not None and before != situated.iri:
        shop.copy.remove([context_link(chunk, before)])
    shop.copy.add([context_link(chunk, situated.iri)])
