"""A community's details within a budget of tokens, or its sub-communities' reports in their place.

The substitution is GraphRAG's (Edge et al., 2024, "From Local to Global", on the summaries of
higher-level communities): the sub-communities with the most to say are replaced first. What still
has no room is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from tgraph.index.report_context import (
    Child,
    ClaimDetail,
    Details,
    EdgeDetail,
    EntityDetail,
    Parts,
    ReportContext,
    SubReport,
    claim_parts,
    edge_parts,
    entity_parts,
    report_parts,
)
from tgraph.model import Community

CENTRAL = 10
"""The most linked entities are shown even where sub-reports stand for them."""

_ROW = 9  # tokens: the id of a row, its end, and the joints of its parts
_JOINT = 4


class Sizes:
    """The tokens of texts, each text counted once."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        if text not in self._known:
            from tgraph.models.tokens import count_tokens

            self._known[text] = count_tokens(text, self._encoding)
        return self._known[text]


def pack(details: Details, children: Sequence[Child], budget: int, sizes: Sizes) -> ReportContext:
    """The details, as far as ``budget`` tokens hold them.

    A community that fits is shown whole. Otherwise the sub-communities' reports stand in for their
    details, those with the most to say first, until the rest fits; a report that is no shorter than
    what it stands for is not used. Where even that is too much, the most important comes first, in
    brief, and what has no room is counted in ``left_out``.
    """
    room = budget
    while True:
        context = _pack(details, children, room, sizes)
        over = 0 if _is_small(context, budget) else sizes.of(context.text) - budget
        if over <= 0 or room <= 0:
            return context
        room -= over  # tokens join differently at the seams of some texts


def _is_small(context: ReportContext, budget: int) -> bool:
    """A token has at least one byte."""
    return len(context.text.encode("utf-8", "surrogatepass")) <= budget


def _pack(details: Details, children: Sequence[Child], budget: int, sizes: Sizes) -> ReportContext:
    packing = _Packing(details, sizes)
    if packing.cost <= budget:
        return packing.context()
    by_size = sorted(children, key=lambda c: (-packing.size_of(c.community), c.community.iri))
    for child in by_size:
        packing.replace(child)
        if packing.cost <= budget:
            return packing.context()
    return packing.squeezed(budget)


# --- packing ------------------------------------------------------------------------------------


class _Packing:
    """What is shown so far, from everything on, and what it costs."""

    def __init__(self, details: Details, sizes: Sizes) -> None:
        self._details = details
        self._sizes = sizes
        self._entities = {entity.iri: entity for entity in details.entities}
        self._edges = {edge.iri: edge for edge in details.edges}
        self._claims = {claim.iri: claim for claim in details.claims}
        self._central = [entity.iri for entity in details.entities[:CENTRAL]]
        self._reports: list[SubReport] = []
        self._uses: Counter[Hashable] = Counter()
        self.cost = 0
        for parts in self._parts(self._entities, self._edges, self._claims):
            self._add(parts)

    def context(self) -> ReportContext:
        return ReportContext(
            self._details.community,
            tuple(self._entities.values()),
            tuple(self._edges.values()),
            tuple(self._claims.values()),
            tuple(self._reports),
        )

    def size_of(self, community: Community) -> int:
        """What the details of a sub-community cost by themselves."""
        parts: dict[Hashable, str] = {}
        for own in self._parts(*self._inside(set(community.members))):
            parts.update(own)
        return sum(map(self._cost, parts.values()))

    def replace(self, child: Child) -> None:
        """Let the child's report stand for its details, unless that saves nothing."""
        entities, edges, claims = self._inside(set(child.community.members))
        entities = [iri for iri in entities if iri not in self._central]
        report = SubReport(child.report)
        before = self.cost
        removed = list(self._parts(entities, edges, claims))
        for parts in removed:
            self._remove(parts)
        self._add(report_parts(report))
        if self.cost >= before:
            self._remove(report_parts(report))
            for parts in removed:
                self._add(parts)
            return
        for kept, gone in (
            (self._entities, entities),
            (self._edges, edges),
            (self._claims, claims),
        ):
            for iri in gone:
                del kept[iri]
        self._reports.append(report)

    def squeezed(self, budget: int) -> ReportContext:
        """What is most important, in brief, as far as it fits."""
        squeeze = _Squeeze(budget, self._cost)
        for iri in self._central:
            squeeze.entity(self._entities[iri])
        for sub in self._reports:
            squeeze.report(sub)
        for sub in self._reports:
            squeeze.findings(sub)
        for edge in self._edges.values():
            for end in edge.ends:
                if end in self._entities:
                    squeeze.entity(self._entities[end])
            squeeze.edge(edge)
        for entity in self._entities.values():
            squeeze.entity(entity)
        for claim in self._claims.values():
            squeeze.claim(claim)
        return squeeze.context(self.context())

    def _inside(self, members: set[str]) -> tuple[list[str], list[str], list[str]]:
        """What is shown of the members alone: entities, edges and claims."""
        return (
            [iri for iri in self._entities if iri in members],
            [iri for iri, edge in self._edges.items() if members.issuperset(edge.ends)],
            [iri for iri, claim in self._claims.items() if claim.subject in members],
        )

    def _parts(
        self, entities: Iterable[str], edges: Iterable[str], claims: Iterable[str]
    ) -> Iterator[Parts]:
        for iri in entities:
            yield entity_parts(self._entities[iri])
        for iri in edges:
            yield edge_parts(self._edges[iri])
        for iri in claims:
            yield claim_parts(self._claims[iri])

    def _add(self, parts: Parts) -> None:
        for key, text in parts.items():
            self._uses[key] += 1
            if self._uses[key] == 1:
                self.cost += self._cost(text)

    def _remove(self, parts: Parts) -> None:
        for key, text in parts.items():
            self._uses[key] -= 1
            if not self._uses[key]:
                self.cost -= self._cost(text)

    def _cost(self, text: str) -> int:
        return self._sizes.of(text) + (_ROW if text.startswith("{") else _JOINT)


