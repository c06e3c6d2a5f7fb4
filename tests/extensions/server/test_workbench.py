"""The workbench's pages over HTTP, as a browser without JavaScript uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from pyoxigraph import RdfFormat, parse

import tgraph
from tests.extensions.server.conftest import (
    VALUES,
    Running,
    make_graph,
    rights,
    running,
    small_parts,
    until,
)
from tgraph.extensions.server import sign_ins
from tgraph.extensions.server.access import Access, token_hash
from tgraph.extensions.server.sign_in import COOKIE

HOME = "/workbench/default/"
DESCRIBE = "DESCRIBE <urn:trustgraph:entity:marie-curie>"
HOSTILE = '<script>alert("x")</script>\u202e'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that tests may change."""
    with running(make_graph(tmp_path_factory.mktemp("workbench"))) as found:
        yield found


@pytest.fixture(scope="module")
def browser(served: Running) -> Iterator[httpx.Client]:
    with served.client() as found:
        found.follow_redirects = True
        yield found


def ask(browser: httpx.Client, question: str, **fields: str) -> httpx.Response:
    return browser.post(f"{HOME}ask", data={"question": question, "mode": "graph", **fields})


def test_a_question_leads_to_its_page(browser: httpx.Client) -> None:
    page = ask(browser, "Who discovered radium?")
    assert page.status_code == 200
    assert page.url.path.startswith(f"{HOME}sessions/")
    assert "Who discovered radium?" in page.text
    assert "Marie Curie discovered radium." in page.text
    assert 'class="node-link"' in page.text


def test_a_citation_leads_to_the_characters_in_their_page(browser: httpx.Client) -> None:
    page = ask(browser, "Who discovered polonium?")
    place = re.search(r'href="(/workbench/default/documents/[^"]+#quote)"', page.text)
    assert place
    found = browser.get(place[1].replace("&amp;", "&"))
    quote = re.search(r'<mark id="quote"[^>]*>([^<]*)</mark>', found.text)
    assert quote
    assert quote[1] == "Marie Curie discovered polonium."


def test_a_question_goes_on_from_others(served: Running, browser: httpx.Client) -> None:
    first = ask(browser, "Who discovered polonium?")
    name = first.url.path.rpartition("/")[2]
    second = ask(browser, "And what else did she discover?", after=name)
    assert f'href="{HOME}sessions/{name}"' in second.text
    trace = browser.get(
        f"/api/v1/collections/default/sessions/{second.url.path[-36:]}/trace"
    ).json()
    assert "history" in str(trace["parameters"]) or trace["question"].startswith("And what")


def test_what_an_answer_depends_on_is_measured_and_shown(browser: httpx.Client) -> None:
    page = ask(browser, "Who discovered radium?")
    found = browser.post(f"{page.url.path}/influence")
    assert found.status_code == 200
    assert "What the answer depends on" in found.text
    assert re.search(r"<td class=\"number\" data-is=\"weight\">.*1\.00</td>", found.text)


def test_collections_are_made_copied_and_deleted(browser: httpx.Client) -> None:
    made = browser.post(f"{HOME}collections", data={"name": "letters"})
    assert made.url.path == "/workbench/letters/"
    copied = browser.post(f"{HOME}collections", data={"name": "trial", "copy": "yes"})
    assert copied.url.path == "/workbench/trial/"
    assert "Marie Curie" in browser.get("/workbench/trial/entities").text
    for name in ("letters", "trial"):
        wrong = browser.post(f"/workbench/{name}/collections/delete", data={"name": "default"})
        assert wrong.status_code == 400
        browser.post(f"/workbench/{name}/collections/delete", data={"name": name})
    listed = browser.get(f"{HOME}collections").text
    assert "letters" not in listed
    assert "trial" not in listed


