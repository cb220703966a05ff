"""`python -m engine run`: what goes to which stream, and what is refused before anything runs."""

import csv
import io
import json
import sys

import pytest

from engine.build import build
from engine.cli import run as run_command
from engine.cli.main import main
from engine.errors import StoreError
from engine.run_writer import RunWriter
from engine.spec import RunSpec
from engine.store import RunStore
from engine.values import Finished, Step
from tests.engine.models.tiny_files import Tiny, write

PLAIN = ["run", "--prompt", "The draft", "--max-tokens", "12"]


@pytest.fixture
def broken(tmp_path):
    """A model whose tokens are bytes and control tokens: its text is full of what cannot be shown token by token."""
    return str(write(tmp_path / "tiny.gguf", Tiny()))


def broken_run(path, *more):
    return ["run", "--target", path, "--drafter", "ngram", "--prompt", "héllo", "--temperature", "1.5", *more]


def text_of(path, **settings):
    spec = RunSpec(target=path, drafter="ngram", prompt="héllo", temperature=1.5, **settings)
    events = list(build(spec).events())
    assert isinstance(events[-1], Finished)
    return events[-1].text, events


def decisions_of(events):
    return [decision for event in events if isinstance(event, Step) for decision in event.decisions]


def on_terminal(monkeypatch, stream):
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")


def never(*_):
    raise AssertionError("something was decoded")


def test_without_a_terminal_the_text_is_printed_once_and_then_the_figures(broken, capsys):
    text, events = text_of(broken, max_tokens=48)
    assert any(decision.target_text.startswith("<") for decision in decisions_of(events))
    assert main(broken_run(broken, "--max-tokens", "48")) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{text}\n\nrun  ")
    assert "\x1b[" not in out.removeprefix(text)


