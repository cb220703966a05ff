"""Runs as JSONL, out and in again: nothing is lost, and nothing that is not ours comes in."""

import io
import json

import pytest

from engine.build import build
from engine.cli.main import main
from engine.decode import decode
from engine.drafters import NoDraft, PromptLookup
from engine.errors import RunFileError, StoreError
from engine.export_jsonl import run_jsonl
from engine.import_jsonl import LONGEST_LINE, MOST_BYTES, lines_of, read_runs
from engine.models.callable import CallableModel
from engine.spec import RunSpec
from engine.values import Drafted, Finished, Step
from tests.engine.kept_runs import EVENTS, SPEC, write

CREATED = "2026-01-31T12:00:00+00:00"


def exported(store, *run_ids):
    """The bytes of a file with those runs."""
    return b"".join(
        line.encode("ascii")
        for run_id in run_ids
        for line in run_jsonl(store.get(run_id), store.events(run_id, exact=True))
    )


def imported(store, content):
    return store.add(read_runs(io.BytesIO(content), "runs.jsonl")).ids


def known(store, run_id):
    """All that the store knows of a run."""
    return store.get(run_id), list(store.events(run_id))


def failing(ids):
    if len(ids) > 12:
        raise RuntimeError("out of memory")
    return [float((ids[-1] * 7 + token) % 5) for token in range(9)]


def ended_by_error():
    return list(decode(CallableModel(failing, vocab_size=9), PromptLookup(), [1, 2, 3, 1, 2, 3], max_tokens=30))


def cancelled():
    asked = iter([False, False, True])
    return list(build(RunSpec(prompt="The draft", max_tokens=90)).events(lambda: next(asked)))


ENDED = {
    "odd texts": EVENTS,
    "no step yet": EVENTS[:1],
    "interrupted behind a draft": EVENTS[:4],
    "interrupted behind a step": EVENTS[:5],
    "nothing at all": [],
    "embedded": list(build(RunSpec(prompt="The draft", max_tokens=60, seed=3)).events()),
    "naive": list(build(RunSpec(prompt="The draft", max_tokens=60, rule="naive")).events()),
    "stopped in a block": list(build(RunSpec(prompt="The draft", max_tokens=60, stop=("the",), agreement=1)).events()),
    "plain": list(decode(CallableModel(failing, vocab_size=9), NoDraft(), [1], max_tokens=5)),
    "error": ended_by_error(),
    "cancelled": cancelled(),
}


def test_the_examples_end_as_they_are_called():
    assert ENDED["error"][-1].reason == "error"
    assert ENDED["cancelled"][-1].reason == "cancelled"
    assert isinstance(ENDED["interrupted behind a draft"][-1], Drafted)
    assert any(decision.discarded for event in ENDED["stopped in a block"] if isinstance(event, Step)
               for decision in event.decisions)  # fmt: skip


@pytest.mark.parametrize("how", ENDED)
def test_a_run_comes_back_as_it_went(store, how):
    run_id = write(store, ENDED[how])
    store.label(run_id, tags=["baseline", "caf\u00e9"], note="before the update")
    before = known(store, run_id)
    assert before[1] == ENDED[how]
    content = exported(store, run_id)
    store.delete([run_id])
    assert imported(store, content) == [run_id]
    assert known(store, run_id) == before
    assert exported(store, run_id) == content


def test_a_line_is_a_step_and_a_draft_stands_only_where_its_step_never_came(store):
    lines = exported(store, write(store, EVENTS)).splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds == ["run", "started", *["step"] * 6, "finished", "end"]
    lines = exported(store, write(store, EVENTS[:4])).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["run", "started", "step", "drafted", "end"]


def test_a_file_may_hold_many_runs(store):
    kept = [write(store, events) for events in (EVENTS, EVENTS[:4], EVENTS[:1])]
    before = [known(store, run_id) for run_id in kept]
    content = exported(store, *kept)
    store.delete(kept)
    assert imported(store, content) == kept
    assert [known(store, run_id) for run_id in kept] == before


@pytest.mark.parametrize(
    "given",
    ["2026-02-01T01:00:00+13:00", "2026-01-31T12:00:00Z", "20260131T120000.75+0000", "2026-01-31T07:00:00-05:00"],
)
def test_a_time_of_any_zone_becomes_the_same_time_in_utc(store, given):
    run_id = write(store, EVENTS)
    lines = exported(store, run_id).splitlines(keepends=True)
    store.delete([run_id])
    imported(store, header(lines, created_at=given))
    assert store.get(run_id).created_at == CREATED


