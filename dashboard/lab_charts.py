"""What the lab found to Plotly figures. Pure: every number is the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from dashboard.charts import OKABE_ITO
from engine.lab.check import CheckedCell

__all__ = ["check_chart"]

BLUE, ORANGE, GREEN, PINK, SKY, RED = OKABE_ITO
GREY = "#8A94A0"
MOST_CELLS = 24
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def check_chart(cells: Sequence[CheckedCell]) -> go.Figure:
    """Observed beside expected counts of the most expected cells and of all others, with two standard deviations."""
    shown = [*cells[: MOST_CELLS - 1], *cells[-1:]] if len(cells) > MOST_CELLS else list(cells)
    names = [label(cell.text) for cell in shown]
    figure = go.Figure()
    figure.add_trace(
        go.Bar(
            y=names,
            x=[cell.expected for cell in shown],
            orientation="h",
            name="expected of the target",
            marker={"color": BLUE, "opacity": 0.55},
            error_x={"array": [2 * cell.spread for cell in shown], "color": GREY, "thickness": 2, "width": 4},
            hovertemplate="%{y}: %{x:.1f} expected, 95 %: ± %{error_x.array:.1f}<extra></extra>",
        )
    )
    figure.add_trace(
        go.Bar(
            y=names,
            x=[cell.observed for cell in shown],
            orientation="h",
            name="observed",
            marker={"color": ORANGE, "pattern": {"shape": "/"}},
            hovertemplate="%{y}: %{x} observed<extra></extra>",
        )
    )
    figure.update_layout(
        barmode="group",
        height=90 + 30 * len(shown),
        margin={"l": 8, "r": 24, "t": 16, "b": 44},
        legend=LEGEND,
        xaxis={"title": "runs that began so"},
        yaxis={"autorange": "reversed", "automargin": True},
    )
    return figure


def label(text: str) -> str:
    """A token's text as a label: blanks can be seen, and nothing in it is taken for a tag."""
    return escape(text.replace("\n", "⏎").replace(" ", "␣")) if text != "all others" else text
