"""Communities are brought up to date: parts of the graph that changed are divided anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from pyoxigraph import Quad

from tgraph.engine.workshop import Workshop
from tgraph.index.communities import (
    community_names,
    community_quads,
    find_communities,
    isolated_entities,
    read_components,
    stated_quads,
)
from tgraph.index.leiden import Clustering
from tgraph.model import Agent
from tgraph.record.activities import Authorship
from tgraph.record.clusterings import (
    Hierarchy,
    clustering_quads,
    last_parameters,
    standing_hierarchies,
)
from tgraph.store.base import Store
from tgraph.store.statements import literal

STAGE = "Clustering"


@dataclass(frozen=True, slots=True)
class Clustered:
    """How many communities there are now, of all levels, and how many entities are in none."""

    communities: int
    isolated: int


@dataclass(frozen=True, slots=True)
class Reclustering:
    """A change of communities: the quads of knowledge to add and to remove, the hierarchies that
    were ``made`` (communities by key) and that ``ended``, and the communities that ``left``, with
    what was said of them."""

    added: Sequence[Quad]
    removed: Sequence[Quad]
    made: Mapping[str, Sequence[str]]
    ended: Sequence[Hierarchy]
    left: Mapping[str, Sequence[Quad]]


def cluster(context: Workshop) -> Clustered:
    """Bring the communities in the working copy up to date with its knowledge.

    The communities of a connected part that did not change stay as they are, and the result is that
    of clustering everything at once. Where neither knowledge nor the settings changed nothing does.
    """
    store, how = context.copy.store, _how(context)
    if context.copy.changed or not _is_current(store, how):
        _recluster(context, how)
    return Clustered(len(community_names(store)), len(isolated_entities(store)))


def _how(context: Workshop) -> Clustering:
    wanted = context.settings.communities
    return Clustering(wanted.max_size, wanted.quality, wanted.resolution)


def _is_current(store: Store, how: Clustering) -> bool:
    return last_parameters(store) == {name: literal(x) for name, x in how.parameters.items()}


def _recluster(context: Workshop, how: Clustering) -> None:
    copy, started = context.copy, context.clock()
    change = compare(copy.store, how, partial(context.show, STAGE))
    copy.remove(change.removed)
    copy.add(change.added)
    if not copy.changed:
        return
    isolated = len(isolated_entities(copy.store))
    agent = Agent("method", f"{how.package}-leiden", version(how.package), how.package)
    by = Authorship(context.run, agent, (), started, context.clock())
    copy.add(clustering_quads(by, how.parameters, isolated, change.made, change.ended, change.left))


def compare(
    store: Store, how: Clustering, progress: Callable[[int, int], None] = lambda done, total: None
) -> Reclustering:
    """What has to change for the communities to be those of the knowledge in the store."""
    standing = standing_hierarchies(store)
    there = community_names(store)
    parts = {part.key(how): part for part in read_components(store)}
    kept = {key for key, known in standing.items() if key in parts and known.communities <= there}
    fresh = sorted(parts.keys() - kept)
    made: dict[str, list[str]] = {}
    desired: dict[Quad, None] = {}
    for done, key in enumerate(fresh, 1):
        found = find_communities(parts[key], how)
        made[key] = [community.iri for community, _ in found]
        desired |= dict.fromkeys(community_quads(found))
        progress(done, len(fresh))
    ended = [standing[key] for key in sorted(standing.keys() - kept)]
    before = {name: stated_quads(store, name) for known in ended for name in known.communities}
    again = {name for names in made.values() for name in names}
    return Reclustering(
        added=list(desired),
        removed=[quad for said in before.values() for quad in said if quad not in desired],
        made=made,
        ended=ended,
        left={name: said for name, said in sorted(before.items()) if said and name not in again},
    )