def test_settings_time_and_versions_are_those_of_the_file(store):
    run_id = write(store, EVENTS)
    lines = exported(store, run_id).splitlines(keepends=True)
    header = json.loads(lines[0]) | {"created_at": CREATED, "versions": {"draftscope": "0.0.1"}}
    store.delete([run_id])
    imported(store, b"".join([json.dumps(header).encode() + b"\n", *lines[1:]]))
    run = store.get(run_id)
    assert (run.created_at, run.versions, run.spec) == (CREATED, {"draftscope": "0.0.1"}, SPEC)


def test_a_run_that_is_here_already_is_told_and_no_other_comes_in(store):
    kept = [write(store, EVENTS), write(store, EVENTS)]
    content = exported(store, *kept)
    store.delete(kept[:1])
    with pytest.raises(StoreError, match=f"there is a run {kept[1]} already.*Nothing was imported"):
        imported(store, content)
    assert [run.id for run in store.runs()] == kept[1:]


@pytest.fixture
def lines(store):
    """The lines of a good file, its run deleted again."""
    run_id = write(store, EVENTS, run_id="a1")
    content = exported(store, run_id)
    store.delete([run_id])
    return content.splitlines(keepends=True)


def refused(store, content, words):
    with pytest.raises(RunFileError, match=words) as told:
        imported(store, content)
    assert "nothing was imported" in str(told.value) or "has no run in it" in str(told.value)
    assert len(str(told.value)) < 700
    assert store.runs() == []


def test_a_file_cut_anywhere_is_refused(store, lines):
    content = b"".join(lines)
    for end in range(0, len(content) - 1, 7):
        refused(store, content[:end], "cut short|no run in it|damaged")


@pytest.mark.parametrize("place", range(1, 10))
def test_a_line_that_is_missing_is_seen(store, lines, place):
    refused(store, b"".join(lines[:place] + lines[place + 1 :]), "must follow|missing|begin|cut short|behind its end")


def test_a_step_that_comes_twice_is_seen(store, lines):
    refused(store, b"".join([*lines[:4], lines[3], *lines[4:]]), "the step 2 must follow here; this is the step 1")


def header(lines, **changes):
    data = {name: value for name, value in (json.loads(lines[0]) | changes).items() if value is not None}
    return b"".join([json.dumps(data).encode() + b"\n", *lines[1:]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": 2}, "schema 2; this version of Draftscope reads schema 1; update it"),
        ({"schema": "1"}, "schema '1'"),
        ({"schema": True}, "schema True"),
        ({"type": "event"}, "a run must begin here"),
        ({"id": "../../etc/passwd"}, "the id of the run is"),
        ({"id": "x" * 65}, "the id of the run is"),
        ({"id": 7}, "the id of the run is 7"),
        ({"created_at": "yesterday"}, "'yesterday'; expected a time"),
        ({"created_at": "2026-01-31T12:00:00"}, "expected a time"),
        ({"created_at": "0001-01-01T00:00:00+10:00"}, "expected a time"),
        ({"created_at": None}, "created_at"),
        ({"spec": {"target": 3}}, "target is 3"),
        ({"spec": {"schema": 9}}, "schema 9"),
        ({"spec": {"warmth": 1}}, "no field 'warmth'"),
        ({"spec": []}, r"must be a JSON object; this is \[\]"),
        ({"versions": {"python": "x" * 1000}}, "the versions"),
        ({"versions": []}, "the versions"),
        ({"tags": "baseline"}, "a list of texts"),
        ({"tags": ["a,b"]}, "without a comma"),
        ({"note": 3}, "a list of texts and a text"),
        ({"remark": "<script>"}, "remark"),
    ],
)
def test_a_header_that_is_not_ours_is_refused(store, lines, changes, words):
    refused(store, header(lines, **changes), words)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[]", "this is a list"),
        (b"[" * 100_000, "not one whole JSON object"),
        (b'{"type":"step","index":' + b"9" * 5000 + b"}", "not one whole JSON object"),
        (b'{"type":"started","seed":NaN}', "NaN is no number"),
        (b'{"type":"started","seed":1e999}', "too large"),
        (b"\xff\xfe", "not one whole JSON object"),
        (b'{"type":"paused"}', "'paused' is unknown"),
        (b'{"type":"step","index":99,"context_length":1,"decisions":[],"emitted":[],"draft_seconds":0,'
         b'"verify_seconds":0,"overhead_seconds":0,"at_seconds":0}', "must follow here"),
        (b'{"type":"step","index":0,"context_length":1,"decisions":[],"emitted":[7],"draft_seconds":0,'
         b'"verify_seconds":0,"overhead_seconds":0,"at_seconds":0}', "emits other tokens"),
        (b'{"type":"step","index":' + b"9" * 400 + b"}", "the number .* is too large"),
        (b"x" * (LONGEST_LINE + 1), "longer than 4 MB"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_ours_is_refused(store, lines, line, words):
    refused(store, b"".join([*lines[:2], line, b"\n", *lines[2:]]), words)


def test_counts_that_contradict_the_steps_are_refused(store, lines):
    end = json.loads(lines[-1]) | {"accepted": 99}
    refused(store, b"".join([*lines[:-1], json.dumps(end).encode()]), "accepted 99, its lines give 4")


def test_times_that_overflow_are_refused(store, lines):
    steps = [json.dumps(json.loads(line) | {"draft_seconds": 1e308}).encode() + b"\n" for line in lines[2:8]]
    refused(store, b"".join([*lines[:2], *steps, *lines[8:]]), "too large to add up")


def test_a_run_that_is_in_the_file_twice_is_refused(store, lines):
    refused(store, b"".join(lines * 2), "the run a1 is in the file twice")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"run_id,step\r\na1,0\r\n", b"\x89PNG\r\n\x1a\n", b"{}"])
