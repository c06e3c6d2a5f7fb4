"""The network of entities: what a change leaves, and that it is what is read of everything."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.index.communities.test_communities import FACTS, Fact, entity, knowledge_of
from tests.support.examples import examples
from tgraph import vocabulary as v
from tgraph.index.communities.communities import Component
from tgraph.index.communities.partition import Cutting, partition_graph
from tgraph.index.entity_network import (
    FILES,
    EntityNetwork,
    changed_network,
    load_network,
    pair_of,
    read_network,
)
from tgraph.store.base import Store
from tgraph.store.oxigraph import OxigraphStore

CUTTING = Cutting(most=8, part=5, group=2)
ENTITIES = st.integers(20, 28)


def parts_of(network: EntityNetwork, store: Store, parts: Iterable[int]) -> list[Component]:
    return list(network.components(store, parts))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(FACTS, FACTS, ENTITIES, ENTITIES)
def test_a_changed_network_is_the_one_that_is_read(
    facts: list[Fact], others: list[Fact], few: int, many: int
) -> None:
    """Told what changed, it finds the same parts as reading everything, and leaves out none that
    differ."""
    # what others say is more, or less: half of the facts stay
    later = [*facts[::2], *others[:6]]
    old = OxigraphStore.memory(knowledge_of(facts, few))
    new = OxigraphStore.memory(knowledge_of(later, many))
    before = read_network(old, CUTTING)
    differing = set(knowledge_of(facts, few)) ^ set(knowledge_of(later, many))
    touched = {quad.subject.value for quad in differing}  # type: ignore[union-attr]
    pairs = {pair_of(entity(a), entity(b)) for a, _, b, _ in {*facts} ^ {*later}}
    change = changed_network(before, new, {e for e in touched if ":entity:" in e}, pairs)
    fresh = read_network(new, CUTTING)
    assert list(change.network.entities) == list(fresh.entities)
    for name in ("marks", "attributes", "ends", "weights", "counts"):
        assert np.array_equal(getattr(change.network, name), getattr(fresh, name))
    stayed = set(before.parts) - set(change.parts_before)
    gone = {part.digest for part in parts_of(before, old, change.parts_before)}
    there = {part.digest for part in parts_of(before, old, stayed)}
    now = {part.digest for part in parts_of(change.network, new, change.parts)}
    assert {part.digest for part in parts_of(fresh, new, fresh.parts)} == there | now
    assert gone | there == {part.digest for part in parts_of(before, old, before.parts)}


@settings(max_examples=examples(100), deadline=None)
@given(FACTS)
def test_parts_and_groups_are_connected_and_large_enough(facts: list[Fact]) -> None:
    store = OxigraphStore.memory(knowledge_of(facts))
    network = read_network(store, CUTTING)
    ties = nx.Graph((entity(a), entity(b)) for a, _, b, _ in facts if a != b)
    whole = {node: len(c) for c in nx.connected_components(ties) for node in c}
    found = parts_of(network, store, network.parts)
    assert sorted(m for part in found for m in part.members) == sorted(ties)
    assert network.isolated_count == 28 - len(ties)
    for part in found:
        assert nx.is_connected(ties.subgraph(part.members))
        size = whole[part.members[0]]
        if size <= CUTTING.most:
            assert (len(part.members), part.groups) == (size, ())
            continue
        assert len(part.members) >= CUTTING.part
        groups = [
            [m for m, own in zip(part.members, part.groups, strict=True) if own == group]
            for group in set(part.groups)
        ]
        assert all(nx.is_connected(ties.subgraph(group)) for group in groups)
        assert min(map(len, groups)) >= CUTTING.group


def test_a_change_far_away_alters_no_part() -> None:
    """Two rings of rings, tied by one tie: what happens in one leaves the parts of the other."""
    count, ring = 4_000, 10
    ties = {(n, n + 1 if (n + 1) % ring else n + 1 - ring) for n in range(count)}
    ties |= {(n, (n + ring) % count) for n in range(0, count, ring)}
    before = np.array(sorted(tuple(sorted(tie)) for tie in ties), dtype=np.int32)
    marks = np.random.default_rng(5).integers(0, 2**63, count).astype(np.uint64)
    after = np.concatenate([before, np.array([[3, 1_777]], dtype=np.int32)])
    parts = [
        partition_graph(ends, np.ones(len(ends)), marks, Cutting()).parts
        for ends in (before, after)
    ]
    assert len(np.unique(parts[0])) > 10
    changed = np.unique(parts[0][parts[0] != parts[1]])
    assert len(changed) <= 4


def test_it_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    facts = [(n, "r", n + 1, 1.0) for n in range(20)]
    store = OxigraphStore.memory(knowledge_of(facts))
    network = read_network(store, CUTTING)
    network.save(tmp_path, 3)
    found = load_network(tmp_path, 3, CUTTING)
    assert found is not None
    assert list(found.entities) == list(network.entities)
    assert parts_of(found, store, found.parts) == parts_of(network, store, network.parts)
    assert load_network(tmp_path, 4, CUTTING) is None
    assert load_network(tmp_path, 3, Cutting()) is None
    (file,) = tmp_path.glob("network.weights.*")
    file.write_bytes(file.read_bytes()[:-8] + b"\0" * 7 + b"\1")
    assert load_network(tmp_path, 3, CUTTING) is None
    (tmp_path / FILES.head).unlink()
    assert load_network(tmp_path, 3, CUTTING) is None


@pytest.mark.parametrize("name", ["nobody", ""])
def test_what_is_no_entity_is_in_no_part(name: str) -> None:
    store = OxigraphStore.memory(knowledge_of([(1, "r", 2, 1.0)]))
    before = read_network(store)
    change = changed_network(before, store, [v.entity_iri(name)], [])
    assert (change.parts, change.parts_before) == ([], [])
