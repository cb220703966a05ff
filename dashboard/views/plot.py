"""A chart on the page, with the same behaviour everywhere."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

__all__ = ["plot"]

CONFIG = {"displayModeBar": False}
"""No toolbar: it would cover the legend and the bars. A double click takes a zoom back."""


def plot(figure: go.Figure, *, key: str) -> None:
    """Draw a chart.

    Parameters
    ----------
    figure : Figure
    key : str
        Streamlit's key.
    """
    st.plotly_chart(figure, key=key, config=CONFIG)
