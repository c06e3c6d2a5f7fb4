from __future__ import annotations

import csv
import hashlib
import io
import json
from html import escape
from pathlib import Path

import docx
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.paths import REPOSITORY
from tests.support.shared_data import shared
from tgraph.ingest.base import DEFAULT_LIMITS
from tgraph.ingest.chunk import chunk_document
from tgraph.ingest.files import load, readable_stem
from tgraph.ingest.segments import segments
from tgraph.model import Document

GOLDEN = "0f04a1d181b298bca57a15ba8480ae27a62a631c58b088990a7e9392ec3de1a1"
SENTENCES = st.sampled_from(
    [
        "Ada Lovelace wrote the first program. ",
        "Café, naïve, e\u0301 and 👩‍🚀 in one line; ",
        "今天天气很好。你好！ ",
        "مرحبا بالعالم؟ ",
        "Dr. Who (U.S.) paid $3.14.\n",
        "A | B : C ; D\n\n",
        "\u202eright to left\u202c ",
        "'quoted' \"text\" & <tags> # * _ ",
    ]
)
PROSE = st.lists(SENTENCES, min_size=1, max_size=12).map("".join)


def table(rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def workbook(rows: list[list[str]]) -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(out)
    return out.getvalue()


@pytest.fixture
def shared_text() -> Path:
    """A whole real book, where the shared data is at hand."""
    return shared("christmas_carol/mock_data.txt")


def files(text: str, word, book) -> dict[str, bytes]:
    """The same text as a real file of every format that can hold any text."""
    marked = "".join(f"<p>{escape(line)}</p>" for line in text.split("\n"))
    return {
        "a.txt": text.encode(),
        "a.md": f"# Head\n\n{text}".encode(),
        "a.html": f"<html><body><h1>Head</h1>{marked}</body></html>".encode(),
        "a.csv": table([["Who", "What"], ["Ada", text], ["Bob", text]]),
        "a.json": json.dumps([{"title": "One", "text": text}, {"deep": {"er": [text]}}]).encode(),
        "a.jsonl": (json.dumps({"text": text}) + "\n" + json.dumps({"n": 1})).encode(),
        "a.docx": word(text, "End."),
        "a.xlsx": workbook([["Who", "What"], ["Ada", text], ["Bob", text]]),
        "a.rst": f"Head\n====\n\n{text}\n".encode(),
        "a.adoc": f"= Head\n\n{text}\n".encode(),
        "a.epub": book(f"<h1>Head</h1>{marked}", "<h2>Next</h2><p>End.</p>"),
    }


def check_exact(document: Document) -> None:
    for page in document.pages:
        page.text.encode()
        assert "\0" not in page.text
        for heading in page.headings:
            assert page.text[heading.start :].lstrip("# ").startswith(heading.text)
    pages = {page.number: page.text for page in document.pages}
    for by in ("tokens", "sentences"):
        for chunk in chunk_document(document, size=30, overlap=5, by=by):
            assert pages[chunk.page][chunk.start : chunk.end] == chunk.text


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(40))
@given(text=PROSE)
def test_every_loader_gives_exact_chunks(word, book, text):
    for name, data in files(text, word, book).items():
        document = load(data, name)
        assert document.sha256 == hashlib.sha256(data).hexdigest()
        if not name.endswith(("json", "jsonl")):
            check_exact(document)
        for by in ("tokens", "sentences"):
            page = document.pages[0]
            for chunk in chunk_document(document, size=30, overlap=5, by=by):
                assert page.text[chunk.start : chunk.end] == chunk.text


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1), st.booleans())
def test_plain_text_is_stored_as_it_is(text, marked):
    text = f"x{text}\r\ny\n z\u2028 \r"
    data = (b"\xef\xbb\xbf" if marked else b"") + text.encode()
    for name in ("a.txt", "a.md", "notes"):
        assert load(data, name).pages[0].text == text


def test_only_one_byte_order_mark_is_taken_away():
    assert load(b"\xef\xbb\xbf\xef\xbb\xbfx", "a.txt").pages[0].text == "\ufeffx"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Le café était déjà fermé à Noël ; les garçons étaient fatigués.", "latin-1"),
        ("The café’s owner said “hello”. It cost £5 more than expected.", "cp1252"),
        ("Die Größe der Bäume überraschte die Männer. Schöne Grüße aus München.", "latin-1"),
        ("Привет, как дела? Сегодня хорошая погода в Москве.", "cp1251"),
        ("今天天气很好，我们去公园散步。中国的首都是北京，人口众多。", "gb18030"),
        ("今天天氣很好，我們去公園散步。臺灣的首都是臺北，人口眾多。", "big5"),
        ("今日は天気がとても良いので、公園へ散歩に行きました。", "shift-jis"),
        ("오늘은 날씨가 아주 좋아서 공원에 산책을 갔습니다.", "euc-kr"),
        ("Plain words and 今天 in sixteen bits.", "utf-16"),
        ("Plain words in sixteen bits without a mark.", "utf-16-le"),
        ("Plain words in sixteen bits the other way.", "utf-16-be"),
        ("Words in thirty-two bits: 你好 😀", "utf-32"),
        ("With a mark: é", "utf-8-sig"),
    ],
)
def test_encodings_are_detected(text, encoding):
    for repeat in (1, 9):
        whole = "\n".join([text] * repeat)
        assert load(whole.encode(encoding), "a.txt").pages[0].text == whole


