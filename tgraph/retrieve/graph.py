"""Graph retrieval: the specification's subgraph around the entities that a question is about.

Concepts lead to seed entities, by name and by vector; the edges whose sentences are nearest to the
question lead to seeds too. From the seeds the subgraph grows breadth first. Its edges are ranked by
how well the sentences behind them answer: by meaning, by words, by the kind of answer asked for,
and, where no sentence answers alone, by the bridge that two of them make.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyoxigraph import Literal, NamedNode

from tgraph.index.evidence import evidence_of
from tgraph.model import Candidate, Edge, EntityMatch, Evidence, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.bridge import Half, first_ends, link
from tgraph.retrieve.corpus import frequencies
from tgraph.retrieve.inquiry import Inquiry, read_question, split_question
from tgraph.retrieve.labels import described, with_labels
from tgraph.retrieve.lexical import STOP_WORDS, Frequencies, stem, terms, words
from tgraph.retrieve.meaning import Meaning
from tgraph.retrieve.passages import Passage, gather, place_of, score
from tgraph.retrieve.seeds import match_entities, match_names, triple_of
from tgraph.retrieve.subgraph import Subgraph, edges_of, ends, grow
from tgraph.retrieve.windows import windows
from tgraph.store.base import select

__all__ = ["GraphRetriever", "match_entities", "match_names"]

NEAREST_EDGES = 80
"""Edges nearest to the question, whose ends become seeds."""

READ = 500
"""Edges whose sentences are read: those that the first ranking, by meaning, leaves."""

DESCRIBED, OF_ONE = 3, 12
"""Descriptions whose entities are followed, and edges read of each of these."""

AROUND_BEST = 12
"""Sentences whose neighbours are read."""

BESIDE = 350
"""Characters within which a sentence is a neighbour."""

READ_EVIDENCE = 12
"""Places read of one edge, from which the best are shown."""


class GraphRetriever:
    """The mode ``graph``."""

    mode = "graph"
    step = "Traversal"
    matches_entities = True

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        text = _in_context(question)
        counts = frequencies(context)
        inquiry = read_question(text, counts)
        meaning = Meaning(context.vectors["edge"], context.embed([text, inquiry.asked or text]))
        matches = match_entities(question, meaning.nearest(NEAREST_EDGES), context)
        subgraph = grow([match.entity for match in matches], meaning, context)
        found = _Found(subgraph, context)
        found.read(_first(subgraph, meaning, matches))
        for passage in found.passages.values():
            score(passage, inquiry, meaning)
        if found.read_around(meaning):
            for passage in found.passages.values():
                score(passage, inquiry, meaning)
        halves = _halves(inquiry, meaning, found, counts, context)
        promoted = link(inquiry, found.passages, found.edges, counts, halves)
        return _rank(question, inquiry, matches, found, promoted)


def _halves(
    inquiry: Inquiry, meaning: Meaning, found: _Found, counts: Frequencies, context: Context
) -> tuple[Half, Half] | None:
    """The question's two halves, each with the windows that answer it best."""
    parts = split_question(inquiry.text)
    if parts is None:
        return None
    rest = _half(parts[1], found, counts, context)
    main = _half(parts[0], found, counts, context)
    if found.read_of(_described(rest, found.edges), main.meaning):
        for passage in found.passages.values():
            if not passage.matches:
                score(passage, inquiry, meaning)
        main = _half(parts[0], found, counts, context)
    return main, rest


def _described(rest: Half, edges: Mapping[str, Edge]) -> list[str]:
    """The entities that the best descriptions speak of."""
    found: dict[str, None] = {}
    for window in first_ends(rest.ranked)[:DESCRIBED]:
        for passage in window.passages:
            for iri in passage.edges:
                edge = edges[iri]
                found.update(dict.fromkeys(ends((edge.subject, edge.predicate, edge.object))))
    return list(found)


def _half(text: str, found: _Found, counts: Frequencies, context: Context) -> Half:
    inquiry = read_question(text, counts)
    meaning = Meaning(context.vectors["edge"], context.embed([text, inquiry.asked or text]))
    meaning.learn(found.edges)
    passages = [replace(passage) for passage in found.passages.values()]
    for passage in passages:
        score(passage, inquiry, meaning)
    return Half(inquiry, meaning, windows(passages, inquiry))


def _in_context(question: Question) -> str:
    """What is searched for: the question with the concepts that only the history explains."""
    missing = [c for c in question.concepts if not set(terms(c)) <= set(terms(question.text))]
    return " ".join([question.text, *missing])


