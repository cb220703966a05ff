"""Where the server has what is fetched from it: Streamlit's `server.baseUrlPath` stands before every path."""

from __future__ import annotations

import streamlit as st

__all__ = ["address"]


def address(path: str) -> str:
    """The path as a browser asks for it.

    Parameters
    ----------
    path : str
        Begins with "/".

    Examples
    --------
    >>> address("/metrics")
    '/metrics'
    """
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path
