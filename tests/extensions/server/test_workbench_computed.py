"""The workbench over tables: the catalogue's pages, and the query of a session, read, changed and
asked again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from tests.extensions.server.conftest import API, Running, running
from tests.support.corpora import Corpus
from tests.support.pumps import PUMPS_CSV
from tgraph.extensions.server.access import Access

HOME = "/workbench/default/"
HOSTILE = "<script>alert(1)</script>"
TOKENS = {"Ann": Access("Ann"), "Bob": Access("Bob", rights=("read",))}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    valves = "".join(f"Valve V{n:02},{'Berg' if n % 3 else HOSTILE},{n}\n" for n in range(60))
    corpus = Corpus(tmp_path_factory.mktemp("tables"))
    corpus.index({"pumps.csv": PUMPS_CSV, "valves.csv": f"name,maker,weight_kg\n{valves}"})
    with running(corpus.folder / "graph", TOKENS) as found:
        yield found


@pytest.fixture(scope="module")
def ann(served: Running) -> Iterator[httpx.Client]:
    with served.client("Ann") as found:
        found.follow_redirects = True
        yield found


def links_in(page: httpx.Response, part: str) -> list[str]:
    """The addresses of a page that have a part."""
    return [link for link in map(unescape, re.findall('href="([^"]+)"', page.text)) if part in link]


def rows_of(client: httpx.Client, label: str) -> httpx.Response:
    """The page of the table that is called so."""
    listed = client.get(f"{HOME}catalogue?text={label}")
    return client.get(links_in(listed, "kind=table")[0])


def test_the_catalogue_leads_to_rows_and_each_cell_to_its_characters(ann: httpx.Client) -> None:
    page = rows_of(ann, "Pumps")
    assert "5 rows" in page.text
    cell = re.search(r'href="([^"]+)"[^>]*>410</a>', page.text)
    assert cell
    place = ann.get(unescape(cell[1]))
    assert '<mark id="quote" tabindex="-1">P3 | Pump P3 | Berg | 27 | 410</mark>' in place.text


def test_rows_are_narrowed_by_facets_and_read_page_by_page(ann: httpx.Client) -> None:
    page = rows_of(ann, "Valves")
    assert "1–50 of 60" in page.text
    further = ann.get(links_in(page, "from=50")[0])
    assert "51–60 of 60" in further.text
    narrowed = ann.get(next(link for link in links_in(page, "where=") if "berg" in link))
    assert "40 rows of 60" in narrowed.text
    assert "Valve V03" not in narrowed.text
    assert "Valve V04" in narrowed.text


def test_words_of_a_table_are_no_markup(ann: httpx.Client) -> None:
    page = rows_of(ann, "Valves")
    assert HOSTILE not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


@pytest.mark.parametrize(
    "query",
    [
        "kind=table&key=urn:x:none",
        "kind=table&key={key}&where=nothing",
        "kind=table&key={key}&where=<urn:x:p> <urn:x:o>",
        'kind=table&key={key}&where=<urn:trustgraph:relation:maker> "x" } SELECT ?s {{',
    ],
)
def test_what_the_catalogue_does_not_have_is_refused(ann: httpx.Client, query: str) -> None:
    listed = ann.get(f"{HOME}catalogue?text=Pumps")
    key = re.search(r"key=([^&\"]+)", links_in(listed, "kind=table")[0])
    assert key
    page = ann.get(f"{HOME}catalogue/rows?{query.replace('{key}', key[1])}")
    assert page.status_code == 400


def test_a_query_is_read_changed_and_asked_again(ann: httpx.Client, served: Running) -> None:
    asked = {"question": "How many pumps does Norden make?", "mode": "sparql"}
    page = ann.post(f"{HOME}ask", data=asked)
    shown = re.search(r'<textarea id="query"[^>]*>([^<]*)</textarea>', page.text)
    assert shown
    sparql = unescape(shown[1])
    changed = sparql.replace("entity:norden", "entity:berg")
    again = ann.post(f"{page.url.path}/again", data={"sparql": changed})
    assert again.status_code == 200
    assert again.url.path != page.url.path
    assert "2 of the 5 pumps in “Pumps” have the maker Berg" in again.text
    assert f'href="{page.url.path}"' in again.text
    trace = ann.get(f"{API}/sessions/{again.url.path[-36:]}/trace").json()
    assert trace["parameters"]["revises"].endswith(page.url.path[-36:])
    assert [row["cells"][0]["text"] for row in trace["computed"]["rows"]] == ["2"]
    for wrong in ("DELETE WHERE { ?s ?p ?o }", "nothing", ""):
        refused = ann.post(f"{page.url.path}/again", data={"sparql": wrong})
        assert refused.status_code == 400
    with served.client("Bob") as bob:
        assert bob.post(f"{page.url.path}/again", data={"sparql": changed}).status_code == 403
        read_only = bob.get(page.url.path)
        assert "readonly" in read_only.text
        assert "Ask again with this query" not in read_only.text
        assert bob.get(f"{HOME}catalogue").status_code == 200


def test_the_rest_interface_has_the_table_of_an_answer(ann: httpx.Client) -> None:
    asked = {"question": "Which pump is the heaviest?", "mode": "sparql"}
    answer = ann.post(f"{API}/ask", json=asked).json()
    first = answer["computed"]["rows"][0]
    assert [cell["text"] for cell in first["cells"]] == ["Pump P2", "42"]
    assert first["witnesses"][0]["place"]["quote"] == "P2 | Pump P2 | Norden | 42 | 700"
