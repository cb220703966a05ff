"""Fetching a model beside the page: a piece of work whose progress the page can ask for."""

from __future__ import annotations

import math
from pathlib import Path
from threading import Lock

from dashboard.work import Work
from engine.errors import DownloadError
from engine.models import catalog
from engine.stopping import Stopped

__all__ = ["download", "start_download"]

_lock = Lock()
_downloads: dict[str, Work[Path]] = {}


def download(name: str) -> Work[Path] | None:
    """The latest download of that model in this process; it counts bytes."""
    return _downloads.get(name)


def start_download(name: str) -> None:
    """Start a download, unless one of that model is under way. It goes on without somebody who looks."""

    def pull(work: Work[Path]) -> Path:
        try:
            return catalog.pull(
                name, progress=lambda done, total: work.progress(name, done, total), cancelled=work.cancelled
            )
        except DownloadError:
            if work.cancelled():
                raise Stopped from None
            raise

    with _lock:
        current = _downloads.get(name)
        if current is None or current.finished:
            _downloads[name] = Work(pull, f"download-{name}", idle_seconds=math.inf)
            _downloads[name].start()
