"""E-mail: messages (EML, MBOX, MSG) with their fields, bodies and the names of attachments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from tgraph.errors import IngestError
from tgraph.ingest.archive import unreadable_error
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.ingest.blocks import LossList, PageBuilder, count_visible
from tgraph.model import Page, UnitCount
from tgraph.rendering import collapse_whitespace

_FIELDS = ("From", "To", "Cc", "Date", "Subject")
_START = re.compile(rb"^From [^\r\n]+\r?\n(?=[!-9;-~]+:)", re.MULTILINE)
_HTML = re.compile(r"<(?:html|body|p|div|br|table)\b", re.I)
_PARAGRAPHS = re.compile(r"\n[^\S\n]*\n\s*")
_QUOTED = re.compile(r"\s*>")
_DEEPEST = 20


def read_eml(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a message (RFC 5322, MIME) as a single page: fields, body, attachments by name.

    A message within the message is read too. Raises ``IngestError`` for data without fields."""
    message = _parse_message(data, name)
    reader = _MailReader(name, limits)
    reader.read_message(message)
    return reader.finish("Python's email", message)


def read_mbox(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read a mailbox as a single page: a section for each message, as in ``read_eml``."""
    starts = [match.end() for match in _START.finditer(data)]
    if not starts:
        raise IngestError(name, "The file is no mailbox: no message begins with a line From.")
    ends = [*(match.start() for match in _START.finditer(data)), len(data)][1:]
    reader = _MailReader(name, limits)
    for start, end in zip(starts, ends, strict=True):
        message = _parse_message(data[start:end], name)
        reader.builder.add_heading(_field(message, "Subject") or "Message", 1)
        reader.read_message(message)
    return reader.finish("Python's email", None)


def read_msg(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read an Outlook message as ``read_eml``."""
    import oxmsg

    try:
        outlook = oxmsg.Message.load(data)
        headers = {key.lower(): value for key, value in outlook.message_headers.items()}
        values = {
            "From": outlook.sender,
            "To": ", ".join(
                f"{recipient.name} <{recipient.email_address}>" for recipient in outlook.recipients
            ),
            "Date": str(outlook.sent_date or headers.get("date", "")),
            "Subject": outlook.subject,
        }
        fields = {key: collapse_whitespace(storable(str(v))) for key, v in values.items() if v}
        attachments = [a.file_name or "" for a in outlook.attachments]
        bodies = outlook.body or "", outlook.html_body or ""
    except Exception as error:  # a damaged compound file makes the library fail in any way whatever
        raise unreadable_error(name, "MSG", error_reason(error)) from None
    reader = _MailReader(name, limits)
    reader.add_fields(fields)
    reader.add_body(*bodies)
    for attachment in attachments:
        reader.add_attachment(attachment)
    return reader.finish(f"python-oxmsg {oxmsg.__version__}", None, fields)


def _parse_message(data: bytes, name: str) -> EmailMessage:
    message = message_from_bytes(data.lstrip(), policy=policy.default)
    if not isinstance(message, EmailMessage) or not message.keys():
        raise IngestError(name, "The file is no message: it has no fields such as From.")
    return message


def _field(message: EmailMessage, name: str) -> str:
    """Return a field's text; of a field that can't be parsed, as it is written."""
    try:
        value = message.get(name)
    except Exception:  # the parser of addresses raises whatever it meets
        value = next((v for k, v in message.raw_items() if k.lower() == name.lower()), "")
    return collapse_whitespace(storable(str(value or "")))


class _MailReader:
    """Reads messages into a page."""

    def __init__(self, name: str, limits: FileLimits) -> None:
        self.builder = PageBuilder()
        self.losses = LossList()
        self.in_file = 0
        self._name, self._limits = name, limits

    def finish(
        self, reader: str, message: EmailMessage | None, fields: dict[str, str] | None = None
    ) -> FileContent:
        page = self.builder.page()
        if not page.text.strip():
            raise IngestError(self._name, "The message holds no text.")
        values = fields or ({key: _field(message, key) for key in _FIELDS} if message else {})
        metadata = {"author": values.get("From", ""), "date": _iso_date(values.get("Date", ""))}
        stored = count_visible(page.text)
        units = [UnitCount("characters", self.in_file, min(stored, self.in_file))]
        report = self.losses.report(reader, units)
        metadata = {key: value for key, value in metadata.items() if value}
        return FileContent((page,), values.get("Subject", ""), metadata, report)

    def read_message(self, message: EmailMessage, depth: int = 0) -> None:
        self.add_fields({key: _field(message, key) for key in _FIELDS})
        texts = {"text/plain": "", "text/html": ""}
        enclosed: list[EmailMessage] = []
        attachments = []
        for part in _leaf_parts(message):
            media_type = part.get_content_type()
            if media_type == "message/rfc822" and part is not message:
                enclosed += [m for m in part.iter_parts() if isinstance(m, EmailMessage)]
            elif media_type in texts and part.get_content_disposition() != "attachment":
                texts[media_type] += _part_text(part)
            else:
                attachments.append(part.get_filename() or media_type)
        self.add_body(texts["text/plain"], texts["text/html"])
        for attachment in attachments:
            self.add_attachment(attachment)
        for inner in enclosed if depth < _DEEPEST else ():
            self.builder.add_heading(_field(inner, "Subject") or "Enclosed message", 2)
            self.read_message(inner, depth + 1)

    def add_fields(self, fields: dict[str, str]) -> None:
        for key, value in fields.items():
            self.builder.add_field(key, value)
            self.in_file += count_visible(f"{key}: {value}") if value else 0

    def add_body(self, plain: str, html: str) -> None:
        """Add a message's body: its plain text, or its HTML where there is no plain text."""
        if plain.strip() and not (_HTML.search(plain) and not html.strip()):
            self.in_file += count_visible(plain)
            for paragraph in _PARAGRAPHS.split(storable(plain).replace("\r\n", "\n")):
                self._add_paragraph(paragraph)
        elif markup := html or plain:
            for page in self._read_html(markup):
                self.in_file += count_visible(page.text)
                self.builder.append(page)

    def _read_html(self, markup: str) -> tuple[Page, ...]:
        from tgraph.ingest.html import read_html

        try:
            content = read_html(markup.encode(), self._name, self._limits)
        except IngestError:  # nothing to be seen, such as a picture alone
            self.losses.add("body", "the HTML of the body shows no text")
            return ()
        for loss in content.report.losses if content.report else ():
            self.losses.add(
                loss.kind, loss.reason, place=loss.place, marked=loss.marked, count=loss.count
            )
        return content.pages

    def _add_paragraph(self, text: str) -> None:
        """Add a paragraph; lines that quote an earlier message stay with their marks."""
        lines = text.split("\n")
        if all(_QUOTED.match(line) for line in lines if line.strip()):
            self.builder.add_paragraph(text, "comment")
        else:
            self.builder.add_paragraph(text)

    def add_attachment(self, file_name: str) -> None:
        self.builder.add_mark("attachment", file_name)
        self.losses.add("attachment", "index the attached file by itself", marked=True)


def _leaf_parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts of a message without parts, and enclosed messages."""
    waiting: list[tuple[EmailMessage, int]] = [(message, 0)]
    while waiting:
        part, depth = waiting.pop(0)
        is_enclosed = part.get_content_type() == "message/rfc822" and part is not message
        if part.is_multipart() and not is_enclosed and depth < _DEEPEST:
            inner = [(p, depth + 1) for p in part.iter_parts() if isinstance(p, EmailMessage)]
            waiting = inner + waiting
        else:
            yield part


def _part_text(part: EmailMessage) -> str:
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError, KeyError, ValueError):
        payload = part.get_payload(decode=True)
        return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""


def _iso_date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError):
        return text
