"""A browser, a server and a page, for the tests that look at the page."""

import os

import pytest

from tests.dashboard.browser import BROWSER, OPTIONS, served


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None and not os.environ.get("CI"):
        pytest.skip("no Chromium here; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("served")
    with served(home) as address:
        yield address, home


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    page.close()
