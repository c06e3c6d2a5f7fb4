"""Entity types of names and nouns, judged by their words."""

from __future__ import annotations

from functools import lru_cache

from tgraph.resources import load_tables, word_set

_TYPES = load_tables("entity_types")
_BY_NOUN: dict[str, str] = {
    noun: kind for kind, nouns in _TYPES["nouns"].items() for noun in nouns.split()
}
_TITLES_MALE, _TITLES_FEMALE, _OTHER_TITLES = (
    frozenset(_TYPES["titles"][key].split()) for key in ("male", "female", "other")
)
_TITLES = _TITLES_MALE | _TITLES_FEMALE | _OTHER_TITLES
_SHIP_PREFIXES = frozenset(_TYPES["prefixes"]["ship"].split())
_MALE_NAMES = word_set("first_names", "male", "more_male")
_FEMALE_NAMES = word_set("first_names", "female", "more_female")


@lru_cache(maxsize=50_000)
def kind_of_name(name: str, label: str = "") -> str:
    """Return a name's type: from its words if conclusive, otherwise the recogniser's label."""
    words = [word.strip(".,'’").lower() for word in name.split()]
    while len(words) > 1 and not any(map(str.isalpha, words[-1])):
        words.pop()
    if not words:
        return label
    if words[0] in _TITLES and len(words) > 1 and label != "work":
        return "person"
    if words[0] in _SHIP_PREFIXES and len(words) > 1:
        return "ship"
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    by_word = _BY_NOUN.get(head) or (_BY_NOUN.get(words[0]) if len(words) > 1 else None)
    several = _BY_NOUN.get(head.removesuffix("s"), "") if len(words) > 1 and not by_word else ""
    if several not in ("", "person") and label in ("person", ""):
        return several
    if by_word in (None, "person") or label in ("work", "person") or len(words) == 1:
        first = words[0] if len(words) > 1 else ""
        return label or ("person" if first in _MALE_NAMES or first in _FEMALE_NAMES else "")
    return by_word or label


@lru_cache(maxsize=10_000)
def kind_of_noun(noun: str) -> str:
    """Return the type denoted by a common noun (base form), blank if unknown."""
    return _BY_NOUN.get(noun.lower(), "")


@lru_cache(maxsize=10_000)
def kind_of_class(label: str) -> str:
    """Return the entity type matching an ontology class label, blank if unknown."""
    name = label.lower()
    alike = (kind for kind, synonyms in _TYPES["synonyms"].items() if name in synonyms.split())
    return name if name in _TYPES["nouns"] else kind_of_noun(name) or next(alike, "")


def nouns_of(kind: str) -> frozenset[str]:
    """Return common nouns denoting a type."""
    return frozenset(noun for noun, of in _BY_NOUN.items() if of == kind)


def denotes_person(noun: str) -> bool:
    """Tell whether a noun can describe a person: known nouns, or typical endings ("whaler",
    "geologist")."""
    return kind_of_noun(noun) == "person" or noun.endswith(("er", "or", "ist", "man", "ian", "ant"))


@lru_cache(maxsize=10_000)
def gender_of_name(name: str) -> str:
    """Return ``male``, ``female`` or blank text, judging by titles and first names."""
    words = [word.strip(".,'’").lower() for word in name.split()]
    title = words[0] if words else ""
    if title in _TITLES_FEMALE or title in _TITLES_MALE:
        return "female" if title in _TITLES_FEMALE else "male"
    first = words[1] if len(words) > 2 and title in _TITLES else title
    if first in _MALE_NAMES:
        return "male"
    return "female" if first in _FEMALE_NAMES else ""


def is_title(word: str) -> bool:
    return word.strip(".").lower() in _TITLES


def without_title(name: str) -> str:
    """Return a name without leading title: ``Robert Falcon Scott`` for ``Captain Robert Falcon
    Scott``.

    A single name keeps its title, and so does a phrase that is no name without it ("Queen of
    Sheba")."""
    words = name.split()
    while len(words) > 2 and is_title(words[0]) and not words[1][0].islower():
        words = words[1:]
    return " ".join(words)