def test_a_file_of_another_kind_is_refused(store, content):
    refused(store, content, "no run in it|no file of runs|must begin here")


def test_a_file_without_end_is_given_up(store):
    endless = (b" " * (LONGEST_LINE - 1) + b"\n" for _ in range(10_000))
    with pytest.raises(RunFileError, match=f"larger than {MOST_BYTES // 2**20} MB"):
        read_runs(endless, "zeros")


def test_a_line_without_end_is_not_read_whole(tmp_path):
    file = tmp_path / "zeros"
    with file.open("wb") as zeros:
        zeros.truncate(LONGEST_LINE * 3)
    assert max(map(len, lines_of(file))) == LONGEST_LINE + 1


def test_the_command_line_exports_and_imports(tmp_path, capsys):
    from engine.store import RunStore

    run_id = write(RunStore(), EVENTS)
    before = known(RunStore(), run_id)
    file = tmp_path / "run.jsonl"
    assert main(["runs", "export", run_id[:6], "--jsonl", str(file)]) == 0
    assert capsys.readouterr().err == f"wrote 1 run to {file}\n"
    assert main(["runs", "import", str(file)]) == 2
    assert f"there is a run {run_id} already" in capsys.readouterr().err
    assert main(["runs", "delete", run_id]) == 0
    assert main(["runs", "import", str(file)]) == 0
    told = capsys.readouterr().out
    assert f"imported 1 run: {run_id}\nIt took the place of the deleted run of the same id, which can no longer" in told
    assert told.endswith(f"be restored: {run_id}\n")
    assert known(RunStore(), run_id) == before


def test_the_command_line_tells_what_is_wrong_with_a_file(tmp_path, capsys):
    assert main(["runs", "import", str(tmp_path / "missing.jsonl")]) == 2
    assert "missing.jsonl cannot be read" in capsys.readouterr().err
    assert main(["runs", "import", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_run_that_finished_says_so_again_and_any_other_is_interrupted(store):
    kept = [write(store, EVENTS), write(store, EVENTS[:5])]
    content = exported(store, *kept)
    store.delete(kept)
    states = [store.get(run_id).state for run_id in imported(store, content)]
    assert states == ["finished", "interrupted"]
    assert isinstance(EVENTS[-1], Finished)


def test_an_import_tells_which_deleted_runs_it_took_the_place_of(store):
    kept = [write(store, EVENTS), write(store, EVENTS[:4]), write(store, EVENTS)]
    file = read_runs(io.BytesIO(exported(store, *kept)), "runs.jsonl")
    store.delete(kept)
    store.purge(kept_days=0)
    assert (store.add(file).replaced, len(store.runs())) == ([], 3)
    store.delete(kept[:2])
    added = store.add(file[:2])
    assert (added.ids, added.replaced, store.deleted()) == (kept[:2], kept[:2], [])
    assert added.words.startswith("They took the place of the deleted runs of the same ids")
    assert added.words.endswith(", ".join(kept[:2]))
