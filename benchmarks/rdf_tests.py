"""The W3C's tests of Turtle, TriG, N-Triples and N-Quads, on the code that finds statements.

    git clone https://github.com/w3c/rdf-tests
    python -m benchmarks.rdf_tests rdf-tests

A positive test passes where what is read, statement by statement, is what pyoxigraph reads of the
whole file, and what the test expects, by RDFC-1.0; a negative one where a problem is told.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    DefaultGraph,
    NamedNode,
    Quad,
    QuerySolutions,
    RdfFormat,
    Store,
    Triple,
    parse,
)

from tgraph import vocabulary as v
from tgraph.extensions.interchange.graphs.rdf_syntax import SYNTAXES, RdfText, Syntax

_SKOLEM = f"{v.URN}skolem:"
_SUITES = ("rdf-n-triples", "rdf-n-quads", "rdf-turtle", "rdf-trig")
_TESTS = """
PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
PREFIX rdft: <http://www.w3.org/ns/rdftest#>
SELECT DISTINCT ?test ?kind ?action ?result WHERE {
  ?test a ?kind ; mf:action ?action . OPTIONAL { ?test mf:result ?result }
  FILTER STRSTARTS(STR(?kind), STR(rdft:))
} ORDER BY ?test
"""


class W3cTest(NamedTuple):
    """A test: its kind (the name of its class), the file, and the file that says the same."""

    kind: str
    base: str
    file: Path
    result: Path | None


def tests_in(folder: Path) -> Iterator[tuple[str, W3cTest]]:
    """The tests of the suites, each with the name of its suite, as in ``rdf12/rdf-turtle``."""
    for version in ("rdf11", "rdf12"):
        for suite in _SUITES:
            place = folder / "rdf" / version / suite
            for manifest in sorted(place.rglob("manifest.ttl")):
                for test in _tests_of(manifest):
                    yield f"{version}/{suite}", test


def _tests_of(manifest: Path) -> Iterator[W3cTest]:
    store = Store()
    text = manifest.read_text()
    base = next(
        (
            q.object.value
            for q in parse(text, RdfFormat.TURTLE, base_iri="urn:x:/m")
            if q.predicate.value.endswith("assumedTestBase")
        ),
        "",
    )
    store.load(text, format=RdfFormat.TURTLE, base_iri=manifest.as_uri())
    rows = store.query(_TESTS)
    assert isinstance(rows, QuerySolutions)
    for row in rows:
        action, result = (row[name] and _path(row[name].value) for name in ("action", "result"))
        kind = row["kind"].value.rpartition("#")[2]
        yield W3cTest(kind, f"{base or 'http://example.org/'}{action.name}", action, result)


def _path(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def outcome(test: W3cTest) -> str:
    """Empty where the test passes, else what is wrong."""
    syntax = next(s for s in SYNTAXES if test.file.suffix in s.suffixes)
    problems: list[str] = []
    text = test.file.read_bytes().decode("utf-8", "replace")
    found = read(text, syntax, test.base, problems)
    if "Negative" in test.kind:
        return "" if problems else "no problem was told"
    if problems:
        return f"problem: {problems[0]}"
    whole = list(parse(text, syntax.format, base_iri=test.base))
    if canonical(found) != canonical(whole):
        return "not what the parser reads of the whole file"
    if test.result is None:
        return ""
    kind = RdfFormat.N_QUADS if test.result.suffix == ".nq" else RdfFormat.N_TRIPLES
    expected = parse(test.result.read_text(encoding="utf-8"), kind)
    return "" if canonical(found) == canonical(expected) else "not what is expected"


def read(text: str, syntax: Syntax, base: str, problems: list[str]) -> list[Quad]:
    """What is read of a text, statement by statement, with blank nodes again."""

    def problem(line: int, reason: str, mended: bool) -> None:
        problems.append(f"line {line}: {reason}")

    said = RdfText(text, syntax, "w3c", base).read_triples(problem)
    return [Quad(*(_blank(term) for term in (*each[:3], _graph(each.graph)))) for each in said]


def _graph(name: str) -> Any:
    return _blank(NamedNode(name)) if name else DefaultGraph()


def _blank(term: Any) -> Any:
    if isinstance(term, NamedNode) and term.value.startswith(_SKOLEM):
        return BlankNode(v.digest_parts(term.value))
    return Triple(*map(_blank, term)) if isinstance(term, Triple) else term


def canonical(quads: Iterable[Quad]) -> list[str]:
    """The quads as lines, by RDFC-1.0."""
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return sorted(map(str, dataset))


def main() -> None:
    """Run all tests; print the failures and how many passed of each suite."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="A copy of https://github.com/w3c/rdf-tests")
    passed: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for suite, test in tests_in(parser.parse_args().folder.resolve()):
        key = suite, "negative" if "Negative" in test.kind else "positive"
        total[key] += 1
        wrong = outcome(test)
        passed[key] += not wrong
        if wrong:
            print(f"{suite}/{test.file.name} ({test.kind}): {wrong}")
    print("| suite | positive | negative |\n|---|---|---|")
    for suite in sorted({suite for suite, _ in total}):
        cells = (f"{passed[suite, k]} of {total[suite, k]}" for k in ("positive", "negative"))
        print(f"| {suite} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
