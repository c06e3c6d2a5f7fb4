from __future__ import annotations

import io
import random
import time
import zipfile
from contextlib import suppress

import pypdf
import pytest

from tgraph.errors import IngestError
from tgraph.ingest.base import FileLimits
from tgraph.ingest.files import load

NOISE = random.Random(7).randbytes(5000)


def refused(data: bytes, name: str, limits: FileLimits | None = None) -> IngestError:
    with pytest.raises(IngestError) as caught:
        load(data, name, limits or FileLimits())
    assert caught.value.path == name
    assert "\n" not in str(caught.value)
    return caught.value


def encrypted(plain: bytes, user: str = "password") -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(plain))
    writer.encrypt(user, "owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    "suffix",
    [
        "txt",
        "md",
        "rst",
        "adoc",
        "html",
        "epub",
        "csv",
        "json",
        "jsonl",
        "pdf",
        "docx",
        "xlsx",
        "ods",
        "parquet",
        "bin",
    ],
)
def test_noise_and_nothing_are_refused_in_every_format(suffix):
    refused(NOISE, f"a.{suffix}")
    assert "empty" in str(refused(b"", f"a.{suffix}"))


def test_an_encrypted_pdf_names_the_remedy(pdf):
    error = refused(encrypted(pdf("Secret.")), "a.pdf")
    assert "encrypted" in error.message
    assert "without a password" in error.remedy


def test_a_pdf_that_is_locked_only_for_editing_is_read(pdf):
    (page,) = load(encrypted(pdf("Open."), user=""), "a.pdf").pages
    assert page.text == "Open."


def test_a_damaged_pdf(pdf):
    refused(pdf("Some text.")[:120], "a.pdf")
    refused(b"%PDF-1.7\n" + NOISE, "a.pdf")


def test_a_scanned_pdf(pdf):
    assert "OCR" in refused(pdf("", ""), "a.pdf").remedy


def test_a_pdf_with_one_empty_page_keeps_its_numbers(pdf):
    assert [page.number for page in load(pdf("", "Text."), "a.pdf").pages] == [1, 2]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (b'{"a": 1,\n "b": }', "line 2, column 7"),
        (b'["open', "line 1, column 2"),
        (b"{'a': 1}", "line 1, column 2"),
    ],
)
def test_broken_json_names_the_place(source, place):
    assert place in str(refused(source, "a.json"))


def test_broken_json_lines_name_the_line():
    assert "line 2, column 6" in str(refused(b'\n{"a" 2}\n', "a.jsonl"))
    document = load(b'{"a": 1}\n\n{"a" 2}\n', "a.jsonl")
    assert document.pages[0].text == "a: 1"
    assert document.report is not None
    (loss,) = document.report.losses
    assert (loss.kind, loss.place, loss.count) == ("damaged line", "line 3", 1)
    assert not document.report.warnings


@pytest.mark.parametrize("source", [b"[" * 100_000, b'{"a":' * 100_000])
def test_json_that_is_nested_without_end(source):
    refused(source, "a.json")
    refused(source, "a.jsonl")


@pytest.mark.parametrize("source", [b"[]", b"{}", b"null", b'[null, ""]'])
def test_json_without_values(source):
    assert "no values" in str(refused(source, "a.json"))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["txt", "md", "rst", "adoc", "html", "csv", "json", "jsonl"])
def test_an_endless_line_is_refused_at_once(suffix):
    assert "line of more than" in str(refused(b"word " * 20_000_000, f"a.{suffix}"))


def test_a_file_beyond_the_limit():
    assert "larger than the limit of 10 bytes" in str(refused(b"x" * 11, "a.txt", FileLimits(10)))


def test_a_docx_that_is_no_archive_or_another_one(word):
    assert "ZIP" in str(refused(b"just text", "a.docx"))
    assert "old Word" in str(refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + NOISE, "a.docx"))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "no document")
    refused(out.getvalue(), "a.docx")
    refused(word("Text.")[:-300], "a.docx")
    assert "no text" in str(refused(word(""), "a.docx"))


