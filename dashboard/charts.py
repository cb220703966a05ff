"""Frames to Plotly figures. Pure; the live charts are drawn by the live view in the browser."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

__all__ = ["runs_chart"]

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
SYMBOLS = ("circle", "square", "diamond", "cross", "x", "triangle-up")


def runs_chart(frame: pd.DataFrame) -> go.Figure:
    """Every run at its per-token acceptance and tokens per step, one colour and symbol for a drafter.

    Parameters
    ----------
    frame : DataFrame
        As `dashboard.frames.runs_frame` gives it. Runs without a figure are left out.
    """
    figure = go.Figure()
    known = frame.dropna(subset=["per_token_acceptance", "tokens_per_step"])
    for place, (drafter, runs) in enumerate(known.groupby("drafter", sort=True)):
        figure.add_trace(
            go.Scatter(
                x=runs["per_token_acceptance"],
                y=runs["tokens_per_step"],
                mode="markers",
                name=str(drafter),
                marker={
                    "color": OKABE_ITO[place % len(OKABE_ITO)],
                    "symbol": SYMBOLS[place % len(SYMBOLS)],
                    "size": 10,
                    "opacity": 0.85,
                },
                customdata=runs[["id", "target", "rule", "draft_length"]].to_numpy(),
                hovertemplate="%{customdata[1]}, rule %{customdata[2]}, draft length %{customdata[3]}<br>"
                "per-token acceptance %{x:.3f}<br>tokens per step %{y:.2f}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_layout(
        height=320,
        margin={"l": 48, "r": 16, "t": 16, "b": 44},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        xaxis={"title": "per-token acceptance", "range": [-0.02, 1.02]},
        yaxis={"title": "tokens per step", "rangemode": "tozero"},
    )
    return figure
