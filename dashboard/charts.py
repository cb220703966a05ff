"""Frames to Plotly figures. Pure; the live charts are drawn by the live view in the browser."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

__all__ = ["kinds_chart", "positions_chart", "runs_chart"]

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


def kinds_chart(frame: pd.DataFrame) -> go.Figure:
    """Share of accepted tokens by kind, with its interval.

    Parameters
    ----------
    frame : DataFrame
        As `dashboard.frames.kinds_frame` gives it. Kinds that were never tested are left out.
    """
    known = frame.dropna(subset=["share"])
    figure = go.Figure(
        go.Bar(
            x=known["share"],
            y=[f"{row.kind}, {row.accepted} of {row.tested}" for row in known.itertuples()],
            orientation="h",
            marker={"color": OKABE_ITO[2], "opacity": 0.55},
            error_x=_interval(known),
            customdata=known[["low", "high"]].to_numpy(),
            hovertemplate="%{y} tested: %{x:.3f}<br>95 %: %{customdata[0]:.3f} to %{customdata[1]:.3f}<extra></extra>",
        )
    )
    figure.update_layout(
        height=80 + 34 * len(known),
        margin={"l": 8, "r": 16, "t": 8, "b": 44},
        xaxis={"title": "share accepted, with 95 % interval", "range": [0, 1.02]},
        yaxis={"autorange": "reversed", "automargin": True},
    )
    return figure


def positions_chart(frame: pd.DataFrame) -> go.Figure:
    """Share of accepted tokens by draft position, of the tested and of the drafted ones, with intervals.

    Parameters
    ----------
    frame : DataFrame
        As `dashboard.frames.positions_frame` gives it. Positions that were never reached leave a gap.
    """
    figure = go.Figure()
    looks = {
        "conditional": ("tested", OKABE_ITO[0], "diamond", "dash", 0.06),
        "survival": ("drafted", OKABE_ITO[2], "circle", "solid", -0.06),
    }
    for what, (base, colour, symbol, dash, shift) in looks.items():
        rows = frame[(frame["what"] == what)].dropna(subset=["share"])
        figure.add_trace(
            go.Scatter(
                x=rows["position"] + shift,
                y=rows["share"],
                name=f"accepted / {base}",
                mode="lines+markers",
                line={"color": colour, "dash": dash},
                marker={"symbol": symbol, "size": 9},
                error_y=_interval(rows),
                customdata=rows[["position", "accepted", "tested", "low", "high"]].to_numpy(),
                hovertemplate="position %{customdata[0]}: %{y:.3f}<br>"
                f"%{{customdata[1]}} of %{{customdata[2]}} {base}<br>"
                "95 %: %{customdata[3]:.3f} to %{customdata[4]:.3f}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_layout(
        height=320,
        margin={"l": 48, "r": 16, "t": 16, "b": 44},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        xaxis={"title": "position in the draft", "dtick": 1},
        yaxis={"title": "share accepted, with 95 % interval", "range": [-0.02, 1.02]},
    )
    return figure


def _interval(frame: pd.DataFrame) -> dict[str, object]:
    """The ends of the interval, as Plotly wants them: distances from the share."""
    return {
        "type": "data",
        "symmetric": False,
        "array": frame["high"] - frame["share"],
        "arrayminus": frame["share"] - frame["low"],
        "color": "#888888",
        "thickness": 2,
        "width": 4,
    }
