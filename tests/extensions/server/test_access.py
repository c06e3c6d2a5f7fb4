"""Tokens: what each admits to, on every route; nothing leaks to who has none."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route

import tgraph
from tests.extensions.server.conftest import (
    API,
    QUESTION,
    VALUES,
    Running,
    make_graph,
    rights,
    running,
    small_parts,
)
from tgraph.errors import UsageError
from tgraph.extensions.server import access
from tgraph.extensions.server.access import (
    Access,
    Token,
    Tokens,
    new_token,
    read_tokens,
    token_hash,
)
from tgraph.extensions.server.app import create_app
from tgraph.extensions.server.run import Serving

OPEN = {"/health", "/ready", "/metrics"}
"""What anybody may see: none of it says what the graph holds."""
SECRET = "Curie"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    tokens = {
        "all": Access("Ann"),
        "reader": rights("read"),
        "asker": rights("ask"),
        "indexer": rights("index"),
        "elsewhere": Access("Eve", ("elsewhere",)),
        "nothing": rights(),
    }
    with running(make_graph(tmp_path_factory.mktemp("guarded")), tokens) as found:
        yield found


@pytest.fixture(scope="module")
def client(guarded: Running) -> Iterator[httpx.Client]:
    with guarded.client() as found:
        yield found


def routes(found: list[BaseRoute], above: str = "") -> Iterator[tuple[str, str]]:
    """Each route of the application with each of its methods."""
    for each in found:
        if isinstance(each, Mount):
            yield from routes(list(each.routes), above + each.path)
        elif isinstance(each, Route):
            for method in sorted((each.methods or {"GET"}) - {"HEAD"}):
                yield method, above + each.path


def filled(path: str) -> str:
    """The path with something that there is in the place of each parameter."""
    known = {"collection": "default", "session": "last", "other": "last"}
    known |= {"document": "curie.txt", "entity": "Marie Curie", "audit": "integrity"}
    return re.sub(r"{(\w+)(?::\w+)?}", lambda m: known.get(m[1], "x"), path)


@pytest.mark.slow
def test_no_route_answers_without_a_token_of_its_own(
    guarded: Running, client: httpx.Client
) -> None:
    app = create_app(guarded.service, Tokens(guarded.root.parent / "g-tokens.toml"))
    all_routes = sorted(set(routes(list(app.routes))))
    assert len(all_routes) > 40
    for method, path in all_routes:
        if path in OPEN:
            continue
        place = filled(path)
        for token in (None, new_token(), "tg_", "nothing", "elsewhere"):
            if token == "elsewhere" and "{collection}" not in path:
                continue
            response = client.request(method, place, headers=guarded.headers(token))
            assert response.status_code in (401, 403) or _is_public(response), (
                method, place, token, response.status_code,
            )  # fmt: skip
            assert SECRET not in response.text


def _is_public(response: httpx.Response) -> bool:
    """Whether it says what is the same on every server: descriptions, assets, pages to sign in."""
    if response.url.path.startswith("/workbench/static/"):
        return True
    return response.status_code in (200, 303) and (
        response.url.path == "/api/v1/openapi.json"
        or "data-signed-out" in response.text
        or response.headers.get("location", "").startswith(
            ("/workbench/sign-in", "/workbench/static/")
        )
    )


def test_a_right_is_checked_before_the_body_is_read(guarded: Running) -> None:
    for token, status in ((None, 401), ("reader", 403), ("asker", 400)):
        with guarded.client(token) as client:
            assert client.post(f"{API}/ask", content=b"{").status_code == status


def test_who_asked_is_on_record(guarded: Running) -> None:
    with guarded.client("all") as client:
        asked = {"question": QUESTION, "mode": "graph"}
        session = client.post(f"{API}/ask", json=asked).json()["explain_id"]
        record = client.get(f"{API}/sessions/{session}/export").text
        assert '"Ann"' in record
        assert "wasAssociatedWith" in record


def test_a_list_has_only_the_collections_of_the_token(guarded: Running) -> None:
    with guarded.client("elsewhere") as client:
        assert client.get("/api/v1/collections").json() == []
        there = client.get("/api/v1/collections/default/sessions")
        absent = client.get("/api/v1/collections/absent/sessions")
        assert there.status_code == absent.status_code == 403
        assert there.json()["detail"].replace("default", "absent") == absent.json()["detail"]
        missing = client.get("/api/v1/collections/elsewhere/sessions")
        assert (missing.status_code, "default" in missing.text) == (404, False)
        assert client.post("/api/v1/collections", json={"name": "mine"}).status_code == 403


def test_a_token_is_taken_back_while_the_server_runs(guarded: Running) -> None:
    file = guarded.root.parent / "g-tokens.toml"
    text = file.read_text()
    with guarded.client("reader") as client:
        assert client.get(f"{API}/sessions").status_code == 200
        file.write_text("")
        assert client.get(f"{API}/sessions").status_code == 401
        file.write_text("[[token")
        assert client.get(f"{API}/sessions").status_code == 401
        file.write_text(text)
        assert client.get(f"{API}/sessions").status_code == 200


def test_each_check_looks_at_every_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So how long it takes says nothing of how much of a token was right, or whose it was."""
    known = [new_token() for _ in range(5)]
    made = [Token(token_hash(each), Access(str(n))) for n, each in enumerate(known)]
    with access.edit_tokens(tmp_path / "t.toml") as stored:
        stored += made
    tokens, compared = Tokens(tmp_path / "t.toml"), []

    def counting(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(
        "tgraph.extensions.server.access.hmac", type("H", (), {"compare_digest": counting})
    )
    for presented in (*known, new_token(), "", "x" * 10_000):
        compared.clear()
        tokens.find(presented)
        assert compared == [(64, 64)] * 5


def test_tokens_are_kept_as_hashes_and_end(tmp_path: Path) -> None:
    file, token = tmp_path / "t.toml", new_token()
    person = 'Ann "the\n\\ second" Łę\x1b'
    one = Token(token_hash(token), Access(person, ("a",), ("read",)), date(2020, 1, 1))
    with access.edit_tokens(file) as stored:
        stored.append(one)
    assert read_tokens(file) == [one]
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert Tokens(file).find(token) is None


def test_commands_that_change_the_tokens_at_once_lose_none(tmp_path: Path) -> None:
    """A created token isn't lost, and a revoked one doesn't come back."""
    file, revoked = tmp_path / "t.toml", Token("ab" * 32, Access("Old", (), ()))
    with access.edit_tokens(file) as stored:
        stored.append(revoked)

    def change(number: int) -> None:
        with access.edit_tokens(file) as stored:
            time.sleep(0.005)
            if number == 3:
                stored.remove(revoked)
            else:
                stored.append(Token(f"{number:064x}", Access(str(number), (), ())))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(change, range(12)))
    assert sorted(t.access.person or "" for t in read_tokens(file)) == sorted(
        str(number) for number in range(12) if number != 3
    )


