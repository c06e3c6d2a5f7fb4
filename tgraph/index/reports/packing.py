"""A community's details within a budget of tokens, or its sub-communities' reports in their place.

The substitution is GraphRAG's (Edge et al., 2024, "From Local to Global", on the summaries of
higher-level communities): the sub-communities with the most to say are replaced first. What still
has no room is counted. Details are read as far as there may be room for them: little more of a
large community than of a small one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from tgraph.index.communities.communities import Pair
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
    """The tokens of texts, each text counted once while it is remembered."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self.of = lru_cache(KEPT)(self._count)

    def _count(self, text: str) -> int:
        from tgraph.models.tokens import count_tokens

        return count_tokens(text, self._encoding)

    def cost(self, text: str) -> int:
        """What a part of a row costs."""
        return self.of(text) + (_ROW if text.startswith("{") else _JOINT)


Children = Callable[[], Sequence[Child]]
"""The sub-communities that have reports, where they are wanted."""


def pack(details: Details, children: Children, budget: int, sizes: Sizes) -> ReportContext:
    """The details, as far as ``budget`` tokens hold them.

    A community that fits is shown whole. Otherwise the sub-communities' reports stand in for their
    details, those with the most to say first, until the rest fits; a report that is no shorter than
    what it stands for is not used. Where even that is too much, the most important comes first, in
    brief, and what has no room is counted in ``left_out``.
    """
    room = budget
    while True:
        context = _pack(details, children, room, sizes)
        size = len(context.text.encode("utf-8", "surrogatepass"))  # a token has at least one byte
        over = 0 if size <= budget else sizes.of(context.text) - budget
        if over <= 0 or room <= 0:
            return context
        room -= over  # tokens join differently at the seams of some texts


def _pack(details: Details, children: Children, budget: int, sizes: Sizes) -> ReportContext:
    packing = _Packing(details, budget, sizes)
    if packing.add(_everything(details)):
        return packing.context()
    parts = _by_size(details, children())
    used = [child for child, part in parts if _saves(part, child, details, sizes)]
    *replaced, rest = _layers(details, [child.community.members for child in used])
    central = list(islice(details.entities(details.community.members), CENTRAL))
    reports = [SubReport(child.report) for child in used]
    packing = _Packing(details, budget, sizes)
    packing.add_entities(central)
    for report in reports:
        packing.add_report(report)
    if not packing.add(rest):
        return _squeezed(details, central, reports, rest, budget, sizes)
    while reports and packing.put_back(reports[-1], replaced[len(reports) - 1]):
        reports.pop()
    return packing.context(reports)


@dataclass(slots=True)
class _Share:
    """Some of what there is to say of a community: of members, with their claims and attributes,
    and of ties."""

    members: list[str] = field(default_factory=list)
    ties: list[Pair] = field(default_factory=list)

    def edges(self, details: Details) -> Iterator[EdgeDetail]:
        """Its edges, the most important first."""
        known = details.outline.attributes
        return details.edges(self.ties, [member for member in self.members if member in known])

    def edge_count(self, details: Details) -> int:
        known = details.outline
        ties = sum(known.ties[pair] for pair in self.ties)
        return ties + sum(known.attributes.get(member, 0) for member in self.members)


def _everything(details: Details) -> _Share:
    (whole,) = _layers(details, [])
    return whole


def _layers(details: Details, parts: Sequence[Iterable[str]]) -> list[_Share]:
    """What is inside each of the parts and none before it, and what is in none of them."""
    inside: defaultdict[str, set[int]] = defaultdict(set)
    for number, members in enumerate(parts):
        for member in members:
            inside[member].add(number)
    layers = [_Share() for _ in range(len(parts) + 1)]
    none = len(parts)
    for member in details.community.members:
        layers[min(inside[member], default=none)].members.append(member)
    for one, other in details.outline.ties:
        layers[min(inside[one] & inside[other], default=none)].ties.append((one, other))
    return layers


def _by_size(details: Details, children: Sequence[Child]) -> list[tuple[Child, _Share]]:
    """The sub-communities with what is inside each, those with the most to say first."""
    found = [(child, _layers(details, [child.community.members])[0]) for child in children]
    return sorted(found, key=lambda pair: (-_rows(pair[1], details), pair[0].community.iri))


def _rows(part: _Share, details: Details) -> int:
    claims = sum(len(details.claims.get(member, ())) for member in part.members)
    return len(part.members) + part.edge_count(details) + claims


