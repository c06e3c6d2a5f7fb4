"""User SPARQL guard: no network access, no file access, no writing in read queries.

A tokenizer that knows strings, IRIs, comments and codepoint escapes (SPARQL 1.2, section 19)
decides; nothing is guessed from substrings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tgraph.errors import QueryError

_TOKEN = re.compile(
    r"""
      (?P<comment>\#[^\r\n]*)
    | (?P<string>'''(?:(?:'|'')?(?:[^'\\]|\\.))*'''
        | \"\"\"(?:(?:"|"")?(?:[^"\\]|\\.))*\"\"\"
        | '(?:[^'\\\r\n]|\\.)*'
        | "(?:[^"\\\r\n]|\\.)*")
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*(?:\\[uU][0-9A-Fa-f]+[^<>"{}|^`\\\x00-\x20]*)*>)
    | (?P<variable>[?$]\w+)
    | (?P<language>@[A-Za-z]+(?:--?[A-Za-z0-9]+)*)
    | (?P<name>[^\W\d]?[\w.\-]*:(?:[\w:.\-]|%[0-9A-Fa-f]{2}|\\[^uU])*)
    | (?P<word>[^\W\d]\w*)
    | (?P<escape>\\[uU])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")

QUERY_FORMS = ("SELECT", "CONSTRUCT", "DESCRIBE", "ASK")
UPDATE_FORMS = (
    "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH",
)  # fmt: skip
_REACHING = {
    "SERVICE": "A query may not reach other servers (SERVICE).",
    "LOAD": "An update may not load data from other places (LOAD).",
}


def words(text: str) -> Iterator[str]:
    """The bare words of a query in upper case: keywords, ``a``, function names.

    ``QueryError`` for a codepoint escape outside strings and IRIs, where it could spell a keyword.
    """
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "escape":
            raise QueryError(
                "Codepoint escapes (\\u) are allowed in strings and IRIs only.",
                "Write the character itself.",
            )
        if token.lastgroup == "word":
            yield token[0].upper()


def check_query(text: str, *, update: bool = False) -> None:
    """Raise ``QueryError`` for a forbidden query or, with ``update``, a forbidden update.

    The text is checked both unchanged and with codepoint escapes resolved, because engines
    resolve escapes at different times."""
    for spelling in {text, resolve_escapes(text)}:
        query_words = list(words(spelling))
        for word, problem in _REACHING.items():
            if word in query_words:
                raise QueryError(problem, "Bring the data into the graph with `tgraph index`.")
    form = next((w for w in words(text) if w in (*QUERY_FORMS, *UPDATE_FORMS)), "")
    if form in UPDATE_FORMS and not update:
        raise QueryError(
            f"The text is an update ({form}), and queries only read.",
            "`tgraph sparql --update` changes the graph.",
        )
    if form in QUERY_FORMS and update:
        raise QueryError(f"The text is a query ({form}), not an update.")


def measure_structure(text: str) -> tuple[int, int]:
    """Return how deep the brackets of a query nest, and how many tokens the query has beside
    strings, IRIs and comments: both bound the time in which a parser reads the query."""
    depth, deepest, tokens = 0, 0, 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup in ("comment", "string", "iri") or token[0].isspace():
            continue
        tokens += 1
        depth += (token[0] in "([{") - (token[0] in ")]}")
        deepest = max(deepest, depth)
    return deepest, tokens


def resolve_escapes(text: str) -> str:
    """Return a text with the characters in place of their codepoint escapes."""
    return _ESCAPE.sub(_decode_escape, text)


def gives_triples(text: str) -> bool:
    """Tell whether a query returns triples (CONSTRUCT or DESCRIBE)."""
    form = next((w for w in words(text) if w in QUERY_FORMS), "")
    return form in ("CONSTRUCT", "DESCRIBE")


def _decode_escape(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
