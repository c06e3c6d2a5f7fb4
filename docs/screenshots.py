"""The screenshots in ``docs/images``: ``python docs/screenshots.py``.

Needs playwright (``pip install -e '.[dev]'``) and chromium on the path. They are of the example
corpus, asked with the embedded default.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
QUESTION = "Who led the Nimrod expedition?"


def main() -> None:
    """Index, serve, ask, and take each picture."""
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "g"
        corpus = ROOT / "examples" / "antarctica"
        subprocess.run([_tgraph(), "index", corpus, "--root", graph, "--quiet"], check=True)
        command = [_tgraph(), "serve", "--root", graph, "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            address = server.stderr.readline().rpartition(" at ")[2].strip().rstrip("/")
            try:
                _pictures(address)
            finally:
                server.terminate()


def _tgraph() -> str:
    return str(Path(sys.executable).with_name("tgraph"))


def _pictures(address: str) -> None:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        wide = {"width": 1200, "height": 800}
        page = browser.new_page(base_url=address, viewport=wide, reduced_motion="reduce")
        _ask(page)
        _taken(page, "workbench-answer")
        page.locator("#used").scroll_into_view_if_needed()
        page.locator("figure[data-picture]").first.screenshot(path=IMAGES / "workbench-picture.png")
        page.goto("/workbench/default/sessions/last")
        page.locator("#quote-2").get_by_role("link").first.click()
        page.wait_for_url("**/documents/**")
        _taken(page, "workbench-page")
        phone = browser.new_page(
            base_url=address, viewport={"width": 390, "height": 780}, color_scheme="dark"
        )
        phone.goto("/workbench/default/sessions/last")
        _taken(phone, "workbench-phone")
        browser.close()


def _ask(page: Page) -> None:
    page.goto("/workbench/default/")
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/sessions/*")


def _taken(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    main()
