"""Equations of MathML and Office Math as LaTeX."""

from __future__ import annotations

import pytest
from lxml import etree

from tgraph.ingest.equations import convert_mathml, convert_office_math

SPACE = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def mathml(content: str) -> str:
    return convert_mathml(etree.fromstring(f"<math>{content}</math>"))


def office(content: str) -> str:
    content = content.replace("<", "<m:").replace("<m:/", "</m:").replace("val=", "m:val=")
    return convert_office_math(etree.fromstring(f'<m:oMath xmlns:m="{SPACE}">{content}</m:oMath>'))


def letters(text: str) -> str:
    return f"<r><t>{text}</t></r>"


@pytest.mark.parametrize(
    ("content", "latex"),
    [
        ("<mi>x</mi><mo>=</mo><mn>2</mn>", "x = 2"),
        ("<msup><mi>r</mi><mn>2</mn></msup><mi>π</mi>", r"r^{2} \pi"),
        (
            "<semantics><mi>x</mi><annotation encoding='application/x-tex'>\\bar x</annotation>"
            "</semantics>",
            r"\bar x",
        ),
        ("<mi>sin</mi><mo>&#8289;</mo><mi>x</mi>", "sin x"),
        ("", ""),
        ("<unknown>x</unknown>", ""),
    ],
)
def test_mathml(content: str, latex: str):
    assert mathml(content) == latex


@pytest.mark.parametrize(
    ("content", "latex"),
    [
        (letters("E=mc"), "E = m c"),
        (
            f"<f><num>{letters('1')}</num><den>{letters('2.5')}</den></f>",
            r"\frac{1}{2.5}",
        ),
        (
            "<f><fPr><type val='lin'/></fPr>"
            f"<num>{letters('a')}</num><den>{letters('b')}</den></f>",
            "a / b",
        ),
        (f"<rad><deg/><e>{letters('x')}</e></rad>", r"\sqrt{x}"),
        (f"<rad><deg>{letters('3')}</deg><e>{letters('x')}</e></rad>", r"\sqrt[3]{x}"),
        (
            f"<nary><naryPr><chr val='∑'/></naryPr><sub>{letters('n=1')}</sub>"
            f"<sup>{letters('∞')}</sup><e>{letters('n')}</e></nary>",
            r"\sum_{n = 1}^{\infty} n",
        ),
        (f"<d><e>{letters('x')}</e><e>{letters('y')}</e></d>", "( x | y )"),
        (f"<d><dPr><begChr val='['/><endChr val=']'/></dPr><e>{letters('x')}</e></d>", "[ x ]"),
        (f"<acc><accPr><chr val='̅'/></accPr><e>{letters('x')}</e></acc>", r"\bar{x}"),
        (f"<sSub><e>{letters('x')}</e><sub>{letters('i')}</sub></sSub>", "x_{i}"),
        (f"<func><fName>{letters('log')}</fName><e>{letters('x')}</e></func>", "log x"),
        (
            f"<m><mr><e>{letters('a')}</e><e>{letters('b')}</e></mr></m>",
            r"\begin{matrix} a & b \end{matrix}",
        ),
        (
            "<d><dPr><begChr val='{'/><endChr val=''/></dPr><e><eqArr>"
            f"<e>{letters('x')}</e><e>{letters('y')}</e></eqArr></e></d>",
            r"\{ \begin{matrix} x \\ y \end{matrix}",
        ),
        ("<r><rPr><nor/></rPr><t>where it rains</t></r>", r"\text{where it rains}"),
    ],
)
def test_office_math(content: str, latex: str):
    assert office(content) == latex


def test_equations_nested_without_end_are_not_converted():
    deep = "<mrow>" * 240 + "<mi>x</mi>" + "</mrow>" * 240
    assert mathml(deep) in ("", "x")
