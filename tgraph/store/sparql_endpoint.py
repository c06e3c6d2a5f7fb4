"""A triple store of others, by the SPARQL 1.1 Protocol: updated, asked, and read as a ``Store``.

What is the default graph here is a graph of its own there (``KNOWLEDGE``), for not every store
keeps triples outside of named graphs.
"""

from __future__ import annotations

import http
import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    parse_query_results,
)

from tgraph import vocabulary as v
from tgraph.errors import EndpointError, QueryError, UsageError
from tgraph.settings import PublishSettings
from tgraph.store.base import Graph, Results, Subject, Term
from tgraph.vocabulary import PREFIXES

KNOWLEDGE = NamedNode("urn:graph:knowledge")
"""The graph that the default graph is kept in."""

_JSON = "application/sparql-results+json"
_FORM = "application/x-www-form-urlencoded"
_SHOWN = 300
_RETRIED = frozenset((429, 502, 503, 504))
_PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
_TERMS = f"ASK {{ <urn:x:a> <{v.RDF_REIFIES.value}> <<( <urn:x:a> <urn:x:b> <urn:x:c> )>> }}"


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """Where updates and queries go; ``password`` with the ``user`` answers a server that asks for
    them, by Basic or Digest. Errors are ``EndpointError``, and ``QueryError`` for what is refused
    as wrong."""

    update_url: str
    query_url: str
    user: str = ""
    password: str = ""
    timeout: float = 600.0

    @classmethod
    def at(
        cls, url: str, query_url: str = "", user: str = "", password: str = ""
    ) -> SparqlEndpoint:
        """The endpoint that takes updates at the URL. Where queries go to another URL and none is
        given, it is the one that belongs to it by custom: ``/query`` to ``/update``, nothing to
        ``/statements``. ``UsageError`` where it is no URL of HTTP."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{url!r} is no SPARQL endpoint.", "Write it as http://HOST:PORT/PATH."
            )
        if parts.username:
            raise UsageError("The URL of the endpoint has a user.", "Give the user by itself.")
        path = parts.path
        for ending, instead in (("/update", "/query"), ("/statements", "")):
            if path.endswith(ending):
                path = path.removesuffix(ending) + instead
        return cls(url, query_url or urlunsplit(parts._replace(path=path)), user, password)

    @classmethod
    def of(cls, settings: PublishSettings, to: str = "") -> SparqlEndpoint:
        """That of the settings; ``to`` instead of their URL. ``UsageError`` where there is none."""
        if not (to or settings.to):
            raise UsageError(
                "There is no endpoint to publish to.",
                "Run `tgraph publish --to URL`, or set publish.to.",
            )
        password = settings.password.get_secret_value() if settings.password else ""
        query = settings.query if not to or to == settings.to else ""
        return cls.at(to or settings.to, query, settings.user, password)

    def update(self, text: str) -> None:
        """Carry out a SPARQL 1.1 update."""
        self._post(self.update_url, {"update": text}, "*/*")

    def query(self, text: str, *, union: bool = False) -> QuerySolutions | QueryBoolean:
        """The result of a SELECT or an ASK; with ``union`` over all graphs as one, where the store
        has a parameter for that (Oxigraph), else as it reads its default graph."""
        url = self.query_url
        if union:
            url += ("&" if "?" in url else "?") + "union-default-graph"
        data = self._post(url, {"query": text}, _JSON)
        try:
            found = parse_query_results(data, QueryResultsFormat.JSON)
        except (SyntaxError, ValueError) as error:
            raise EndpointError(
                f"{self.query_url} did not answer with results: {error}."
            ) from error
        assert isinstance(found, QuerySolutions | QueryBoolean)
        return found

    def knows_terms(self) -> bool:
        """Whether the store understands triple terms (RDF 1.2)."""
        try:
            self.query(_TERMS)
        except QueryError:
            return False
        return True

    def _post(self, url: str, form: Mapping[str, str], accept: str) -> bytes:
        request = urllib.request.Request(  # noqa: S310 - checked to be HTTP
            url,
            urlencode(form, quote_via=quote).encode(),
            {"Content-Type": _FORM, "Accept": accept},
        )
        try:
            with self._opener().open(request, timeout=self.timeout) as reply:
                answer: bytes = reply.read()
                return answer
        except urllib.error.HTTPError as error:
            raise _refused(url, error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise EndpointError(
                f"The SPARQL endpoint {url} can't be reached: {reason}.", "Is it running?"
            ) from error

    def _opener(self) -> urllib.request.OpenerDirector:
        known = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        if self.user:
            for url in (self.update_url, self.query_url):
                known.add_password(None, url, self.user, self.password)
        return urllib.request.build_opener(
            urllib.request.HTTPBasicAuthHandler(known), urllib.request.HTTPDigestAuthHandler(known)
        )


def _refused(url: str, error: urllib.error.HTTPError) -> EndpointError | QueryError:
    said = " ".join(error.read(4 * _SHOWN).decode("utf-8", "replace").split())[:_SHOWN]
    message = f"The SPARQL endpoint {url} answered {error.code}: {said or error.reason}."
    if error.code in (401, 403):
        return EndpointError(message, "Set publish.user and publish.password.")
    if error.code == http.HTTPStatus.BAD_REQUEST:
        return QueryError(f"The SPARQL query can't be parsed by {url}: {said}.")
    if error.code in _RETRIED:
        return EndpointError(message, "Run the same command again: it goes on where it was.")
    return QueryError(message)


class SparqlStore:
    """An endpoint that a graph was published to, for reading as a ``Store``; each call is one
    request. It is read as it is at the moment, and what somebody else writes there is read too."""

    def __init__(self, endpoint: SparqlEndpoint) -> None:
        self._endpoint = endpoint

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        where = {"s": subject, "p": predicate, "o": obj, "g": _there(graph)}
        if any(isinstance(term, BlankNode) for term in where.values()):
            return iter(())  # one of here is none of there
        terms = {name: f"?{name}" if term is None else str(term) for name, term in where.items()}
        free = [name for name, term in where.items() if term is None]
        text = "SELECT {} WHERE {{ GRAPH {g} {{ {s} {p} {o} }} }}".format(
            " ".join(f"?{name}" for name in free) or "(1 AS ?found)", **terms
        )
        found = self._endpoint.query(text)
        assert isinstance(found, QuerySolutions)
        return (_quad({**where, **{name: row[name] for name in free}}) for row in found)

    def lines(self, graph: NamedNode) -> list[bytes]:
        return [f"{quad} .\n".encode() for quad in self.match(None, None, None, graph)]

    def query(self, text: str, *, union: bool = True) -> Results:
        """As of ``Store``; without ``union`` the default graph is what was published as such."""
        return self._endpoint.query(_PREFIXES + (text if union else _from(text)), union=union)

    def extend(self, quads: Iterable[Quad]) -> None:
        raise TypeError("an endpoint is for reading; `tgraph publish` writes to it")

    def remove(self, quads: Iterable[Quad]) -> None:
        raise TypeError("an endpoint is for reading; `tgraph publish` writes to it")


def _from(text: str) -> str:
    """The query with the published default graph as its own."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    head, _, rest = plain.partition("{")
    asked = head.rstrip().removesuffix("WHERE")
    graphs = f"FROM <{KNOWLEDGE.value}> FROM NAMED <{v.SOURCE_GRAPH.value}>"
    return f"{asked} {graphs} WHERE {{{rest}"


def _there(graph: Graph | None) -> Graph | None:
    return KNOWLEDGE if isinstance(graph, DefaultGraph) else graph


def _quad(terms: Mapping[str, Any]) -> Quad:
    graph = terms["g"]
    return Quad(terms["s"], terms["p"], terms["o"], DefaultGraph() if graph == KNOWLEDGE else graph)
