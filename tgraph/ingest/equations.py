"""Equations of MathML and of Office Math (OMML) as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from tgraph.rendering import collapse_whitespace

OFFICE_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_TEX = frozenset(("application/x-tex", "TeX", "LaTeX"))
_FUNCTIONS = (
    *("arccos", "arcsin", "arctan", "argmax", "argmin", "cosh", "sinh", "tanh", "cos", "cot"),
    *("csc", "det", "dim", "exp", "gcd", "inf", "ker", "lim", "log", "max", "min", "sec", "sin"),
    *("sup", "tan", "ln"),
)
_TOKENS = re.compile(
    rf"(\d+(?:[.,]\d+)*)|([^\W\d_]{{5,}}|{'|'.join(_FUNCTIONS)}|[^\W\d_])|(\s+)|(.)", re.S
)
_BRACKET = r"\\?([()\[\]{}|])"
_LONE_BRACKET = re.compile(rf"\\left{_BRACKET}\s?\\right\.|\\left\.\s?\\right{_BRACKET}")
_UNSEEN = re.compile("[\u2061-\u2064\u200b]")
_PROPERTIES = re.compile(r"Pr$")


def convert_mathml(math: etree._Element) -> str:
    """Return the LaTeX of an element ``math``, empty where the element can't be converted."""
    for annotation in math.iter("{*}annotation", "annotation"):
        if annotation.get("encoding") in _TEX and annotation.text:
            return collapse_whitespace(annotation.text)
    if written := math.get("alttext"):
        return collapse_whitespace(written)
    return _write_latex(_copy_plain(math))


def convert_office_math(math: etree._Element) -> str:
    """Return the LaTeX of an element ``m:oMath``, empty where the element can't be converted."""
    root = etree.Element("math")
    root.append(_row(math))
    return _write_latex(root)


def _write_latex(math: etree._Element) -> str:
    from mathml_to_latex.converter import MathMLToLaTeX

    for table in list(math.iter("mtable")):  # the converter writes matrices in fences alone
        parent = table.getparent()
        if parent is not None and parent.tag != "mfenced":
            at = parent.index(table)
            parent.insert(at, _token("mi", r"\begin{matrix}"))
            parent.insert(at + 2, _token("mi", r"\end{matrix}"))
    try:
        latex = MathMLToLaTeX.convert(etree.tostring(math, encoding="unicode", with_tail=False))
    except Exception:  # the converter has no error class of its own
        return ""
    return collapse_whitespace(_LONE_BRACKET.sub(_write_bracket, _UNSEEN.sub("", latex)))


def _write_bracket(match: re.Match[str]) -> str:
    sign = match[1] or match[2]
    return f"\\{sign}" if sign in "{}" else sign


def _copy_plain(element: etree._Element) -> etree._Element:
    """Return a copy of an element and its descendants without namespaces and annotations."""
    copy = etree.Element(_local_name(element), dict(element.attrib.items()))
    copy.text = element.text
    for child in element:
        if isinstance(child.tag, str) and not _local_name(child).startswith("annotation"):
            copy.append(_copy_plain(child))
    return copy


