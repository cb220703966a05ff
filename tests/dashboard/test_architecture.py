"""The page shows what the engine computed, session state is held in one module, and trouble is told as plain text."""

import ast
from pathlib import Path

import pytest

DASHBOARD = Path(__file__).parents[2] / "dashboard"
FILES = {path.relative_to(DASHBOARD).as_posix(): path.read_text(encoding="utf-8") for path in DASHBOARD.rglob("*.py")}
NO_FIGURES = {"views/get_model.py"}  # the progress of a download
SHOWING = [
    "frames.py", "charts.py", "compare_charts.py",
    *(name for name in FILES if name.startswith("views/") and name not in NO_FIGURES),
]  # fmt: skip


@pytest.mark.parametrize("name", SHOWING)
def test_what_shows_figures_computes_none(name):
    for node in ast.walk(ast.parse(FILES[name])):
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)), f"{name}:{node.lineno} divides"
        called = node.func if isinstance(node, ast.Call) else None
        word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        assert word not in {"sum", "mean", "median", "agg", "cumsum", "rolling", "ratio", "Tally"}, f"{name}: {word}"


@pytest.mark.parametrize("name", sorted(set(FILES) - {"boxes.py"}))
def test_boxes_that_tell_of_trouble_are_drawn_in_one_module(name):
    """There the text is made plain, whoever it is from."""
    for node in ast.walk(ast.parse(FILES[name])):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"st.error", "st.warning", "st.exception"}, f"{name}:{node.lineno}"


@pytest.mark.parametrize("name", sorted(set(FILES) - {"views/plot.py"}))
def test_charts_are_drawn_in_one_module(name):
    """There they are told to have no toolbar, which would cover what they show."""
    assert "plotly_chart(" not in FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_session_state_is_held_in_one_module(name):
    assert name == "state.py" or "session_state" not in FILES[name]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in FILES
        if name.startswith(("frames", "charts", "compare_charts", "comparisons", "event_log", "pace", "work"))
    ],
)
def test_pure_modules_do_not_know_streamlit(name):
    assert "streamlit" not in FILES[name]
