"""How a page reads is kept as it was found."""

from __future__ import annotations

from hashlib import sha256
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import EXAMPLES
from tgraph.index.lookup_table import FILES
from tgraph.ingest.page_reading import PageReading, pack_reading, read_page, unpack_reading

MEDIA_TYPES = ("text/plain", "text/markdown", "application/pdf")
PIECES = st.sampled_from(
    [
        *("One. Two!", " ", "\n", "\n\n", "# Head", "- item", "**bold**", "[a](b)", "&amp;", "_"),
        *("```\ncode\n```\n", "Name: x; Size: y", "\u00ad", "\u2060", "|", "[27]", "日本。"),
    ]
)
TEXTS = st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=40).map("".join)


def exactly(page: PageReading) -> object:
    """All of it, with what is not compared."""
    return [(each, list(each.offsets), each.inlines) for each in page.segments], page.sentences


@given(TEXTS, st.sampled_from(MEDIA_TYPES))
def test_a_reading_comes_back_as_it_was(text: str, media_type: str) -> None:
    page = read_page(text, media_type)
    assert exactly(unpack_reading(pack_reading(page, text), text)) == exactly(page)


def test_what_is_kept_changes_only_with_the_format_of_the_table() -> None:
    """Readings that lie ready are used as long as the format is theirs."""
    files = sorted(chain(EXAMPLES.rglob("*.md"), EXAMPLES.rglob("*.txt")))
    texts = [file.read_text("utf-8") for file in files if "plugin" not in file.parts]
    found = (read_page(text, kind) for text in texts for kind in MEDIA_TYPES)
    kept = sha256(repr(list(map(exactly, found))).encode()).hexdigest()[:16]
    assert (FILES.format, kept) == (8, "2780c01d2bd24380")