def _local_name(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


# --- Office Math --------------------------------------------------------------------------------

_SCRIPTS = {
    "sSup": ("msup", "e", "sup"),
    "sSub": ("msub", "e", "sub"),
    "sSubSup": ("msubsup", "e", "sub", "sup"),
    "limLow": ("munder", "e", "lim"),
    "limUpp": ("mover", "e", "lim"),
}


def _row(parent: etree._Element | None) -> etree._Element:
    """Return the MathML of an element's parts as a row."""
    row = etree.Element("mrow")
    for child in () if parent is None else parent:
        if isinstance(child.tag, str):
            row.extend(_convert_part(child))
    return row


def _convert_part(part: etree._Element) -> Iterator[etree._Element]:
    name = _local_name(part)
    if _PROPERTIES.search(name):
        return
    if name == "r":
        yield from _convert_run(part)
    elif name in _SCRIPTS:
        tag, *names = _SCRIPTS[name]
        yield _element(tag, *(_row(_child(part, inner)) for inner in names))
    elif name in _CONVERTERS:
        yield from _CONVERTERS[name](part)
    else:
        yield from _row(part)


def _convert_run(run: etree._Element) -> Iterator[etree._Element]:
    text = "".join(t.text or "" for t in run.iter(f"{OFFICE_MATH}t"))
    if run.find(f"{OFFICE_MATH}rPr/{OFFICE_MATH}nor") is not None:
        yield _token("mtext", text)
        return
    for number, letter, space, sign in _TOKENS.findall(text):
        if not space:
            yield _token("mn" if number else "mi" if letter else "mo", number or letter or sign)


def _convert_fraction(part: etree._Element) -> Iterator[etree._Element]:
    over, under = _row(_child(part, "num")), _row(_child(part, "den"))
    if _property(part, "type") == "lin":
        yield from (over, _token("mo", "/"), under)
    elif _property(part, "type") == "noBar":
        yield _table([[over], [under]])
    else:
        yield _element("mfrac", over, under)


def _convert_root(part: etree._Element) -> Iterator[etree._Element]:
    degree, radicand = _row(_child(part, "deg")), _row(_child(part, "e"))
    yield _element("mroot", radicand, degree) if len(degree) else _element("msqrt", radicand)


def _convert_operator(part: etree._Element) -> Iterator[etree._Element]:
    sign = _token("mo", _property(part, "chr") or "∫")
    low, high = _row(_child(part, "sub")), _row(_child(part, "sup"))
    limits = [limit for limit in (low, high) if len(limit)]
    tag = "munderover" if len(limits) > 1 else "munder" if len(low) else "mover"
    yield _element(tag, sign, *limits) if limits else sign
    yield _row(_child(part, "e"))


def _convert_brackets(part: etree._Element) -> Iterator[etree._Element]:
    opening, closing = _property(part, "begChr"), _property(part, "endChr")
    yield _token("mo", "(" if opening is None else opening)
    for number, inner in enumerate(part.iterchildren(f"{OFFICE_MATH}e")):
        if number:
            yield _token("mo", _property(part, "sepChr") or "|")
        yield _row(inner)
    yield _token("mo", ")" if closing is None else closing)


def _convert_table(part: etree._Element) -> Iterator[etree._Element]:
    rows = [[_row(cell) for cell in row] for row in part.iterchildren(f"{OFFICE_MATH}mr")]
    yield _table(rows or [[_row(inner)] for inner in part.iterchildren(f"{OFFICE_MATH}e")])


def _convert_accent(part: etree._Element) -> Iterator[etree._Element]:
    default = {"acc": "^", "bar": "¯", "groupChr": "⏟"}[_local_name(part)]
    is_below = (_property(part, "pos") or ("bot" if default == "⏟" else "top")) == "bot"
    sign = _token("mo", _ACCENTS.get(_property(part, "chr") or default, default))
    yield _element("munder" if is_below else "mover", _row(_child(part, "e")), sign)


_ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯", "\u0305": "¯", "\u20d7": "→", "⏞": "⏞"}
_CONVERTERS = {
    "f": _convert_fraction,
    "rad": _convert_root,
    "nary": _convert_operator,
    "d": _convert_brackets,
    "m": _convert_table,
    "eqArr": _convert_table,
    **dict.fromkeys(("acc", "bar", "groupChr"), _convert_accent),
}


def _table(rows: Sequence[Sequence[etree._Element]]) -> etree._Element:
    if len(rows) == 1 and len(rows[0]) == 1:
        return rows[0][0]
    cells = ((_element("mtd", cell) for cell in row) for row in rows)
    return _element("mtable", *(_element("mtr", *row) for row in cells))


def _child(part: etree._Element, name: str) -> etree._Element | None:
    return part.find(OFFICE_MATH + name)


def _property(part: etree._Element, name: str) -> str | None:
    """Return the value of a property of a part; None where the part has no such property."""
    element = part.find(f"{OFFICE_MATH}{_local_name(part)}Pr/{OFFICE_MATH}{name}")
    return None if element is None else element.get(f"{OFFICE_MATH}val", "")


def _token(tag: str, text: str) -> etree._Element:
    token = etree.Element(tag)
    token.text = text
    return token


def _element(tag: str, *children: etree._Element) -> etree._Element:
    element = etree.Element(tag)
    element.extend(children)
    return element
