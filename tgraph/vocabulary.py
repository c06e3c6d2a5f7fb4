"""Every name that tgraph writes: the terms of its vocabularies and how IRIs are minted.

The ``tg:`` terms are declared here and in ``ontology/tgraph.ttl``; a test holds the two together.
IRIs are functions of content (design promise P9); only a session, an index run and what hangs on
them carry a UUID.
"""

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

PREFIXES = {
    "tg": TG,
    "prov": PROV,
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "oa": OA,
    "dcterms": DCTERMS,
    "skos": SKOS,
}

URN = "urn:trustgraph:"
SOURCE_GRAPH = NamedNode("urn:graph:source")
KNOWLEDGE_GRAPH = DefaultGraph()


def _terms(namespace: str) -> Callable[[str], NamedNode]:
    @cache
    def term(name: str) -> NamedNode:
        return NamedNode(namespace + name)

    return term


tg, prov, oa, dcterms, xsd = map(_terms, (TG, PROV, OA, DCTERMS, XSD))

RDF_TYPE = NamedNode(RDF + "type")
RDF_REIFIES = NamedNode(RDF + "reifies")
RDFS_LABEL = NamedNode(RDFS + "label")
SKOS_ALT_LABEL = NamedNode(SKOS + "altLabel")


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


def canonical(literal: Literal) -> Literal:
    """The literal as Oxigraph returns it after storing it (``"9.0"^^xsd:double`` becomes ``9``).

    Everything is hashed, minted and written in this form, so that a hash taken before writing
    equals the hash after reopening.
    """
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
    """The text as a part of an IRI."""
    return quote(text, safe="", errors="surrogatepass")


