"""The page of `kdsl lab report` in headless Chromium: it draws every plot, asks nobody, and works by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import chromium
from tests.cli.command_line import kdsl
from tests.lab.report.folders import digest_of, write_results, write_timed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REASON = chromium.missing()
pytestmark = pytest.mark.skipif(REASON is not None and not chromium.REQUIRED, reason=REASON or "")

HOSTILE = "</script><img src=x onerror=alert(1)>"
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert REASON is None, REASON
    with chromium.chromium() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a page of each kind: at loads, over time, with hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    write_results(folder / "loads")
    (folder / "loads.yaml").write_text("", encoding="utf-8")
    write_timed(folder / "time", traces=("week", "weekend"))
    write_results(
        folder / "hostile", (HOSTILE, "other"), (HOSTILE, "var(--ink)", "datum.x; 1"), pod_name=HOSTILE
    )
    for name in ("loads", "time", "hostile"):
        assert kdsl("lab", "report", str(folder / name)).exit_code == 0
    return {name: folder / f"{name}.html" for name in ("loads", "time", "hostile")}


@dataclass
class Opened:
    """A page and all that must not happen on it."""

    page: Page
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def check(self, path: Path) -> None:
        """Check that nothing was requested but the page, nothing was said, and nothing was forbidden."""
        assert self.requests == [path.as_uri()]
        assert self.said == []
        assert self.page.evaluate("window.violations") == []


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Any]:
    contexts = []

    def open_it(path: Path, size: str = "wide", colours: str = "light") -> Opened:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=colours,
            reduced_motion="reduce",
            offline=True,
        )
        contexts.append(context)
        context.add_init_script(VIOLATIONS)
        opened = Opened(context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.said.append(message.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.page.on("dialog", lambda dialog: opened.said.append(f"dialog: {dialog.message}"))
        opened.page.goto(path.as_uri())
        opened.page.wait_for_selector("html[data-drawn]")
        return opened

    yield open_it
    for context in contexts:
        context.close()


MARKS = """
() => [...document.querySelectorAll("figure:not([hidden]) .plot")].map((plot) => [
  plot.id,
  [...plot.querySelectorAll("svg .mark-line path, svg .mark-symbol path, svg .mark-rect path, svg .mark-area path")]
    .filter((mark) => { const box = mark.getBoundingClientRect(); return box.width + box.height > 1; }).length,
])
"""


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["loads", "time", "hostile"])
def test_every_plot_is_drawn_and_nobody_is_asked(
    kind: str, size: str, colours: str, pages: dict[str, Path], open_page: Any, tmp_path: Path
) -> None:
    opened = open_page(pages[kind], size, colours)
    page = opened.page
    counts = dict(page.evaluate(MARKS))
    assert len(counts) == (15 if kind == "time" else 10)
    assert [plot for plot, marks in counts.items() if marks < 2] == []
    assert page.locator(".failed").count() == 0
    # Nothing is wider than the screen but what scrolls by itself.
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    picture = page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert picture.startswith(b"\x89PNG") and len(picture) > 50_000
    opened.check(pages[kind])


def test_another_trace_draws_its_own_plots(pages: dict[str, Path], open_page: Any) -> None:
    opened = open_page(pages["loads"])
    page = opened.page
    assert page.locator("#load-allocation-1").is_hidden()
    page.select_option("#trace", "1")
    page.wait_for_selector("html[data-drawn='1']")
    assert page.locator("#load-allocation-0").is_hidden()
    counts = dict(page.evaluate(MARKS))
    assert "plot-load-allocation-1" in counts and min(counts.values()) >= 2
    assert page.locator("#figures h3:visible").first.text_content() == "Trace other"
    opened.check(pages["loads"])


def test_the_policy_of_the_page_is_in_force(pages: dict[str, Path], open_page: Any) -> None:
    page = open_page(pages["loads"]).page
    # Playwright's own `evaluate` may compile text; what it leaves behind may not.
    page.evaluate("setTimeout('window.ran = 1', 0)")
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => 0)")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    page.wait_for_function("window.violations.length >= 3")
    assert page.evaluate("window.ran") is None
    assert sorted(page.evaluate("window.violations")) == ["connect-src", "script-src", "script-src-elem"]


def test_plots_follow_light_and_dark(pages: dict[str, Path], open_page: Any) -> None:
    found = {}
    script = """() => [
      getComputedStyle(document.body).backgroundColor,
      getComputedStyle(document.querySelector("#plot-load-allocation-0 .role-axis-label text")).fill,
    ]"""
    for colours in ("light", "dark"):
        found[colours] = open_page(pages["loads"], colours=colours).page.evaluate(script)
    assert found == {
        "light": ["rgb(255, 255, 255)", "rgb(86, 97, 117)"],
        "dark": ["rgb(21, 27, 38)", "rgb(162, 173, 189)"],
    }
    printed = open_page(pages["loads"], colours="dark").page
    printed.emulate_media(media="print")
    assert printed.evaluate(script) == found["light"]
    assert printed.locator("nav").is_hidden()


def test_a_dot_leads_to_its_run_and_a_row_to_its_decision(pages: dict[str, Path], open_page: Any) -> None:
    opened = open_page(pages["loads"])
    page = opened.page
    dots = page.locator("#plot-seeds-allocation-0 path[aria-roledescription='point']")
    assert dots.count() == 9
    dots.nth(4).scroll_into_view_if_needed()
    dots.nth(4).hover()
    assert page.locator("#tip").inner_text().split("\n") == [
        "BestFit",
        "seed",
        "43",
        "Allocation (%)",
        "93.00",
    ]
    dots.nth(4).click()
    run = digest_of("default", "BestFit", 43)
    page.wait_for_url(f"**#run-{run}")
    assert page.locator("#run h3").inner_text() == f"BestFit on default: run {run[:12]}"
    rows = page.locator("#run table.decisions tbody tr")
    assert rows.count() == 40
    page.get_by_placeholder("pod, node or reason").fill("insufficient MEMORY")
    assert rows.count() == 4
    rows.nth(0).get_by_role("link").click()
    page.wait_for_url(f"**#run-{run}/9")
    text = page.locator("#decision").inner_text()
    assert "pod-9 arrived as number 10." in text and "It has no node: 0/4 nodes are available" in text
    assert f"loads.yaml {run[:12]} pod-9" in text
    opened.check(pages["loads"])


def test_the_page_works_by_keyboard(pages: dict[str, Path], open_page: Any) -> None:
    opened = open_page(pages["loads"])
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the figures"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "trace"
    head = page.locator("#figures .of-trace:visible table").first.get_by_role("button", name="Allocation %")
    names = page.locator("#figures .of-trace:visible table").first.locator("tbody th")
    head.focus()
    page.keyboard.press("Enter")
    assert names.all_inner_texts() == ["Random", "BestFit", "FGD"]
    page.keyboard.press("Enter")
    assert names.all_inner_texts() == ["FGD", "BestFit", "Random"]
    assert page.locator("#figures th[aria-sort='descending']").count() == 1
    page.locator("#find-runs").focus()
    page.keyboard.type("other random 44")
    assert page.locator("#runs-table tbody tr:visible").count() == 1
    page.locator("#runs-table tbody tr:visible a").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#run h3")
    assert page.evaluate("document.activeElement.id") == "run"
    # What scrolls is reached by keyboard, and has a name.
    unnamed = page.locator(
        ".scroll:not([tabindex='0']), .scroll:not([aria-label]), .canvas:not([aria-label])"
    )
    assert unnamed.count() == 0
    opened.check(pages["loads"])


def test_hostile_names_stay_text(pages: dict[str, Path], open_page: Any) -> None:
    opened = open_page(pages["hostile"])
    page = opened.page
    page.locator("#runs-table tbody a").nth(1).click()
    page.wait_for_selector("#run h3")
    assert HOSTILE in page.locator("#run h3").inner_text()
    page.locator(".decisions tbody a").first.click()
    page.wait_for_selector("#decision")
    assert f"{HOSTILE}-0" in page.locator("#decision").inner_text()
    assert page.locator("img").count() == 0
    opened.check(pages["hostile"])
