"""What people state and deny by hand: notes, which are small documents, denials, and joins.

A note is a document of a sentence or two. What it states is evidence like any other: of exact
characters, standing as long as the note does. It is not read by an extractor, for it is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolution import name_key
from tgraph.index.decisions import Decisions, normalise_entity
from tgraph.index.sources import text_value
from tgraph.model import Chunk, Document, Extraction, Page, Span
from tgraph.models.tokens import count_tokens
from tgraph.record.activities import Authorship, find_standing, names_of, state_entity
from tgraph.record.merges import standing_pairs
from tgraph.record.sources import ExtractionRecord, accession_quads, chunk_quads, document_quads
from tgraph.rendering import collapse_whitespace, shorten_text
from tgraph.store.base import Store
from tgraph.store.statements import Statements, build_statements, edge_of, iri_node, reifier_quad

MEDIA_TYPE = "text/x-tgraph-curation"
KEY = "curation"
_TITLE = 80


@dataclass(frozen=True, slots=True)
class CuratedEntity:
    """A person's statement about an entity.

    ``curates`` names properties taking precedence over properties from the texts; if ``entity``
    is included, the person states the entity's existence."""

    iri: str
    name: str
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    not_aliases: tuple[str, ...] = ()
    curates: tuple[str, ...] = ("entity",)

    def key(self) -> str:
        fields = (self.iri, self.name, self.type, self.description)
        return v.digest_parts(*fields, *self.aliases, "", *self.not_aliases, "", *self.curates)


@dataclass(frozen=True, slots=True)
class CuratedFact:
    """A triple stated by a person, linking entities or an entity and a literal; includes the
    relation's name.

    ``curates`` works as for entities; if ``edge`` is included, the person states the triple."""

    triple: Triple
    name: str
    description: str = ""
    strength: float = 5.0
    curates: tuple[str, ...] = ("edge",)

    def key(self) -> str:
        return v.digest_parts(str(self.triple), self.description, str(self.strength), *self.curates)


