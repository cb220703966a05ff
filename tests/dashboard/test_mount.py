"""The component's calls by Streamlit, which may come late."""

import pytest

from dashboard.components.live import SCRIPTS, asset

pytestmark = pytest.mark.browser

CALL = """(run) => mount({parentElement: document.body, key: 'live', setTriggerValue() {}, data: {
    run, mode: 'live', finished: false, step: null, events: '/events', figures: '', steps: '', link: '', plotly: '',
}})"""
SHOWN = "document.querySelector('.live').dataset.run"


@pytest.fixture
def mounted(page):
    """A page with the component's scripts, and nothing that calls them."""
    page.set_content(asset("live.html"))
    scripts = "\n".join(asset(name) for name in SCRIPTS)
    page.add_script_tag(content=scripts.replace("export default function mount", "globalThis.mount = function mount"))
    return page


def shown_after(mounted, calls):
    return mounted.evaluate(f"() => {{ const call = {CALL}; {calls}; return {SHOWN}; }}")


def test_a_call_that_was_superseded_before_it_was_made_is_taken_back(mounted):
    assert shown_after(mounted, "call('newer'); const late = call(null); late()") == "newer"


def test_cleaning_up_after_an_earlier_call_changes_nothing(mounted):
    assert shown_after(mounted, "const first = call(null); call('newer'); first()") == "newer"