def digest(*parts: str) -> str:
    """A 160-bit hexadecimal digest of the parts, each delimited, so that no two lists collide."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big") + data)
    return hasher.hexdigest()[:40]


def _slug(name: str) -> str:
    return quote(normalise_name(name).replace(" ", "-"), safe="", errors="surrogatepass")


def _minted(kind: str, name: Callable[[str], str] = str) -> Callable[[str], str]:
    """What mints the IRIs of a kind, by a UUID, a hash or the like."""
    return lambda what: f"{URN}{kind}:{name(what)}"


def is_iri(text: str) -> bool:
    """Whether the text is an absolute IRI."""
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\s+]+")


def local_words(iri: str) -> str:
    """The last part of an IRI in words, as in ``capital of`` for ``http://example.org/capitalOf``:
    what is called so where nobody says what it is called."""
    tail = iri.rpartition("#")[2].rstrip("/").rpartition("/")[2]
    local = unquote(tail.rpartition(":")[2] or tail)
    words = [word for word in _JOINTS.split(local) if word]
    if local[:1].islower():
        words = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    return " ".join(words) or iri


# --- IRIs of knowledge --------------------------------------------------------------------------


entity_iri = _minted("entity", _slug)
relation_iri = _minted("relation", _slug)
type_iri = _minted("type", _slug)


def claim_iri(*parts: str) -> str:
    """The IRI of a claim: a digest of all that it says."""
    return f"{URN}claim:{digest(*parts)}"


@lru_cache(maxsize=8192)
def edge_iri(subject: NamedNode, predicate: NamedNode, obj: NamedNode | Literal) -> str:
    """The IRI that reifies the triple: a digest of its canonical N-Triples form."""
    term = canonical(obj) if isinstance(obj, Literal) else obj
    line = f"{subject} {predicate} {term} ."
    return f"{URN}edge:{hashlib.sha256(line.encode()).hexdigest()[:40]}"


def community_iri(level: int, members: Iterable[str]) -> str:
    """Communities are named by their level and their members, in whatever order."""
    return f"{URN}community:{level}:{digest(*sorted(members))}"


def report_iri(community: str, *content: str) -> str:
    """A community report, by everything that it says and rests on."""
    return f"{URN}report:{digest(community, *content)}"


def finding_iri(report: str, index: int) -> str:
    """A finding of a report; ``index`` counts from 0."""
    return f"{URN}finding:{report.rpartition(':')[2]}:{index}"


def report_of_finding(finding: str) -> str:
    """The report that the finding is of."""
    return f"{URN}report:{finding.rpartition(':')[0].rpartition(':')[2]}"


# --- IRIs of sources ----------------------------------------------------------------------------


document_iri = _minted("document")
ontology_iri = _minted("ontology")
call_iri = _minted("call")


def page_iri(sha256: str, number: int) -> str:
    return f"{URN}page:{sha256}:{number}"


def chunk_iri(sha256: str, page: int | None, start: int, end: int) -> str:
    where = f"{start}-{end}" if page is None else f"{page}:{start}-{end}"
    return f"{URN}chunk:{sha256}:{where}"


def page_of(document: str, number: int | None) -> str:
    """The resource that holds the text: the page's IRI, or the document's where it has no pages."""
    return (
        document if number is None else page_iri(document.removeprefix(f"{URN}document:"), number)
    )


def accession_iri(path: str, sha256: str, previous: str | None) -> str:
    return f"{URN}accession:{digest(path, sha256, previous or '')}"


def subgraph_iri(chunk: str, extractor_key: str, reply_hash: str) -> str:
    return f"{URN}subgraph:{digest(chunk, extractor_key, reply_hash)}"


def evidence_iri(statement: str, chunk: str, start: int, end: int, extraction: str) -> str:
    return f"{URN}evidence:{digest(statement, chunk, str(start), str(end), extraction)}"


def summary_iri(subject: str, summariser_key: str, originals: Iterable[str]) -> str:
    return f"{URN}summary:{digest(subject, summariser_key, *originals)}"


@lru_cache(maxsize=256)
def agent_iri(kind: str, name: str, version: str, provider: str = "") -> str:
    """An agent's name; where a provider counts, as in ``model:NAME:VERSION@HOST:PORT``.

    Of a provider that is a URL the host is taken, and the port where one is given: never a user,
    a path or a query, because these may hold a secret.
    """
    parts = [kind, quote(name, safe=""), *([quote(version, safe="")] if version else [])]
    host = urlsplit(provider).netloc.rpartition("@")[2] if "://" in provider else provider
    return f"{URN}agent:{':'.join(parts)}" + (f"@{quote(host, safe=':')}" if host else "")


@lru_cache(maxsize=256)
def prompt_iri(name: str, sha256: str) -> str:
    return f"{URN}prompt:{quote(name, safe='')}:{sha256}"


# --- IRIs of a session ---------------------------------------------------------------------------


session_iri = _minted("session")
retrieval_iri = _minted("prov:retrieval")
selection_iri = _minted("prov:selection")
answer_iri = _minted("prov:answer")
answer_text_iri = _minted("answer")
bundle_iri = _minted("bundle")

evaluation_iri = _minted("evaluation")
"""A later statement about sessions: how good their answers are."""

verification_iri = _minted("verification")
"""A later statement about a session: whether its answer is entailed by what it cites."""

influence_analysis_iri = _minted("influence")
"""A later statement about a session: which of what was selected its answer depends on."""

invalidation_iri = _minted("invalidation")
"""A later statement about sessions: their answers do not stand any more."""

erasure_iri = _minted("erasure")
"""A later statement about sessions: the text of a document was erased from them."""

standing_iri = _minted("standing")
"""Whether the answer of the session still stands; it is this that is invalidated."""


def edge_selection_iri(uuid: str, index: int) -> str:
    return f"{URN}prov:edge:{uuid}:{index}"


def selected_iri(uuid: str, kind: str, index: int) -> str:
    """What was selected at ``index``: an edge, as the specification has it, or another item."""
    return (
        edge_selection_iri(uuid, index) if kind == "edge" else session_part_iri("item", uuid, index)
    )


def in_time(moment: str) -> str:
    """A key that sorts canonical times in UTC as the moments that they are.

    As texts ``12:00:00.5Z`` comes after ``12:00:00.51Z``, for a canonical fraction has no zeros at
    its end, and ``Z`` comes after the digits.
    """
    return moment.removesuffix("Z")


def session_part_iri(kind: str, uuid: str, *parts: str | int) -> str:
    """Any other resource of a session, such as a step, a candidate, a sentence or a citation."""
    return ":".join([f"{URN}prov:{kind}", uuid, *map(str, parts)])


def collection_iri(name: str) -> str:
    """The graph that is the catalogue of an explainability collection."""
    return f"{URN}collection:{quote(name, safe='')}"


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
    """Whether triples with the predicate are statements of the corpus, not tgraph's about them:
    types, names, and its own terms."""
    return predicate not in _ABOUT and not predicate.value.startswith(TG)
