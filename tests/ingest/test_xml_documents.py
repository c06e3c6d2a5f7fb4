"""XML: articles in JATS as a reader sees them, any other XML by its elements' content."""

from __future__ import annotations

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document

ARTICLE = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "http://127.0.0.1:9/none.dtd">
<article xml:lang="en" xmlns:m="http://www.w3.org/1998/Math/MathML"><front><journal-meta>
<issn>1234-5678</issn><journal-title-group><journal-title>Tides</journal-title>
</journal-title-group></journal-meta><article-meta>
<article-id pub-id-type="doi">10.1/x</article-id><title-group>
<article-title>Of <italic>tides</italic></article-title></title-group><contrib-group>
<contrib contrib-type="author"><name><surname>Doe</surname><given-names>Ann</given-names></name>
<xref ref-type="aff">1</xref></contrib><contrib contrib-type="editor"><name><surname>No</surname>
<given-names>Ed</given-names></name></contrib></contrib-group>
<aff><label>1</label><institution>Sea Institute</institution></aff><pub-date><day>7</day>
<month>6</month><year>2020</year></pub-date><abstract><p>Tides rise.</p></abstract></article-meta>
</front><body><sec><label>1</label><title>Method</title><p>We saw<sup><xref>1,2</xref></sup> it
<fn><p>In Kiel.</p></fn> and <inline-formula><alternatives><m:math><m:mi>y</m:mi></m:math>
<tex-math>\\documentclass{x}\\begin{document}$x^2$\\end{document}</tex-math></alternatives>
</inline-formula>.</p><sec><title>Ships</title><list list-type="order"><list-item><p>Fram</p>
</list-item></list><table-wrap><label>Table 1</label><caption><title>Ships</title></caption><table>
<thead><tr><th>Ship</th><th>Built</th></tr></thead><tbody><tr><td>Fram</td><td>1892</td></tr>
</tbody></table><table-wrap-foot><fn><label>a</label><p>By Archer.</p></fn></table-wrap-foot>
</table-wrap><fig><label>Figure 1</label><caption><title>The coast</title><p>It is long.</p>
</caption><graphic/></fig><disp-formula><label>(1)</label><m:math><m:mfrac><m:mi>a</m:mi>
<m:mn>2</m:mn></m:mfrac></m:math></disp-formula></sec></sec></body><back><ref-list><ref>
<label>1</label><element-citation><person-group><name><surname>Roe</surname><given-names>J</given-names>
</name><etal/></person-group><article-title>On waves</article-title><source>J Sea</source>
<year>1999</year><volume>3</volume><issue>2</issue><fpage>10</fpage><lpage>12</lpage>
</element-citation></ref><ref><label>2</label><mixed-citation>Poe K. (2001) Foam. Sea Press, pp. 3.
</mixed-citation></ref></ref-list></back></article>"""


def read(data: str, name: str = "a.xml") -> tuple[str, Document]:
    document = load(data.encode(), name)
    assert document.report is not None
    assert not document.report.warnings, document.report
    return document.pages[0].text, document


def test_an_article_is_read_in_order() -> None:
    text, document = read(ARTICLE, "a.nxml")
    assert text == (
        "# Of tides\n\nAuthors: Ann Doe\nJournal: Tides\nPublished: 2020-06-07\nDOI: 10.1/x\n\n"
        "1 Sea Institute\n\n## Abstract\n\nTides rise.\n\n## 1 Method\n\n"
        "We saw[1,2] it [1] and $x^2$.\n\n[1] In Kiel.\n\n### Ships\n\n1. Fram\n\n"
        "Table 1. Ships\n\nShip | Built\nFram | 1892\n\n[a] By Archer.\n\n"
        "Figure 1. The coast\n\nIt is long.\n\n[image: image]\n\n$\\frac{a}{2}$ (1)\n\n"
        "## References\n\n1 Roe J, et al. (1999). On waves. J Sea 3(2): 10–12.\n"
        "2 Poe K. (2001) Foam. Sea Press, pp. 3."
    )
    assert document.title == "Of tides"
    assert document.metadata == {"author": "Ann Doe", "date": "2020-06-07", "language": "en"}
    assert document.report is not None
    assert {loss.kind for loss in document.report.losses} == {"image", "field of metadata"}
    assert document.report.units[1].unit == "formulas"
    found = segments(text, "", document.pages[0].blocks)
    assert [s.kind for s in found][-2:] == ["reference", "reference"]
    assert "Ship: Fram; Built: 1892" in [segment.text for segment in found]


def test_other_xml_is_read_by_its_content() -> None:
    text, document = read(
        "<book xmlns='http://docbook.org/ns/docbook'><title>Pumps</title><chapter><title>Use</title>"
        "<para>Open the <emphasis>valve</emphasis>.<footnote><para>Slowly.</para></footnote></para>"
        "<itemizedlist><listitem><para>One</para></listitem></itemizedlist>"
        "<table><title>Sizes</title><tgroup><thead><row><entry>Model</entry><entry>Bar</entry></row>"
        "</thead><tbody><row><entry>S</entry><entry>40</entry></row></tbody></tgroup></table>"
        "<programlisting>a = 1\n  b</programlisting><maker>"
        "<name>Holm</name><city>Kiel</city></maker>"
        "<!-- no --></chapter></book>"
    )
    assert text == (
        "# Pumps\n\n## Use\n\nOpen the valve.[1]\n\n[1] Slowly.\n\n- One\n\nSizes\n\n"
        "Model | Bar\nS | 40\n\n```\na = 1\n  b\n```\n\nmaker: name: Holm; city: Kiel"
    )
    assert document.report is not None
    assert "generic XML" in document.report.reader


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<note-text>In <em>most</em> seas <x><y>the</y></x> tide<z>s</z> rise.</note-text>",
         "In most seas the tides rise."),
        ("<w><w1>H<sub>2</sub>O at 10<sup>6</sup> m</w1> and 5<y>m</y></w>",
         "H2O at 10^6 m and 5m"),
        ("<p>OR<sub>B</sub><sup>3</sup> and SO<sub>4</sub><sup>2-</sup></p>", "ORB^3 and SO4^2-"),
        ("<r><by><n><s>Doe</s><f>A</f></n>, <n><s>Roe</s><f>J</f></n></by>, <t>Tides</t>.</r>",
         "Doe A, Roe J, Tides."),
        ("<q1>As in <ref1><p>claim 1</p></ref1> above.</q1>", "As in claim 1 above."),
        ("<c><k>1</k>. A pump with:<claim-text>a valve;</claim-text>"
         "<claim-text>a rod.</claim-text></c>", "1. A pump with:\n\na valve;\n\na rod."),
        ("<para>The <indexterm><primary>cat</primary></indexterm>cat sees <xref href='a'/>.</para>",
         "The cat sees [ref: a]."),
        ("<parml><plentry><pt>--in=<var>file</var></pt><pd>The input.</pd></plentry></parml>",
         "--in=file: The input."),
        ("<bibl>Doe, <title>Tides</title>, Kiel.</bibl>", "Doe, Tides, Kiel."),
        ("<biblStruct><author><f>Ann</f><s>Doe</s></author><title>Tides</title></biblStruct>",
         "Ann Doe, Tides."),
        ("<description>&lt;p&gt;Two &lt;b&gt;tides&lt;/b&gt; a day.&lt;/p&gt;"
         "&lt;script&gt;run()&lt;/script&gt;</description>", "Two tides a day."),
        ("<p>&agr;<hi>j</hi> is &Ohgr;</p>", "αj is Ω"),
    ],
)  # fmt: skip
def test_running_text_is_one_block_in_any_vocabulary(body: str, text: str) -> None:
    assert read(f"<!DOCTYPE doc SYSTEM 'x.dtd'><doc>{body}</doc>")[0] == text


def test_records_of_values_stand_on_a_line_or_in_a_table() -> None:
    ships = "<s><name>Fram</name><y>1892</y></s><s><name>Gauss</name><y>1901</y></s>"
    assert read(f"<ships>{ships}</ships>")[0] == "name | y\nFram | 1892\nGauss | 1901"
    cited = "<c><doc><n>1</n><d>1884</d></doc><by>Jones et al.</by></c>"
    assert read(f"<refs>{cited}{cited.replace('1', '2')}</refs>")[0] == (
        "- c: n: 1; d: 1884; by: Jones et al.\n- c: n: 2; d: 2884; by: Jones et al."
    )


def test_text_that_is_wrapped_piece_by_piece_is_joined() -> None:
    patent = (
        "<PATDOC><B540><STEXT><PDAT>Pump</PDAT></STEXT></B540><PARA><PTEXT><PDAT>An array of N"
        "</PDAT><HIL><SB><PDAT>1 </PDAT></SB></HIL><PDAT>rows in </PDAT><FGREF><PDAT>FIG. 3</PDAT>"
        "</FGREF><PDAT> and 10</PDAT><SP><PDAT>6</PDAT></SP><PDAT>.</PDAT></PTEXT></PARA></PATDOC>"
    )
    assert read(patent)[0] == "# Pump\n\nAn array of N1 rows in FIG. 3 and 10^6."


def test_blocks_that_only_the_document_sets_apart_are_doubtful() -> None:
    document = load(
        b"<doc><step1>Open the pump:\n<aside1>Wear gloves, they help.</aside1>\n"
        b"Then close it.</step1></doc>",
        "a.xml",
    )
    assert document.report is not None
    assert document.pages[0].text == ("Open the pump:\n\nWear gloves, they help.\n\nThen close it.")
    assert "aside1" in document.report.warnings[0]


def test_entities_are_named_and_never_expanded() -> None:
    text, document = read(
        '<!DOCTYPE a SYSTEM "a.dtd" [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
        "<a><p>Caf&eacute; &b; here.</p></a>"
    )
    assert text == "Café [entity: b] here."
    assert document.report is not None
    assert [loss.kind for loss in document.report.losses] == ["entity"]


def test_rdf_is_told_apart_and_xhtml_is_read_as_html() -> None:
    rdf = '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    with pytest.raises(IngestError, match="tgraph import"):
        load(rdf.encode(), "a.xml")
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Text.</p></body></html>'
    assert read(page)[0] == "Text."


BOMB = "".join(
    f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha" * 10}">' for n in range(12)
)  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        "<a", "<a></b>", "<a/>", "<a>" * 5000, "<a>\0</a>", f"<!DOCTYPE a [{BOMB}]><a>&e11;</a>",
        "<article><front/></article>", "<a><table><tr/></table></a>",
        '<a b="' + "x" * 11_000_000 + '"/>',
    ],
)  # fmt: skip
def test_spoilt_xml_is_an_error(data: str) -> None:
    with pytest.raises(IngestError):
        load(data.encode(), "a.xml")


@pytest.mark.parametrize(
    "part", ["<sec><title>t</title>", "<list><list-item>", "<fn><p>x", "<alternatives>"]
)
def test_deep_articles_are_read(part: str) -> None:
    names = [name.strip("<>") for name in part.replace(">", "> ").split() if name[0] == "<"]
    names = [n for n in names if "/" not in n and not n.startswith("title")]
    closing = "".join(f"</{name}>" for name in reversed(names))
    depth = 200 // max(1, len(names))
    data = f"<article><body><p>Text.</p>{part * depth}{closing * depth}</body></article>"
    assert load(data.encode(), "a.xml").pages[0].text.startswith("Text.")
