"""Fetching a model beside the page."""

from pathlib import Path
from threading import Event

import pytest

from dashboard import downloads
from engine.errors import DownloadError
from engine.models import catalog


@pytest.fixture
def pulled(monkeypatch):
    """Start a download that does what is given, and give its work."""
    monkeypatch.setattr(downloads, "_downloads", {})

    def start(pull):
        monkeypatch.setattr(catalog, "pull", pull)
        downloads.start_download("a-model")
        return downloads.download("a-model")

    return start


def test_it_tells_how_far_it_is_and_what_came_of_it(pulled):
    def pull(name, progress, cancelled):
        progress(30, 120)
        return Path(name)

    work = pulled(pull)
    work.join(10)
    assert (work.done, work.total, work.share) == (30, 120, 0.25)
    assert (work.finished, work.result, work.error) == (True, Path("a-model"), "")


def test_trouble_is_told_in_words(pulled):
    def pull(name, progress, cancelled):
        raise DownloadError("no network")

    work = pulled(pull)
    work.join(10)
    assert (work.result, work.error) == (None, "no network")


def test_one_that_was_cancelled_is_no_trouble_and_another_can_be_started(pulled):
    started = Event()

    def pull(name, progress, cancelled):
        started.set()
        while not cancelled():
            pass
        raise DownloadError("cancelled")

    work = pulled(pull)
    started.wait(10)
    downloads.start_download("a-model")
    assert downloads.download("a-model") is work  # one is under way
    work.stop()
    work.join(10)
    assert (work.finished, work.error) == (True, "")
    assert pulled(lambda name, progress, cancelled: Path(name)) is not work