def _saves(part: _Share, child: Child, details: Details, sizes: Sizes) -> bool:
    """Whether the child's report is shorter than what it stands for."""
    cost = sum(map(sizes.cost, report_parts(SubReport(child.report)).values()))
    return not _Packing(details, cost, sizes).add(part)


class _Packing:
    """What is shown so far, and what it costs."""

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
        """Whether all of it has room; what was added before it had none stays."""
        details = self._details
        if self._cost + _LEAST * self._new_rows(part) > self._budget:
            return False
        if not self.add_entities(details.entities(part.members)):
            return False
        for claim in details.claims_of(part.members):
            self._claims[claim.iri] = claim
            self._pay(claim_parts(claim))
        for edge in part.edges(details):
            self._edges[edge.iri] = edge
            if not self._pay(edge_parts(edge)):
                return False
        return self._cost <= self._budget

    def add_entities(self, entities: Iterable[EntityDetail]) -> bool:
        """The same of entities alone."""
        for entity in entities:
            if entity.iri not in self._entities and not self._pay(entity_parts(entity)):
                return False
            self._entities[entity.iri] = entity
        return True

    def _new_rows(self, part: _Share) -> int:
        return _rows(part, self._details) - sum(one in self._entities for one in part.members)

    def add_report(self, report: SubReport) -> None:
        """Show it, whether there is room or not."""
        self._pay(report_parts(report))

    def put_back(self, report: SubReport, part: _Share) -> bool:
        """Whether there is room for what the report stands for in its place; if not, it stays."""
        before = dict(self._entities), dict(self._edges), dict(self._claims), Counter(self._uses)
        cost = self._cost
        self._return(report_parts(report))
        if self.add(part):
            return True
        self._entities, self._edges, self._claims, self._uses = before
        self._cost = cost
        return False

    def context(self, reports: Sequence[SubReport] = ()) -> ReportContext:
        """What is shown, beside reports that were added."""
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

    def _pay(self, parts: Parts) -> bool:
        """Whether there is room for it."""
        for key, text in parts.items():
            self._uses[key] += 1
            if self._uses[key] == 1:
                self._cost += self._sizes.cost(text)
        return self._cost <= self._budget

    def _return(self, parts: Parts) -> None:
        for key, text in parts.items():
            self._uses[key] -= 1
            if not self._uses[key]:
                self._cost -= self._sizes.cost(text)


def _squeezed(
    details: Details,
    central: Sequence[EntityDetail],
    reports: Sequence[SubReport],
    rest: _Share,
    budget: int,
    sizes: Sizes,
) -> ReportContext:
    """What is most important, in brief, as far as it fits. Where one of several has no room those
    after it have none."""
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
    """Takes things one after another while there is room, and counts those that had none."""

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
        """Whether it is shown, now or before."""
        if entity.iri in self._entities:
            return True
        parts = entity_parts(entity, brief=True)
        if not self._take(parts):
            return False
        self._entities[entity.iri] = entity
        self._left_out["entity shown in brief"] += parts != entity_parts(entity)
        return True

    def edge(self, edge: EdgeDetail) -> bool:
        """Whether it is shown."""
        parts = edge_parts(edge, brief=True)
        if not self._take(parts):
            return False
        self._edges[edge.iri] = edge
        self._left_out["edge shown in brief"] += parts != edge_parts(edge)
        return True

    def claim(self, claim: ClaimDetail) -> None:
        if self._take(claim_parts(claim)):
            self._claims.append(claim)
        else:
            self._left_out["claim with no room"] += 1

    def report(self, sub: SubReport) -> None:
        brief = SubReport(sub.report, whole=False)
        if self._take(report_parts(brief)):
            self._reports[sub.report.iri] = brief
        else:
            self._left_out["sub-report with no room"] += 1

    def findings(self, sub: SubReport) -> None:
        if sub.report.iri not in self._reports or not sub.report.findings:
            return
        if self._take(report_parts(sub)):
            self._reports[sub.report.iri] = sub
        else:
            self._left_out["sub-report shown without its findings"] += 1

    def _take(self, parts: Parts) -> bool:
        """Whether there is room for those of the parts that are not there yet."""
        new = {part: text for part, text in parts.items() if part not in self._paid}
        cost = sum(map(self._cost, new.values()))
        if cost > self._room:
            return False
        self._room -= cost
        self._paid |= set(new)
        return True

    def context(self, details: Details, entities: int, edges: int) -> ReportContext:
        """What was taken, of so many entities and edges."""
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
