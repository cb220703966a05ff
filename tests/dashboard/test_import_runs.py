"""The import of runs on the history page, through Streamlit's AppTest."""

import pytest
from streamlit.testing.v1 import AppTest

from engine import RunStore
from engine.export_jsonl import run_jsonl
from tests.dashboard.test_history import saved


@pytest.fixture
def page():
    def history_page():
        from dashboard.views import history

        history.page()

    return AppTest.from_function(history_page, default_timeout=60).run()


def taken_out(run_id):
    """The run as a file, and deleted from the history."""
    store = RunStore()
    before = store.get(run_id), list(store.events(run_id))
    content = "".join(run_jsonl(*before)).encode()
    store.delete([run_id])
    return before, content


def test_a_file_brings_its_run_back(page):
    run_id = saved(seed=3)
    before, content = taken_out(run_id)
    page.file_uploader[0].set_value(("run.jsonl", content, "application/jsonl")).run()
    assert not page.exception
    told = page.success[0].value.replace("\\", "")
    assert told.startswith("Imported 1 run. It took the place of the deleted run of the same id")
    assert told.endswith(f": {run_id}.")
    assert (RunStore().get(run_id), list(RunStore().events(run_id))) == before
    page.run()
    assert not page.success


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda content: content[:-20], "cut short"),
        (lambda content: content.replace(b'"schema":1', b'"schema":9', 1), "reads schema 1; update it"),
        (lambda content: b"![x](http://example.org/x.png)", "no file of runs"),
    ],
)
def test_a_file_that_is_not_whole_is_told_and_nothing_comes_in(page, spoil, words):
    _, content = taken_out(saved())
    page.file_uploader[0].set_value(("run.jsonl", spoil(content), "application/jsonl")).run()
    assert not page.exception
    assert words in page.error[0].value.replace("\\", "")
    assert "![x](" not in page.error[0].value
    assert RunStore().runs() == []
