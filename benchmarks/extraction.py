"""The embedded extractor against a real GPT-3.5 extraction of the same passages (MuSiQue, train),
and its precision by hand.

    python -m benchmarks.extraction --data DIR [--limit N] [--held-out]
    python -m benchmarks.extraction --data DIR --draw N [--seed S] > edges.jsonl
    python -m benchmarks.extraction --judged edges.jsonl

The second draws N edges of each of four kinds of text (see ``benchmarks/extraction_sample.py``);
who judges them writes ``right`` or a fault into each line's ``verdict``, and the third counts. For
the first DIR holds ``openie_musique_train_results_ner_gpt-3.5-turbo-1106_1890.json`` from HippoRAG.
How things are counted: names are compared without case, punctuation and leading articles, and as
dates where they are dates. For precision an entity counts once, by its name or any alias; for
recall a GPT name is found if it is any entity's name or alias. GPT lists dates and amounts among
its entities, so a literal object that is one counts as a name too (whole phrases as literals
don't). Connected pairs are unordered; those "between entities" have both ends among the entities.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode

from benchmarks.extraction_sample import drawn, table
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.literals import parse_literal
from tgraph.ingest.chunk import page_chunks
from tgraph.model import Chunk, Document, Extraction, Page

FILE = "openie_musique_train_results_ner_gpt-3.5-turbo-1106_1890.json"
TUNED_ON = 600
Pair = frozenset[str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What we say, what GPT says, and other names of ours that count as found but not as said."""

    ours: set[Any]
    theirs: set[Any]
    aliases: frozenset[str] = frozenset()


@dataclass(slots=True)
class Score:
    """Counts over all passages; ``precision`` and ``recall`` are micro-averages."""

    right: int = 0
    found: int = 0
    ours: int = 0
    theirs: int = 0

    def add(self, comparison: Comparison) -> None:
        self.right += len(comparison.ours & comparison.theirs)
        self.found += len((comparison.ours | comparison.aliases) & comparison.theirs)
        self.ours += len(comparison.ours)
        self.theirs += len(comparison.theirs)

    @property
    def precision(self) -> float:
        return self.right / self.ours if self.ours else 0.0

    @property
    def recall(self) -> float:
        return self.found / self.theirs if self.theirs else 0.0


def key(name: str) -> str:
    """The form in which names are compared."""
    literal = parse_literal(name)
    if literal is not None:
        return literal.value.lower()
    words = re.sub(r"[^\w\s]", " ", name.lower()).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words)


class Passage:
    """One passage's two extractions, brought to comparable keys."""

    def __init__(self, extraction: Extraction, document: dict[str, Any]) -> None:
        self.their_names = {key(name) for name in document["extracted_entities"]} - {""}
        self._their_triples = [t for t in document["extracted_triples"] if len(t) == 3]
        self._extraction = extraction
        self._canonical = {
            entity.name: self._choose((entity.name, *entity.aliases))
            for entity in extraction.entities
        }

    def _choose(self, names: Iterable[str]) -> str:
        keys = [key(name) for name in names]
        return next((k for k in keys if k in self.their_names), keys[0])

    @property
    def our_aliases(self) -> frozenset[str]:
        return frozenset(
            key(name) for e in self._extraction.entities for name in (e.name, *e.aliases)
        )

    def our_names(self, literals: bool) -> set[str]:
        names = set(self._canonical.values())
        if literals:
            objects = [r.object for r in self._extraction.relationships]
            names |= {_literal_key(o) for o in objects if isinstance(o, Literal) and _is_amount(o)}
        return names - {""}

    def our_pairs(self, skip: str = "") -> set[Pair]:
        pairs = set()
        for relationship in self._extraction.relationships:
            if relationship.predicate != skip:
                ends = [relationship.subject, relationship.object]
                pairs.add(
                    frozenset(self._key(end) for end in ends if not isinstance(end, NamedNode))
                )
        return {pair for pair in pairs if len(pair) == 2 and "" not in pair}

    def their_pairs(self) -> set[Pair]:
        pairs = {frozenset((key(t[0]), key(t[2]))) for t in self._their_triples}
        return {pair for pair in pairs if len(pair) == 2 and "" not in pair}

    def _key(self, end: str | Literal) -> str:
        if isinstance(end, Literal):
            return _literal_key(end)
        return self._canonical.get(end) or key(end)


