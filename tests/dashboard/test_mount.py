"""The components' calls by Streamlit, which may come late."""

from dataclasses import dataclass

import pytest

from dashboard.components import lanes, laws, live
from dashboard.components.live import asset

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Component:
    """How a component is called with data that `name` tells apart, and where it shows them."""

    html: str
    scripts: tuple[str, ...]
    data: str
    shown: str


COMPONENTS = {
    "live": Component(
        "live.html",
        live.SCRIPTS,
        "{run: name, mode: 'live', finished: false, step: null, events: '/events', figures: '', steps: '', link: '', "
        "plotly: ''}",
        "document.querySelector('.live').dataset.run",
    ),
    "lanes": Component(
        "lanes.html",
        lanes.SCRIPTS,
        "{comparison: name, names: [name], finished: false, lanes: '/lanes'}",
        "document.querySelector('.lane').dataset.lane",
    ),
    "laws": Component(
        "laws.html",
        laws.SCRIPTS,
        "{names: [name, 'b'], target: [0.5, 0.5], draft: [0.5, 0.5], revision: name.length, sent: 0, result: null, "
        "trouble: ''}",
        "document.querySelector('.law-column').dataset.token",
    ),
}


def equipped(page, component):
    """A page that has the component's scripts, and nothing else that calls them."""
    scripts = "\n".join(map(asset, component.scripts))
    page.set_content(asset(component.html))
    page.add_script_tag(content=scripts.replace("export default function mount", "globalThis.mount = function mount"))
    return page


@pytest.fixture(params=COMPONENTS)
def shown_after(request, page):
    """What a component shows after calls of it."""
    component = COMPONENTS[request.param]
    equipped(page, component)

    def evaluate(calls):
        return page.evaluate(f"""async () => {{
            const call = (name) => mount({{parentElement: document.body, key: 'it', setTriggerValue() {{}},
                setStateValue() {{}}, data: {component.data}}});
            {calls};
            return {component.shown}; }}""")

    return evaluate


def test_a_call_that_was_superseded_before_it_was_made_is_taken_back(shown_after):
    assert shown_after("call('newer'); const late = call('old'); late()") == "newer"


def test_cleaning_up_after_an_earlier_call_changes_nothing(shown_after):
    assert shown_after("const first = call('old'); call('newer'); first()") == "newer"


def test_a_late_call_for_a_place_that_is_gone_changes_nothing(shown_after):
    gone = "mount({parentElement: document.createElement('div'), key: 'it', data: {}})"
    assert shown_after(f"call('newer'); {gone}()") == "newer"


MOVED = """() => {
    const call = (revision, sent, target) => mount({parentElement: document.body, key: 'it', setStateValue() {},
        data: {names: ['a', 'b'], target, draft: [0.5, 0.5], revision, sent, result: null, trouble: ''}});
    call(1, 0, [0.5, 0.5]);
    const bar = document.querySelector('.law-track');
    bar.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp'}));
    const late = call(0, 0, [0.1, 0.9]);
    late();
    call(1, 1, [0.51, 0.49]);
    return document.querySelector('.law-value').textContent; }"""


def test_bars_that_a_late_call_has_set_back_go_where_the_hand_had_moved_them(page):
    assert equipped(page, COMPONENTS["laws"]).evaluate(MOVED) == "0.510"
