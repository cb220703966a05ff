"""`python -m engine compare`: what it prints, and what it says to bad input."""

import csv
import json

import pytest

from engine.bench.plan import USUAL
from engine.cli import compare as command
from engine.cli.main import main

PRICES = ["--target-call-seconds", "0.02", "--draft-call-seconds", "0.002"]
SMALL = ["compare", "--prompt", "The draft model", "--max-tokens", "16", "--repeats", "2", *PRICES]


def test_sentences_then_tables(capsys):
    assert main([*SMALL, "--agreement", "1", "--drafter", "model:4", "--drafter", "model:8,agreement=-1"]) == 0
    told = capsys.readouterr().out
    assert "SIMULATED" in told
    assert "model 4: helps: " in told
    assert "model 8, agreement -1.0: hurts: " in told
    assert "model 4: the same text: all ids are equal (1 prompt)" in told
    assert "What if" not in told


def test_of_a_single_prompt_it_is_said_what_its_interval_does_not_tell(capsys, tmp_path):
    words = "ONE PROMPT: an interval tells how far its repeats vary, and nothing of other prompts"
    file = tmp_path / "prompts.txt"
    for n_prompts in (1, 2):
        file.write_text("The draft model\n" * n_prompts)
        options = ["--max-tokens", "8", "--repeats", "1", "--drafter", "ngram:2", *PRICES]
        assert main(["compare", "--prompts", str(file), *options]) == 0
        assert (words in capsys.readouterr().out) == (n_prompts == 1)


def test_json_is_one_object_alone(capsys):
    assert main([*SMALL, "--drafter", "ngram:2", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert captured.err.endswith("4 of 4 runs: ngram 2\n")
    assert [row["name"] for row in json.loads(captured.out)["configurations"]] == ["plain", "ngram 2"]


@pytest.mark.parametrize("command", [[*SMALL, "--drafter", "ngram:2"], ["bench", "--quick", "--drafter", "ngram"]])
def test_a_note_of_the_backend_is_on_standard_error(command, capsys):
    assert main([*command, "--json", "--backend", "numpy"]) == 0
    told = capsys.readouterr()
    assert told.err.count("note: the backend numpy runs GGUF files alone: it does nothing for markov\n") == 1
    assert json.loads(told.out)["backend_note"] in told.err


def test_every_drafter_is_compared_if_none_is_named(capsys):
    assert main([*SMALL, "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["configurations"]]
    assert names == ["plain", "ngram 4", "model 4"]


def test_help_names_the_drafters_that_are_compared_by_default(capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert f"(default: {', '.join(USUAL)}, as far as it has them" in " ".join(capsys.readouterr().out.split())


def test_predictions_and_a_file(capsys, tmp_path):
    file = tmp_path / "comparison.csv"
    assert main([*SMALL, "--drafter", "model:2", "--drafter", "model:4", "--predict", "--csv", str(file)]) == 0
    told = capsys.readouterr().out
    assert "What if: SIMULATED, model at other draft lengths; best " in told
    assert "the measurement is " in told
    with file.open(newline="") as lines:
        assert [row["name"] for row in csv.DictReader(lines)] == ["plain", "model 2", "model 4"]


def test_a_prompt_file_has_categories(capsys, tmp_path):
    file = tmp_path / "question.jsonl"
    file.write_text(
        '{"question_id": 81, "category": "writing", "turns": ["The draft"]}\n'
        '{"question_id": 82, "category": "math", "turns": ["The target"]}\n'
    )
    arguments = ["compare", "--prompts", str(file), "--max-tokens", "8", "--repeats", "1", *PRICES]
    assert main([*arguments, "--drafter", "model:2"]) == 0
    told = capsys.readouterr().out
    assert "Speed-up by category" in told
    assert "writing" in told


def test_an_interrupt_prints_what_was_measured(capsys, monkeypatch):
    original = command.run_comparison

    def interrupted(settings, progress, **options):
        def told(doing, done, total):
            progress(doing, done, total)
            if done == 3:
                raise KeyboardInterrupt

        return original(settings, told, **options)

    monkeypatch.setattr(command, "run_comparison", interrupted)
    assert main([*SMALL, "--drafter", "model:2"]) == 1
    assert "PARTIAL: stopped after 3 of 4 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--prompts", "/nowhere/prompts.txt"], "cannot be read"),
        (["--repeats", "0"], "at least 1"),
        (["--drafter", "crystal-ball:3"], "crystal-ball"),
        (["--drafter", "ngram:40"], "40"),
        (["--drafter", "ngram:2", "--drafter", "ngram:2"], "there twice"),
        (["--drafter", "ngram,rule=naive"], "logits"),
        (["--drafter", "ngram,speed=9"], "is no setting"),
        (["--target", "nothing-of-that-name"], "nothing-of-that-name"),
        (["--prompt", " "], "the prompt is empty"),
        (["--csv", "/nowhere/file.csv"], "cannot be written"),
        (["--max-tokens", "0"], "max_tokens is 0"),
    ],
)
def test_bad_input_is_told_without_a_traceback(arguments, told, capsys):
    assert main(["compare", *arguments]) == 2
    assert told in capsys.readouterr().err
