"""`python -m engine runs`: list, show, export, delete."""

import csv
import io
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from engine.build import build
from engine.cli.main import main
from engine.spec import RunSpec
from engine.store import RunStore
from engine.values import Decision, Step
from tests.engine.kept_runs import write
from tests.engine.sample_events import sample_events


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path))
    return tmp_path


def keep(run_id, *, n_steps=6, simulated=False, n_events=None, **settings):
    events = list(sample_events(n_steps, simulated=simulated))[:n_events]
    write(RunStore(), events, RunSpec(prompt="a prompt", **settings), run_id=run_id)


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_an_empty_history_says_how_to_fill_it(capsys):
    assert main(["runs", "list"]) == 0
    assert "run --save" in capsys.readouterr().out


def test_list_is_a_table_with_the_newest_first(capsys):
    keep("abc1", target="a-model-with-a-long-name", drafter="ngram", draft_length=7)
    keep("b2", simulated=True)
    keep("c3", n_events=1)
    assert main(["runs", "list"]) == 0
    head, third, second, first = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "id"
    assert [line.split()[0] for line in (third, second, first)] == ["c3", "b2", "abc1"]
    assert "simulated" in second
    assert "simulated" not in first
    assert third.endswith("interrupted")
    assert third.count("n/a") == 3
    assert all(name in first for name in ("a-model-with-a-long-name", "ngram", "exact", " 7 ", "0.500", "finished"))
    assert len({line.index(word) for line, word in ((head, "state"), (third, "interrupted"), (first, "finished"))}) == 1


