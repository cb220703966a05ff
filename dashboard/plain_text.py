"""Text of others inside of Streamlit's Markdown: shown as it is, with no link, picture or formula in it."""

from __future__ import annotations

import re

__all__ = ["plain"]

SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])")


def plain(text: str) -> str:
    """The text with every sign escaped that Markdown gives a meaning to, on one line.

    Examples
    --------
    >>> print(plain("![x](http://example.org/x.png)"))
    \\!\\[x\\]\\(http\\://example\\.org/x\\.png\\)
    """
    return SIGNS.sub(r"\\\1", " ".join(text.split()))
