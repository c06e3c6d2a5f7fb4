"""The process in which a user's SPARQL runs: no sockets, no more memory than it is given.

These are barriers of the operating system, behind the tokenizer's: whatever the engine is talked
into, the kernel refuses. Linux: a seccomp filter (seccomp(2)) that denies ``socket``, or a network
namespace of its own (unshare(2)) where filters aren't allowed. Elsewhere: no new file handles.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import resource
import struct
import sys
from itertools import islice
from typing import Any, BinaryIO

_AUDIT_AND_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_LOAD, _JUMP_EQUAL, _JUMP_FROM, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _DENY = 0x7FFF0000, 0x00050000 | 13  # EACCES
_X32 = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def limit(memory: int, seconds: int) -> None:
    """Let the process have so many bytes of address space, and so many seconds of CPU time even if
    nobody is left to stop it."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def forbid_sockets() -> str:
    """Make opening a socket impossible for the rest of the process; says by which means."""
    if sys.platform == "linux":
        if _filter_sockets():
            return "filter"
        if _own_network():
            return "namespace"
    _no_more_handles()
    return "handles"


def _filter_sockets() -> bool:
    known = _AUDIT_AND_SOCKET.get(platform.machine())
    if known is None:
        return False
    architecture, socket_call = known
    steps = [
        (_LOAD, 0, 0, 4),
        (_JUMP_EQUAL, 0, 4, architecture),  # another architecture's calls: denied as a whole
        (_LOAD, 0, 0, 0),
        (_JUMP_FROM, 2, 0, _X32),
        (_JUMP_EQUAL, 1, 0, socket_call),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(steps), ctypes.cast(buffer, ctypes.c_void_p).value)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)


def _own_network() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return not libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)


def _no_more_handles() -> None:
    """Allow no new handle: one gets the lowest free number, and that is beyond the limit from now.

    A large store may want to open more of its files; its query then fails with an error.
    """
    lowest = os.dup(2)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))


QUERY_FAULT = 3


def main() -> None:
    """Read one JSON object from standard input and write the result to standard output; what goes
    wrong is one line on standard error, and exit code 3 where the query is at fault."""
    job = json.load(sys.stdin)
    limit(job["memory"], job["seconds"])
    import pyoxigraph

    try:
        open_store = pyoxigraph.Store if job["update"] else pyoxigraph.Store.read_only
        store = open_store(job["store"])
        forbid_sockets()
        if job["update"]:
            store.update(job["text"], prefixes=job["prefixes"])
            store.flush()
        else:
            _answer(store, job, sys.stdout.buffer)
    except BrokenPipeError:
        sys.stderr.close()
    except MemoryError:
        sys.exit("memory")
    except (SyntaxError, ValueError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        sys.exit(QUERY_FAULT)
    except (OSError, RuntimeError) as error:
        sys.exit(" ".join(str(error).split()))


def _answer(store: Any, job: dict[str, Any], out: BinaryIO) -> None:
    from pyoxigraph import QueryTriples

    results = store.query(job["text"], use_default_graph_as_union=True, prefixes=job["prefixes"])
    if isinstance(results, QueryTriples):
        _write_triples(results, job, out)
    else:
        _write_rows(results, job, out)
    out.flush()


def _write_triples(triples: Any, job: dict[str, Any], out: BinaryIO) -> None:
    from pyoxigraph import RdfFormat, serialize

    formats = {"ntriples": RdfFormat.N_TRIPLES, "turtle": RdfFormat.TURTLE}
    name = job["format"]
    if name == "lines":
        out.write(b'["subject", "predicate", "object"]\n')
        for triple in islice(triples, job["limit"]):
            _line(out, [str(triple.subject), str(triple.predicate), str(triple.object)])
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
        document = json.dumps(_limited(results, job["limit"])).encode()
        results = parse_query_results(document, format=QueryResultsFormat.JSON)
    results.serialize(_XmlOutput(out) if name == "xml" else out, format=formats[name])


def _write_lines(results: Any, limit: int | None, out: BinaryIO) -> None:
    """A row a line, each a JSON array of terms in N-Triples form; the first line has the names."""
    from pyoxigraph import QueryBoolean

    if isinstance(results, QueryBoolean):
        _line(out, ["result"])
        _line(out, ["true" if results else "false"])
        return
    _line(out, [variable.value for variable in results.variables])
    for row in islice(results, limit):
        _line(out, [None if term is None else str(term) for term in row])


def _line(out: BinaryIO, values: list[Any]) -> None:
    out.write(json.dumps(values).encode() + b"\n")


def _limited(results: Any, limit: int) -> dict[str, Any]:
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
    """A binary stream that lets through only what XML can hold."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(_UNFIT.sub("\ufffd".encode(), bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._out.flush()


if __name__ == "__main__":
    main()