def test_a_speed_is_listed_with_the_backend_that_it_is_of(capsys):
    started, *events = sample_events()
    write(RunStore(), [replace(started, backend="numba"), *events], RunSpec(prompt="a prompt"), run_id="abc1")
    assert main(["runs", "list"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert row.index("numba") == head.index("backend")
    with closing(sqlite3.connect(RunStore().path)) as connection, connection:  # as earlier versions kept it
        connection.execute("UPDATE runs SET record = json_remove(record, '$.backend')")
    assert main(["runs", "list"]) == 0
    assert "numba" not in capsys.readouterr().out


def test_show_tells_settings_figures_and_text(capsys):
    keep("abc1", temperature=0.25, stop=("\n",))
    assert main(["runs", "show", "ab"]) == 0
    out = capsys.readouterr().out
    for words in ("abc1", "temperature             0.25", r"('\n',)", "acceptance rate", "steps by accepted length",
                  "survival", "ended by length"):  # fmt: skip
        assert words in out
    assert out.endswith("\ntext\nthe \U0001f600 text\ufffd\n")
    assert "\0" not in out
    assert "\r" not in out.replace("\r\n", "\n")


def test_show_tells_what_an_interrupted_run_had_emitted(capsys):
    keep("abc1", n_events=4)
    assert main(["runs", "show", "abc1"]) == 0
    out = capsys.readouterr().out
    assert "interrupted" in out
    assert out.rstrip().endswith("=1+1=1+1")


def test_show_joins_the_characters_of_an_interrupted_run(capsys):
    halves = (
        Decision(0, "accepted", 5, 5, True, target_text="so <F0>"),
        Decision(1, "accepted", 6, 6, True, target_text="<9F 98>"),
        Decision(2, "bonus", None, 7, target_text="\U0001f600!", target_parts=3),
    )
    step = Step(0, 3, halves, (5, 6, 7), 0.0, 0.1, 0.0, 0.1)
    write(RunStore(), [next(sample_events()), step], run_id="abc1")
    assert main(["runs", "show", "abc1"]) == 0
    assert capsys.readouterr().out.endswith("\ntext\nso \U0001f600!\n")


def test_show_says_of_a_run_without_an_end_that_it_has_none(capsys):
    keep("abc1", n_events=4)
    keep("b2", n_events=0)
    for run_id in ("abc1", "b2"):
        assert main(["runs", "show", run_id]) == 0
        figures = capsys.readouterr().out.partition("figures")[2]
        assert "without an end" in figures
        assert "None" not in figures
        assert "lossy" not in figures


def spoil(run_id):
    with closing(sqlite3.connect(RunStore().path)) as connection:
        connection.execute("""UPDATE runs SET spec = '{"schema": 99}' WHERE id = ?""", (run_id,))
        connection.commit()


def test_runs_of_a_newer_version_are_counted_and_hide_no_other(tmp_path, capsys):
    keep("abc1")
    keep("b2")
    spoil("b2")
    assert main(["runs", "list"]) == 0
    told = capsys.readouterr()
    assert "abc1" in told.out
    assert told.err.startswith("1 run cannot be read by this version of Draftscope: b2; update it")
    assert main(["runs", "export", "--csv", str(tmp_path / "out.csv")]) == 0
    assert "1 run cannot be read" in capsys.readouterr().err
    assert main(["runs", "export", "b2", "--csv", str(tmp_path / "out.csv")]) == 2
    assert main(["runs", "delete", "b2", "abc1"]) == 0


def test_a_history_of_newer_runs_alone_is_not_called_empty(capsys):
    keep("b2")
    spoil("b2")
    assert main(["runs", "list"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "1 run cannot be read" in told.err


def test_export_writes_all_runs_by_default(tmp_path, capsys):
    keep("abc1")
    keep("b2")
    file = tmp_path / "out.csv"
    file.write_text("old")
    assert main(["runs", "export", "--csv", str(file)]) == 0
    assert [row["run_id"] for row in rows(file.read_bytes().decode())] == ["b2", "abc1"]
    assert capsys.readouterr().err == f"wrote 2 runs to {file}\n"


@pytest.mark.parametrize(("kind", "n_rows"), [("runs", 1), ("steps", 6), ("tokens", 12)])
def test_export_of_a_run_to_standard_output(kind, n_rows, capsysbinary):
    keep("abc1")
    keep("b2")
    assert main(["runs", "export", "abc", "--csv", "-", "--kind", kind, "--bom"]) == 0
    out = capsysbinary.readouterr().out
    assert out.startswith(b"\xef\xbb\xbfrun_id,")
    assert [row["run_id"] for row in rows(out.decode("utf-8-sig"))] == ["abc1"] * n_rows


def test_export_of_more_runs_has_one_header(tmp_path):
    keep("abc1")
    keep("b2")
    file = tmp_path / "out.csv"
    assert main(["runs", "export", "abc1", "b2", "abc1", "--kind", "steps", "--csv", str(file), "--no-bom"]) == 0
    assert [row["run_id"] for row in rows(file.read_bytes().decode())] == ["abc1"] * 6 + ["b2"] * 6


def test_export_of_nothing_is_a_header(tmp_path):
    assert main(["runs", "export", "--kind", "tokens", "--csv", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text().startswith("run_id,step,position")


def test_delete_takes_all_or_none(capsys):
    keep("abc1")
    keep("abd2")
    keep("b3")
    assert main(["runs", "delete", "b3", "zz"]) == 2
    assert len(RunStore().runs()) == 3
    assert main(["runs", "delete", "ab"]) == 2
    assert "2 runs begin with 'ab': abd2, abc1" in capsys.readouterr().err
    assert main(["runs", "delete", "b3", "abc"]) == 0
    told = capsys.readouterr()
    assert told.out == "deleted 2 runs\n"
    assert "runs restore ID" in told.err
    assert [run.id for run in RunStore().runs()] == ["abd2"]


def test_deleted_runs_are_named_restored_and_purged(capsys):
    assert main(["runs", "deleted"]) == 0
    assert capsys.readouterr().out == "no deleted run can be restored\n"
    keep("abc1")
    keep("b2", n_steps=2000)
    keep("c3")
    main(["runs", "delete", "abc1", "b2"])
    capsys.readouterr()
    assert main(["runs", "deleted"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]} == {"abc1", "b2"}
    assert main(["runs", "storage"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"\d\.\d MB for 1 run; 2 runs more, deleted, with (\d\.\d MB|\d+ kB) of it\n", out)
    assert out.endswith("runs.sqlite\n")
    assert main(["runs", "restore", "zz"]) == 2
    assert main(["runs", "restore", "abc"]) == 0
    assert [run.id for run in RunStore().runs()] == ["c3", "abc1"]
    capsys.readouterr()
    assert main(["runs", "purge"]) == 0
    assert re.fullmatch(r"purged 1 run: ([1-9]\.\d MB|\d{3} kB) given back\n", capsys.readouterr().out)
    assert main(["runs", "restore", "b2"]) == 2


def test_tags_are_added_and_taken_off(capsys):
    keep("abc1")
    assert main(["runs", "tag", "ab", "fast", "long prompt", "Fast"]) == 0
    assert capsys.readouterr().out == "abc1: fast, long prompt\n"
    assert main(["runs", "tag", "abc1", "FAST", "--remove"]) == 0
    assert capsys.readouterr().out == "abc1: long prompt\n"
    assert main(["runs", "tag", "abc1", "nothing", "--remove"]) == 2
    assert "has no tag 'nothing'; it has long prompt" in capsys.readouterr().err
    assert main(["runs", "tag", "abc1", "a,b"]) == 2
    assert RunStore().get("abc1").tags == ("long prompt",)


def test_a_note_is_written_shown_and_taken_off(capsys):
    keep("abc1")
    assert main(["runs", "note", "abc1", "before\nthe update"]) == 0
    main(["runs", "tag", "abc1", "fast"])
    capsys.readouterr()
    assert main(["runs", "show", "abc1"]) == 0
    out = capsys.readouterr().out
    assert r"note                    'before\nthe update'" in out
    assert "tags                    fast" in out
    assert main(["runs", "note", "abc1", ""]) == 0
    assert RunStore().get("abc1").note == ""


def test_list_shows_what_is_asked_for_in_the_order_that_is(capsys):
    keep("abc1", n_steps=3)
    keep("b2", n_steps=9, drafter="ngram")
    keep("c3", n_steps=6, target="other")
    main(["runs", "tag", "b2", "fast"])
    main(["runs", "tag", "c3", "fast"])
    capsys.readouterr()

    def listed(*options):
        assert main(["runs", "list", *options]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]

    assert listed("--sort", "tokens") == ["b2", "c3", "abc1"]
    assert listed("--sort", "tokens", "--rising") == ["abc1", "c3", "b2"]
    assert listed("--tag", "fast") == ["c3", "b2"]
    assert listed("--target", "other", "--target", "markov", "--drafter", "model") == ["c3", "abc1"]
    assert listed("prompt", "fast") == ["c3", "b2"]
    assert listed("--since", "2000-01-01", "--until", "2999-01-01") == ["c3", "b2", "abc1"]
    assert main(["runs", "list", "--until", "2000-01-01"]) == 0
    assert "none of 3 runs is like that" in capsys.readouterr().out
    assert main(["runs", "list", "--since", "yesterday"]) == 2
    assert "--since is 'yesterday'; give a day" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["show", "zz"], ["export", "zz", "--csv", "-"], ["delete", "zz"]])
def test_an_unknown_run_is_told(command, capsys):
    assert main(["runs", *command]) == 2
    assert "there is no run 'zz'" in capsys.readouterr().err


def test_a_store_that_cannot_be_used_is_told(home, capsys):
    (home / "data").mkdir()
    (home / "data" / "runs.sqlite").write_bytes(b"no database" * 100)
    assert main(["runs", "list"]) == 2
    assert "no run store" in capsys.readouterr().err


def test_explain_tells_why_every_token_of_a_step_is_there(capsys):
    spec = RunSpec(prompt="The draft model", max_tokens=12, seed=3, probe=4)
    events = list(build(spec).events())
    write(RunStore(), events, spec, run_id="abc1")
    assert main(["runs", "explain", "abc", "2"]) == 0
    out = capsys.readouterr().out
    step = [event for event in events if isinstance(event, Step)][1]
    assert out.startswith(f"step 2, behind {step.context_length} tokens")
    for decision in step.decisions:
        assert f"{decision.position + 1}. “" in out
        assert decision.outcome in out
    lines = out.splitlines()
    head = next(place for place, line in enumerate(lines) if line.split() == ["token", "draft", "target", "residual"])
    assert len(lines) - head - 2 == len(step.evidence.choice.alternatives)
    assert lines[-1].split()[:3] == ["all", "other", "tokens"]


def test_explain_of_a_run_without_a_probe_says_so(capsys):
    keep("abc1")
    assert main(["runs", "explain", "abc1", "1"]) == 0
    out = capsys.readouterr().out
    assert "were not recorded: `--probe 8`" in out
    assert "it is kept with probability" in out


@pytest.mark.parametrize("step", ["0", "7", "-1"])
def test_explain_names_the_steps_that_there_are(step, capsys):
    keep("abc1")
    assert main(["runs", "explain", "abc1", step]) == 2
    assert "it has the steps 1 to 6" in capsys.readouterr().err


def test_a_run_takes_one_line_whatever_its_settings_hold(capsys):
    prompt = "one\ntwo\r\n\tthree \x1b[31mred\u2028end"
    write(RunStore(), list(sample_events(2)), RunSpec(prompt=prompt, target="a\nmodel"), run_id="abc1")
    assert main(["runs", "list"]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert " a model " in line
    RunStore().delete(["abc1"])
    assert main(["runs", "deleted"]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.endswith(r"  one two three \x1b[31mred end")
