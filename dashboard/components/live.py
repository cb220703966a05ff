"""The live view: figures, token stream and charts of one run, as one Streamlit component.

The component is mounted once and fetches the run's event log itself, in increments over HTTP, so that
nothing live passes through a rerun of the script (streamlit.components.v2; isolated in a shadow root).
It formats and draws; every number on it is computed by `engine.metrics`.

The JavaScript is split by idea. Streamlit takes one module, so the files share one scope, in this order:

| file | its one job |
|---|---|
| words.js | numbers and outcomes as a reader sees them |
| timeline.js | a run as a row of steps |
| feed.js | the event log of a run, fetched from a cursor; its figures after every step |
| tokens.js | a decision -> token spans |
| tree.js | a step that drafted a tree, as columns |
| stream.js | the token stream: chunks, guesses and their fate, following the end |
| tooltip.js | what happened to a token, in words and numbers |
| inspector.js | which token or figure the tooltip is about, which token is chosen |
| alternatives.js | the deciding position of a step: bars, the draw, the distance of the laws |
| explain.js | the panel that explains a step, from its data, wherever that comes from |
| steps.js | the chosen token's step, fetched for the panel |
| figures.js | state, badges, figures, share of time, legend |
| plots.js | what the four charts show, as Plotly traces and layouts |
| charts.js | their life: made once, updated in place, coloured by the theme |
| player.js | which step of a finished run is shown |
| mounting.js | Streamlit's calls -> one view for as long as its place is there |
| view.js | brings them together; has the module's `export default` |

`svg_plots.js`, `file.js` and `file.css` are for a run in a file (`dashboard.html_file`) and not loaded here.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import streamlit as st

from dashboard.addresses import address

if TYPE_CHECKING:
    from streamlit.components.v2.bidi_component.state import ComponentResult

__all__ = ["SCRIPTS", "asset", "live_view"]

SCRIPTS = (
    "words.js",
    "timeline.js",
    "feed.js",
    "tokens.js",
    "tree.js",
    "stream.js",
    "tooltip.js",
    "inspector.js",
    "alternatives.js",
    "explain.js",
    "steps.js",
    "figures.js",
    "plots.js",
    "charts.js",
    "player.js",
    "mounting.js",
    "view.js",
)


def asset(name: str) -> str:
    """The text of a file of the component."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


_component = st.components.v2.component(
    "draftscope_live",
    html=asset("live.html"),
    css=asset("live.css") + asset("explain.css"),
    js="\n".join(asset(name) for name in SCRIPTS),
)


def live_view(
    run_id: str | None,
    *,
    mode: Literal["live", "review"] = "live",
    finished: bool = False,
    step: int | None = None,
    shareable: bool = True,
    key: str = "live",
) -> ComponentResult:
    """Show a run while it goes on, or one that has ended.

    Parameters
    ----------
    run_id : str or None
        The run, as the event route knows it; None shows an invitation to start one.
    mode : {"live", "review"}, default "live"
        "live" sets the trigger `done` once all of a run that ended has arrived; "review" does not.
    finished : bool, default False
        Whether the script knows that the run has ended. True acknowledges `done`, which is
        otherwise sent again a few times.
    step : int or None, default None
        Steps done in the state in which to open a run that has ended; None is its end.
    shareable : bool, default True
        Whether a link to the run works for others: it does once the run is in the history.
    key : str, default "live"
        Streamlit's key. Keep it, and mount the view into a container made before anything above it
        can change: a remount costs a flicker, though no data.

    Returns
    -------
    ComponentResult
        `done` is `{"run": ..., "state": "finished", "reason": ...}` in the one rerun that the end of a
        run asks for, and None in all others.

    Notes
    -----
    Only facts that stay the same while a run goes on are handed over, so a rerun of the script does not
    touch the running view.

    A test in a browser can rely on these attributes: on `.live` `data-run`, `data-shown` (entries drawn),
    `data-step` (steps drawn), `data-state` ("opening" until the script is there, "idle", "loading" until
    the server has answered, the server's word, or "lost" for a run that it no longer has; "finished" only
    once all is drawn; "replay" while an earlier state of it is shown) and `data-connection` ("ok",
    "retrying", "gone"); on every `.stream .token` `data-step`, `data-position`,
    `data-outcome`, `data-token` and `data-discarded`; on `.explain` `data-step` and `data-position` of
    what it shows. A function
    `globalThis.__draftscopeProbe(shown, answer)` is called after every drawing of new entries.
    """
    routes = address("/draftscope")
    return _component(
        key=key,
        data={
            "run": run_id,
            "mode": mode,
            "finished": finished,
            "step": step,
            "events": f"{routes}/runs/{quote(run_id, safe='')}/events" if run_id else "",
            "steps": f"{routes}/runs/{quote(run_id, safe='')}/steps" if run_id else "",
            "figures": f"{routes}/runs/{quote(run_id, safe='')}/figures" if run_id else "",
            "link": address(f"/history?run={quote(run_id, safe='')}") if run_id and shareable else "",
            "plotly": f"{routes}/plotly.min.js?v={version('plotly')}",
        },
        on_done_change=_rerun,
    )


def _rerun() -> None:
    """Declares the trigger `done`; the rerun itself is all that is wanted."""
