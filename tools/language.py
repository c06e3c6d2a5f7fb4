"""Measure how plainly the code is named and documented.

    python -m tools.language [FOLDER] [--worst N]

prints a table of measures for the Python files below FOLDER (by default ``tgraph``) and, with
``--worst``, the N worst places of each. ``tests/test_language.py`` holds the measures of ``tgraph``
at or below ``LIMITS``.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean

from spacy.lang.en.stop_words import STOP_WORDS


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VAGUE_NAMES = _split_words(
    """
    found said told made known each own given kept wanted asked shown named taken left seen done
    held meant other others one ones these those what who which whose that this it all both some
    any more most rest about around within together whole thing things something stated
    """
)
"""Names that no value may have: pronouns, participles and determiners by themselves."""

IRREGULAR_PARTICIPLES = _split_words(
    """
    begun bound bought built caught chosen done drawn driven fed felt found given gone grown held
    kept known laid led left lent lost made meant met paid read said seen sent shown sold spent
    spoken stood taken taught told thought understood won worn written
    """
)
NOT_PARTICIPLES = _split_words(
    """
    embed feed read exceed need proceed seed speed
    """
)
"""Imperatives and nouns that look like participles."""

USEFUL_STOP_WORDS = _split_words(
    """
    name call part side front back top bottom
    """
)
"""Words of spaCy's list that name something in this field, or tell what a function does."""

HEAVY = 0.7
"""The share of stop words from which a docstring counts as heavy."""

LIMITS: Mapping[str, float] = {
    "stop words in docstrings, mean": 0.45,
    "docstrings of 70 % stop words": 0.03,
    "assignments to vague names": 0.005,
    "functions named by a stop word or participle": 0,
    "functions named by one word": 0.45,
    "names of classes and aliases with two meanings": 0,
}
"""The largest value of each measure that a plainly named tree has."""

_WORD = re.compile(r"[A-Za-z][A-Za-z']*")


@dataclass
class Language:
    """The measures of a tree of Python files, with the places that count against each measure.

    ``measures`` has a share or a number by its title; ``places`` has, by the same title, pairs of a
    weight (a larger weight is worse) and a text that names the place.
    """

    measures: dict[str, float] = field(default_factory=dict)
    places: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class Module:
    """A parsed Python file."""

    path: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of the tree; to find them takes longer than any measure of them."""
        return list(ast.walk(self.tree))


def parse_modules(folder: Path) -> list[Module]:
    """Return the parsed Python files below ``folder``, sorted by path."""
    return [
        Module(path.relative_to(folder.parent).as_posix(), ast.parse(path.read_text("utf-8")))
        for path in sorted(folder.rglob("*.py"))
    ]


def measure_language(modules: Sequence[Module]) -> Language:
    """Return the measures of the modules."""
    language = Language()
    _measure_docstrings(modules, language)
    _measure_assignments(modules, language)
    _measure_function_names(modules, language)
    _measure_type_names(modules, language)
    return language


def compute_stop_word_share(docstring: str) -> float:
    """Return the share of stop words among the words of the first paragraph; 0.0 without words."""
    words = _WORD.findall(docstring.split("\n\n")[0])
    return fmean(word.lower() in STOP_WORDS for word in words) if words else 0.0


def is_participle(word: str) -> bool:
    """Return whether the word is a past participle that stands by itself."""
    regular = word.endswith("ed") and len(word) > 3 and word not in NOT_PARTICIPLES
    return regular or word in IRREGULAR_PARTICIPLES - NOT_PARTICIPLES


def _measure_docstrings(modules: Sequence[Module], language: Language) -> None:
    title = "stop words in docstrings, mean"
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node)
                if docstring and _WORD.search(docstring):
                    share = compute_stop_word_share(docstring)
                    line = getattr(node, "lineno", 1)
                    first = docstring.split("\n")[0]
                    language.places[title].append((share, f"{module.path}:{line}: {first}"))
    shares = [share for share, _ in language.places[title]]
    heavy = "docstrings of 70 % stop words"
    language.places[heavy] = [entry for entry in language.places[title] if entry[0] >= HEAVY]
    language.measures[title] = fmean(shares) if shares else 0.0
    language.measures[heavy] = len(language.places[heavy]) / max(len(shares), 1)


def iterate_assigned_names(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    """Yield the names that statements, loops, comprehensions and ``with`` blocks assign."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node


