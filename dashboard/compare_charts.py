"""Results of comparisons and what-ifs to Plotly figures. Pure: every number is the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard.charts import OKABE_ITO, SYMBOLS

__all__ = ["category_chart", "cost_chart", "prediction_chart", "speed_up_chart", "time_chart"]

BLUE, ORANGE, GREEN, PINK, SKY, RED = OKABE_ITO
GREY = "#8A94A0"
PARTS = {"draft": (ORANGE, ""), "verify": (BLUE, ""), "overhead": (GREY, "/")}
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
MARGIN = {"l": 8, "r": 24, "t": 16, "b": 44}

Rows = Sequence[Mapping[str, Any]]


def speed_up_chart(rows: Rows) -> go.Figure:
    """The speed-ups of the configurations with their intervals, decode-only and with prefill."""
    figure = go.Figure()
    marks = (
        ("decoding alone", "speed_up", BLUE, "circle"),
        ("with prefill", "speed_up_with_prefill", ORANGE, "diamond"),
    )
    for name, key, colour, symbol in marks:
        known = [row for row in rows if row[key]]
        _intervals(figure, [(row["name"], row[key]) for row in known], colour)
        figure.add_trace(
            go.Scatter(
                x=[row[key]["value"] for row in known],
                y=[row["name"] for row in known],
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 11},
                hovertemplate="%{y}: %{x:.2f}x<extra>%{fullData.name}</extra>",
            )
        )
    figure.add_vline(x=1, line={"color": GREY, "dash": "dot", "width": 1.5})
    return _laid_out(figure, len(rows), "speed-up (1 = plain decoding), 95 % interval")


def time_chart(rows: Rows) -> go.Figure:
    """Where the time of a token goes: a stacked bar for each configuration, in milliseconds."""
    figure = go.Figure()
    for part, (colour, pattern) in PARTS.items():
        known = [row for row in rows if row[f"{part}_seconds_per_token"] is not None]
        figure.add_trace(
            go.Bar(
                x=[1000 * row[f"{part}_seconds_per_token"] for row in known],
                y=[row["name"] for row in known],
                orientation="h",
                name=part,
                marker={"color": colour, "pattern": {"shape": pattern}},
                customdata=[row[f"{part}_share"] for row in known],
                hovertemplate="%{y}: %{x:.3g} ms, %{customdata:.1%}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_layout(barmode="stack", bargap=0.45)
    return _laid_out(figure, len(rows), "milliseconds a token")


def category_chart(rows: Rows, categories: Sequence[str]) -> go.Figure:
    """Speed-up by category, one colour and symbol for a configuration."""
    figure = go.Figure()
    for place, row in enumerate(rows):
        known = [(category, row["by_category"][category]) for category in categories if row["by_category"][category]]
        colour = OKABE_ITO[place % len(OKABE_ITO)]
        figure.add_trace(
            go.Scatter(
                x=[category for category, _ in known],
                y=[estimate["value"] for _, estimate in known],
                mode="markers+lines",
                name=row["name"],
                line={"color": colour, "width": 1, "dash": "dot"},
                marker={"color": colour, "symbol": SYMBOLS[place % len(SYMBOLS)], "size": 10},
                hovertemplate="%{x}: %{y:.2f}x<extra>%{fullData.name}</extra>",
            )
        )
    figure.add_hline(y=1, line={"color": GREY, "dash": "dot", "width": 1.5})
    figure.update_layout(
        height=320,
        margin=MARGIN,
        legend=LEGEND,
        yaxis={"title": "speed-up", "rangemode": "tozero"},
        xaxis={"fixedrange": True},
    )
    return figure


def cost_chart(verify: Sequence[float]) -> go.Figure:
    """The cost curve v(m): a target call for m new tokens in units of a call for one."""
    figure = go.Figure(
        go.Scatter(
            x=list(range(1, len(verify) + 1)),
            y=list(verify),
            mode="lines+markers",
            line={"color": BLUE},
            marker={"size": 6},
            hovertemplate="v(%{x}) = %{y:.2f}<extra></extra>",
        )
    )
    figure.update_layout(
        height=240,
        margin={**MARGIN, "l": 48},
        xaxis={"title": "tokens verified in one call, m"},
        yaxis={"title": "v(m), plain calls", "rangemode": "tozero"},
    )
    return figure


def prediction_chart(found: Mapping[str, Any]) -> go.Figure:
    """Predicted speed-up at every draft length, the theory beside it, the best, and what was measured.

    Parameters
    ----------
    found : mapping
        See `engine.what_if.what_if`.
    """
    figure = go.Figure()
    for name, key, colour, dash in (("predicted", "predicted", BLUE, "solid"), ("theory", "theory", GREY, "dash")):
        figure.add_trace(
            go.Scatter(
                x=found["lengths"],
                y=found[key],
                mode="lines+markers" if key == "predicted" else "lines",
                name=name,
                line={"color": colour, "dash": dash},
                marker={"size": 5},
                hovertemplate="draft length %{x}: %{y:.2f}x<extra>%{fullData.name}</extra>",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[found["best_length"]],
            y=[found["best_speed_up"]],
            mode="markers+text",
            name="best",
            showlegend=False,  # its label says it
            text=[f"best: {found['best_length']}"],
            textposition=f"top {_side(found['best_length'], found['lengths'])}",
            cliponaxis=False,
            marker={"color": GREEN, "symbol": "star", "size": 16},
            hovertemplate="best draft length %{x}: %{y:.2f}x<extra></extra>",
        )
    )
    points = found["points"]
    for point in points:
        if point["low"] is not None:
            _line(figure, [point["draft_length"]] * 2, [point["low"], point["high"]], RED)
    if points:
        figure.add_trace(
            go.Scatter(
                x=[point["draft_length"] for point in points],
                y=[point["measured"] for point in points],
                mode="markers",
                name="measured",
                marker={"color": RED, "symbol": "diamond", "size": 11},
                customdata=[point["off_by"] for point in points],
                hovertemplate="measured at %{x}: %{y:.2f}x, %{customdata:+.1%} from the prediction<extra></extra>",
            )
        )
    figure.add_hline(y=1, line={"color": GREY, "dash": "dot", "width": 1.5})
    figure.update_layout(
        height=380,
        margin={**MARGIN, "l": 48},
        legend=LEGEND,
        xaxis={"title": "draft length", "dtick": 1, "range": [-0.5, found["lengths"][-1] + 0.5]},
        yaxis={"title": "speed-up over plain decoding", "rangemode": "tozero"},
    )
    return figure


def _side(length: int, lengths: Sequence[int]) -> str:
    """Where a label at this draft length has room: at the ends, towards the middle."""
    if length <= lengths[0] + 1:
        return "right"
    return "left" if length >= lengths[-1] - 1 else "center"


def _intervals(figure: go.Figure, estimates: Sequence[tuple[str, Mapping[str, Any]]], colour: str) -> None:
    for name, estimate in estimates:
        if estimate["low"] is not None:
            _line(figure, [estimate["low"], estimate["high"]], [name, name], colour)


def _line(figure: go.Figure, x: Sequence[Any], y: Sequence[Any], colour: str) -> None:
    figure.add_trace(
        go.Scatter(
            x=x, y=y, mode="lines", line={"color": colour, "width": 4}, opacity=0.55, showlegend=False, hoverinfo="skip"
        )
    )


def _laid_out(figure: go.Figure, n_rows: int, title: str) -> go.Figure:
    figure.update_layout(
        height=130 + 44 * max(n_rows, 1),
        margin=MARGIN,
        legend=LEGEND,
        xaxis={"title": title, "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
    )
    return figure
