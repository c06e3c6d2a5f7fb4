"""Communities are brought up to date: parts of the graph that changed are divided anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.workshop import Workshop
from tgraph.index.communities import (
    community_quads,
    count_communities,
    find_communities,
    isolated_entities,
    read_components,
    stated_quads,
)
from tgraph.index.leiden import Clustering
from tgraph.model import Agent
from tgraph.record.clusterings import (
    ClusteringRecord,
    Hierarchy,
    last_parameters,
    standing_hierarchies,
)
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import literal

STAGE = "Clustering"


@dataclass(frozen=True, slots=True)
class Clustered:
    """How many communities there are now, of all levels, and how many entities are in none."""

    communities: int
    isolated: int


def cluster(shop: Workshop) -> Clustered:
    """Bring the communities in the working copy up to date with its knowledge.

    The communities of a connected part that did not change stay as they are, and the result is that
    of clustering everything at once. Where neither knowledge nor the settings changed nothing does.
    """
    store, how = shop.copy.store, _how(shop)
    if shop.copy.changed or not _is_current(store, how):
        _recluster(shop, how)
    return Clustered(count_communities(store), len(isolated_entities(store)))


def _how(shop: Workshop) -> Clustering:
    wanted = shop.settings.communities
    return Clustering(wanted.max_size, wanted.quality, wanted.resolution)


def _is_current(store: OxigraphStore, how: Clustering) -> bool:
    return last_parameters(store) == {name: literal(x) for name, x in how.parameters.items()}


def _recluster(shop: Workshop, how: Clustering) -> None:
    started = shop.clock()
    copy = shop.copy
    standing = standing_hierarchies(copy.store)
    parts = {part.key(how): part for part in read_components(copy.store)}
    kept = {key for key in parts.keys() & standing.keys() if _is_whole(copy.store, standing[key])}
    fresh = sorted(parts.keys() - kept)
    ended = [standing[key] for key in sorted(standing.keys() - kept)]
    made: dict[str, list[str]] = {}
    quads: list[Quad] = []
    for done, key in enumerate(fresh, 1):
        found = find_communities(parts[key], how)
        made[key] = [community.iri for community, _ in found]
        quads += community_quads(found)
        shop.show(STAGE, done, len(fresh))
    left = _replace(shop, quads, made, ended)
    if not copy.changed:
        return
    isolated = len(isolated_entities(copy.store))
    agent = Agent("method", f"{how.library}-leiden", version(how.library), how.library)
    record = ClusteringRecord(shop.run, agent, how.parameters, isolated, started, shop.clock())
    copy.add(record.quads(made, ended, left))


def _is_whole(store: OxigraphStore, hierarchy: Hierarchy) -> bool:
    """Whether its communities are all in knowledge, from which an update may have taken some."""
    kind = v.tg("Community")
    return all(
        store.has(Quad(NamedNode(name), v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH))
        for name in hierarchy.communities
    )


def _replace(
    shop: Workshop,
    quads: Iterable[Quad],
    made: Mapping[str, Iterable[str]],
    ended: Iterable[Hierarchy],
) -> dict[str, list[Quad]]:
    """Put new communities in the place of those that ended; what was said of those that left."""
    desired = dict.fromkeys(quads)
    names = {name for communities in made.values() for name in communities}
    before = {
        name: stated_quads(shop.copy.store, name)
        for name in sorted(name for hierarchy in ended for name in hierarchy.communities)
    }
    shop.copy.remove(q for said in before.values() for q in said if q not in desired)
    shop.copy.add(desired)
    return {name: said for name, said in before.items() if name not in names}
