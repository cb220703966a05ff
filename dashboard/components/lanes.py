"""The lanes of a comparison: the latest run of every configuration side by side, as it happens.

Like the live view (`live.py`), the component is mounted once and fetches what is new itself. It shares
that view's files for words and tokens:

| file | its one job |
|---|---|
| words.js | numbers and outcomes as a reader sees them |
| tokens.js | a decision -> token spans |
| tree.js | a step that drafted a tree, as columns |
| stream.js | the token stream of a lane |
| figures.js | the legend, and how text is set |
| mounting.js | Streamlit's calls -> one view |
| lanes.js | the lanes, fetched from a cursor; has the module's `export default` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import streamlit as st

from dashboard.addresses import address
from dashboard.components.live import asset

if TYPE_CHECKING:
    from streamlit.components.v2.bidi_component.state import ComponentResult

__all__ = ["lanes_view"]

SCRIPTS = ("words.js", "tokens.js", "tree.js", "stream.js", "figures.js", "mounting.js", "lanes.js")
STYLES = ("live.css", "lanes.css")


_component = st.components.v2.component(
    "draftscope_lanes",
    html=asset("lanes.html"),
    css="\n".join(asset(name) for name in STYLES),
    js="\n".join(asset(name) for name in SCRIPTS),
)


def lanes_view(
    comparison_id: str | None, names: Sequence[str], *, finished: bool = False, key: str = "lanes"
) -> ComponentResult:
    """Show a comparison while it goes on, or the last runs of one that has ended.

    Parameters
    ----------
    comparison_id : str or None
        None shows nothing.
    names : sequence of str
        Of the configurations, in the order of the lanes.
    finished : bool, default False
        Whether the script knows that it has ended; True acknowledges the trigger `done`.
    key : str, default "lanes"
        Streamlit's key.

    Returns
    -------
    ComponentResult
        `done` is set in the one rerun that the end of a comparison asks for, and None in all others.

    Notes
    -----
    A test in a browser can rely on `data-comparison`, `data-state` ("idle", "starting", "running",
    "finished", "lost") and `data-done` of `.lanes`, and on `data-lane` of every `.lane`.
    """
    routes = address("/draftscope")
    return _component(
        key=key,
        data={
            "comparison": comparison_id,
            "names": list(names),
            "finished": finished,
            "lanes": f"{routes}/comparisons/{quote(comparison_id, safe='')}/lanes" if comparison_id else "",
        },
        on_done_change=_rerun,
    )


def _rerun() -> None:
    """Declares the trigger `done`; the rerun itself is all that is wanted."""