def _first(subgraph: Subgraph, meaning: Meaning, matches: Sequence[EntityMatch]) -> list[str]:
    """The edges worth reading: the nearest in meaning, those of a name in the question ahead."""
    named = {match.entity for match in matches if match.method == "name"}

    def key(iri: str) -> tuple[float, str]:
        triple, hop = subgraph.edges[iri]
        touches = bool(named & set(ends(triple)))
        return -(meaning.of_edge(iri) + 0.15 * touches - 0.02 * hop), iri

    return sorted(subgraph.edges, key=key)


class _Found:
    """What has been read of a subgraph: edges with labels, their evidence, the passages."""

    def __init__(self, subgraph: Subgraph, context: Context) -> None:
        self.subgraph = subgraph
        self.context = context
        self.edges: dict[str, Edge] = {}
        self.evidence: dict[str, tuple[Evidence, ...]] = {}
        self.passages: dict[tuple[object, ...], Passage] = {}

    def read(self, ranked: Sequence[str], limit: int = READ) -> None:
        context, subgraph = self.context, self.subgraph
        chosen = ranked[:limit]
        subgraph.drop("far from the question", len(ranked) - len(chosen))
        self.edges = context.remembered("labelled", 50_000).get_all(chosen, self._labelled)
        subgraph.drop("triple without an edge", len(chosen) - len(self.edges))
        self.evidence = context.remembered("evidence", 50_000).get_all(self.edges, self._evidence)
        standing = [iri for iri in self.edges if self.evidence.get(iri)]
        subgraph.drop("edge without standing evidence", len(self.edges) - len(standing))
        self.edges = {iri: self.edges[iri] for iri in standing}
        self.passages = gather(self.edges, self.evidence, context)  # type: ignore[assignment]

    def read_around(self, meaning: Meaning) -> bool:
        """Read the edges whose sentences stand beside the best ones, within the graph's limits."""
        ranked = sorted(self.passages.values(), key=lambda p: (-p.score, p.evidence.iri))
        best = ranked[:AROUND_BEST]
        near = self._stated_near(best)
        new = [iri for iri in near if iri not in self.edges]
        for iri in new:
            triple = triple_of(iri, self.context)
            if triple is not None:
                self.subgraph.admit(iri, triple, self.context)
        admitted = [iri for iri in new if iri in self.subgraph.edges]
        self.subgraph.drop("beside a good sentence, but beyond a limit", len(new) - len(admitted))
        if not admitted:
            return False
        meaning.learn(admitted)
        self.read([*self.edges, *admitted], READ + len(admitted))
        return True

    def read_of(self, entities: Sequence[str], meaning: Meaning) -> bool:
        """Read the edges of the entities that are nearest to what is asked about them."""
        new: dict[str, None] = {}
        for entity in entities:
            around = {
                i: t for i, t in edges_of(entity, self.context).items() if i not in self.edges
            }
            meaning.learn(around)
            for iri in sorted(around, key=lambda i: (-meaning.of_edge(i), i))[:OF_ONE]:
                self.subgraph.admit(iri, around[iri], self.context)
                new[iri] = None
        admitted = [iri for iri in new if iri in self.subgraph.edges]
        if admitted:
            known = self.passages
            self.read([*self.edges, *admitted], len(self.edges) + len(admitted))
            self.passages = {p: known.get(p, passage) for p, passage in self.passages.items()}
        return bool(admitted)

    def _stated_near(self, passages: Sequence[Passage]) -> list[str]:
        """The edges stated within a few sentences of the passages."""
        chunks = {p.evidence.chunk for p in passages}
        memory = self.context.remembered("chunks", 200)
        stated = memory.get_all(sorted(chunks), self._stated)
        return list(
            dict.fromkeys(
                edge
                for p in passages
                for start, edge in stated.get(p.evidence.chunk, ())
                if p.evidence.start - BESIDE <= start <= p.evidence.end + BESIDE
            )
        )

    def _stated(self, chunks: list[str]) -> dict[str, list[tuple[int, str]]]:
        nodes = [NamedNode(chunk) for chunk in chunks]
        found: dict[str, list[tuple[int, str]]] = {chunk: [] for chunk in chunks}
        for row in select(self.context.store, "retrieve/neighbours", {"chunks": nodes}):
            found[_text(row["chunk"])].append((int(_text(row["start"])), _text(row["edge"])))
        return found

    def _evidence(self, edges: list[str]) -> Mapping[str, tuple[Evidence, ...]]:
        return evidence_of(self.context.store, self.context.texts, edges, READ_EVIDENCE)

    def _labelled(self, iris: list[str]) -> dict[str, Edge]:
        """The edges with labels, weight and description; triples that are no edges are left out."""
        labelled = with_labels(self.context.store, [self.subgraph.edges[i][0] for i in iris])
        nodes = [NamedNode(iri) for iri in iris]
        rows = select(self.context.store, "retrieve/edges", {"edges": nodes}, union=False)
        known = {_text(row["edge"]): row for row in rows}
        return {
            iri: described(
                edge, float(_text(known[iri]["weight"]) or 1.0), _text(known[iri]["description"])
            )
            for iri, edge in zip(iris, labelled, strict=True)
            if iri in known
        }