def test_a_script_is_told_of_each_step(browser: httpx.Client) -> None:
    asked = {"question": "Who discovered polonium?", "mode": "graph"}
    told = browser.post(f"{HOME}ask", data=asked, headers={"Accept": "text/event-stream"}).text
    names = re.findall("^event: (.*)$", told, re.M)
    assert names[0] == "stage"
    assert names[-1] == "done"
    assert names.count("sentence") >= 1
    assert f'data: "{HOME}sessions/' in told


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", "Ask your documents"),
        ("sessions", "Who discovered polonium?"),
        ("sessions?text=nothing-like-that", "No session asks that"),
        ("sessions/last", "Evidence"),
        ("sessions/last?expected=Marie+Curie", 'role="status"'),
        ("documents", "curie.txt"),
        ("documents/curie.txt", "Marie Curie discovered radium."),
        ("documents/curie.txt?start=5&end=99999", "not in this page"),
        ("documents/curie.txt/impact", "would fall with it"),
        ("entities", "Marie Curie"),
        ("entities?text=curie", "Marie Curie"),
        ("entity?name=Marie+Curie", "polonium"),
        ("curations", "What people decided"),
        ("audits", "The record"),
        ("audits/integrity", "Passed"),
        ("sparql", "To begin with"),
        (f"sparql?{urlencode({'query': 'SELECT ?n { ?e a tg:Entity ; rdfs:label ?n }'})}", "Marie"),
        (f"sparql?{urlencode({'query': 'ASK { ?e a tg:Entity }'})}", "yes"),
        (
            f"sparql?{urlencode({'query': 'DESCRIBE <urn:trustgraph:entity:marie-curie>'})}",
            "node-link",
        ),
        (f"resource?{urlencode({'iri': 'http://www.w3.org/ns/prov#Entity'})}", "prov:Entity"),
        ("history", "Generation 1"),
        ("history/changes", "Marie Curie"),
        ("history/changes?before=1&after=1", "Nothing differs"),
        ("collections", "default"),
        ("?as_of=1", 'name="as_of" value="1"'),
    ],
)
def test_each_page_says_what_it_is_for(browser: httpx.Client, path: str, shown: str) -> None:
    page = browser.get(HOME + path)
    assert page.status_code == 200
    assert shown in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "style=" not in page.text
    assert not re.search(r"<script(?![^>]*src=)", page.text)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page.text.replace('xmlns="', ""))
    assert len(re.findall("<h1", page.text)) == 1
    ids = re.findall(r'\bid="([^"]+)"', page.text)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "path", ["sessions", "sessions/last", "documents", "documents/curie.txt", "entities", "history",
             "entity?name=Marie+Curie"],
)  # fmt: skip
def test_each_page_is_there_as_rdf(browser: httpx.Client, path: str) -> None:
    page = browser.get(HOME + path).text
    place = re.search(r'<link rel="alternate" href="([^"]+)"', page)
    assert place
    found = browser.get(place[1].replace("&amp;", "&").replace("&#34;", '"').replace("&#39;", "'"))
    media = found.headers["content-type"].partition(";")[0]
    assert list(parse(found.content, RdfFormat.from_media_type(media)))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nothing", 404),
        ("sessions/00000000-0000-4000-8000-000000000000", 404),
        ("documents/absent", 404),
        ("entity?name=Nobody+at+all", 404),
        ("entity", 400),
        ("audits/absent", 404),
        ("resource?iri=nonsense", 400),
        ("resource?iri=urn:x:unknown", 404),
        (f"sparql?{urlencode({'query': 'SELECT'})}", 400),
        (f"sparql?{urlencode({'query': 'DROP ALL'})}", 400),
    ],
)
def test_what_is_wrong_is_said_on_a_page(browser: httpx.Client, path: str, status: int) -> None:
    page = browser.get(HOME + path)
    assert page.status_code == status
    assert 'role="alert"' in page.text


def test_no_collection_of_that_name(browser: httpx.Client) -> None:
    assert browser.get("/workbench/absent/sessions").status_code == 404


