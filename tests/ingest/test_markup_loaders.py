"""reStructuredText, AsciiDoc and EPUB: what is read of them, and under what it stands."""

from __future__ import annotations

from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document

RST = """\
The Ship
========

:Author: Jane Writer
:Date: 2021-03-04

The **Fram** is a ``ship`` [1]_. See :ref:`Parts <parts>` and `the site <https://x.y>`_.

.. toctree::

   a

Parts
-----

These are:

* Hull

  * Keel
* Mast
  of wood

.. code-block:: ruby

   puts 1
     two

.. versionadded:: 2.1
   The **crow's** nest.

===== =====
Name  Year
===== =====
Fram  1892
===== =====
"""
ADOC = """\
= The Ship
Jane Writer <j@x.y>
v1.0, 2021-03-04
:toc:
:ship: Fram

The *{ship}* is a `ship`.footnote:[No.] See <<parts,Parts>> and link:https://x.y[the site^].

== Parts

These are:

* Hull
** Keel
* Mast +
of wood

[source,ruby]
----
puts 1
  two
----

// no comment
The *crow's* nest.

[cols="1,2", options="header"]
|===
|Name |Year
|Fram
|1892
|===
"""
EXPECTED = [
    ("heading", "The Ship", ()),
    ("prose", "The Fram is a ship. See Parts and the site.", ("The Ship",)),
    ("heading", "Parts", ("The Ship",)),
    ("prose", "These are:", ("The Ship", "Parts")),
    ("item", "Hull", ("The Ship", "Parts", "These are:")),
    ("item", "Keel", ("The Ship", "Parts", "These are:")),
    ("item", "Mast of wood", ("The Ship", "Parts", "These are:")),
    ("code", "puts 1\n  two", ("The Ship", "Parts", "These are:")),
    ("prose", "The crow's nest.", ("The Ship", "Parts")),
    ("display", "Name; Year", ("The Ship", "Parts")),
    ("row", "Name: Fram; Year: 1892", ("The Ship", "Parts")),
]


def read(document: Document) -> list[tuple[str, str, tuple[str, ...]]]:
    (page,) = document.pages
    found = segments(page.text, document.media_type, page.blocks)
    return [(s.kind, s.text, s.headings if s.kind == "row" else s.context) for s in found]


def test_restructuredtext_is_read():
    document = load(RST.encode(), "ship.rst")
    assert read(document) == EXPECTED
    assert document.title == "The Ship"
    assert document.metadata == {"author": "Jane Writer", "date": "2021-03-04"}


def test_restructuredtext_includes_nothing_and_runs_nothing(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    source = (
        f".. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n"
        f".. csv-table::\n   :file: {secret}\n\nText.\n"
    )
    assert read(load(source.encode(), "a.rst")) == [("prose", "Text.", ())]


def test_asciidoc_is_read():
    document = load(ADOC.encode(), "ship.adoc")
    assert read(document) == EXPECTED
    assert document.title == "The Ship"
    assert document.metadata == {"author": "Jane Writer", "date": "2021-03-04"}


def test_a_book_is_its_chapters_in_order(book):
    head = "<dc:title>The Ship</dc:title><dc:creator>Jane Writer</dc:creator>"
    data = book(
        "<h1>One</h1><p>It sailed.<a epub:type='noteref' href='#n'>1</a></p>",
        "<img src='cover.png'/>",
        "<h1>Two</h1><ul><li>Hull</li><li>Mast</li></ul><pre>a\n  b</pre>",
        head=head,
    )
    for name in ("ship.epub", "ship"):
        document = load(data, name)
        assert document.media_type == "application/epub+zip"
        assert read(document) == [
            ("heading", "One", ()),
            ("prose", "It sailed.", ("One",)),
            ("display", "[image]", ("One",)),
            ("heading", "Two", ()),
            ("item", "Hull", ("Two",)),
            ("item", "Mast", ("Two",)),
            ("code", "a\n  b", ("Two",)),
        ]
        assert [(h.text, h.level) for h in document.pages[0].headings] == [("One", 1), ("Two", 1)]
        assert (document.title, document.metadata) == ("The Ship", {"author": "Jane Writer"})


def test_front_matter_describes_the_document():
    source = (
        "---\ntitle: 'A: ship'\ndate: 2021-03-04\ntags: [ice, snow]\ndescription: >\n  Of a\n"
        "  ship.\nweight: 3\nauthors:\n  - Jane\n  - {name: Joe}\n---\nText.\n"
    )
    document = load(source.encode(), "a.md")
    assert document.title == "A: ship"
    assert document.metadata == {
        "date": "2021-03-04",
        "tags": "ice, snow",
        "description": "Of a ship.",
        "author": "Jane",
    }
    toml = load(b"+++\ntitle = 'T'\ndate = 2021-03-04\ntags = ['a']\n+++\nText.\n", "a.md")
    assert (toml.title, dict(toml.metadata)) == ("T", {"date": "2021-03-04", "tags": "a"})
    broken = load(b"---\ntitle: {{ x }}\ndate: [\n---\nText.\n", "a.md")
    assert broken.title == "{{ x }}"
