"""Takes the picture of a report that docs/lab.md shows: `python -m tests.browser.screenshot PAGE.html OUT.png`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.browser.chromium import chromium

WIDTH, HEIGHT = 1180, 2080


def take(page: Path, out: Path) -> None:
    """Write what one sees first of the plots of a page."""
    with chromium() as browser:
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(page.resolve().as_uri())
        opened.wait_for_selector("html[data-drawn]")
        opened.screenshot(path=out)


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
