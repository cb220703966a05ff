"""Figures as text, for a terminal, a report and the page alike."""

from __future__ import annotations

__all__ = ["counted", "fixed", "size"]


def fixed(value: float | None, digits: int = 2, unit: str = "") -> str:
    """A figure with so many digits behind the point: "n/a" where it has no denominator.

    Examples
    --------
    >>> fixed(None), fixed(0.625, 1), fixed(12.5, 1, " tok/s")
    ('n/a', '0.6', '12.5 tok/s')
    """
    return "n/a" if value is None else f"{value:.{digits}f}{unit}"


def counted(count: int, noun: str) -> str:
    """So many of something, in words.

    Examples
    --------
    >>> counted(1, "run"), counted(3, "run")
    ('1 run', '3 runs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size(n_bytes: int) -> str:
    """Bytes for a reader.

    Examples
    --------
    >>> size(81_920), size(12_300_000), size(2_000_000_000)
    ('82 kB', '12.3 MB', '2.0 GB')
    """
    for unit, in_bytes in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= in_bytes:
            return f"{n_bytes / in_bytes:.1f} {unit}"
    return f"{n_bytes / 1e3:.0f} kB"
