"""Headless Chromium for tests, driven by Playwright over the DevTools protocol.

`python -m tests.browser.chromium` prints where Chromium is, and ends with 1 where there is none.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
REQUIRED: Final = os.environ.get("KDSL_BROWSER") == "required"
"""Whether a missing browser is a failure, as in `make test-browser` where Chromium is installed."""
OPTIONS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable() -> str | None:
    """Return where Chromium is installed, None if it is not."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def missing() -> str | None:
    """Return why tests cannot use a browser, None if they can."""
    if executable() is None:
        return "Chromium is not installed; `make test-browser` installs it where it may"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed; `make test-browser` installs it"
    return None


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium with a new profile, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), headless=True, args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__":
    found = executable()
    print(found or "Chromium is not installed", file=sys.stdout if found else sys.stderr)
    sys.exit(0 if found else 1)
