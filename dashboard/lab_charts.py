"""What the lab found to Plotly figures. Pure: every number is the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.charts import OKABE_ITO, SYMBOLS
from engine.lab.check_result import CheckedCell
from engine.lab.trace import Trace

__all__ = ["accepted_chart", "bias_chart", "check_chart", "lengths_chart"]

BLUE, ORANGE, GREEN, PINK, SKY, RED = OKABE_ITO
GREY = "#8A94A0"
MOST_CELLS = 16
MOST_NUMBERS = 48
"""Steps up to which the numbers themselves stand in the squares."""
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def check_chart(cells: Sequence[CheckedCell]) -> go.Figure:
    """Observed beside expected counts of the most expected cells and of all others, with the interval of each count."""
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
            hovertemplate="%{y}: %{x:.1f} expected<extra></extra>",
        )
    )
    figure.add_trace(
        go.Bar(
            y=names,
            x=[cell.observed for cell in shown],
            orientation="h",
            name="observed",
            marker={"color": ORANGE, "pattern": {"shape": "/"}},
            error_x={
                "array": [cell.high - cell.observed for cell in shown],
                "arrayminus": [cell.observed - cell.low for cell in shown],
                "symmetric": False,
                "color": GREY,
                "thickness": 2,
                "width": 4,
            },
            customdata=[(cell.low, cell.high) for cell in shown],
            hovertemplate="%{y}: %{x} observed, 95 %: %{customdata[0]:.1f} to %{customdata[1]:.1f}<extra></extra>",
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


def accepted_chart(trace: Trace) -> go.Figure:
    """What each rule accepts at each step: a row for a rule, a column for a step; 0 is left blank."""
    names = [rule.name for rule in trace.rules]
    judged = [[step.judged.get(name) for step in trace.steps] for name in names]
    figure = go.Figure(
        go.Heatmap(
            x=[step.index + 1 for step in trace.steps],
            y=names,
            z=[[one and one.accepted for one in row] for row in judged],
            text=[[str(one.accepted) if one and one.accepted else "" for one in row] for row in judged],
            texttemplate="%{text}" if len(trace.steps) <= MOST_NUMBERS else None,
            customdata=[[step.drafted for step in trace.steps] for _ in names],
            colorscale=[[0, "rgba(127,127,127,0.08)"], [1e-9, "#A8D7F2"], [1, BLUE]],
            zmin=0,
            zmax=max((step.drafted for step in trace.steps), default=0) or 1,
            xgap=1,
            ygap=3,
            hovertemplate="step %{x}, %{y}: %{z} of %{customdata} accepted<extra></extra>",
            showscale=False,
        )
    )
    figure.update_layout(
        height=110 + 30 * len(names),
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        xaxis={"title": "step", "showgrid": False},
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False},
    )
    return figure


def bias_chart(trace: Trace) -> go.Figure:
    """How far the first token of each step is from the target's law, under each rule that is ever off."""
    figure = go.Figure()
    off = [rule for rule in trace.rules if not rule.keeps_the_law]
    for place, rule in enumerate(off):
        steps = [step for step in trace.steps if step.drafted and rule.name in step.judged]
        figure.add_trace(
            go.Scatter(
                x=[step.index + 1 for step in steps],
                y=[step.judged[rule.name].bias for step in steps],
                mode="lines+markers",
                name=rule.name,
                line={"color": OKABE_ITO[(place + 1) % len(OKABE_ITO)], "width": 1.5},
                marker={"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 7},
                hovertemplate="step %{x}: %{y:.4f}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_layout(
        height=300,
        margin={"l": 48, "r": 16, "t": 16, "b": 44},
        legend=LEGEND,
        showlegend=True,
        xaxis={"title": "step"},
        yaxis={"title": "total variation", "range": [-0.02, 1.02]},
    )
    return figure


def lengths_chart(policies: Sequence[Mapping[str, Any]]) -> go.Figure:
    """The draft length of each policy at each step of a run, and how many tokens were accepted: one strip for each."""
    titles = [escape(row["policy"]) for row in policies]
    figure = make_subplots(rows=len(policies), cols=1, shared_xaxes=True, vertical_spacing=0.05, subplot_titles=titles)
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    most = max((max(row["length_by_step"], default=0) for row in policies), default=0)
    for place, row in enumerate(policies):
        steps = list(range(1, len(row["length_by_step"]) + 1))
        for name, key, colour, pattern in (
            ("draft length", "length_by_step", ORANGE, "/"),
            ("accepted", "accepted_by_step", BLUE, ""),
        ):
            figure.add_trace(
                go.Bar(
                    x=steps,
                    y=row[key],
                    name=name,
                    legendgroup=name,
                    showlegend=place == 0,
                    marker={"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}},
                    hovertemplate=f"{escape(row['policy'])}, step %{{x}}: %{{y}} {name}<extra></extra>",
                ),
                row=place + 1,
                col=1,
            )
        figure.update_yaxes(range=[0, most + 0.5], dtick=max(1, most), row=place + 1, col=1)
    figure.update_xaxes(title="step", row=len(policies), col=1)
    figure.update_layout(
        barmode="overlay",
        bargap=0.1,
        height=100 + 90 * len(policies),
        margin={"l": 8, "r": 16, "t": 48, "b": 44},
        legend={**LEGEND, "y": 1.03},
    )
    return figure


def label(text: str) -> str:
    """A token's text as a label: blanks can be seen, and nothing in it is taken for a tag."""
    return escape(text.replace("\n", "⏎").replace(" ", "␣")) if text != "all others" else text