def _text(term: object) -> str:
    return term.value if isinstance(term, Literal | NamedNode) else ""


# --- ranking --------------------------------------------------------------------------------------


def _rank(
    question: Question,
    inquiry: Inquiry,
    matches: Sequence[EntityMatch],
    found: _Found,
    promoted: Mapping[tuple[object, ...], tuple[float, str]],
) -> Retrieval:
    scored = {}
    names = {match.entity: match.label for match in matches if match.method == "name"}
    for iri, edge in found.edges.items():
        passages = [found.passages[place_of(e)] for e in found.evidence[iri]]
        passages.sort(key=lambda p: (-_final(p, promoted), p.evidence.iri))
        best = passages[0]
        points = round(_final(best, promoted) - 0.0005 * (1 - _label_share(edge, inquiry)), 6)
        shown = _evidence_in_order(found.evidence[iri], passages)
        scored[iri] = points, best, shown
    ranked = sorted(scored, key=lambda iri: (-scored[iri][0], iri))
    limits, subgraph = found.context.limits, found.subgraph
    subgraph.drop("subgraph size", max(0, len(ranked) - limits.max_subgraph_size))
    candidates = tuple(
        Candidate(
            item=found.edges[iri],
            rank=rank,
            score=max(0.0, scored[iri][0]),
            hop=subgraph.edges[iri][1],
            evidence=scored[iri][2][: limits.evidence_limit],
            reasons=_reasons(iri, scored[iri][1], inquiry, subgraph, names, promoted),
        )
        for rank, iri in enumerate(ranked[: limits.max_subgraph_size], 1)
    )
    return Retrieval(
        candidates=candidates,
        total=len(ranked),
        concepts=tuple(question.concepts),
        matches=tuple(matches),
        cut=tuple(ranked) if len(ranked) > len(candidates) else (),
        dropped=subgraph.dropped,
    )


def _final(passage: Passage, promoted: Mapping[tuple[object, ...], tuple[float, str]]) -> float:
    return max(passage.score, promoted.get(passage.place, (0.0, ""))[0])


def _label_share(edge: Edge, inquiry: Inquiry) -> float:
    known = set(terms(edge.text)) & set(inquiry.weights)
    total = inquiry.total
    share = sum(inquiry.weights[term] for term in known) / total if total else 0.0
    return share * (0.3 if edge.predicate_label == "mentions" else 1.0)


def _evidence_in_order(
    evidence: Iterable[Evidence], passages: Sequence[Passage]
) -> tuple[Evidence, ...]:
    """The edge's own evidence, best answering first."""
    order = {passage.place: i for i, passage in enumerate(passages)}
    return tuple(sorted(evidence, key=lambda e: (order[place_of(e)], e.iri)))


def _reasons(
    iri: str,
    best: Passage,
    inquiry: Inquiry,
    subgraph: Subgraph,
    names: Mapping[str, str],
    promoted: Mapping[tuple[object, ...], tuple[float, str]],
) -> tuple[str, ...]:
    triple, hop = subgraph.edges[iri]
    reasons = []
    score_, why = promoted.get(best.place, (0.0, ""))
    if score_ > best.score:
        reasons.append(why)
    reasons.append(f"its sentence is {best.similar:.2f} similar in meaning to the question")
    shared = [
        w for w in dict.fromkeys(_content_words(inquiry.text)) if stem(w) in best.wording.quote
    ]
    if shared:
        reasons.append(f"it shares the words {', '.join(shared[:6])}")
    named = [names[end] for end in ends(triple) if end in names]
    if named:
        reasons.append(f"the question names {' and '.join(named)}")
    elif hop == 0:
        reasons.append("it touches a matched entity")
    else:
        reasons.append(f"it lies {hop + 1} hops from a matched entity")
    return tuple(reasons)


def _content_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS]
