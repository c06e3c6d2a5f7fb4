"""All names written by tgraph: vocabulary terms and IRI minting.

``tg:`` terms are declared here and in ``ontology/tgraph.ttl``; a test compares both. IRIs are
functions of content (design promise P9); only sessions, index runs and their parts carry a
UUID."""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from urllib.parse import quote, unquote, urlsplit

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, Store

TG = "https://trustgraph.ai/ns/"
PROV = "http://www.w3.org/ns/prov#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
OA = "http://www.w3.org/ns/oa#"
DCTERMS = "http://purl.org/dc/terms/"
SKOS = "http://www.w3.org/2004/02/skos/core#"
CSVW = "http://www.w3.org/ns/csvw#"

PREFIXES = {
    "tg": TG,
    "prov": PROV,
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "oa": OA,
    "dcterms": DCTERMS,
    "skos": SKOS,
    "csvw": CSVW,
}

URN = "urn:trustgraph:"
SOURCE_GRAPH = NamedNode("urn:graph:source")
KNOWLEDGE_GRAPH = DefaultGraph()


def _term_factory(namespace: str) -> Callable[[str], NamedNode]:
    @cache
    def term(name: str) -> NamedNode:
        return NamedNode(namespace + name)

    return term


tg, prov, oa, dcterms, xsd = map(_term_factory, (TG, PROV, OA, DCTERMS, XSD))

RDF_TYPE = NamedNode(RDF + "type")
RDF_REIFIES = NamedNode(RDF + "reifies")
RDFS_LABEL = NamedNode(RDFS + "label")
SKOS_ALT_LABEL = NamedNode(SKOS + "altLabel")
CSVW_ROWNUM = NamedNode(CSVW + "rownum")


# --- canonical literals -------------------------------------------------------------------------

_scratch, _using_scratch = Store(), threading.Lock()
_probe_s, _probe_p = NamedNode("urn:x:s"), NamedNode("urn:x:p")
_PLAIN = NamedNode(XSD + "string")


@lru_cache(maxsize=65536)
def _canonical_typed(literal: Literal) -> Literal:
    graph = NamedNode("urn:x:" + hashlib.sha256(str(literal).encode()).hexdigest())
    quad = Quad(_probe_s, _probe_p, literal, graph)
    with _using_scratch:
        _scratch.add(quad)
        try:
            stored = next(iter(_scratch.quads_for_pattern(None, None, None, graph))).object
        finally:
            _scratch.remove(quad)
    assert isinstance(stored, Literal)
    return stored


def canonicalise_literal(literal: Literal) -> Literal:
    """Return a literal as Oxigraph returns stored literals (``"9.0"^^xsd:double`` becomes
    ``9``).

    All hashing, minting and writing uses canonical literals, so hashes before writing equal
    hashes after reopening."""
    if literal.language is None and literal.datatype == _PLAIN:
        return literal
    return _canonical_typed(literal)


# --- names and hashes ---------------------------------------------------------------------------

_SPACES = re.compile(r"\s+")


def normalise_name(name: str) -> str:
    """The form in which names are compared: NFKC, case folded, white space collapsed, trimmed."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return _SPACES.sub(" ", folded).strip()


def percent_encoded(text: str) -> str:
    """Percent-encode text for use within an IRI."""
    return quote(text, safe="", errors="surrogatepass")


def digest_parts(*parts: str) -> str:
    """Return a 160-bit hexadecimal digest of delimited parts, so different lists never collide."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()[:40]


def _slug_name(name: str) -> str:
    return quote(normalise_name(name).replace(" ", "-"), safe="", errors="surrogatepass")


def _create_minter(kind: str, name: Callable[[str], str] = str) -> Callable[[str], str]:
    """Return a function minting IRIs of one kind from UUIDs, hashes or similar names."""
    return lambda what: f"{URN}{kind}:{name(what)}"


def is_iri(text: str) -> bool:
    """Return whether text is an absolute IRI."""
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\s+]+")


def local_words(iri: str) -> str:
    """Return the last IRI part as words, such as ``capital of`` for
    ``http://example.org/capitalOf``.

    The words serve as a label where no label exists."""
    tail = iri.rpartition("#")[2].rstrip("/").rpartition("/")[2]
    local = unquote(tail.rpartition(":")[2] or tail)
    words = [word for word in _JOINTS.split(local) if word]
    if local[:1].islower():
        words = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    return " ".join(words) or iri