def test_what_others_wrote_is_text(browser: httpx.Client) -> None:
    for page in (
        ask(browser, f"What of {HOSTILE}?"),
        browser.get(HOME, params={"question": HOSTILE}),
        browser.get(f"{HOME}sessions", params={"text": HOSTILE}),
        browser.get(f"{HOME}sparql", params={"query": f'SELECT ("{HOSTILE[:8]}" AS ?x) {{}}'}),
        browser.get(f"{HOME}documents/{HOSTILE.replace('/', '')}"),
    ):
        assert "<script>alert" not in page.text
        assert "\u202e" not in page.text


def test_sentences_are_verified_and_sessions_replayed(browser: httpx.Client) -> None:
    page = ask(browser, "Who discovered polonium?")
    verified = browser.post(f"{page.url.path}/verify")
    assert "Verified" in verified.text
    assert re.search('class="tag (good|bad)"', verified.text)
    replayed = browser.post(f"{page.url.path}/replay")
    assert "The same again" in replayed.text


@pytest.mark.slow
def test_files_are_uploaded_and_indexed(browser: httpx.Client) -> None:
    file = {"file": ("bohr.txt", b"Niels Bohr lived in Copenhagen.\n", "text/plain")}
    page = browser.post(f"{HOME}documents", files=file)
    assert page.status_code == 200
    assert "bohr.txt" in page.text
    done = until(
        lambda: (p := browser.get(page.url.path)) and 'class="status done"' in p.text and p
    )
    assert "Ask a question" in done.text
    assert "bohr.txt" in browser.get(f"{HOME}documents").text
    assert browser.post(f"{HOME}documents", data={"x": "y"}).status_code == 400
    assert "Read whole" in browser.get(f"{HOME}documents/bohr.txt").text
    sent = b"<p>The laboratory.</p><img src='a.png' alt='<script>alert(1)</script>'>"
    page = browser.post(f"{HOME}documents", files={"file": ("lab.html", sent, "text/html")})
    done = until(
        lambda: (p := browser.get(page.url.path)) and 'class="status done"' in p.text and p
    )
    assert "1 × image" in done.text
    assert "1 not in the text" in browser.get(f"{HOME}documents").text
    shown = browser.get(f"{HOME}documents/lab.html").text
    assert "What is not in the text" in shown
    assert "Not in the text: 1 image" in shown
    assert "<script>alert" not in shown
    gone = browser.post(f"{HOME}documents/bohr.txt/retract", data={"reason": "a test"})
    assert "no longer stands" in gone.text
    assert browser.post(f"{HOME}documents/curie.txt/retract", data={}).status_code == 400


@pytest.mark.slow
def test_of_two_copies_the_one_that_is_chosen_is_retracted(browser: httpx.Client) -> None:
    text = b"Lise Meitner lived in Vienna.\n"
    copies = [("file", (f"meitner{number}.txt", text, "text/plain")) for number in (1, 2)]
    page = browser.post(f"{HOME}documents", files=copies)
    until(lambda: 'class="status done"' in browser.get(page.url.path).text)
    document = f"{HOME}documents/{sha256(text).hexdigest()}"
    assert "<option>meitner2.txt</option>" in browser.get(f"{document}/impact").text
    refused = browser.post(f"{document}/retract", data={"reason": "a test"})
    assert "stands at 2 paths" in refused.text
    chosen = {"reason": "a test", "path": "meitner2.txt"}
    assert "no longer stands" in browser.post(f"{document}/retract", data=chosen).text
    page = browser.get(f"{document}/impact")
    assert ("Retract this document" in page.text, "<option>" in page.text) == (True, False)