def test_a_declared_encoding_is_believed():
    page = "<html><head><meta charset='iso8859-2'></head><p>Zażółć gęślą jaźń</p></html>"
    assert load(page.encode("iso8859-2"), "a.html").pages[0].text == "Zażółć gęślą jaźń"


def test_html_is_readable_text():
    source = """<!DOCTYPE html><html lang="en"><head><title> A &amp; B </title>
    <meta name="author" content="Jo"><style>p{}</style></head><body>
    <nav><ul><li>Home</li></ul></nav><h1>Main <em>title</em></h1>
    <p>Hello <b>bold</b>,
    world.<br>Second line</p><script>alert("no")</script>
    <ul><li>One<li>Two</ul>
    <table><tr><th>Name</th><th>Born</th></tr><tr><td>Ada</td><td>1815</td></tr></table>
    <table><tr><th>Died</th><td>1852</td></tr></table>
    <pre>  code
      more</pre><div hidden>gone</div><footer>(c)</footer></body></html>"""
    document = load(source.encode(), "a.html")
    (page,) = document.pages
    assert page.text == (
        "# Main title\n\nHello bold, world.\nSecond line\n\n- One\n- Two\n\nName | Born\nAda | 1815"
        "\n\nDied: 1852\n\n```\n  code\n      more\n```"
    )
    assert document.title == "A & B"
    assert document.metadata == {"language": "en", "author": "Jo"}
    assert [(h.text, h.level, h.start) for h in page.headings] == [("Main title", 1, 0)]


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("Endurance | Polar Voyages", "Endurance", "Endurance"),
        ("Marie Curie - Wikipedia", "Marie Curie", "Marie Curie"),
        ("The Fram (ship) – Polar Voyages", "The Fram", "The Fram (ship)"),
        ("Ships | Endurance | Voyages", "Endurance", "Ships | Endurance"),
        ("East - West", "Trade", "East - West"),
        ("Carl-Zeiss", "Carl", "Carl-Zeiss"),
        ("Polar | Voyages", "", "Polar | Voyages"),
    ],
)
def test_an_html_title_loses_the_name_of_the_site(title: str, heading: str, expected: str):
    page = f"<html><title>{title}</title><h1>{heading}</h1><h2>Polar</h2><p>Text.</p></html>"
    assert load(page.encode(), "a.html").title == expected


def test_html_that_is_all_navigation_keeps_it():
    assert load(b"<html><nav><p>Only this</p></nav></html>", "a.html").pages[0].text == "Only this"