# --- IRIs of knowledge --------------------------------------------------------------------------


entity_iri = _create_minter("entity", _slug_name)
relation_iri = _create_minter("relation", _slug_name)
type_iri = _create_minter("type", _slug_name)


def row_iri(name: str, sha256: str, page: int | None, table: int, row: int) -> str:
    """Return the IRI of a table row that its place in a document identifies, and not its name.

    A name on its own never has a colon in its IRI."""
    place = digest_parts(sha256, str(page or ""), str(table), str(row))
    return f"{entity_iri(name)}:{place}"


def is_row_iri(iri: str) -> bool:
    """Return whether an IRI is that of a table row identified by its place."""
    return iri.startswith(_ENTITIES) and ":" in iri[len(_ENTITIES) :]


_ENTITIES = entity_iri("")


def claim_iri(*parts: str) -> str:
    """Return a claim IRI, digesting all claim content."""
    return f"{URN}claim:{digest_parts(*parts)}"


@lru_cache(maxsize=8192)
def edge_iri(subject: NamedNode, predicate: NamedNode, obj: NamedNode | Literal) -> str:
    """The IRI that reifies the triple: a digest of its canonical N-Triples form."""
    term = canonicalise_literal(obj) if isinstance(obj, Literal) else obj
    line = f"{subject} {predicate} {term} ."
    return f"{URN}edge:{hashlib.sha256(line.encode()).hexdigest()[:40]}"


def community_iri(level: int, members: Iterable[str]) -> str:
    """Return a community IRI from level and members, independent of member order."""
    return f"{URN}community:{level}:{digest_parts(*sorted(members))}"


def report_iri(community: str, *content: str) -> str:
    """Return a report IRI, digesting report content and evidence."""
    return f"{URN}report:{digest_parts(community, *content)}"


def finding_iri(report: str, index: int) -> str:
    """Return a finding IRI within a report; ``index`` counts from 0."""
    return f"{URN}finding:{report.rpartition(':')[2]}:{index}"


def report_of_finding(finding: str) -> str:
    """Return the report IRI of a finding."""
    return f"{URN}report:{finding.rpartition(':')[0].rpartition(':')[2]}"


# --- IRIs of sources ----------------------------------------------------------------------------


document_iri = _create_minter("document")
ontology_iri = _create_minter("ontology")
call_iri = _create_minter("call")


def page_iri(sha256: str, number: int) -> str:
    return f"{URN}page:{sha256}:{number}"


def reread_digest(sha256: str, version: int) -> str:
    """Return the digest that names a document read anew: of its bytes' hash and the version of the
    reading, so that the text read before keeps its own name."""
    return hashlib.sha256(f"{sha256}:reading:{version}".encode()).hexdigest()


def reading_loss_iri(sha256: str, number: int) -> str:
    return f"{URN}reading-loss:{sha256}:{number}"


def unit_count_iri(sha256: str, number: int) -> str:
    return f"{URN}unit-count:{sha256}:{number}"


def chunk_iri(sha256: str, page: int | None, start: int, end: int) -> str:
    where = f"{start}-{end}" if page is None else f"{page}:{start}-{end}"
    return f"{URN}chunk:{sha256}:{where}"


def page_of(document: str, number: int | None) -> str:
    """Return the IRI of a text source: page IRI, or document IRI for documents without pages."""
    return (
        document if number is None else page_iri(document.removeprefix(f"{URN}document:"), number)
    )


def accession_iri(path: str, sha256: str, previous: str | None) -> str:
    return f"{URN}accession:{digest_parts(path, sha256, previous or '')}"


def subgraph_iri(chunk: str, extractor_key: str, reply_hash: str) -> str:
    return f"{URN}subgraph:{digest_parts(chunk, extractor_key, reply_hash)}"


def evidence_iri(statement: str, chunk: str, start: int, end: int, extraction: str) -> str:
    return f"{URN}evidence:{digest_parts(statement, chunk, str(start), str(end), extraction)}"


def summary_iri(subject: str, summariser_key: str, originals: Iterable[str]) -> str:
    return f"{URN}summary:{digest_parts(subject, summariser_key, *originals)}"