@dataclass(frozen=True)
class CurationNote:
    """A person's statement in words, with its meaning as entities and facts.

    The text is a function of entities and facts; different statements give different texts."""

    sentences: tuple[str, ...]
    entities: tuple[CuratedEntity, ...] = ()
    facts: tuple[CuratedFact, ...] = ()

    @cached_property
    def statement(self) -> str:
        return " ".join(self.sentences)

    @cached_property
    def key(self) -> str:
        key_parts = [entity.key() for entity in self.entities], [fact.key() for fact in self.facts]
        return v.digest_parts(*key_parts[0], "", *key_parts[1])

    @cached_property
    def text(self) -> str:
        return f"{self.statement}\n\nStated by hand, note {self.key[:12]}.\n"

    @cached_property
    def sha256(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    def document(self, title: str) -> Document:
        return Document(self.sha256, title, MEDIA_TYPE, (Page(None, self.text),))

    @cached_property
    def chunk(self) -> Chunk:
        return Chunk(self.sha256, None, 0, 0, len(self.text), self.text, count_tokens(self.text))


class NoteRecord(ExtractionRecord):
    """A note's statements as evidence: the activity recording the note, a subgraph, and its
    edges."""

    def __init__(self, how: Authorship, note: CurationNote) -> None:
        super().__init__(how, note.chunk, Extraction(note.chunk.iri, (), ()), f"{KEY} {note.key}")
        self._note = note
        self._span = Span(0, len(note.statement), note.statement)

    def state(self) -> tuple[list[Quad], list[Quad]]:
        shared, new = super().state()
        for entity in self._note.entities:
            self._state_entity(entity)
        for fact in self._note.facts:
            self._state_fact(fact)
        return shared, [*new, *self._new.take_quads()]

    def _state_entity(self, entity: CuratedEntity) -> None:
        self.entities.add(entity.iri)
        self._evidence(
            f"{entity.iri} {entity.key()}",
            self._span,
            (v.tg("entity"), iri_node(entity.iri)),
            (v.tg("name"), entity.name),
            (v.tg("entityType"), entity.type),
            (v.tg("description"), entity.description or None),
            (v.tg("alias"), list(entity.aliases)),
            (v.tg("nameKey"), name_key(entity.name)),
            (v.tg("aliasKey"), [name_key(alias) for alias in entity.aliases]),
            (v.tg("notAlias"), list(entity.not_aliases)),
            (v.tg("curates"), map(v.tg, entity.curates)),
        )

    def _state_fact(self, fact: CuratedFact) -> None:
        edge = edge_of(fact.triple)
        self.edges[edge] = fact.triple
        self._out.add(self.subgraph, (v.tg("contains"), iri_node(edge)))
        self._out.quads.append(reifier_quad(edge, fact.triple))
        self._evidence(
            edge,
            self._span,
            (v.tg("edge"), iri_node(edge)),
            (v.tg("name"), fact.name),
            (v.tg("description"), fact.description or None),
            (v.tg("strength"), float(fact.strength)),
            (v.tg("curates"), map(v.tg, fact.curates)),
        )


def note_quads(
    note: CurationNote, how: Authorship, reason: str, text_hash: str
) -> tuple[list[Quad], NoteRecord]:
    """Return the quads of a note accessioned by a curation, plus the record of the note's
    statements.

    The librarian keeps the text. The document title tells the note's kind, date and reason."""
    day = f"{how.ended.astimezone(UTC):%Y-%m-%d}"
    document = note.document(
        f"Stated by hand, {day}: {shorten_text(collapse_whitespace(reason), _TITLE)}"
    )
    path = f"curations/{day}/{how.uuid}"
    record = NoteRecord(how, note)
    accession = v.accession_iri(path, note.sha256, None)
    quads = [
        *document_quads(document, text_hash, [text_hash]),
        *build_statements(v.SOURCE_GRAPH, document.iri, (v.RDF_TYPE, v.tg("CurationNote"))),
        *accession_quads(accession, document.iri, path, how.run, how.ended, None),
        *chunk_quads(note.chunk),
        *record.quads(),
    ]
    return quads, record


def denial_quads(
    activity: str, edges: Iterable[str], entities: Iterable[str], decided: datetime
) -> list[Quad]:
    """Return quads denying edges or entities; edges carry the names used by the texts and by
    knowledge.

    The deciding activity generates the denial; an activity taking the decision back invalidates
    the denial."""
    out = Statements(v.SOURCE_GRAPH)
    denied = sorted(edges), sorted(entities)
    state_entity(
        out,
        f"{v.URN}denial:{v.digest_parts(activity, *denied[0], *denied[1])}",
        "Denial",
        (v.prov("generatedAtTime"), decided),
        (v.tg("deniedEdge"), map(iri_node, denied[0])),
        (v.tg("deniedEntity"), map(iri_node, denied[1])),
        by=activity,
    )
    return out.quads


def join_quads(activity: str, pair: tuple[str, str], decided: datetime) -> list[Quad]:
    """Return quads joining two entities as the same.

    The deciding activity generates the join; an activity taking the decision back invalidates
    the join. Entity resolution honours standing joins."""
    out = Statements(v.SOURCE_GRAPH)
    state_entity(
        out,
        f"{v.URN}join:{v.digest_parts(activity, *sorted(pair))}",
        "Join",
        (v.prov("generatedAtTime"), decided),
        (v.tg("together"), map(iri_node, pair)),
        by=activity,
    )
    return out.quads


def read_decisions(store: Store) -> Decisions:
    """Return the standing decisions about knowledge from the store."""
    denied: dict[str, Triple] = {}
    entities: set[str] = set()
    for node in find_standing(store, "Denial"):
        entities.update(names_of(store, node, "deniedEntity"))
        for edge in names_of(store, node, "deniedEdge"):
            if (triple := reified_triple(store, edge)) is not None:
                denied[edge] = triple
    return Decisions(
        tuple(standing_pairs(store, "Split", "apart").values()),
        tuple(standing_pairs(store, "Join", "together").values()),
        tuple(denied[edge] for edge in sorted(denied)),
        frozenset((*entities, *map(normalise_entity, entities))),
        _read_note_times(store),
    )


def reified_triple(store: Store, edge: str) -> Triple | None:
    """What the edge IRI reifies."""
    quads = store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH)
    term = next((quad.object for quad in quads), None)
    return term if isinstance(term, Triple) else None


def _read_note_times(store: Store) -> dict[str, str]:
    """Return the time since when each note stands: the latest among the note's standing
    accessions."""
    times_by_note: defaultdict[str, list[str]] = defaultdict(list)
    for note in store.match(None, v.RDF_TYPE, v.tg("CurationNote"), v.SOURCE_GRAPH):
        assert isinstance(note.subject, NamedNode)
        for quad in store.match(None, v.prov("specializationOf"), note.subject, v.SOURCE_GRAPH):
            assert isinstance(quad.subject, NamedNode)
            accession = quad.subject.value
            if not text_value(store, accession, v.prov("invalidatedAtTime")):
                accession_time = text_value(store, accession, v.prov("generatedAtTime"))
                times_by_note[note.subject.value].append(accession_time)
    return {note: max(times, key=v.in_time) for note, times in times_by_note.items()}