def _literal_key(literal: Literal) -> str:
    return literal.value.lower() if _is_typed(literal) else key(literal.value)


def _is_typed(literal: Literal) -> bool:
    return not literal.datatype.value.endswith("#string")


def _is_amount(literal: Literal) -> bool:
    return _is_typed(literal) or parse_literal(literal.value) is not None


def measure(documents: Sequence[dict[str, Any]]) -> tuple[dict[str, Score], float]:
    """The scores by what is counted, and the CPU seconds that extraction took."""
    extractor = EmbeddedExtractor()
    scores: dict[str, Score] = {}
    seconds = 0.0
    for place, document in enumerate(documents):
        text = document["text"]
        page = Page(None, text)
        source = Document(f"{place:064x}", document["title"], "text/plain", (page,))
        (chunk,) = page_chunks(source, page, [(0, len(text), 0)])
        begin = time.process_time()
        extraction = extractor.extract(chunk, document["title"])
        seconds += time.process_time() - begin
        for name, comparison in _comparisons(Passage(extraction, document)).items():
            scores.setdefault(name, Score()).add(comparison)
    return scores, seconds


def _comparisons(passage: Passage) -> dict[str, Comparison]:
    names, theirs = passage.our_names(literals=True), passage.their_names
    aliases = passage.our_aliases
    pairs, their_pairs = passage.our_pairs(), passage.their_pairs()
    stated = passage.our_pairs(skip="mentions")
    named = _among(their_pairs, theirs)
    return {
        "entities": Comparison(passage.our_names(literals=False), theirs, aliases),
        "entities, literal dates and amounts too": Comparison(names, theirs, aliases),
        "pairs": Comparison(pairs, their_pairs),
        "pairs without mentions": Comparison(stated, their_pairs),
        "pairs between entities": Comparison(_among(pairs, names), named),
        "pairs between entities without mentions": Comparison(_among(stated, names), named),
    }


def _among(pairs: set[Pair], names: set[str]) -> set[Pair]:
    return {pair for pair in pairs if pair <= names}


def report(label: str, documents: Sequence[dict[str, Any]]) -> None:
    scores, seconds = measure(documents)
    words = sum(len(document["text"].split()) for document in documents)
    print(f"\n### {label}: {len(documents)} passages, {words} words, {seconds:.1f} CPU s\n")
    print("| what | recall | precision | ours | GPT-3.5 |")
    print("|---|---|---|---|---|")
    for name, s in scores.items():
        print(f"| {name} | {s.recall:.3f} | {s.precision:.3f} | {s.ours} | {s.theirs} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=Path(), help="the folder with the data")
    parser.add_argument("--limit", type=int, default=TUNED_ON, help="passages from the first on")
    parser.add_argument("--held-out", action="store_true", help="also those the rules never saw")
    parser.add_argument("--draw", type=int, help="edges of each kind of text, to be judged")
    parser.add_argument("--seed", type=int, default=1, help="which edges are drawn")
    parser.add_argument("--judged", type=Path, help="edges with verdicts, to be counted")
    options = parser.parse_args()
    if options.judged is not None:
        lines = options.judged.read_text("utf-8").split("\n")
        print(table(json.loads(line) for line in lines if line))
        return
    if options.draw is not None:
        for edge in drawn(options.data, options.seed, options.draw):
            print(json.dumps(edge, ensure_ascii=False))
        return
    path = options.data / FILE
    if not path.is_file():
        parser.error(f"{path} doesn't exist: give the folder that holds {FILE} with --data.")
    documents = json.loads(path.read_text("utf-8"))["docs"]
    EmbeddedExtractor().extract(Chunk("0" * 64, None, 0, 0, 6, "Start.", 1), "")
    report("passages tuned on", documents[: options.limit])
    if options.held_out:
        report("held-out passages", documents[TUNED_ON:])


if __name__ == "__main__":
    main()