@lru_cache(maxsize=256)
def agent_iri(kind: str, name: str, version: str, provider: str = "") -> str:
    """Return an agent IRI, including provider if relevant, as in
    ``model:NAME:VERSION@HOST:PORT``.

    Provider URLs contribute only host and optional port, never user, path or query, because
    these parts may contain secrets."""
    parts = [kind, quote(name, safe=""), *([quote(version, safe="")] if version else [])]
    host = urlsplit(provider).netloc.rpartition("@")[2] if "://" in provider else provider
    return f"{URN}agent:{':'.join(parts)}" + (f"@{quote(host, safe=':')}" if host else "")


@lru_cache(maxsize=256)
def prompt_iri(name: str, sha256: str) -> str:
    return f"{URN}prompt:{quote(name, safe='')}:{sha256}"


# --- IRIs of a session ---------------------------------------------------------------------------


session_iri = _create_minter("session")
retrieval_iri = _create_minter("prov:retrieval")
selection_iri = _create_minter("prov:selection")
answer_iri = _create_minter("prov:answer")
answer_text_iri = _create_minter("answer")
bundle_iri = _create_minter("bundle")

evaluation_iri = _create_minter("evaluation")
"""A later statement about sessions: how good their answers are."""

verification_iri = _create_minter("verification")
"""A later statement about a session: whether its answer is entailed by what it cites."""

influence_analysis_iri = _create_minter("influence")
"""A later statement about a session: which of what was selected its answer depends on."""

invalidation_iri = _create_minter("invalidation")
"""A later statement about sessions: their answers do not stand any more."""

erasure_iri = _create_minter("erasure")
"""A later statement about sessions: the text of a document was erased from them."""

standing_iri = _create_minter("standing")
"""Whether the answer of the session still stands; it is this that is invalidated."""


def edge_selection_iri(uuid: str, index: int) -> str:
    return f"{URN}prov:edge:{uuid}:{index}"


def selected_iri(uuid: str, kind: str, index: int) -> str:
    """Return a selection IRI at ``index``: edge selections follow the specification; other
    items use item IRIs."""
    return (
        edge_selection_iri(uuid, index) if kind == "edge" else session_part_iri("item", uuid, index)
    )


def in_time(moment: str) -> str:
    """Return a sort key ordering canonical UTC times chronologically.

    Compared as texts, ``12:00:00.5Z`` would follow ``12:00:00.51Z``: canonical fractions have
    no trailing zeros, and ``Z`` sorts after digits."""
    return moment.removesuffix("Z")


def session_part_iri(kind: str, uuid: str, *parts: str | int) -> str:
    """Return an IRI for other session resources: steps, candidates, sentences, citations."""
    return ":".join([f"{URN}prov:{kind}", uuid, *map(str, parts)])


def collection_iri(name: str) -> str:
    """Return the catalogue graph IRI of an explainability collection."""
    return f"{URN}collection:{quote(name, safe='')}"


_OPEN = tuple(f"{URN}{kind}:" for kind in ("entity", "relation", "type", "skolem"))
_RESERVED = (TG, URN, "urn:graph:")


def is_reserved(iri: str) -> bool:
    """Return whether an IRI is tgraph's own: a term, a graph, something on record, or something
    named by what it says. Knowledge speaks of other IRIs."""
    return iri.startswith(_RESERVED) and not iri.startswith(_OPEN)


_SEALED_GRAPHS = (bundle_iri(""), collection_iri(""))


def is_sealed_graph(graph: object) -> bool:
    """Return whether a graph is a bundle or a catalogue."""
    return isinstance(graph, NamedNode) and graph.value.startswith(_SEALED_GRAPHS)


def is_record_graph(graph: object) -> bool:
    """Return whether a graph is the record's own: the source graph, a bundle or a catalogue."""
    return graph == SOURCE_GRAPH or is_sealed_graph(graph)


GRAPH_MEDIA_TYPES = frozenset(
    (
        "application/n-triples",
        "application/n-quads",
        "text/turtle",
        "application/trig",
        "application/rdf+xml",
        "application/ld+json",
        "application/vnd.msgpack",
    )
)
"""Media types of documents that are imported graphs: what they state are triples, not sentences."""
_ABOUT = frozenset((RDF_TYPE, RDFS_LABEL, SKOS_ALT_LABEL))


def is_statement(predicate: NamedNode) -> bool:
    """Return whether triples with the predicate are corpus statements, unlike types, names and
    tgraph's terms."""
    return predicate not in _ABOUT and not predicate.value.startswith(TG)