@pytest.mark.slow
def test_facts_are_corrected_and_that_is_undone(browser: httpx.Client) -> None:
    fact = {"name": "Marie Curie", "predicate": "born in", "object": "Warsaw", "reason": "known"}
    assert "known" in browser.post(f"{HOME}entity/state", data=fact).text
    page = browser.get(f"{HOME}entity", params={"name": "Marie Curie"}).text
    assert "Warsaw" in page
    listed = browser.get(f"{HOME}curations").text
    curation = re.search('name="curation" value="([^"]+)"', listed)
    assert curation
    undone = {"curation": curation[1], "reason": "a test"}
    assert "no longer stands" in browser.post(f"{HOME}curations/undo", data=undone).text
    assert "Warsaw" not in browser.get(f"{HOME}entity", params={"name": "Marie Curie"}).text
    page = browser.get(f"{HOME}entity", params={"name": "Marie Curie"}).text
    edge = re.search('name="fact" value="([^"]+)"', page)
    assert edge
    denied = {"name": "Marie Curie", "fact": edge[1], "reason": "a test"}
    assert browser.post(f"{HOME}entity/deny", data=denied).status_code == 200
    assert edge[1] not in browser.get(f"{HOME}entity", params={"name": "Marie Curie"}).text
    assert browser.post(f"{HOME}entity/nothing", data=denied).status_code == 404
    assert browser.post(f"{HOME}entity/deny", data={"name": "Marie Curie"}).status_code == 400


def test_no_page_of_another_origin_changes_anything(served: Running) -> None:
    with served.client() as client:
        headers = {"Origin": "https://evil.example"}
        response = client.post(f"{HOME}ask", data={"question": "x"}, headers=headers)
        assert response.status_code == 403


# --- signing in ---


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    tokens = {
        "all": Access("Ann"),
        "reader": rights("read"),
        "elsewhere": Access("Eve", ("other",)),
    }
    with running(make_graph(tmp_path_factory.mktemp("guarded")), tokens) as found:
        yield found


def sign_in(client: httpx.Client, token: str) -> str:
    """Sign in, and return what the cookie holds."""
    client.post("/workbench/sign-in", data={"token": token})
    return client.cookies[COOKIE]


def is_signed_in(server: Running, cookie: str) -> bool:
    with server.client() as client:
        return client.get(HOME, headers={"Cookie": f"{COOKIE}={cookie}"}).status_code == 200


def test_a_sign_in_is_no_token_and_ends_with_signing_out(guarded: Running) -> None:
    token = guarded.tokens["reader"]
    with guarded.client() as client:
        cookie, other = sign_in(client, token), sign_in(client, token)
        assert token not in cookie
        assert is_signed_in(guarded, cookie)
        assert not is_signed_in(guarded, token)
        with guarded.client(cookie) as bearer:
            assert bearer.get("/api/v1/collections").status_code == 401
        client.post("/workbench/sign-out", headers={"Cookie": f"{COOKIE}={cookie}"})
        assert (is_signed_in(guarded, cookie), is_signed_in(guarded, other)) == (False, True)
    stored = [path.read_text() for path in (guarded.root / "sign-ins").iterdir()]
    assert not any(other in text or token in text for text in stored)


