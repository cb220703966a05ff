"""Fetching a model beside the page: one thread, whose progress the page can ask for."""

from __future__ import annotations

from threading import Event, Lock, Thread

from engine.errors import DraftscopeError
from engine.models import catalog

__all__ = ["Download", "download", "start_download"]


class Download:
    """The download of one model.

    Attributes
    ----------
    done, total : int
        Bytes so far and in all; total is 0 until it is known.
    error : str
        What went wrong, in words for a user.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = 0
        self.total = 0
        self.error = ""
        self._cancelled = Event()
        self._thread = Thread(target=self._run, name=f"download-{name}", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        """Whether it is under way."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Stop, and leave nothing behind."""
        self._cancelled.set()

    def _run(self) -> None:
        try:
            catalog.pull(self.name, progress=self._progress, cancelled=self._cancelled.is_set)
        except DraftscopeError as failure:
            self.error = "" if self._cancelled.is_set() else str(failure)
        except Exception as failure:
            self.error = f"{type(failure).__name__}: {failure}"

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total


_lock = Lock()
_downloads: dict[str, Download] = {}


def download(name: str) -> Download | None:
    """The latest download of that model in this process."""
    return _downloads.get(name)


def start_download(name: str) -> None:
    """Start a download, unless one of that model is under way."""
    with _lock:
        current = _downloads.get(name)
        if current is None or not current.active:
            _downloads[name] = Download(name)
