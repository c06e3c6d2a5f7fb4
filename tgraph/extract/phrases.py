"""Noun phrases as stretches of text: whole, without what only comments on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Token

_LEFT = frozenset(
    {"amod", "compound", "nummod", "nmod", "poss", "quantmod", "advmod", "npadvmod", "punct"}
)
_NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS", "CD"})
_BEFORE = frozenset({"DT", "PRP$", "WP$", ",", ":", "``", "''", "-LRB-"})
_LONGEST = 14
_LONGEST_CORE = 3
_MOST_CONJUNCTS = 20


def is_noun(token: Token) -> bool:
    return token.tag_ in _NOUNS


def conjuncts(token: Token, depth: int = 0) -> list[Token]:
    """The token and what is coordinated with it ("Scott, Wilson and Bowers"), at most 20."""
    found = [token]
    for child in token.children:
        if child.dep_ == "conj" and depth < 30 and (is_noun(child) or child.tag_ == token.tag_):
            found += conjuncts(child, depth + 1)
    return found[:_MOST_CONJUNCTS]


def phrase_bounds(head: Token, whole: bool = True) -> tuple[int, int]:
    """The tokens of the phrase from its first modifier to its head, or (whole) its last "of ...".

    Leading articles and possessive pronouns, appositions, relative clauses and coordinated phrases
    are left out. At most 14 tokens.
    """
    start = _left_edge(head)
    end = _right_edge(head, start + _LONGEST) if whole else head.i + 1
    return start, end


def phrase_text(head: Token) -> str:
    start, end = phrase_bounds(head)
    return _text(head, start, end)


def core_text(head: Token) -> str:
    """The head noun with at most two modifiers, enough to read "be capital of"."""
    start, end = phrase_bounds(head, whole=False)
    edge, start = start, max(start, end - _LONGEST_CORE)
    while start > edge and (not head.doc[start - 1].whitespace_ or head.doc[start].text == "-"):
        start -= 1
    while start < head.i and head.doc[start].dep_ in ("punct", "case"):
        start += 1
    return _text(head, start, end)


def _text(head: Token, start: int, end: int) -> str:
    return " ".join(head.doc[start:end].text.split()).strip(' ,;:"“”')


def _left_edge(head: Token) -> int:
    start = head.i
    for child in reversed(list(head.lefts)):
        if child.dep_ not in _LEFT or child.tag_ == "PRP$":
            break
        start = min(start, child.left_edge.i)
    while start < head.i and head.doc[start].tag_ in _BEFORE:
        start += 1
    return start


def _right_edge(head: Token, limit: int) -> int:
    end = head.i + 1
    for child in head.rights:
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
