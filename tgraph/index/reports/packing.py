"""Packing of community details into a token budget, with sub-community reports as substitutes.

The substitution is GraphRAG's (Edge et al., 2024, "From Local to Global", on the summaries of
higher-level communities): the sub-communities with the most details are replaced first. Details
still without room are counted. Details are read only as far as room is possible: little more
for a large community than for a small one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from tgraph.index.communities.communities import IriPair
from tgraph.index.reports.context import (
    Child,
    ClaimDetail,
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
from tgraph.index.reports.details import KEPT, Details, edge_order, entity_order

CENTRAL = 10
"""The most linked entities are shown even where sub-reports stand for them."""

_ROW = 9  # tokens: the id of a row, its end, and the joints of its parts
_JOINT = 4
_LEAST = _ROW + _JOINT
"""Tokens that a row costs at least."""


class Sizes:
    """Token counts of texts, each text counted once while remembered."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self.of = lru_cache(KEPT)(self._count_tokens)

    def _count_tokens(self, text: str) -> int:
        from tgraph.models.tokens import count_tokens

        return count_tokens(text, self._encoding)

    def cost(self, text: str) -> int:
        """Return the token cost of a row part."""
        return self.of(text) + (_ROW if text.startswith("{") else _JOINT)


Children = Callable[[], Sequence[Child]]
"""The sub-communities that have reports, where they are wanted."""


def pack_details(details: Details, children: Children, budget: int, sizes: Sizes) -> ReportContext:
    """The details, as far as ``budget`` tokens hold them.

    A community that fits is shown whole. Otherwise the sub-communities' reports stand in for their
    details, those with the most to say first, until the rest fits; a report that is no shorter than
    what it stands for is not used. Where even that is too much, the most important comes first, in
    brief, and what has no room is counted in ``left_out``.
    """
    room = budget
    while True:
        context = _pack_details(details, children, room, sizes)
        size = len(context.text.encode("utf-8", "surrogatepass"))  # a token has at least one byte
        over = 0 if size <= budget else sizes.of(context.text) - budget
        if over <= 0 or room <= 0:
            return context
        room -= over  # tokens join differently at the seams of some texts


def _pack_details(details: Details, children: Children, budget: int, sizes: Sizes) -> ReportContext:
    packing = _Packing(details, budget, sizes)
    if packing.add(_whole_share(details)):
        return packing.context()
    parts = _by_size(details, children())
    used = [child for child, part in parts if _saves_tokens(part, child, details, sizes)]
    *replaced, remainder = _split_layers(details, [child.community.members for child in used])
    central = list(islice(details.entities(details.community.members), CENTRAL))
    reports = [SubReport(child.report) for child in used]
    packing = _Packing(details, budget, sizes)
    packing.add_entities(central)
    for report in reports:
        packing.add_report(report)
    if not packing.add(remainder):
        return _pack_briefly(details, central, reports, remainder, budget, sizes)
    while reports and packing.put_back(reports[-1], replaced[len(reports) - 1]):
        reports.pop()
    return packing.context(reports)


@dataclass(slots=True)
class _Share:
    """A share of community details: members with claims and attributes, plus ties."""

    members: list[str] = field(default_factory=list)
    ties: list[IriPair] = field(default_factory=list)

    def edges(self, details: Details) -> Iterator[EdgeDetail]:
        """Yield the share's edges, most important first."""
        attribute_counts = details.outline.attributes
        return details.edges(
            self.ties, [member for member in self.members if member in attribute_counts]
        )

    def edge_count(self, details: Details) -> int:
        outline = details.outline
        ties = sum(outline.ties[pair] for pair in self.ties)
        return ties + sum(outline.attributes.get(member, 0) for member in self.members)


def _whole_share(details: Details) -> _Share:
    (share,) = _split_layers(details, [])
    return share


