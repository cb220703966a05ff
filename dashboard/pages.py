"""The script: page settings and navigation."""

from pathlib import Path

import streamlit as st

from dashboard import state
from dashboard.settings_link import SIDEBAR
from dashboard.views import compare, decode, history, lab

HERE = Path(__file__).parent

st.set_page_config(page_title="Draftscope", page_icon=str(HERE / "icon.svg"), layout="wide")
st.logo(str(HERE / "logo.svg"), icon_image=str(HERE / "icon.svg"), size="large")
st.html(HERE / "pages.css")
state.remember()
decode_page = st.Page(decode.page, title="Decode", icon=":material/play_circle:", default=True)
compare_page = st.Page(compare.page, title="Compare", icon=":material/balance:", url_path="compare")
lab_page = st.Page(lab.page, title="Lab", icon=":material/science:", url_path="lab")
history_page = st.Page(history.page, title="History", icon=":material/history:", url_path="history")
chosen = st.navigation([decode_page, compare_page, lab_page, history_page], position="top")
state.keep_widgets(chosen.url_path, SIDEBAR)
if chosen is decode_page and (link := state.take_link()):  # to a run that is not this tab's own
    st.switch_page(history_page, query_params={"run": link.run, **({"step": link.step} if link.step else {})})
chosen.run()
