"""Follow-up detection: does a question need earlier turns to be understood?

Signs are closed word classes (pronouns, demonstratives, connectives), missing parts of the
question, and things named in earlier turns. In doubt, earlier turns count as needed: searching
with earlier turns costs some precision, while a question cut off from its subject can't be
answered at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tgraph.ingest.languages import detect_language
from tgraph.model import Turn
from tgraph.resources import load_tables, word_set
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, terms, words
from tgraph.retrieve.text.lexicon import get_lexicon
from tgraph.retrieve.text.question_analysis import telling_words
from tgraph.retrieve.text.question_form import is_of_the_whole

_PRONOUNS = word_set("questions", "pronouns")
_POINTING = word_set("questions", "pointing")
_TAKEN_UP = word_set("questions", "taken_up")
_JOINING = word_set("questions", "joining")
_DOCUMENTS = word_set("questions", "documents")
_REQUESTS = word_set("questions", "requests")
_POSSESSIVE = frozenset(("his", "her", "its", "their"))
_BEING = frozenset(("is", "are", "was", "were", "be", "been"))
_ASKING = frozenset(
    ("who", "whom", "whose", "what", "which", "when", "where", "why", "how", "what's", "who's")
)
_VERBAL = _BEING | frozenset(
    ("do", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should", "may")
)
_SAYS_ENOUGH = 2
"""Words that tell, of a question without a name."""

_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[,;:]")
_NAME = re.compile(r"[^\W\d_a-z]")
_GOES_ON = re.compile(r"^\W*(?:and|but|or|so|nor|yet|then|because|plus)\b", re.IGNORECASE)
_TURNS_TO = re.compile(r"^\W*(?:what|how) about\b", re.IGNORECASE)
_ONE = re.compile(
    r"\b(?:which|the|this|that|other|first|second|third|last) ones?\b(?! (?:that|who|which|of|in))"
    r"|\bthe others?\W*$|\bnext\W*$",
    re.IGNORECASE,
)
_EMPTY_IT = re.compile(
    r"\b(?:is|was) it\b[^?]*\b(?:that|who|to)\b|\bit (?:is|was)\b[^?]*\b(?:that|who|to)\b"
    r"|\bit takes?\b[^?]*\bto\b|\bwhat time (?:is|was) it\b",
    re.IGNORECASE,
)
_DEFINITE = re.compile(r"\bthe ((?:[a-z][\w-]* ){0,2}?[a-z][\w-]*)(?=(?: (\w+))?)")
_RESTRICTING = frozenset(
    ("of", "that", "who", "whom", "whose", "which", "where", "called", "named")
)


def stands_alone(text: str, turns: Sequence[Turn]) -> bool:
    """Check whether a question can be understood without earlier turns; never true for unknown
    languages."""
    code = detect_language(text)
    if code == "en":
        return not _needs_turns(text, turns)
    return code in _ABROAD and not _needs_abroad(text, code)


def _needs_turns(text: str, turns: Sequence[Turn]) -> bool:
    goes_on = _GOES_ON.search(text) or _TURNS_TO.search(text)
    if goes_on or (_ASKING | _VERBAL | _REQUESTS).isdisjoint(words(text)) or _points_back(text):
        return True
    names = [token for _, token in _names_at(_TOKEN.findall(text))]
    if is_of_the_whole(text, names):
        return False
    return not names and (_says_little(text) or _is_given(text, turns))


def _says_little(text: str) -> bool:
    return len(set(telling_words(text))) < _SAYS_ENOUGH


def _names_at(tokens: Sequence[str]) -> list[tuple[int, str]]:
    """The words written as names with their positions, the first word aside."""
    numbered_tokens = list(enumerate(tokens))[1:]
    return [(at, t) for at, t in numbered_tokens if _NAME.match(t) and t.lower() not in STOP_WORDS]


def _points_back(text: str) -> bool:
    """Check a text for words referring back to something unnamed."""
    if _ONE.search(text):
        return True
    tokens = _TOKEN.findall(text)
    low = [token.lower().replace("’", "'").removesuffix("'s") for token in tokens]
    empty = bool(_EMPTY_IT.search(text))
    return any(
        _is_anaphor(low, at) and not (empty and low[at] == "it") and not _is_resolved(tokens, at)
        for at in range(len(low))
    )


def _is_anaphor(low: Sequence[str], at: int) -> bool:
    word, after = low[at], low[at + 1] if at + 1 < len(low) else ""
    before = low[at - 1] if at else ""
    if word in _POINTING:
        return _is_pointing(word, before, after)
    if word == "there":
        return before not in _BEING and after not in _BEING
    return word in _PRONOUNS or word in _TAKEN_UP


def _is_pointing(word: str, before: str, after: str) -> bool:
    """Check whether a demonstrative points back to earlier text.

    Demonstratives before document nouns and forward references don't count; nor does "that" as
    a conjunction, following a noun, adjective or verb."""
    if after in _DOCUMENTS or after in ("who", "that", "which", "of", "as"):
        return False
    return word != "that" or not before or not after or before in STOP_WORDS


def _is_resolved(tokens: Sequence[str], at: int) -> bool:
    """Check whether a pronoun's referent precedes it in the text.

    Possible referents are a name in another clause (for possessives also in the same clause),
    or a noun with an article in another clause."""
    if tokens[at].lower() not in _PRONOUNS:
        return False
    low = [token.lower() for token in tokens[:at]]
    ends = [n for n in range(1, at) if low[n] in _JOINING or not low[n][0].isalnum()]
    name_positions = [n for n, _ in _names_at(tokens) if n < at]
    if name_positions and (low and tokens[at].lower() in _POSSESSIVE):
        return True
    nouns = [n + 1 for n in range(at - 1) if low[n] in ("the", "a", "an")]
    return any(n < end for n in (*name_positions, *nouns) for end in ends)


def _is_given(text: str, turns: Sequence[Turn]) -> bool:
    """Check whether a definite noun phrase without further restriction was named in an earlier
    turn."""
    turn_terms = {term for turn in turns for term in terms(f"{turn.question} {turn.answer}")}
    for match in _DEFINITE.finditer(text):
        noun = [word for word in match[1].split() if word not in STOP_WORDS]
        if match[2] not in _RESTRICTING and noun and turn_terms.issuperset(map(stem, noun)):
            return True
    return False


# --- other languages ---


_ABROAD: Sequence[str] = tuple(
    code for code, table in load_tables("languages").items() if "taken_up" in table
)


def _needs_abroad(text: str, code: str) -> bool:
    """Check whether a foreign-language question needs earlier turns, judging by referring
    words, question beginning and term count."""
    read, table = get_lexicon(code), load_tables("languages")[code]
    question_words = read.words(text)
    if code == "zh":
        return (
            _has_any(text, table["taken_up"])
            or len(read.extract_content_stems(text)) < _SAYS_ENOUGH
        )
    going_on: Callable[[str], bool] = frozenset(table["going_on"].split()).__contains__
    taken_up = frozenset(table["taken_up"].split())
    if not question_words or going_on(question_words[0]) or not taken_up.isdisjoint(question_words):
        return True
    return len(set(read.terms(text))) < _SAYS_ENOUGH


def _has_any(text: str, wanted: str) -> bool:
    return any(word in text for word in wanted.split())