def test_markdown_headings_and_front_matter():
    source = (
        "---\ntitle: 'My doc'\nauthor: Me\ndate: 2024-05-01\n---\n\n# H1 #\ntext\n\n"
        "```sh\n# no heading\n```\n\nSet *ext*\n---\n\n## **b** [l](x)\n#no\n"
    )
    document = load(source.encode(), "a.md")
    (page,) = document.pages
    assert page.text == source
    assert document.title == "My doc"
    assert document.metadata == {"author": "Me", "date": "2024-05-01"}
    assert [(h.text, h.level) for h in page.headings] == [("H1", 1), ("Set ext", 2), ("b l", 2)]
    assert [source[h.start :].split()[0] for h in page.headings] == ["#", "Set", "##"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_rows_stand_by_themselves(delimiter):
    rows = [["Name", "Born", "Note"], ["Ada", "1815", f"a{delimiter} b"], ["Bob", "", "two\nlines"]]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    (page,) = load(out.getvalue().encode(), "people.csv").pages
    noted = " ".join(f"a{delimiter} b".split())
    assert page.text == f"Name | Born | Note\nAda | 1815 | {noted}\nBob | two lines"
    read = segments(page.text, "text/csv", page.blocks)
    assert [s.text for s in read if s.kind == "row"] == [
        f"Name: Ada; Born: 1815; Note: {noted}",
        "Name: Bob; Note: two lines",
    ]


def test_json_is_rendered_with_paths():
    value = {
        "title": "T",
        "n": 1.50,
        "none": None,
        "people": [{"name": "Ada", "jobs": [{"at": "X"}]}],
    }
    document = load(json.dumps(value).encode(), "a.json")
    assert document.title == "T"
    assert document.pages[0].text == (
        "title: T; n: 1.5\n\npeople[1].name: Ada\npeople[1].jobs[1].at: X"
    )


def test_json_keeps_numbers_as_written_and_titles_its_records():
    source = b'[{"title": "A", "text": "one\\ntwo", "n": 1.10, "big": 1' + b"0" * 5000 + b"}]"
    page = load(source, "a.json").pages[0]
    assert "n: 1.10" in page.text
    assert page.text.endswith("1" + "0" * 5000)
    assert [h.text for h in page.headings] == ["A"]


def test_json_lines_under_either_name():
    for name in ("a.jsonl", "a.ndjson", "a.json"):
        assert load(b'{"a": 1}\n\n{"a": true}\n', name).pages[0].text == "a: 1\na: true"


def test_docx_keeps_the_order_of_paragraphs_and_tables():
    document = docx.Document()
    document.core_properties.author = "Ada"
    document.add_heading("Top", 0)
    document.add_paragraph("Before.")
    rows = document.add_table(2, 2)
    for index, text in enumerate(["Name", "Born", "Ada", "1815"]):
        rows.cell(index // 2, index % 2).text = text
    document.add_heading("Section", 2)
    for item in ("one", "two"):
        document.add_paragraph(item, style="List Bullet")
    out = io.BytesIO()
    document.save(out)
    loaded = load(out.getvalue(), "a.docx")
    (page,) = loaded.pages
    assert page.text == "# Top\n\nBefore.\n\nName | Born\nAda | 1815\n\n## Section\n\n- one\n- two"
    assert [(h.text, h.level) for h in page.headings] == [("Top", 1), ("Section", 2)]
    assert (loaded.title, loaded.metadata["author"]) == ("Top", "Ada")


def test_pdf_is_read_page_by_page(pdf):
    document = load(pdf("First (page).\nIts second line.", "Second page."), "some_report.pdf")
    assert [(page.number, page.text) for page in document.pages] == [
        (1, "First (page).\nIts second line."),
        (2, "Second page."),
    ]
    assert document.title == "Some report"
    check_exact(document)


def test_a_pdf_has_the_same_text_on_every_machine():
    document = load((REPOSITORY / "examples/antarctica/nimrod.pdf").read_bytes(), "nimrod.pdf")
    text = "\f".join(page.text for page in document.pages)
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN


@pytest.mark.parametrize(
    ("title", "expected"),
    [("A Study of Tides", "A Study of Tides"), ("Microsoft Word - x.doc", "A")],
)
def test_a_pdf_title_is_used_if_it_is_one(title, expected, pdf):
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Text.")))
    writer.add_metadata({"/Title": title, "/Author": "Jo", "/Subject": "(unspecified)"})
    writer.add_metadata({"/CreationDate": "D:20240501120000Z"})
    out = io.BytesIO()
    writer.write(out)
    document = load(out.getvalue(), "a.pdf")
    assert document.title == expected
    assert document.metadata == {"author": "Jo", "date": "2024-05-01"}


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("docs/annual_report-2024.txt", "Annual report 2024"),
        ("README", "README"),
        ("a.b.md", "A.b"),
    ],
)
def test_the_stem_is_the_last_title(name, title):
    assert readable_stem(name) == title


def test_a_text_may_state_its_title():
    fields = "Title: A Christmas Carol\nAuthor: Charles Dickens\nRelease date: May 5, 2007 [e #1]"
    source = f"A book\n\n{fields}\n\nText.\n".encode()
    document = load(source, "mock_data.txt")
    assert document.title == "A Christmas Carol"
    assert document.metadata == {"author": "Charles Dickens", "date": "May 5, 2007"}


def test_content_decides_where_the_suffix_says_nothing(pdf, word):
    assert load(pdf("Text."), "download").media_type == "application/pdf"
    assert load(word("Text."), "download").pages[0].text == "Text."
    assert load(b"<!doctype html><p>Hi</p>", "download").media_type == "text/html"
    assert load(b"<html><p>Hi</p></html>", "a.txt").pages[0].text == "<html><p>Hi</p></html>"


def test_text_with_links_in_markdown_is_markdown():
    links = b"[Home](https://a.b)\n\n[News](/news)\n\n"
    page = b"Reeds\n=====\n\n" + links + b"Reeds [grow](https://a.b/c) in water.\n"
    document = load(page, "page.txt")
    assert (document.media_type, document.title) == ("text/markdown", "Reeds")
    assert document.pages[0].text.encode() == page
    assert load(page, "page").media_type == "text/markdown"
    assert load(b"Reeds\n\n" + links, "page.txt").media_type == "text/plain"


def test_a_path_or_a_stream_is_read_like_bytes(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"text")
    assert load(path) == load(io.BytesIO(b"text"), str(path)) == load(b"text", str(path))


def test_a_real_book(shared_text: Path):
    document = load(shared_text)
    assert document.title == "A Christmas Carol"
    assert document.metadata["author"] == "Charles Dickens"
    assert document.pages[0].text.encode() == shared_text.read_bytes().removeprefix(b"\xef\xbb\xbf")
    check_exact(document)
    assert DEFAULT_LIMITS.file_bytes == 200_000_000
