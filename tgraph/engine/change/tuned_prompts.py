"""Prompt files tuned for a collection, found by its record."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.model import Prompt
from tgraph.store.base import Store

FOLDER = "prompts"
"""Where tuned prompts are written where the settings name no folder."""

CLAIM_PROMPTS = ("extract_claims", "extract_claims_more")
TUNED = (
    "extract_graph",
    "extract_graph_more",
    "community_report",
    *CLAIM_PROMPTS,
    "summarise_descriptions",
    "summarise_cluster",
)
"""The prompts that are tuned."""


def is_known_prompt(store: Store, prompt: Prompt) -> bool:
    quads = store.match(NamedNode(prompt.iri), v.prov("wasGeneratedBy"), None, v.SOURCE_GRAPH)
    return next(iter(quads), None) is not None


def remove_tuned(store: Store, folder: Path, only: frozenset[str] | None = None) -> list[str]:
    """Delete unchanged files of tuned prompts (``only`` hashes, if given); return deleted
    paths."""
    gone = []
    for name in TUNED:
        path = folder / f"{name}.md"
        if not path.is_file():
            continue
        digest = sha256(path.read_bytes()).hexdigest()
        is_tuned = (
            is_known_prompt(store, Prompt(name, "", digest)) if only is None else digest in only
        )
        if is_tuned:
            path.unlink()
            gone.append(str(path))
    return gone


def tuned_from(store: Store, document: str) -> frozenset[str]:
    """Return hashes of prompts tuned with chunks from the document."""
    digests = set()
    for tuning in store.match(None, v.RDF_TYPE, v.tg("PromptTuning"), v.SOURCE_GRAPH):
        used = store.match(tuning.subject, v.prov("used"), None, v.SOURCE_GRAPH)
        if not any(document.rpartition(":")[2] in str(quad.object) for quad in used):
            continue
        for generated in store.match(
            None, v.prov("wasGeneratedBy"), tuning.subject, v.SOURCE_GRAPH
        ):
            hashes = store.match(generated.subject, v.tg("contentHash"), None, v.SOURCE_GRAPH)
            digests |= {str(quad.object.value) for quad in hashes}  # type: ignore[union-attr]
    return frozenset(digests)
