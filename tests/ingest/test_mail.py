"""E-mail: fields, bodies, enclosed messages; attachments are named."""

from __future__ import annotations

from contextlib import suppress
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document


def make_message(
    body: str = "The mill burnt.\n\n> Is it true?\n", subject: str = "Mill"
) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Anna Berg <anna@example.org>"
    message["To"] = "Bo Lund <bo@example.org>"
    message["Date"] = "Tue, 05 Mar 2024 10:00:00 +0100"
    message["Subject"] = subject
    message.set_content(body)
    return message


def loss_counts(document: Document) -> dict[str, int]:
    assert document.report is not None
    assert not document.report.warnings
    return {loss.kind: loss.count for loss in document.report.losses}


def test_a_message_has_its_fields_body_and_names_of_attachments() -> None:
    message = make_message()
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="a.pdf")
    document = load(message.as_bytes(), "a.eml")
    assert document.title == "Mill"
    assert document.metadata["author"] == "Anna Berg <anna@example.org>"
    assert document.metadata["date"] == "2024-03-05T10:00:00+01:00"
    page = document.pages[0]
    assert "From: Anna Berg <anna@example.org>\nTo: Bo Lund" in page.text
    assert page.text.endswith("The mill burnt.\n\n> Is it true?\n\n[attachment: a.pdf]")
    assert loss_counts(document) == {"attachment": 1}
    kinds = {s.text: s.kind for s in segments(page.text, "", page.blocks)}
    assert kinds["Subject: Mill"] == "row"
    assert kinds["> Is it true?"] == "display"


def test_html_alone_is_read_as_a_page_and_plain_text_goes_before_html() -> None:
    message = make_message()
    message.add_alternative("<p>The <b>other</b> mill.</p>", subtype="html")
    assert "other" not in load(message.as_bytes(), "a.eml").pages[0].text
    only = make_message()
    only.set_content("<html><body><p>The <b>other</b> mill.</p></body></html>", subtype="html")
    assert "The other mill." in load(only.as_bytes(), "a.eml").pages[0].text


def test_an_enclosed_message_and_a_mailbox_are_read() -> None:
    outer = make_message("See below.\n", "Fwd")
    outer.add_attachment(make_message("Inner text.\n", "Inner"))
    text = load(outer.as_bytes(), "a.eml").pages[0].text
    assert "## Inner" in text
    assert "Inner text." in text
    box = b"".join(
        b"From a@b Tue Mar  5 10:00:00 2024\n" + make_message(f"Text {n}.\n", f"No {n}").as_bytes()
        for n in (1, 2)
    )
    document = load(box, "a.mbox")
    assert [heading.text for heading in document.pages[0].headings] == ["No 1", "No 2"]
    assert "Text 2." in document.pages[0].text


def test_encodings_and_broken_fields_are_read() -> None:
    raw = (
        b"From: =?iso-8859-1?q?J=F6rg?= <j@x.y>\r\nSubject: =?utf-8?b?w4Z0aGVy?=\r\n"
        b"Content-Type: text/plain; charset=unknown-9\r\nTo: <<broken\r\n\r\nBj\xc3\xb6rn.\r\n"
    )
    text = load(raw, "a.eml").pages[0].text
    assert "Jörg" in text
    assert "Subject: Æther" in text
    assert "Björn." in text


@pytest.mark.parametrize("name", ["a.eml", "a.mbox", "a.msg"])
@given(data=st.binary(min_size=1, max_size=300))
def test_any_bytes_are_read_or_refused(name: str, data: bytes) -> None:
    from tgraph.ingest import mail
    from tgraph.ingest.base import DEFAULT_LIMITS

    read = {"a.eml": mail.read_eml, "a.mbox": mail.read_mbox, "a.msg": mail.read_msg}[name]
    with suppress(IngestError):
        assert read(data, name, DEFAULT_LIMITS).pages
