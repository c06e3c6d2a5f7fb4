"""The workbench in a real browser (Debian's chromium, driven by playwright), where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.server.conftest import Running, make_graph, running, until
from tgraph.store.folder import GraphFolder

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]
HOME = "/workbench/default/"
PAGES = (
    "", "sessions", "sessions/last", "documents", "documents/curie.txt", "entities",
    "entity?name=Marie+Curie", "curations", "audits", "audits/integrity", "sparql",
    "documents/curie.txt/impact", "resource?iri=http://www.w3.org/ns/prov%23Entity",
    "history", "history/changes", "collections",
    "sparql?query=DESCRIBE+%3Curn%3Atrustgraph%3Aentity%3Amarie-curie%3E",
)  # fmt: skip
NAMELESS = """() => {
  const all = 'input:not([type=hidden]), textarea, select, button, a, img';
  const named = (e) => e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim();
  return [...document.querySelectorAll(all)]
    .filter((e) => !named(e) && !(e.tagName === 'IMG' && e.hasAttribute('alt')))
    .map((e) => e.outerHTML);
}"""
CONTRAST = """() => {
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (e) => { for (; e; e = e.parentElement) {
    const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; }
    return [255, 255, 255]; };
  const weak = [];
  for (const e of document.querySelectorAll('main *, header *, footer *')) {
    if (e.closest('svg, :disabled') || !e.checkVisibility()) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const both = [light(parts(getComputedStyle(e).color)), light(ground(e))];
    const [a, b] = both.sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(e.tagName + ' ' + e.textContent.trim());
  }
  return weak;
}"""  # WCAG 2.2, 1.4.3


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(make_graph(tmp_path_factory.mktemp("browser"))) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(chromium: Any, served: Running, **options: Any) -> Any:
    """A page whose complaints, those about the policy among them, are in ``page.said``."""
    context = chromium.new_context(base_url=served.address, reduced_motion="reduce", **options)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.said = []
    page.on("console", lambda told: page.said.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    return page


@pytest.fixture
def page(chromium: Any, served: Running) -> Iterator[Any]:
    found = opened(chromium, served)
    yield found
    found.context.close()
    assert found.said == []


def ask(page: Any, question: str) -> None:
    page.goto(HOME)
    page.get_by_label("Your question").fill(question)
    page.get_by_text("How, and from what").click()
    page.get_by_label("Mode").select_option("graph")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/sessions/*")


def test_a_question_its_quotes_and_their_page(page: Any) -> None:
    ask(page, "Who discovered polonium?")
    page.get_by_role("link", name="Quote 1").first.click()
    card = page.locator("#quote-1")
    assert card.evaluate("e => e.matches(':target')")
    card.get_by_role("link").first.click()
    page.wait_for_url("**/documents/**")
    assert page.locator("mark#quote").inner_text() == "Marie Curie discovered polonium."
    assert page.locator("mark#quote").evaluate("e => e.getBoundingClientRect().top >= 0")


def test_steps_are_shown_while_they_happen(page: Any) -> None:
    page.goto(HOME)
    page.evaluate("""() => { window.seen = []; new MutationObserver(() => {
      const steps = document.querySelectorAll('.live-steps li').length;
      sessionStorage.setItem('steps', Math.max(steps, sessionStorage.getItem('steps') || 0));
    }).observe(document.querySelector('[data-live]'), { childList: true, subtree: true }); }""")
    page.get_by_label("Your question").fill("Who discovered radium?")
    page.get_by_label("Your question").press("Enter")
    page.wait_for_url("**/sessions/*")
    assert int(page.evaluate("sessionStorage.getItem('steps')")) >= 3


def test_what_goes_wrong_is_said(page: Any, served: Running) -> None:
    page.goto(HOME)
    page.get_by_text("How, and from what").click()
    page.get_by_label("Documents since").fill("nonsense")
    page.get_by_label("Your question").fill("Who?")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("alert").first.wait_for()
    assert page.url.endswith(HOME)


def test_the_picture_is_moved_and_followed(page: Any) -> None:
    ask(page, "Who discovered radium?")
    figure = page.locator("figure[data-picture]").first
    picture = figure.locator("svg")
    whole = picture.get_attribute("viewBox")
    figure.get_by_role("button", name="Larger").click()
    assert picture.get_attribute("viewBox") != whole
    figure.get_by_role("button", name="All of it").click()
    assert picture.get_attribute("viewBox") == whole
    figure.focus()
    page.keyboard.press("ArrowRight")
    assert picture.get_attribute("viewBox") != whole
    page.keyboard.press("0")
    box = picture.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 60, steps=4)
    page.mouse.up()
    assert picture.get_attribute("viewBox") != whole
    figure.get_by_role("button", name="All of it").click()
    figure.locator("a.node").first.click()
    page.wait_for_url("**/entity?*")
    assert page.get_by_role("heading", level=1).inner_text()


def test_a_file_is_uploaded_and_indexed(page: Any, tmp_path: Path) -> None:
    (tmp_path / "bohr.txt").write_text("Niels Bohr lived in Copenhagen.\n")
    page.goto(f"{HOME}documents")
    page.get_by_label("Bring documents").set_input_files(tmp_path / "bohr.txt")
    page.get_by_role("button", name="Upload and index").click()
    page.wait_for_url("**/jobs/*")
    page.get_by_role("link", name="Ask a question").wait_for()
    page.get_by_role("link", name="Documents").last.click()
    assert page.get_by_role("link", name="bohr").count()


def test_why_not_and_verify(page: Any) -> None:
    ask(page, "Who discovered polonium?")
    page.get_by_label("What you expected").fill("Marie Curie discovered radium.")
    page.get_by_role("button", name="Tell me why").click()
    page.wait_for_url("**expected=*")
    assert page.locator("#why-not").is_visible()
    assert page.get_by_role("status").count() == 1
    page.get_by_role("button", name="Verify").click()
    page.wait_for_url("**verified=yes*")
    assert page.locator(".answer .tag").count()


def test_an_audit_and_a_query(page: Any) -> None:
    page.goto(f"{HOME}audits")
    page.get_by_role("link", name="The record against its seals").click()
    page.wait_for_url("**/audits/integrity")
    assert "Passed" in page.get_by_role("status").inner_text()
    page.get_by_role("link", name="SPARQL").click()
    page.wait_for_url("**/sparql")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("link", name="Marie Curie").or_(
        page.locator("td", has_text="Marie Curie")
    ).first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_each_page_fits_and_can_be_read(
    chromium: Any, served: Running, scheme: str, width: int
) -> None:
    page = opened(chromium, served, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for path in PAGES:
        page.goto(HOME + path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert page.evaluate(NAMELESS) == [], path
        assert page.evaluate(CONTRAST) == [], path
    assert page.said == []
    page.context.close()


def test_everything_is_done_by_keyboard(page: Any) -> None:
    page.goto(HOME)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    reached: list[str] = []
    until(lambda: page.evaluate("location.hash") == "#main")
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.name || document.activeElement.textContent")
        )
    assert "question" in reached
    assert "Ask" in reached


def test_all_of_it_works_without_javascript(chromium: Any, served: Running, tmp_path: Path) -> None:
    page = opened(chromium, served, java_script_enabled=False)
    ask(page, "Who discovered polonium?")
    assert page.locator("figure button").count() == 0
    page.get_by_role("link", name="Quote 1").first.click()
    page.locator("#quote-1").get_by_role("link").first.click()
    assert page.locator("mark#quote").inner_text() == "Marie Curie discovered polonium."
    (tmp_path / "hahn.txt").write_text("Otto Hahn lived in Frankfurt.\n")
    page.goto(f"{HOME}documents")
    page.get_by_label("Bring documents").set_input_files(tmp_path / "hahn.txt")
    page.get_by_role("button", name="Upload and index").click()
    page.wait_for_url("**/jobs/*")
    page.get_by_role("link", name="Ask a question").wait_for()  # the page comes again by itself
    page.context.close()


def test_dropped_files_are_indexed_and_the_first_question_is_answered(
    chromium: Any, tmp_path: Path
) -> None:
    folder = GraphFolder.create(tmp_path / "graph")
    folder.collection("default", create=True)
    with running(folder.path) as server:
        page = opened(chromium, server)
        page.goto("/")
        files = page.evaluate_handle(
            """() => { const files = new DataTransfer();
            files.items.add(new File(["Marie Curie discovered polonium in Paris."], "curie.txt"));
            return files; }"""
        )
        page.dispatch_event("form.upload", "drop", {"dataTransfer": files})
        page.wait_for_url("**/jobs/*")
        page.wait_for_url("**/sessions/*", timeout=120_000)
        assert page.get_by_role("heading", level=1).inner_text()
        assert page.locator(".answer").count()
        page.context.close()
        assert page.said == []