def test_text_behind_a_stop_string_is_not_printed(capsys):
    spec = RunSpec(prompt="The draft", max_tokens=40)
    text = list(build(spec).events())[-1].text
    stop = text[30:34]
    assert main([*PLAIN[:3], "--max-tokens", "40", "--stop", stop]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{text[: text.index(stop)]}\n\nrun  ")
    assert "ended by stop string" in out


def test_on_a_terminal_without_colour_what_grew_is_the_text(broken, capsys, monkeypatch):
    text, _ = text_of(broken, max_tokens=48)
    on_terminal(monkeypatch, sys.stdout)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(broken_run(broken, "--max-tokens", "48")) == 0
    shown = capsys.readouterr().out.partition("\n\nrun  ")[0]
    assert [ours for ours, theirs in zip(shown, text, strict=True) if ours != theirs and ours != "\ufffd"] == []


def test_on_a_terminal_tokens_are_in_colour_with_a_legend(capsys, monkeypatch):
    on_terminal(monkeypatch, sys.stdout)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(PLAIN) == 0
    out = capsys.readouterr().out
    assert "\x1b[4;36m" in out.partition("\n\n")[0]
    assert "\x1b[9;31mrejected\x1b[0m" in out.partition("\n\n")[2]


def test_a_note_of_the_backend_is_on_standard_error_alone(capsys):
    assert main(["run", "--prompt", "The draft", "--max-tokens", "3", "--json", "--backend", "numba"]) == 0
    told = capsys.readouterr()
    assert told.err == "note: the backend numba runs GGUF files alone: it does nothing for markov\n"
    assert json.loads(told.out)["backend"] == ""


def test_json_is_one_object_and_nothing_else(capsys):
    assert main([*PLAIN, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens_generated"] == 12


def test_csv_on_standard_output_has_it_alone(capsys):
    assert main([*PLAIN, "--seed", "5", "--csv", "-"]) == 0
    told = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(told.out, newline=""), strict=True))
    assert {row["seed"] for row in rows} == {"5"}
    assert sum(row["outcome"] != "unreached" and row["discarded"] == "false" for row in rows) == 12
    text = list(build(RunSpec(prompt="The draft", max_tokens=12, seed=5)).events())[-1].text
    assert told.err.startswith(f"{text}\n\nrun  ")


def test_colour_is_that_of_the_stream_that_is_written_to(capsys, monkeypatch):
    on_terminal(monkeypatch, sys.stdout)
    assert main([*PLAIN, "--csv", "-"]) == 0
    assert "\x1b[" not in capsys.readouterr().err


def test_csv_and_json_cannot_both_have_standard_output(capsys, monkeypatch):
    monkeypatch.setattr(run_command, "build", never)
    assert main([*PLAIN, "--json", "--csv", "-"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--json and --csv -" in told.err


def test_json_and_a_csv_file_go_together(tmp_path, capsys):
    assert main([*PLAIN, "--json", "--csv", str(tmp_path / "out.csv")]) == 0
    json.loads(capsys.readouterr().out)
    assert (tmp_path / "out.csv").read_text().startswith("run_id,step")


@pytest.mark.parametrize("name", ["nowhere/out.csv", "", "."])
def test_a_csv_file_that_cannot_be_written_is_refused_before_decoding(tmp_path, name, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_command, "build", never)
    assert main([*PLAIN, "--save", "--csv", name]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert RunStore().runs() == []


def test_a_csv_file_that_fails_later_costs_neither_text_nor_run(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    begin = RunStore.begin

    def begun(store, spec):
        folder.rmdir()
        return begin(store, spec)

    monkeypatch.setattr(RunStore, "begin", begun)
    assert main([*PLAIN, "--save", "--csv", str(folder / "out.csv")]) == 2
    told = capsys.readouterr()
    assert "ended by length" in told.out
    assert "cannot be written" in told.err
    [run] = RunStore().runs()
    assert told.out.startswith(run.record["text"])


def test_a_store_that_fails_on_the_way_ends_the_saving_and_not_the_run(tmp_path, capsys, monkeypatch):
    add = RunWriter.add

    def full(writer, event):
        if isinstance(event, Step) and event.index == 1:
            raise StoreError("the disk is full")
        add(writer, event)

    monkeypatch.setattr(RunWriter, "add", full)
    assert main([*PLAIN, "--save", "--csv", str(tmp_path / "out.csv")]) == 2
    told = capsys.readouterr()
    assert "12 emitted" in told.out
    assert "the disk is full" in told.err
    assert (tmp_path / "out.csv").exists()
    assert [run.state for run in RunStore().runs()] == ["interrupted"]


def test_save_keeps_the_run(capsys):
    assert main([*PLAIN, "--save"]) == 0
    [run] = RunStore().runs()
    assert f"saved as run {run.id}" in capsys.readouterr().err


def test_log_probabilities_are_in_the_json_and_their_sum_in_the_figures(capsys):
    settings = ["--logprobs", "--repetition-penalty", "1.3", "--min-p", "0.02", "--arithmetic", "integer"]
    assert main([*PLAIN, "--json", *settings]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["logprobs"]) == len(record["ids"]) == 12
    assert record["logprob_sum"] == pytest.approx(sum(record["logprobs"]))
    assert main([*PLAIN, *settings]) == 0
    assert f"perplexity        {record['perplexity']:.2f}; log-probability" in capsys.readouterr().out
    assert main([*PLAIN, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["logprobs"] is None


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--min-p", "nan"], "min_p is nan; it must be a number from 0 to 1"),
        (["--repetition-penalty", "0"], "repetition_penalty is 0.0; it must be a number above 0"),
        (["--frequency-penalty=-3"], "frequency_penalty is -3.0; it must be a number from -2 to 2"),
        (["--presence-penalty", "inf"], "presence_penalty is inf; it must be a number from -2 to 2"),
        (["--arithmetic", "decimal"], "arithmetic is 'decimal'; it must be float or integer"),
    ],
)
def test_a_law_that_cannot_be_is_refused_in_words(option, words, capsys):
    assert main([*PLAIN, *option]) == 2
    assert words in capsys.readouterr().err


def test_the_help_says_where_a_setting_of_a_drafter_is_of_no_use(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "longest n-gram; eagle+ngram looks for 2 at least, above temperature 0 for 3 (default 3)" in told
    assert "is kept; the policy confident asks for 0.15 of the first and 0.35 of further ones itself" in told
