"""Which chunks of a search stand in a prompt: as many as fit, those like the question first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

SHIPS = [f"Ship{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
QUESTION = "Which of the ships carried sledges to Larvik?"
CARGO = {"Shipm": "carried sledges to Larvik", "Shipt": "carried coal to Larvik"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filling")
    for name in SHIPS:
        cargo = CARGO.get(name, "lay in harbours for years")
        (folder / f"{name}.txt").write_text(f"Nansen owned {name}. The ship {name} {cargo}.")
    with opened(folder, ScriptedModel(), create=True) as kg:
        assert not kg.index([folder / f"{name}.txt" for name in SHIPS]).failed
    return folder


def opened(folder: Path, chat: ScriptedModel | None, create: bool = False) -> KnowledgeGraph:
    settings = load_settings(None, {"extract.gleanings": 0})
    parts = Components(settings, folder / "cache", chat=chat, embedder=HashingEmbedder())
    return tgraph.open(folder / "graph", create=create, parts=parts)


def shown(
    folder: Path, mode: str, settings: Mapping[str, object], *, model: bool = True
) -> list[str]:
    """The texts of the chunks that a prompt has."""
    with opened(folder, ScriptedModel() if model else None) as kg, kg.view(settings) as view:
        rows = view.gather_context(QUESTION, mode, history=[]).rows
    return [str(row.row["chunk"]) for row in rows if "chunk" in row.row]


@pytest.mark.parametrize(("mode", "usual"), [("basic", 10), ("naive", 20)])
def test_beside_a_model_chunks_fill_the_prompt(folder: Path, mode: str, usual: int) -> None:
    section = f"{mode}_search"
    anything = {f"{section}.least_score": -1.0}
    assert len(shown(folder, mode, anything)) == len(SHIPS)
    assert len(shown(folder, mode, anything, model=False)) == usual
    assert len(shown(folder, mode, {**anything, f"{section}.k": 4})) == 4
    some = shown(folder, mode, {**anything, f"{section}.max_context_tokens": 600})
    assert 4 < len(some) < len(SHIPS)


def test_beside_a_model_local_search_fills_the_prompt_with_the_nearest(folder: Path) -> None:
    alone = {"local_search.include": ("Shipt",), "local_search.top_k_entities": 1}
    named = set(shown(folder, "local", alone, model=False))
    filled = shown(folder, "local", alone)
    assert len(named) < len(filled) == len(SHIPS)
    assert named == set(filled[: len(named)])
    some = shown(folder, "local", {**alone, "local_search.max_context_tokens": 500})
    assert len(some) < len(SHIPS)


def test_keyword_search_fills_the_prompt_too(folder: Path) -> None:
    anything = {"lightrag_search.least_score": -1.0}
    assert len(shown(folder, "lightrag-mix", anything)) == len(SHIPS)
    assert len(shown(folder, "lightrag-mix", anything, model=False)) == 20
    assert len(shown(folder, "lightrag-mix", {**anything, "lightrag_search.chunk_top_k": 3})) == 3


def test_local_search_shows_chunks_like_the_question_first(folder: Path) -> None:
    chunks = shown(folder, "local", {"local_search.include": ("Nansen",)})
    assert "carried sledges" in chunks[0]
    assert "carried coal" in chunks[1]
