"""External triple stores through the SPARQL 1.1 Protocol: updates, queries, reading as
``Store``.

The local default graph becomes a named graph (``KNOWLEDGE``) on the endpoint, since some stores
keep no triples outside named graphs."""

from __future__ import annotations

import http
import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolution,
    QuerySolutions,
    Triple,
    Variable,
    parse_query_results,
)

from tgraph import vocabulary as v
from tgraph.errors import EndpointError, QueryError, UsageError
from tgraph.foreign_bytes import DEEPEST, OversizeError, check_nesting
from tgraph.settings import PublishSettings
from tgraph.store.base import Graph, Results, Subject, Term
from tgraph.store.statements import to_bytes
from tgraph.vocabulary import PREFIXES

KNOWLEDGE = NamedNode("urn:graph:knowledge")
"""The graph that the default graph is kept in."""

_JSON = "application/sparql-results+json"
_FORM = "application/x-www-form-urlencoded"
_SHOWN = 300
_SYNTAX = "37000"
"""SQL's state for what is wrong by its syntax, which Virtuoso answers 500 for."""
_CUT_OFF = {
    "X-SPARQL-MaxRows": "at {} rows, the most that it gives (ResultSetMaxRows of Virtuoso)",
    "X-SQL-State": "before it was complete ({}), since it took too long",
}
"""What a reply has in its head that is not all of the answer, and what that means."""
_PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())
_ANY = "ASK { ?s ?p ?o }"
_REIFIES = re.compile(r"(\S+) rdf:reifies <<\(\s*(\S+)\s+(\S+)\s+(\S+)\s*\)>>")
_CLASSIC = r"\1 rdf:subject \2 ; rdf:predicate \3 ; rdf:object \4"
_TERMS = f"ASK {{ <urn:x:a> <{v.RDF_REIFIES.value}> <<( <urn:x:a> <urn:x:b> <urn:x:c> )>> }}"


@dataclass(frozen=True, slots=True)
class WholeSolutions:
    """Completely received ``Solutions``."""

    variables: list[Variable]
    rows: list[QuerySolution]

    def __iter__(self) -> Iterator[QuerySolution]:
        return iter(self.rows)