def test_a_sign_in_ends_by_time_and_with_its_token(
    guarded: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = guarded.root.parent / "g-tokens.toml"
    text = file.read_text()
    with guarded.client() as client:
        cookie = sign_in(client, guarded.tokens["reader"])
        assert is_signed_in(guarded, cookie)
        file.write_text("")
        assert not is_signed_in(guarded, cookie)
        file.write_text(text)
        assert is_signed_in(guarded, cookie)
        monkeypatch.setattr(sign_ins, "LIFETIME", 0.0)
        assert not is_signed_in(guarded, cookie)
        later = sign_in(client, guarded.tokens["reader"])
        assert [path.stem for path in (guarded.root / "sign-ins").iterdir()] == [token_hash(later)]


def test_a_token_has_so_many_sign_ins(guarded: Running) -> None:
    with guarded.client() as client:
        cookies = [sign_in(client, guarded.tokens["all"]) for _ in range(22)]
    signed_in = [is_signed_in(guarded, cookie) for cookie in cookies]
    assert signed_in == [False] * 2 + [True] * 20


def test_the_cookie_is_secure_where_the_page_is(guarded: Running) -> None:
    """A proxy on this machine says by which scheme it was asked."""
    with guarded.client() as client:
        given = {"token": guarded.tokens["reader"]}
        plain = client.post("/workbench/sign-in", data=given)
        proxied = client.post(
            "/workbench/sign-in", data=given, headers={"X-Forwarded-Proto": "https"}
        )
    cookies = [set(done.headers["set-cookie"].split("; ")) for done in (plain, proxied)]
    assert all({"HttpOnly", "SameSite=lax", "Path=/"} <= cookie for cookie in cookies)
    assert ["Secure" in cookie for cookie in cookies] == [False, True]


def test_signing_in_and_out(guarded: Running) -> None:
    with guarded.client() as client:
        first = client.get(f"{HOME}sessions?text=x")
        assert first.status_code == 303
        page = client.get(first.headers["location"])
        assert "data-signed-out" in page.text
        assert "Curie" not in page.text
        wrong = client.post("/workbench/sign-in", data={"token": "tg_wrong", "next": HOME})
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        given = {"token": guarded.tokens["reader"], "next": f"{HOME}sessions"}
        done = client.post("/workbench/sign-in", data=given)
        assert done.headers["location"] == f"{HOME}sessions"
        assert {"HttpOnly", "SameSite=lax"} <= set(done.headers["set-cookie"].split("; "))
        assert "Curie" in client.get(f"{HOME}entities").text
        assert client.post(f"{HOME}ask", data={"question": "x"}).status_code == 403
        assert "Sign out" in client.get(HOME).text
        client.post("/workbench/sign-out")
        assert COOKIE not in client.cookies
        assert client.get(HOME).status_code == 303


@pytest.mark.parametrize(
    "place", ["https://evil.example/", "//evil.example", "/workbench/\\evil", "/api"]
)
def test_signing_in_leads_nowhere_else(guarded: Running, place: str) -> None:
    with guarded.client() as client:
        given = {"token": guarded.tokens["all"], "next": place}
        done = client.post("/workbench/sign-in", data=given)
        assert done.headers["location"] == "/workbench/"


def test_another_collections_token_sees_nothing(guarded: Running) -> None:
    with guarded.client("elsewhere") as client:
        page = client.get(f"{HOME}sessions")
        assert (page.status_code, "Curie" in page.text) == (403, False)
        entrance = client.get("/workbench/")
        assert (entrance.status_code, "default" in entrance.text) == (403, False)


# --- assets and PDFs ---


def test_assets_are_sent_once(browser: httpx.Client) -> None:
    first = browser.get("/workbench/static/workbench.css")
    again = browser.get(
        "/workbench/static/workbench.css", headers={"If-None-Match": first.headers["etag"]}
    )
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert browser.get("/workbench/static/..%2Fwords.toml").status_code == 404
    assert browser.get("/workbench/static/base.html").status_code == 404


@pytest.mark.slow
def test_a_quote_is_marked_on_the_image_of_its_page(tmp_path: Path) -> None:
    root = tmp_path / "g"
    parts = small_parts(tmp_path / "cache")
    with tgraph.open(root, create=True, settings=VALUES, parts=parts) as graph:
        graph.index([Path("examples/antarctica/nimrod.pdf")])
        text = graph.documents.read_text("nimrod.pdf", 1)
    start = text.index("Early in 1907")
    end = text.index("Magnetic Pole.") + len("Magnetic Pole.")
    with running(root) as served, served.client() as client:
        place = "/api/v1/collections/default/documents/nimrod.pdf/pages/1"
        image = client.get(f"{place}/image")
        assert image.content.startswith(b"\x89PNG\r\n\x1a\n")
        found = client.get(f"{place}/boxes", params={"start": start, "end": end}).json()
        assert len(found["boxes"]) == 3
        tops = [box["top"] for box in found["boxes"]]
        assert tops == sorted(tops)
        assert all(0 < box["left"] < box["right"] < 1 for box in found["boxes"])
        page = client.get(f"{HOME}documents/nimrod.pdf?page=1&start={start}&end={end}").text
        assert page.count('<rect class="cited"') == 3
        assert client.get(f"{place[:-1]}9/image").status_code == 404
        assert client.get(f"{place}/boxes?start=5&end=4").status_code == 400
