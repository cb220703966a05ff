"""A polite kill does what Ctrl-C does: long measuring ends with what it has."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stop_signals"]


@contextmanager
def stop_signals() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP where there is one, raise `KeyboardInterrupt`.

    A shell lets a command in the background ignore SIGINT, so that SIGTERM is the way to end it. What
    whoever started us lets us ignore stays ignored, such as SIGHUP under `nohup`.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heeded = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
