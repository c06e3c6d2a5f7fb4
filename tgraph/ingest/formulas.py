"""Formulas of documents as LaTeX."""

from __future__ import annotations

from lxml import etree

from tgraph.ingest.base import storable
from tgraph.rendering import collapse_whitespace


def latex_of_mathml(math: etree._Element) -> str:
    """Return a formula in MathML as LaTeX, by the package mathml-to-latex; of a formula that the
    package can't read, its text. A formula that carries its TeX source keeps that source."""
    for annotation in math.iter("{*}annotation"):
        if annotation.get("encoding") in ("application/x-tex", "TeX", "LaTeX") and annotation.text:
            return collapse_whitespace(storable(annotation.text))
    etree.strip_elements(math, "{*}annotation", "{*}annotation-xml", with_tail=False)
    plain = collapse_whitespace(storable("".join(math.itertext())))
    from mathml_to_latex.converter import MathMLToLaTeX

    try:
        latex = MathMLToLaTeX().convert(_without_prefixes(math))
    except Exception:  # the package raises whatever its parser meets
        return plain
    return collapse_whitespace(storable(latex)) or plain


def _without_prefixes(math: etree._Element) -> str:
    for element in math.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    etree.cleanup_namespaces(math)
    return str(etree.tostring(math, encoding="unicode", with_tail=False))