class _Unredirected(urllib.request.HTTPRedirectHandler):
    """A redirect handler refusing redirects: updates would become GET requests and be lost."""

    def redirect_request(self, *given: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """A SPARQL endpoint for updates and queries.

    ``user`` and ``password`` answer Basic or Digest challenges and go nowhere else: redirects
    are errors. Failures raise ``EndpointError``, including truncated replies and gaps above
    ``timeout`` seconds between reply pieces; rejected queries raise ``QueryError``."""

    update_url: str
    query_url: str
    user: str = ""
    password: str = ""
    timeout: float = 600.0

    @classmethod
    def from_url(
        cls, url: str, query_url: str = "", user: str = "", password: str = ""
    ) -> SparqlEndpoint:
        """Return an endpoint receiving updates at a URL.

        Without ``query_url``, the query URL follows convention: ``/query`` for ``/update``, the
        same base for ``/statements``. Raise ``UsageError`` for other than HTTP URLs."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{url!r} is no SPARQL endpoint.", "Write it as http://HOST:PORT/PATH."
            )
        if parts.username:
            raise UsageError(
                "The URL of the endpoint has a user.", "Give the user as a separate setting."
            )
        path = parts.path
        for ending, instead in (("/update", "/query"), ("/statements", "")):
            if path.endswith(ending):
                path = path.removesuffix(ending) + instead
        return cls(url, query_url or urlunsplit(parts._replace(path=path)), user, password)

    @classmethod
    def from_settings(cls, settings: PublishSettings, to: str = "") -> SparqlEndpoint:
        """Return the configured endpoint, with ``to`` overriding its URL; raise ``UsageError``
        without an endpoint."""
        if not (to or settings.to):
            raise UsageError(
                "There is no endpoint to publish to.",
                "Run `tgraph publish --to URL`, or set publish.to.",
            )
        password = settings.password.get_secret_value() if settings.password else ""
        query = settings.query if not to or to == settings.to else ""
        endpoint = cls.from_url(to or settings.to, query, settings.user, password)
        return replace(endpoint, timeout=settings.timeout)

    def update(self, text: str) -> None:
        """Carry out a SPARQL 1.1 update."""
        self._post_form(self.update_url, {"update": text}, "*/*")

    def query(self, text: str) -> WholeSolutions | QueryBoolean:
        """Return the complete result of a SELECT or ASK query."""
        data = self._post_form(self.query_url, {"query": text}, _JSON)
        try:
            results = parse_query_results(data, QueryResultsFormat.JSON)
            if isinstance(results, QuerySolutions):
                return WholeSolutions(results.variables, list(results))
        except (SyntaxError, ValueError) as error:
            raise EndpointError(
                f"{self.query_url} did not answer with results: {error}.",
                "Check that the URL accepts SPARQL queries.",
            ) from error
        return results

    def knows_terms(self) -> bool:
        """Whether the store understands triple terms (RDF 1.2)."""
        self.query(_ANY)  # one that refuses everything tells nothing
        try:
            self.query(_TERMS)
        except QueryError:
            return False
        return True

    def _post_form(self, url: str, form: Mapping[str, str], accept: str) -> bytes:
        request = urllib.request.Request(  # noqa: S310 - checked to be HTTP
            url,
            urlencode(form, quote_via=quote).encode(),
            {"Content-Type": _FORM, "Accept": accept},
        )
        try:
            with self._url_opener().open(request, timeout=self.timeout) as reply:
                answer = self._read_answer(url, reply)
                _check_whole(url, reply.headers)
                return answer
        except urllib.error.HTTPError as error:
            raise _refusal_error(url, error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(error, http.client.IncompleteRead):
                raise EndpointError(f"The answer of {url} broke off.", _AGAIN) from error
            if isinstance(reason, TimeoutError):
                raise EndpointError(
                    f"The SPARQL endpoint {url} did not answer within {self.timeout:g} seconds.",
                    "Set publish.timeout, or store.timeout where questions read it.",
                ) from error
            raise EndpointError(
                f"The SPARQL endpoint {url} can't be reached: {reason}.", "Is it running?"
            ) from error

    def _read_answer(self, url: str, reply: Any) -> bytes:
        """Return a whole answer; raise ``EndpointError`` for one that is too long in bytes, time
        or brackets in each other."""
        blocks, size, until = list[bytes](), 0, time.monotonic() + _PATIENCE * self.timeout
        while block := reply.read1(_BLOCK):
            blocks.append(block)
            size += len(block)
            if size > _MOST_BYTES or time.monotonic() > until:
                limit = f"{_MOST_BYTES:,} bytes or {_PATIENCE * self.timeout:g} seconds"
                raise EndpointError(
                    f"The answer of {url} takes more than {limit}, the limit.",
                    "Check what runs there.",
                )
        answer = b"".join(blocks)
        if reply.length:  # what a length promised and did not come
            raise http.client.IncompleteRead(answer, reply.length)
        if answer.count(_TERM_TYPE) > DEEPEST:
            try:
                check_nesting(answer)
            except OversizeError as error:
                raise EndpointError(f"The answer of {url} is no result: {error}.") from None
        return answer

    def _url_opener(self) -> urllib.request.OpenerDirector:
        passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        if self.user:
            for url in (self.update_url, self.query_url):
                passwords.add_password(None, url, self.user, self.password)
        return urllib.request.build_opener(
            urllib.request.HTTPBasicAuthHandler(passwords),
            urllib.request.HTTPDigestAuthHandler(passwords),
            _Unredirected(),
        )


_MOST_BYTES = 1_000_000_000
_PATIENCE = 10
"""Times that a whole answer may take as long as the endpoint may be silent."""
_BLOCK = 1 << 20
_TERM_TYPE = b'"triple"'
_AGAIN = "Run the same command again to continue."


def _check_whole(url: str, headers: Mapping[str, str]) -> None:
    for name, meaning in _CUT_OFF.items():
        if header_value := headers.get(name):
            raise EndpointError(
                f"The SPARQL endpoint {url} cut its answer off {meaning.format(header_value)}.",
                "Raise the limits of the endpoint.",
            )


def _refusal_error(url: str, error: urllib.error.HTTPError) -> EndpointError | QueryError:
    reply_text = " ".join(error.read(4 * _SHOWN).decode("utf-8", "replace").split())[:_SHOWN]
    message = f"The SPARQL endpoint {url} answered {error.code}: {reply_text or error.reason}."
    if elsewhere := error.headers.get("Location"):
        message = f"The SPARQL endpoint {url} answered {error.code}, go to {elsewhere}."
        return EndpointError(message, "Nothing was sent there: give that URL, if you trust it.")
    if error.code in (401, 403):
        return EndpointError(
            message,
            "Set the user and the password of publish, or of store where questions read it.",
        )
    if error.code in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.METHOD_NOT_ALLOWED):
        return EndpointError(message, "Give the URL of the SPARQL endpoint.")
    if error.code == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return EndpointError(message, "Raise the size limit of requests at the endpoint.")
    if error.code == http.HTTPStatus.BAD_REQUEST:
        return QueryError(f"The SPARQL query can't be parsed by {url}: {reply_text}.")
    if error.code == http.HTTPStatus.TOO_MANY_REQUESTS or (
        error.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR and _SYNTAX not in reply_text
    ):
        return EndpointError(message, _AGAIN)
    return QueryError(message)


class SparqlStore:
    """A published graph on an endpoint, readable as ``Store``; each call sends one request.

    Reads see the current state, including changes by others. With ``classic`` view, queries are
    rewritten accordingly."""

    def __init__(self, endpoint: SparqlEndpoint, *, classic: bool = False) -> None:
        self._endpoint = endpoint
        self._classic = classic

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        where = {"s": subject, "p": predicate, "o": obj, "g": _remote_graph(graph)}
        if any(isinstance(term, BlankNode) for term in where.values()):
            return iter(())  # one of here is none of there
        terms = {name: _format_term(name, term) for name, term in where.items()}
        free = [name for name, term in where.items() if term is None]
        text = "SELECT {} WHERE {{ GRAPH {g} {{ {s} {p} {o} }} }}".format(
            " ".join(f"?{name}" for name in free) or "(1 AS ?found)", **terms
        )
        solutions = self._endpoint.query(text)
        assert isinstance(solutions, WholeSolutions)
        return (_build_quad({**where, **{name: row[name] for name in free}}) for row in solutions)

    def lines(self, graph: NamedNode) -> list[bytes]:
        return to_bytes(self.match(None, None, None, graph)).splitlines(keepends=True)

    def query(self, text: str) -> Results:
        query_text = in_classic_view(text) if self._classic else text
        return self._endpoint.query(_PREFIXES + _add_default_graph(query_text))

    def extend(self, quads: Iterable[Quad]) -> None:
        raise TypeError("an endpoint is for reading; `tgraph publish` writes to it")

    def remove(self, quads: Iterable[Quad]) -> None:
        raise TypeError("an endpoint is for reading; `tgraph publish` writes to it")


def _format_term(name: str, term: Term | Graph | None) -> str:
    if term is None:
        return f"?{name}"
    return f"<<( {term} )>>" if isinstance(term, Triple) else str(term)


_OTHER_GRAPHS = re.compile(rf"GRAPH (?!<{re.escape(v.SOURCE_GRAPH.value)}>)")


def in_classic_view(query: str) -> str:
    """Rewrite a query for stores without triple terms, replacing reified triples with
    three-part statements."""
    return _REIFIES.sub(_CLASSIC, query)


def _add_default_graph(text: str) -> str:
    """Return the query with the published default graph as its default graph.

    A query of bundles and catalogues, of which a data set can't name all, has no default graph: it
    says the graph of each pattern."""
    if _OTHER_GRAPHS.search(text):
        return text
    plain = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    head, _, body = plain.partition("{")
    query_head = head.rstrip().removesuffix("WHERE")
    graphs = f"FROM <{KNOWLEDGE.value}> FROM NAMED <{v.SOURCE_GRAPH.value}>"
    return f"{query_head} {graphs} WHERE {{{body}"


def _remote_graph(graph: Graph | None) -> Graph | None:
    return KNOWLEDGE if isinstance(graph, DefaultGraph) else graph


def _build_quad(terms: Mapping[str, Any]) -> Quad:
    graph = terms["g"]
    return Quad(terms["s"], terms["p"], terms["o"], DefaultGraph() if graph == KNOWLEDGE else graph)
