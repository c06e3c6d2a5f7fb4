"""Language detection by letters and common words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Literal as Choice

from tgraph.resources import load_tables, word_set

Language = Choice["en", "zh", "other"]
UNDETERMINED = "und"
"""What BCP 47 calls a language that isn't known."""

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_ARABIC = re.compile(r"[\u0621-\u064a]")
_PERSIAN_OR_URDU = re.compile(r"[پچژگکیےٹڈڑںھ]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_]+")
_ASCII_LETTERS = re.compile(r"[A-Za-z]+")
_ENGLISH = word_set("languages", "english")
_OTHERS = word_set("languages", "others") - _ENGLISH
_LISTED = ("de", "fr", "es")
"""Languages in Latin letters that have lists of their own."""
_STOP_WORDS = {code: frozenset(load_tables("languages")[code]["stop"].split()) for code in _LISTED}
_MARKS = {"de": "äöüß", "fr": "çêëîïôœû", "es": "ñ¿¡"}
"""Letters that no other of these languages has, or hardly."""
_ENOUGH = 12


def language_of(text: str) -> Language:
    """Return ``en``, ``zh`` or ``other``; Latin text without signs of another language counts
    as English."""
    sample = text[:20_000]
    letters = sum(map(str.isalpha, sample))
    if not letters:
        return "en"
    if len(_HAN.findall(sample)) > 0.3 * letters:
        return "other" if len(_KANA_OR_HANGUL.findall(sample)) > 0.05 * letters else "zh"
    ascii_letters = sum(map(len, _ASCII_LETTERS.findall(sample)))
    if ascii_letters < 0.7 * letters:
        return "other"
    words = [word.lower() for word in _WORD.findall(sample)]
    english = sum(word in _ENGLISH for word in words)
    foreign_count = sum(word in _OTHERS for word in words)
    if len(words) < _ENOUGH:
        return "en" if english >= foreign_count else "other"
    many = 0.06 * len(words)
    if english > foreign_count and english >= many:
        return "en"
    # Code, tables and lists have no stop words at all: they are read as English.
    return "other" if foreign_count >= many else "en"


def detect_language(text: str) -> str:
    """Return a text's language: ``en`` and ``zh`` as in ``language_of``, else ``ar`` by letters,
    ``de``, ``fr`` or ``es`` by common words, else ``other``."""
    language = language_of(text)
    if language != "other":
        return language
    sample = text[:20_000].lower()
    if _is_arabic(sample):
        return "ar"
    words = [_strip_accents(word) for word in _WORD.findall(sample)]
    scores = {
        code: sum(word in stop for word in words) + sum(map(sample.count, _MARKS[code]))
        for code, stop in _STOP_WORDS.items()
    }
    best = max(scores, key=lambda code: (scores[code], code))
    enough = scores[best] >= max(1, 0.3 * len(words))
    alone = sum(score == scores[best] for score in scores.values()) == 1
    return best if enough and alone else "other"


def _is_arabic(sample: str) -> bool:
    """Return whether most letters are Arabic's own, and hardly one of its neighbours'."""
    arabic = len(_ARABIC.findall(sample))
    others = len(_PERSIAN_OR_URDU.findall(sample))
    return 2 * arabic > sum(map(str.isalpha, sample)) and 50 * others < arabic


def identify_language(text: str) -> str:
    """Return a text's language as a tag: as ``detect_language``, else ``ja`` or ``ko``, else
    undetermined with the script (``und-Cyrl``)."""
    code = detect_language(text)
    if code != "other":
        return code
    sample = text[:20_000]
    if _KANA.search(sample):
        return "ja"
    if _HANGUL.search(sample):
        return "ko"
    letters = filter(str.isalpha, sample)
    scripts = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    return f"{UNDETERMINED}-{_script_codes().get(scripts.most_common(1)[0][0], 'Zyyy')}"


def display_language(tag: str, language: str) -> str:
    """Return the name of a tag's language, or else of the tag's script, in another language."""
    from babel import Locale

    code, _, script = tag.partition("-")
    locale = Locale(language)
    name = locale.scripts.get(script)
    if language == "en" and code == UNDETERMINED:
        return f"a language in {name} script" if name and script != "Latn" else "another language"
    return name if name and script != "Latn" else str(locale.languages[code])


@cache
def _script_codes() -> Mapping[str, str]:
    """Return ISO 15924 codes by the first word of the names of the script's characters."""
    from babel import Locale

    return {name.upper(): code for code, name in Locale("en").scripts.items()}


def signs_of_english(text: str) -> int:
    """Return the number of words among the commonest English words."""
    return sum(word.lower() in _ENGLISH for word in _WORD.findall(text))


def _strip_accents(word: str) -> str:
    parts = unicodedata.normalize("NFD", word)
    return "".join(c for c in parts if not unicodedata.combining(c)).replace("ß", "ss")