class _Squeeze:
    """Takes things one after another while there is room, and counts those that had none."""

    def __init__(self, budget: int, cost: Callable[[str], int]) -> None:
        self._room = budget
        self._cost = cost
        self._paid: set[Hashable] = set()
        self._seen: set[str] = set()
        self._taken: set[str] = set()
        self._whole: set[str] = set()
        self._left_out: Counter[str] = Counter()

    def entity(self, entity: EntityDetail) -> None:
        parts = entity_parts(entity, brief=True)
        taken = self._take(entity.iri, parts, "entity with no room")
        self._left_out["entity shown in brief"] += taken and parts != entity_parts(entity)

    def edge(self, edge: EdgeDetail) -> None:
        parts = edge_parts(edge, brief=True)
        taken = self._take(edge.iri, parts, "edge with no room")
        self._left_out["edge shown in brief"] += taken and parts != edge_parts(edge)

    def claim(self, claim: ClaimDetail) -> None:
        self._take(claim.iri, claim_parts(claim), "claim with no room")

    def report(self, sub: SubReport) -> None:
        brief = SubReport(sub.report, whole=False)
        self._take(sub.report.iri, report_parts(brief), "sub-report with no room")

    def findings(self, sub: SubReport) -> None:
        if sub.report.iri not in self._taken or not sub.report.findings:
            return
        key = f"{sub.report.iri} findings"
        if self._take(key, report_parts(sub), "sub-report shown without its findings"):
            self._whole.add(sub.report.iri)

    def _take(self, key: str, parts: Parts, otherwise: str) -> bool:
        """Whether it is taken now; what was offered before is not offered again."""
        if key in self._seen:
            return False
        self._seen.add(key)
        new = {part: text for part, text in parts.items() if part not in self._paid}
        cost = sum(map(self._cost, new.values()))
        if cost > self._room:
            self._left_out[otherwise] += 1
            return False
        self._room -= cost
        self._paid |= set(new)
        self._taken.add(key)
        return True

    def context(self, everything: ReportContext) -> ReportContext:
        taken = self._taken
        return ReportContext(
            everything.community,
            tuple(entity for entity in everything.entities if entity.iri in taken),
            tuple(edge for edge in everything.edges if edge.iri in taken),
            tuple(claim for claim in everything.claims if claim.iri in taken),
            tuple(
                SubReport(sub.report, sub.report.iri in self._whole)
                for sub in everything.reports
                if sub.report.iri in taken
            ),
            brief=True,
            left_out={reason: count for reason, count in self._left_out.items() if count},
        )