def _split_layers(details: Details, parts: Sequence[Iterable[str]]) -> list[_Share]:
    """Return a share for each part, excluding content of earlier parts, plus a final share
    outside all parts."""
    inside: defaultdict[str, set[int]] = defaultdict(set)
    for number, members in enumerate(parts):
        for member in members:
            inside[member].add(number)
    layers = [_Share() for _ in range(len(parts) + 1)]
    none = len(parts)
    for member in details.community.members:
        layers[min(inside[member], default=none)].members.append(member)
    for first_member, second_member in details.outline.ties:
        layers[min(inside[first_member] & inside[second_member], default=none)].ties.append(
            (first_member, second_member)
        )
    return layers


def _by_size(details: Details, children: Sequence[Child]) -> list[tuple[Child, _Share]]:
    """Return sub-communities with their contained shares, largest share first."""
    child_shares = [
        (child, _split_layers(details, [child.community.members])[0]) for child in children
    ]
    return sorted(
        child_shares, key=lambda pair: (-_count_rows(pair[1], details), pair[0].community.iri)
    )


def _count_rows(part: _Share, details: Details) -> int:
    claims = sum(len(details.claims.get(member, ())) for member in part.members)
    return len(part.members) + part.edge_count(details) + claims


def _saves_tokens(part: _Share, child: Child, details: Details, sizes: Sizes) -> bool:
    """Return whether the child's report is shorter than the details replaced."""
    cost = sum(map(sizes.cost, report_parts(SubReport(child.report)).values()))
    return not _Packing(details, cost, sizes).add(part)


class _Packing:
    """Details shown so far, with their token cost."""

    def __init__(self, details: Details, budget: int, sizes: Sizes) -> None:
        self._details = details
        self._budget = budget
        self._sizes = sizes
        self._entities: dict[str, EntityDetail] = {}
        self._edges: dict[str, EdgeDetail] = {}
        self._claims: dict[str, ClaimDetail] = {}
        self._uses: Counter[Hashable] = Counter()
        self._cost = 0

    def add(self, part: _Share) -> bool:
        """Add the share and return whether the budget suffices.

        Details added before the budget ran out stay."""
        details = self._details
        if self._cost + _LEAST * self._new_rows(part) > self._budget:
            return False
        if not self.add_entities(details.entities(part.members)):
            return False
        for claim in details.claims_of(part.members):
            self._claims[claim.iri] = claim
            self._add_cost(claim_parts(claim))
        for edge in part.edges(details):
            self._edges[edge.iri] = edge
            if not self._add_cost(edge_parts(edge)):
                return False
        return self._cost <= self._budget

    def add_entities(self, entities: Iterable[EntityDetail]) -> bool:
        """Add entities alone and return whether the budget suffices."""
        for entity in entities:
            if entity.iri not in self._entities and not self._add_cost(entity_parts(entity)):
                return False
            self._entities[entity.iri] = entity
        return True

    def _new_rows(self, part: _Share) -> int:
        return _count_rows(part, self._details) - sum(
            member in self._entities for member in part.members
        )

    def add_report(self, report: SubReport) -> None:
        """Add the report, regardless of the budget."""
        self._add_cost(report_parts(report))

    def put_back(self, report: SubReport, part: _Share) -> bool:
        """Replace the report by the represented details, if the budget suffices; return whether
        replaced."""
        before = dict(self._entities), dict(self._edges), dict(self._claims), Counter(self._uses)
        cost = self._cost
        self._refund_cost(report_parts(report))
        if self.add(part):
            return True
        self._entities, self._edges, self._claims, self._uses = before
        self._cost = cost
        return False

    def context(self, reports: Sequence[SubReport] = ()) -> ReportContext:
        """Return a context with the packed details, plus the given reports."""
        details = self._details
        claims = details.claims_of(details.community.members) if self._claims else ()
        return ReportContext(
            details.community,
            tuple(sorted(self._entities.values(), key=entity_order)),
            tuple(sorted(self._edges.values(), key=edge_order)),
            tuple(claim for claim in claims if claim.iri in self._claims),
            tuple(reports),
            relationships=details.relationships,
        )

    def _add_cost(self, parts: Parts) -> bool:
        """Add the cost of the parts and return whether the budget suffices."""
        for key, text in parts.items():
            self._uses[key] += 1
            if self._uses[key] == 1:
                self._cost += self._sizes.cost(text)
        return self._cost <= self._budget

    def _refund_cost(self, parts: Parts) -> None:
        for key, text in parts.items():
            self._uses[key] -= 1
            if not self._uses[key]:
                self._cost -= self._sizes.cost(text)


