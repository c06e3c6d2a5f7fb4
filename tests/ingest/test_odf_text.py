"""ODT and ODP: what a person sees, in order; deletions and hidden text are left out and counted."""

from __future__ import annotations

import io
import zipfile

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document

NAMESPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office", "text": "text", "table": "table", "draw": "drawing",
        "style": "style", "presentation": "presentation", "svg": "svg-compatible",
        "fo": "xsl-fo-compatible",
    }.items()
)  # fmt: skip
NAMESPACES += (
    ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
STYLES = """
<style:style style:name="Gone"><style:text-properties text:display="none"/></style:style>
<style:style style:name="Struck">
 <style:text-properties style:text-line-through-style="solid"/></style:style>
<style:style style:name="Raised"><style:text-properties style:text-position="super 58%"/>
</style:style>
<style:style style:name="Unseen"><style:drawing-page-properties presentation:visibility="hidden"/>
</style:style>"""
FORMULA = """<math xmlns="http://www.w3.org/1998/Math/MathML"><mfrac><mi>a</mi><mn>2</mn></mfrac>
</math>"""


def packed(body: str, kind: str = "text", **parts: str) -> bytes:
    content = (
        f"<office:document-content {NAMESPACES}><office:automatic-styles>{STYLES}"
        f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        archive.writestr("content.xml", content)
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/").replace("_", " ") + ".xml", text)
    return stream.getvalue()


def read(body: str, **parts: str) -> tuple[str, Document]:
    document = load(packed(body, **parts), "a.odt")
    return document.pages[0].text, document


def loss_counts(document: Document) -> dict[str, int]:
    assert document.report is not None
    assert not document.report.warnings, document.report
    return {loss.kind: loss.count for loss in document.report.losses}


LISTS = f"""<office:document-styles {NAMESPACES}><office:styles>
<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>
<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>
</text:outline-style><text:list-style style:name="Steps">
<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>
<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"/>
</text:list-style><text:list-style style:name="Annex">
<text:list-level-style-number text:level="1" style:num-format="A" style:num-prefix="Annex "/>
</text:list-style><style:style style:name="Plain" style:list-style-name=""/></office:styles>
</office:document-styles>"""
MARGINS = f"""<office:document-styles {NAMESPACES}><office:master-styles>
<style:master-page style:name="Standard"><style:header><text:p>Norden Ltd.
</text:p></style:header><style:header-first><text:p>Norden Ltd.</text:p></style:header-first>
<style:footer><text:p><text:page-number>7</text:page-number></text:p><text:p>Secret</text:p>
</style:footer></style:master-page><style:master-page style:name="Unused"><style:header>
<text:p>Never shown</text:p></style:header></style:master-page></office:master-styles>
</office:document-styles>"""


def test_headings_and_items_have_their_numbers() -> None:
    def step(*texts: str, attributes: str = "") -> str:
        items = (f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in texts)
        return f'<text:list text:style-name="Steps" {attributes}>{"".join(items)}</text:list>'

    inner = "Mix</text:p>" + step("Stir").replace(' text:style-name="Steps"', "") + "<text:p>"
    text, _ = read(
        '<text:h text:outline-level="1">Scope</text:h><text:h text:outline-level="2">Ships</text:h>'
        '<text:h text:outline-level="1" text:style-name="Plain">Preface</text:h>'
        '<text:h text:outline-level="1">Terms</text:h>'
        + step("Heat", inner)
        + "<text:p>Wait.</text:p>"
        + step("Serve", attributes='text:continue-numbering="true"')
        + "<text:p>Anew:</text:p>"
        + step("Wash")
        + '<text:list text:style-name="Annex"><text:list-item><text:h text:outline-level="1">Ports'
        "</text:h></text:list-item></text:list>",
        styles=LISTS.replace("<office:master-styles>", "<!--").replace(
            "</office:master-styles>", "-->"
        ),
    )
    assert text == (
        "# 1 Scope\n\n## 1.1 Ships\n\n# Preface\n\n# 2 Terms\n\n1. Heat\n2. Mix\n  a) Stir\n\n"
        "Wait.\n\n3. Serve\n\nAnew:\n\n1. Wash\n\n# Annex A Ports"
    )


def test_heads_and_feet_of_pages_stand_once() -> None:
    text, document = read("<text:p>Body.</text:p>", styles=MARGINS)
    assert text == "Norden Ltd.\n\nBody.\n\nSecret"
    assert loss_counts(document) == {"running head": 1}


def test_headings_lists_and_tables_stand_in_order() -> None:
    text, document = read(
        '<text:h text:outline-level="2">Ships</text:h><text:p>They are<text:s text:c="2"/>two:'
        "</text:p><text:list><text:list-item><text:p>Fram</text:p><text:list><text:list-item>"
        "<text:p>her boat</text:p></text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Ship"
        "</text:p></table:table-cell><table:table-cell><text:p>Year</text:p></table:table-cell>"
        "</table:table-row></table:table-header-rows><table:table-row><table:table-cell><text:p>"
        "Fram</text:p></table:table-cell><table:table-cell><text:p>1892</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )
    assert text == (
        "## Ships\n\nThey are  two:\n\n- Fram\n  - her boat\n\nShip | Year\nFram | 1892"
    )
    assert document.title == "Ships"
    page = document.pages[0]
    assert segments(page.text, "", page.blocks)[-1].text == "Ship: Fram; Year: 1892"


def test_what_the_author_deleted_hid_or_struck_is_no_text() -> None:
    text, document = read(
        "<text:tracked-changes><text:changed-region><text:deletion><office:change-info>"
        "<dc:creator>Ann</dc:creator></office:change-info><text:p>not</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        '<text:p>It must be given<text:span text:style-name="Gone"> never</text:span> in '
        '<text:span text:style-name="Struck">five</text:span> ten days, 10'
        '<text:span text:style-name="Raised">6</text:span> units.</text:p>'
    )
    assert text == "It must be given in [struck: five] ten days, 10^6 units."
    assert loss_counts(document) == {"deleted passage": 1, "hidden text": 1}


def test_notes_comments_frames_and_formulas_are_read() -> None:
    text, document = read(
        "<text:p>The mill<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>Burnt in 1940.</text:p></text:note-body></text:note> stands at "
        '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>.'
        "<office:annotation><dc:creator>Bo</dc:creator><text:p>Check this.</text:p>"
        "</office:annotation><draw:frame><draw:text-box><text:p>In a box.</text:p>"
        "</draw:text-box></draw:frame><draw:frame><draw:image/><svg:desc>A map</svg:desc>"
        "</draw:frame></text:p>",
        Object_1__content=FORMULA,
    )
    assert text == (
        "The mill[1] stands at $\\frac{a}{2}$.\n\n[1] Burnt in 1940.\n\n[comment: Check this.]"
        "\n\nIn a box.\n\n[image: A map]"
    )
    assert loss_counts(document) == {"comment": 1, "image": 1}


def test_slides_are_pages_and_hidden_ones_are_left_out() -> None:
    slides = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>One</text:p>'
        "</draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box><text:p>Say "
        "this.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
        '<draw:page draw:style-name="Unseen"><draw:frame><draw:text-box><text:p>Draft</text:p>'
        "</draw:text-box></draw:frame></draw:page>"
    )
    document = load(packed(slides, "presentation"), "a.odp")
    assert [page.text for page in document.pages] == ["# One\n\n[notes] Say this.", ""]
    assert loss_counts(document) == {"hidden slide": 1}


@pytest.mark.parametrize(
    "content", ["<a", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "<a>" * 5000, "\0"]
)
def test_spoilt_content_is_an_error(content: str) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("content.xml", content)
    with pytest.raises(IngestError):
        load(stream.getvalue(), "a.odt")
