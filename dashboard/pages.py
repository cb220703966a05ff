"""The script: page settings and navigation."""

import streamlit as st

from dashboard import state
from dashboard.views import decode, history

st.set_page_config(page_title="Draftscope", page_icon=":material/query_stats:", layout="wide")
state.remember()
st.navigation(
    [
        st.Page(decode.page, title="Decode", icon=":material/play_circle:", url_path="decode", default=True),
        st.Page(history.page, title="History", icon=":material/history:", url_path="history"),
    ],
    position="top",
).run()
