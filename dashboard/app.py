"""The entry: `streamlit run dashboard/app.py` finds the app and serves it.

The script of the pages is in `pages.py`; the routes beside it carry the live data.
"""

import gc
from pathlib import Path

import numpy  # noqa: F401 - heavy packages are loaded here, before any thread could load them half
import pandas  # noqa: F401
import streamlit as st

from dashboard.routes import routes

gc.freeze()  # what is loaded now stays: a search for garbage in it takes tens of milliseconds each time

app = st.App(Path(__file__).with_name("pages.py"), routes=routes)
