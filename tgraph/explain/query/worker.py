"""SPARQL worker process: no sockets, bounded memory.

These operating system barriers stand behind the tokenizer's guard. If sockets can't be
forbidden, new file handles are not allowed; a large store may need to open more files, and its
query then fails with an error."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice
from typing import Any, BinaryIO

from tgraph.isolation import forbid_sockets, limit_memory, limit_time, no_more_handles

QUERY_FAULT = 3


def main() -> None:
    """Read one JSON object from standard input and write the result to standard output; what goes
    wrong is one line on standard error, and exit code 3 where the query is at fault."""
    job = json.load(sys.stdin)
    limit_memory(job["memory"])
    limit_time(job["seconds"])
    import pyoxigraph

    try:
        open_store = pyoxigraph.Store if job["update"] else pyoxigraph.Store.read_only
        store = open_store(job["store"])
        if not forbid_sockets():
            no_more_handles()
        if job["update"]:
            store.update(job["text"], prefixes=job["prefixes"], base_iri=job["base"])
            _check_nesting(store)
            store.flush()
        else:
            _answer_query(store, job, sys.stdout.buffer)
    except BrokenPipeError:
        sys.stderr.close()
    except MemoryError:
        sys.exit("memory")
    except (SyntaxError, ValueError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        sys.exit(QUERY_FAULT)
    except (OSError, RuntimeError) as error:
        sys.exit(" ".join(str(error).split()))


def _check_nesting(store: Any) -> None:
    """Raise ``ValueError`` for a triple term within a triple term: whoever reads one that is deep
    calls itself, until the process ends. Here that is this process, whatever it meets."""
    nested = "FILTER(isTriple(?o) && isTriple(OBJECT(?o)))"
    if store.query(f"ASK {{ {{ ?s ?p ?o }} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }} {nested} }}"):
        raise ValueError("a triple term can't be part of another triple term")


def _answer_query(store: Any, job: dict[str, Any], out: BinaryIO) -> None:
    from pyoxigraph import QueryTriples

    query_options = {"prefixes": job["prefixes"], "base_iri": job["base"]}
    results = store.query(job["text"], **query_options, **_dataset_options(job["dataset"]))
    if isinstance(results, QueryTriples):
        _write_triples(results, job, out)
    else:
        _write_rows(results, job, out)
    out.flush()


def _dataset_options(named: dict[str, list[str]] | None) -> dict[str, Any]:
    """Return query dataset options: the union of all graphs, or explicitly chosen graphs."""
    from pyoxigraph import NamedNode

    if named is None:
        return {"use_default_graph_as_union": True}
    return {
        "default_graph": [NamedNode(iri) for iri in named["default"]],
        "named_graphs": [NamedNode(iri) for iri in named["named"]],
    }


def _write_triples(triples: Any, job: dict[str, Any], out: BinaryIO) -> None:
    from pyoxigraph import RdfFormat, serialize

    formats = {"ntriples": RdfFormat.N_TRIPLES, "turtle": RdfFormat.TURTLE}
    name = job["format"]
    if name == "lines":
        out.write(b'["subject", "predicate", "object"]\n')
        for triple in islice(triples, job["limit"]):
            _write_line(out, [str(triple.subject), str(triple.predicate), str(triple.object)])
        return
    if name not in formats:
        raise ValueError(f"CONSTRUCT and DESCRIBE give RDF, which can't be written as {name}")
    prefixes = job["prefixes"] if name == "turtle" else None
    serialize(islice(triples, job["limit"]), out, format=formats[name], prefixes=prefixes)


def _write_rows(results: Any, job: dict[str, Any], out: BinaryIO) -> None:
    from pyoxigraph import QueryBoolean, QueryResultsFormat, parse_query_results

    name = job["format"]
    if name == "lines":
        _write_lines(results, job["limit"], out)
        return
    formats = {n: getattr(QueryResultsFormat, n.upper()) for n in ("json", "xml", "csv", "tsv")}
    if name not in formats:
        raise ValueError(f"SELECT and ASK give rows, which can't be written as {name}")
    if isinstance(results, QueryBoolean) and name in ("csv", "tsv"):
        out.write(b"true\n" if results else b"false\n")
        return
    if job["limit"] is not None and not isinstance(results, QueryBoolean):
        document = json.dumps(_limit_results(results, job["limit"])).encode()
        results = parse_query_results(document, format=QueryResultsFormat.JSON)
    results.serialize(_XmlOutput(out) if name == "xml" else out, format=formats[name])


def _write_lines(results: Any, limit: int | None, out: BinaryIO) -> None:
    """Write result rows as JSON arrays of N-Triples terms, one per line; the first line holds
    variable names."""
    from pyoxigraph import QueryBoolean

    if isinstance(results, QueryBoolean):
        _write_line(out, ["result"])
        _write_line(out, ["true" if results else "false"])
        return
    _write_line(out, [variable.value for variable in results.variables])
    for row in islice(results, limit):
        _write_line(out, [None if term is None else str(term) for term in row])


def _write_line(out: BinaryIO, values: list[Any]) -> None:
    out.write(json.dumps(values).encode() + b"\n")


def _limit_results(results: Any, limit: int) -> dict[str, Any]:
    """The first rows as a SPARQL 1.2 JSON results document."""
    names = [variable.value for variable in results.variables]
    rows = (zip(names, row, strict=True) for row in islice(results, limit))
    bindings = [{name: _json_term(term) for name, term in row if term is not None} for row in rows]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def _json_term(term: Any) -> dict[str, Any]:
    from pyoxigraph import BlankNode, NamedNode, Triple

    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, Triple):
        parts = ("subject", "predicate", "object")
        return {"type": "triple", "value": {p: _json_term(getattr(term, p)) for p in parts}}
    described = {"type": "literal", "value": term.value}
    if term.language:
        described["xml:lang"] = term.language
        if term.direction:
            described["its:dir"] = term.direction.value
    else:
        described["datatype"] = term.datatype.value
    return described


_UNFIT = re.compile(b"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
"""What XML 1.0 has no way to write, in UTF-8."""


class _XmlOutput:
    """A binary stream that replaces characters invalid in XML."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(_UNFIT.sub("\ufffd".encode(), bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._out.flush()