def replaced(plain: bytes, document: bytes) -> bytes:
    """A DOCX with ``document`` in the place of its main part."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(plain)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for entry in source.infolist():
            main = entry.filename == "word/document.xml"
            target.writestr(entry.filename, document if main else source.read(entry))
    return out.getvalue()


def test_an_archive_bomb_is_not_unpacked(word):
    bomb = replaced(word("Text."), b" " * 50_000_000)
    assert len(bomb) < 200_000
    assert "more than allowed" in str(
        refused(bomb, "a.docx", FileLimits(unpacked_bytes=10_000_000))
    )


def test_an_epub_that_is_broken_encrypted_or_a_bomb(book):
    assert "ZIP" in str(refused(b"just text", "a.epub"))
    assert "container.xml" in str(
        refused(book("<p>x</p>").replace(b"container", b"contained"), "a.epub")
    )
    assert "no text" in str(refused(book("<img src='a'/>"), "a.epub"))
    bomb = book("<p>" + "ice " * 5_000_000 + "</p>")
    assert len(bomb) < 200_000
    assert "more than allowed" in str(
        refused(bomb, "a.epub", FileLimits(unpacked_bytes=10_000_000))
    )
    locked = (
        b'<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
        b'<e:CipherData><e:CipherReference URI="OPS/text/0.xhtml"/></e:CipherData>'
        b"</e:EncryptedData></encryption>"
    )
    data = book("<p>x</p>", parts={"META-INF/encryption.xml": locked})
    assert "DRM" in str(refused(data, "a.epub"))
    laughs = "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    package = f'<!DOCTYPE p [<!ENTITY a "ha">{laughs}]><package><metadata>&i;</metadata></package>'
    refused(book("<p>x</p>", parts={"OPS/book.opf": package.encode()}), "a.epub")


@pytest.mark.parametrize(
    "piece",
    ["* ", "`a", "**a", ".. x::\n\n   ", "|a", "[", "a::\n", "== x\n", "   ", ":a: b\n", "x_ "],
)
@pytest.mark.parametrize("suffix", ["rst", "adoc"])
def test_mark_up_without_end_is_read_or_refused_soon(piece, suffix):
    started = time.process_time()
    source = (piece * (20_000 // len(piece)) + "\n\nText.\n").encode()
    with suppress(IngestError):
        assert load(source, f"a.{suffix}").pages
    assert time.process_time() - started < 20


def with_entities(plain: bytes, entities: str, reference: str) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f"<w:body><w:p><w:r><w:t>safe {reference}</w:t></w:r></w:p></w:body>"
    xml = f'<!DOCTYPE d [{entities}]><w:document xmlns:w="{space}">{body}</w:document>'
    return replaced(plain, xml.encode())


def test_xml_entities_are_not_expanded(word, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    plain = word("Text.")
    for entity in ('"inside"', f'SYSTEM "{secret.as_uri()}"'):
        data = with_entities(plain, f"<!ENTITY a {entity}>", "&a;")
        assert load(data, "a.docx").pages[0].text == "safe"
    laughs = "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    refused(with_entities(plain, f'<!ENTITY a "ha ha ha">{laughs}', "&i;"), "a.docx")


def test_another_format_under_a_text_suffix_is_named(pdf, word):
    assert "PNG" in str(refused(b"\x89PNG\r\n\x1a\n" + NOISE, "a.txt"))
    assert "PDF" in str(refused(pdf("Text."), "a.txt"))
    assert "ZIP" in str(refused(word("Text."), "a.txt"))


@pytest.mark.parametrize(
    "text", ["The ftyp box is first.", "BZh is a prefix.", "ID3 tags hold titles."]
)
def test_prose_that_begins_like_another_format_is_prose(text):
    assert load(text.encode(), "a.txt").pages[0].text == text


def test_a_broken_mark_and_nul_characters():
    assert "UTF-16" in str(refused(b"\xff\xfea\x00\x00\xd8b\x00", "a.txt"))
    assert "NUL" in str(refused(b"text with a \0 in it", "a.txt"))
    assert "white space" in str(refused(b" \n\t", "a.txt"))


def test_html_without_text():
    refused(b"<html><script>render()</script></html>", "a.html")


@pytest.mark.slow
def test_an_overlong_table_cell():
    refused(b'a,b\n"' + b"x\n" * 6_000_000, "a.csv")


def test_paths_that_are_no_files(tmp_path):
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "nowhere")
    for name in ("folder.txt", "link.txt", "missing.txt"):
        with pytest.raises(IngestError):
            load(tmp_path / name)