@pytest.mark.parametrize(
    "text",
    [
        "[[token]]\nperson = 'a'\n",
        "[[token]]\nperson='a'\nhash='md5:00'\ncollections=[]\nrights=[]\n",
        f"[[token]]\nperson='a'\nhash='sha256:{'0' * 64}'\ncollections=[]\nrights=['rule']\n",
        f"[[token]]\nperson='a'\nhash='sha256:{'0' * 64}'\ncollections=[1]\nrights=[]\n",
        "token = 3",
        "\xff",
    ],
)
def test_a_file_of_tokens_that_is_none_admits_nobody(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="token"):
        Tokens(file)


def test_without_tokens_only_this_machine_is_served(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="tokens"):
        Serving(tmp_path, host="0.0.0.0").check()
    Serving(tmp_path, host="::1").check()
    Serving(tmp_path, host="0.0.0.0", tokens=tmp_path / "t").check()


def test_no_page_of_another_origin_reaches_it(tmp_path: Path) -> None:
    with running(make_graph(tmp_path)) as server, server.client() as client:
        rebound = client.get(f"{API}/sessions", headers={"Host": "evil.example:80"})
        foreign = client.get(f"{API}/sessions", headers={"Origin": "https://evil.example"})
        sandboxed = client.get(f"{API}/sessions", headers={"Origin": "null"})
        assert {r.status_code for r in (rebound, foreign, sandboxed)} == {403}
        own = client.get(f"{API}/sessions", headers={"Origin": server.address})
        assert own.status_code == 200
        assert not {name for name in own.headers if name.startswith("access-control")}


def test_a_page_of_another_site_reads_and_records_nothing(guarded: Running) -> None:
    """An image or a script of another site sends the person's cookie; a link that is followed
    shows the person a page."""
    with guarded.client() as client:
        client.post("/workbench/sign-in", data={"token": guarded.tokens["all"]})
        cookie = {"Sec-Fetch-Site": "cross-site"}
        image = {**cookie, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
        for place in (f"{API}/sessions", "/sparql?query=ASK%20%7B%7D", "/workbench"):
            assert client.get(place, headers=image).status_code == 403, place
        link = {**cookie, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert client.get("/workbench/c/default", headers=link).status_code in (200, 303, 404)
        assert client.post(f"{API}/search", json={"text": "x"}, headers=link).status_code == 403


@pytest.mark.slow
def test_what_is_read_by_get_leaves_no_record(guarded: Running) -> None:
    app = create_app(guarded.service, Tokens(guarded.root.parent / "g-tokens.toml"))
    with guarded.client("all") as client:
        before = client.get(f"{API}/sessions").json()
        for method, path in sorted(set(routes(list(app.routes)))):
            if method == "GET" and "{id}" not in path:
                query = {"text": "Who discovered radium?", "question": "Who?", "q": "radium"}
                client.get(filled(path), params=query)
                client.get(filled(path))
        assert client.get(f"{API}/sessions").json() == before


def test_the_commands_make_list_and_take_back(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from tgraph.cli.main import cli

    file = str(tmp_path / "t.toml")
    run = CliRunner().invoke
    made = run(cli, ["tokens", "create", file, "--person", "Ann", "-C", "a", "--right", "index"])
    found = Tokens(Path(file)).find(made.stdout.strip())
    assert found == Access("Ann", ("a",), ("index",))
    assert "Ann" in run(cli, ["tokens", "list", file]).stdout
    digest = token_hash(made.stdout.strip())
    assert run(cli, ["tokens", "revoke", file, "zzzz"]).exit_code == 2
    assert run(cli, ["tokens", "revoke", file, digest[:8]]).exit_code == 0
    assert Tokens(Path(file)).find(made.stdout.strip()) is None


def test_the_graph_that_is_served_is_the_folders(guarded: Running) -> None:
    with guarded.client("all") as client:
        session = client.get(f"{API}/sessions/last").json()["explain_id"]
    parts = small_parts(guarded.root / "cache2")
    with tgraph.open(guarded.root, settings=VALUES, parts=parts) as graph:
        assert graph.sessions.find("last").explain_id == session
        assert graph.integrity().ok