def _measure_assignments(modules: Sequence[Module], language: Language) -> None:
    title, assignments = "assignments to vague names", 0
    for module in modules:
        vague: Counter[str] = Counter()
        for name in iterate_assigned_names(module.nodes):
            assignments += 1
            vague[name.id.lstrip("_")] += name.id.lstrip("_") in VAGUE_NAMES
        if total := vague.total():
            common = ", ".join(
                f"{name} {number}" for name, number in vague.most_common(5) if number
            )
            language.places[title].append((total, f"{module.path}: {common}"))
    vague_count = sum(weight for weight, _ in language.places[title])
    language.measures[title] = vague_count / max(assignments, 1)


def _measure_function_names(modules: Sequence[Module], language: Language) -> None:
    bare, single = (
        "functions named by a stop word or participle",
        "functions named by one word",
    )
    count = 0
    for module in modules:
        for node in module.nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            name = node.name
            if name.startswith("__") and name.endswith("__"):
                continue
            count += 1
            word, place = name.strip("_"), f"{module.path}:{node.lineno}: {name}"
            if "_" in word:
                continue
            language.places[single].append((1, place))
            stop_word = word in STOP_WORDS - USEFUL_STOP_WORDS
            if stop_word or is_participle(word):
                language.places[bare].append((1, place))
    language.measures[bare] = len(language.places[bare])
    language.measures[single] = len(language.places[single]) / max(count, 1)


def _measure_type_names(modules: Sequence[Module], language: Language) -> None:
    title = "names of classes and aliases with two meanings"
    definitions: dict[str, dict[str, str]] = defaultdict(dict)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                definitions[node.name.lstrip("_")][module.path] = f"class in {module.path}"
            elif alias := _parse_alias(node):
                name, meaning = alias
                definitions[name.lstrip("_")][module.path] = meaning
    for name, meanings in definitions.items():
        if len(set(meanings.values())) > 1:
            language.places[title].append((len(meanings), f"{name}: {', '.join(sorted(meanings))}"))
    language.measures[title] = len(language.places[title])


def _parse_alias(node: ast.stmt) -> tuple[str, str] | None:
    """Return the name and the meaning of a type alias: ``Row = tuple[int, str]``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return None
    name = node.targets[0].id
    is_type = isinstance(node.value, ast.Subscript | ast.BinOp) and name.lstrip("_")[:1].isupper()
    if not is_type or name.isupper() or not any(c.islower() for c in name):
        return None
    return name, ast.unparse(node.value)


def print_language(language: Language, worst: int = 0) -> None:
    """Print the measures beside their limits, and the ``worst`` places of each measure."""
    for title, value in language.measures.items():
        limit = LIMITS[title]
        form = ".0f" if limit == 0 else ".1%"
        print(f"{title:50} {value:>8{form}}   limit {limit:{form}}")
        places = sorted(language.places[title], key=lambda entry: (-entry[0], entry[1]))
        for weight, place in places[:worst]:
            print(f"    {weight:6.2f}  {place}")


def main() -> None:
    """Parse the command line and print the measures."""
    parser = argparse.ArgumentParser(description="Measure the language of Python code.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("tgraph"))
    parser.add_argument(
        "--worst", type=int, default=0, metavar="N", help="print the N worst places"
    )
    options = parser.parse_args()
    print_language(measure_language(parse_modules(options.folder.resolve())), options.worst)


if __name__ == "__main__":
    main()