def _pack_briefly(
    details: Details,
    central: Sequence[EntityDetail],
    reports: Sequence[SubReport],
    rest: _Share,
    budget: int,
    sizes: Sizes,
) -> ReportContext:
    """Return the most important details in brief form, as far as the budget allows.

    If an item has no room, later items of the same kind have no room either."""
    squeeze = _Squeeze(budget, sizes.cost)
    members = dict.fromkeys([*(entity.iri for entity in central), *rest.members])
    for entity in central:
        squeeze.entity(entity)
    for report in reports:
        squeeze.report(report)
    for report in reports:
        squeeze.findings(report)
    for edge in rest.edges(details):
        for entity in details.entities(end for end in edge.ends if end in members):
            squeeze.entity(entity)
        if not squeeze.edge(edge):
            break
    for entity in details.entities(members):
        if not squeeze.entity(entity):
            break
    for claim in details.claims_of(rest.members):
        squeeze.claim(claim)
    return squeeze.context(details, len(members), rest.edge_count(details))


class _Squeeze:
    """A packer taking items in turn while room remains, and counting omitted items."""

    def __init__(self, budget: int, cost: Callable[[str], int]) -> None:
        self._room = budget
        self._cost = cost
        self._paid: set[Hashable] = set()
        self._entities: dict[str, EntityDetail] = {}
        self._edges: dict[str, EdgeDetail] = {}
        self._claims: list[ClaimDetail] = []
        self._reports: dict[str, SubReport] = {}
        self._left_out: Counter[str] = Counter()

    def entity(self, entity: EntityDetail) -> bool:
        """Add the entity; return whether the entity is shown, including earlier additions."""
        if entity.iri in self._entities:
            return True
        parts = entity_parts(entity, brief=True)
        if not self._reserve_room(parts):
            return False
        self._entities[entity.iri] = entity
        self._left_out["entity shown in brief"] += parts != entity_parts(entity)
        return True

    def edge(self, edge: EdgeDetail) -> bool:
        """Add the edge and return whether the edge is shown."""
        parts = edge_parts(edge, brief=True)
        if not self._reserve_room(parts):
            return False
        self._edges[edge.iri] = edge
        self._left_out["edge shown in brief"] += parts != edge_parts(edge)
        return True

    def claim(self, claim: ClaimDetail) -> None:
        if self._reserve_room(claim_parts(claim)):
            self._claims.append(claim)
        else:
            self._left_out["claim with no room"] += 1

    def report(self, sub: SubReport) -> None:
        brief = SubReport(sub.report, whole=False)
        if self._reserve_room(report_parts(brief)):
            self._reports[sub.report.iri] = brief
        else:
            self._left_out["sub-report with no room"] += 1

    def findings(self, sub: SubReport) -> None:
        if sub.report.iri not in self._reports or not sub.report.findings:
            return
        if self._reserve_room(report_parts(sub)):
            self._reports[sub.report.iri] = sub
        else:
            self._left_out["sub-report shown without its findings"] += 1

    def _reserve_room(self, parts: Parts) -> bool:
        """Reserve room for parts not yet present; return whether room sufficed."""
        new = {part: text for part, text in parts.items() if part not in self._paid}
        cost = sum(map(self._cost, new.values()))
        if cost > self._room:
            return False
        self._room -= cost
        self._paid |= set(new)
        return True

    def context(self, details: Details, entities: int, edges: int) -> ReportContext:
        """Return a context of packed items, counting omissions against total entities and
        edges."""
        self._left_out["entity with no room"] = entities - len(self._entities)
        self._left_out["edge with no room"] = edges - len(self._edges)
        return ReportContext(
            details.community,
            tuple(sorted(self._entities.values(), key=entity_order)),
            tuple(self._edges.values()),
            tuple(self._claims),
            tuple(self._reports.values()),
            brief=True,
            left_out={reason: count for reason, count in self._left_out.items() if count},
            relationships=details.relationships,
        )
