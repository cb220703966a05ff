"""The report for a terminal and as Markdown."""

import copy

import pytest

from engine.bench.report import markdown_report, text_report
from engine.bench.run import run_bench
from engine.bench.sections import sections_of
from engine.cli.table import table


@pytest.fixture
def result(settings):
    return run_bench(settings)


def test_verdict_comes_first(result):
    assert text_report(result, table).splitlines()[0] == f"Speculation {result['verdict']}"
    assert markdown_report(result).splitlines()[:3] == [
        "### Draftscope benchmark", "", f"**Speculation {result['verdict']}**",
    ]  # fmt: skip


@pytest.mark.parametrize("render", [lambda result: text_report(result, table), markdown_report])
def test_everything_a_reader_needs_is_named(result, render):
    told = render(result)
    for words in ("tokens/s", "speed-up (95 %)", "predicted", "tokens/step", "per token", "overhead", "differ",
                  "memory", "v(9)=1.00", "model: a proposal costs 0.000 + 0.150 a token", "load average",
                  "threads:", "load time", "peak memory", "numpy", "SIMULATED"):  # fmt: skip
        assert words in told


def test_every_markdown_table_is_well_formed(result):
    result["configurations"][1]["name"] = "odd | name"
    lines = markdown_report(result).splitlines()
    tables = [list(group) for group in _tables(lines)]
    assert len(tables) == 4
    for rows in tables:
        assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
        assert set(rows[1]) <= set("|-: ")


def _tables(lines):
    group = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            group.append(line)
        elif group:
            yield group
            group = []


def test_partial_and_busy_are_told(result):
    busy = copy.deepcopy(result) | {"partial": True, "runs_done": 3, "simulated": False, "load_before": 7.5}
    busy["machine"]["cores"] = 2
    told = text_report(busy, table)
    assert f"PARTIAL: interrupted after 3 of {result['runs_planned']} runs" in told
    assert "BUSY: the load average was 7.50 before and " in told
    assert "BUSY" not in text_report(result, table)
    later = busy | {"load_before": 0.1, "load_after": 9.5}
    assert "BUSY: the load average was 0.10 before and 9.50 after, on 2 cores" in text_report(later, table)


def test_differences_and_left_out_drafters_are_told(result):
    row = result["configurations"][1]
    row |= {"prompts_that_differ": 1, "near_tie_differences": 0}
    row["divergences"] = [{"prompt": "2", "position": 4, "margin": 0.125, "near_tie": False}]
    result["skipped"] = {"crystal-ball": "there is none"}
    told = text_report(result, table)
    assert "prompt 2, token 5, where the plain logit led by 0.12" in told
    assert "without crystal-ball: there is none" in told


def test_rivals_have_a_section_of_their_own(result):
    rival = dict.fromkeys(result["configurations"][0]) | {
        "name": "llama.cpp plain", "engine": "llama.cpp", "drafter": "none", "tokens_per_second": 80.0,
    }  # fmt: skip
    result["configurations"].append(rival)
    estimate = {"value": 1.25, "low": 1.2, "high": 1.3}
    result["against"] = [{"name": "llama.cpp plain", "own_plain_over_it": estimate}]
    result["how_rivals_are_timed"] = {"llama.cpp": "by itself"}
    (section,) = [section for section in sections_of(result) if "others" in section.title]
    assert section.rows == (("llama.cpp plain", "80.0", "1.25x (1.20-1.30)"),)
    assert section.notes == ("llama.cpp is timed by itself",)


def test_without_costs_nothing_is_said_of_them(result):
    result["costs"] = None
    assert "v(9)" not in text_report(result, table)


def test_backend_and_rows_are_named_where_runs_have_them(result):
    result["backend"] = "fast"
    result["settings"]["exact_rows"] = True
    assert "; backend fast, exact rows on" in text_report(result, table)


def test_what_is_unknown_is_not_a_number(result):
    result |= {"peak_memory_bytes": None, "load_before": None}
    assert "peak memory n/a" in text_report(result, table)
