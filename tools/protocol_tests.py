"""W3C's tests of the SPARQL 1.1 Protocol, run against ``tgraph serve``.

``python -m tools.protocol_tests FOLDER`` with the folder ``sparql/sparql11/protocol`` of
https://github.com/w3c/rdf-tests. Each test has a server with an empty graph of its own, into which
its graphs are written by updates. Printed are the tests that fail, with what was answered, and how
many pass; the exit code is 1 where one fails that ``REFUSED`` does not name.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rdflib import RDF, Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

HT = Namespace("http://www.w3.org/2011/http#")
CNT = Namespace("http://www.w3.org/2011/content#")
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
UT = Namespace("http://www.w3.org/2009/sparql/tests/test-update#")
RDFS = Namespace("http://www.w3.org/2000/01/rdf-schema#")
BASE = "https://example.org/manifest"
PREFIX = "/sparql/"
TABULAR = ("sparql-results", "text/csv", "text/tab-separated-values")
TRIPLES = ("turtle", "rdf+xml", "n-triples", "ld+json", "trig", "n-quads")

REFUSED = {
    "update_dataset_default_graph": "an update names its graphs itself (using-graph-uri)",
    "update_dataset_default_graphs": "an update names its graphs itself (using-graph-uri)",
    "update_dataset_named_graphs": "an update names its graphs itself (using-named-graph-uri)",
    "update_dataset_full": "an update names its graphs itself (using-graph-uri)",
    "update_post_form": "CLEAR ALL would clear the record, which is sealed",
    "update_post_direct": "CLEAR ALL would clear the record, which is sealed",
}
"""What tgraph does otherwise by intent, and why."""


@dataclass(frozen=True)
class Exchange:
    """A request of a test, and what is expected of its answer."""

    method: str
    query: str
    body: bytes
    headers: dict[str, str]
    statuses: tuple[str, ...]
    boolean: bool | None
    format: str | None

    def problem(self, reply: httpx.Response) -> str:
        """What is wrong with the answer; empty where nothing is."""
        status = str(reply.status_code)
        if not any(re.fullmatch(each.replace("x", r"\d"), status) for each in self.statuses):
            return f"{status} in place of {' or '.join(self.statuses)}: {reply.text[:200]}"
        kind = reply.headers.get("content-type", "")
        if self.format in ("boolean", "tabular") and not any(each in kind for each in TABULAR):
            return f"{kind} in place of a result"
        if self.format == "RDF" and not any(each in kind for each in TRIPLES):
            return f"{kind} in place of RDF"
        if self.boolean is not None and reply.json()["boolean"] is not self.boolean:
            return f"{reply.json()['boolean']} in place of {self.boolean}"
        return ""


def exchanges(manifest: Graph, test: Node) -> Iterator[Exchange]:
    """The requests of a test in their order."""
    action = manifest.value(test, MF.action)
    for request in Collection(manifest, manifest.value(action, HT.requests)):
        path = str(manifest.value(request, HT.absolutePath))
        body, response = manifest.value(request, HT.body), manifest.value(request, HT.resp)
        text = str(manifest.value(body, CNT.chars) or "") if body else ""
        coding = str(manifest.value(body, CNT.characterEncoding) or "UTF-8") if body else "UTF-8"
        headers = manifest.value(request, HT.headers)
        found = Collection(manifest, headers) if headers else ()
        boolean = manifest.value(response, MF.expectedBoolean)
        form = manifest.value(response, MF.expectedFormat)
        statuses = manifest.objects(response, MF.expectedStatus)
        yield Exchange(
            str(manifest.value(request, HT.methodName)),
            path.removeprefix(PREFIX),
            text.encode(coding),
            {str(manifest.value(h, HT.fieldName)): str(manifest.value(h, HT.fieldValue))
             for h in found},
            tuple(str(each).rpartition("StatusCode")[2] for each in statuses),
            None if boolean is None else bool(boolean.toPython()),  # type: ignore[attr-defined]
            str(form) if form else None,
        )  # fmt: skip


@contextmanager
def serving() -> Iterator[str]:
    """The address of the protocol, on a graph of its own."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "a.txt"
        text.write_text("Marie Curie discovered radium.\n")
        root = f"{folder}/graph"
        tgraph = str(Path(sys.executable).with_name("tgraph"))
        subprocess.run([tgraph, "index", text, "-r", root, "--quiet"], check=True)
        serve = [tgraph, "serve", "-r", root, "--port", "0"]
        with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            address = re.search(r"http://\S+", server.stderr.readline())
            assert address is not None
            try:
                yield f"{address[0].rstrip('/')}/sparql"
            finally:
                server.terminate()


def run(client: httpx.Client, address: str, manifest: Graph, test: Node, folder: Path) -> str:
    """What is wrong with the answers; empty where nothing is."""
    for data in manifest.objects(test, UT.graphData):
        name = manifest.value(data, RDFS.label)
        file = str(manifest.value(data, UT.graph)).rpartition("/")[2]
        triples = (folder / file).read_text("utf-8")
        text = f"DROP SILENT GRAPH <{name}> ; INSERT DATA {{ GRAPH <{name}> {{ {triples} }} }}"
        client.post(address, data={"update": text}).raise_for_status()
    for exchange in exchanges(manifest, test):
        asked: dict[str, Any] = {"content": exchange.body, "headers": exchange.headers}
        if problem := exchange.problem(
            client.request(exchange.method, address + exchange.query, **asked)
        ):
            return problem
    return ""


def main() -> None:
    folder = Path(sys.argv[1])
    manifest = Graph().parse(folder / "manifest.ttl", publicID=BASE)
    tests = Collection(manifest, manifest.value(URIRef(BASE), MF.entries))
    passed, unforeseen, names = 0, 0, []
    with serving() as address, httpx.Client(timeout=60) as client:
        for test in tests:
            assert (test, RDF.type, MF.ProtocolTest) in manifest
            name = str(test).rpartition("#")[2]
            problem = run(client, address, manifest, test, folder)
            passed += not problem
            if problem:
                reason = REFUSED.get(name)
                unforeseen += reason is None
                names.append(name)
                print(f"{name}: {problem}" + (f"\n  by intent: {reason}" if reason else ""))
    print(f"{passed} of {len(tests)} pass; {len(names)} do not, {unforeseen} of them unforeseen.")
    sys.exit(1 if unforeseen else 0)


if __name__ == "__main__":
    main()
