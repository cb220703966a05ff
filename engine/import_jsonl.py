"""Runs from JSONL, as `engine.export_jsonl` writes it: all of a file, or an error and nothing.

A file may come from anybody.  Every line is bounded and checked: its JSON, the fields and types of
its event, the order of the events, the positions and ranges of every step (`engine.step_checks`),
the counts of the end line and the identities that every run satisfies.  What is not ours, cut short,
changed, or of a newer schema is refused in words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from engine.errors import DraftscopeError, RunFileError
from engine.event_json import event_from_object, event_to_json
from engine.export_jsonl import SCHEMA, counts
from engine.report import Report
from engine.run_labels import checked_note, checked_tags
from engine.run_writer import record_json
from engine.spec import RunSpec
from engine.step_checks import check_guess, check_step, check_times
from engine.stored_run import RUN_ID
from engine.values import Drafted, Event, Finished, Started, Step

__all__ = ["ImportedRun", "lines_of", "read_runs"]

MOST_BYTES = 256 * 2**20
LONGEST_LINE = 4 * 2**20
MOST_VERSIONS = 50
LONGEST_VERSION = 200
LARGEST_NUMBER = 2**64
"""No whole number of a run is as large; a seed comes next to it."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A run as a file had it, checked and ready for the store.

    Attributes
    ----------
    id, created_at : str
    spec : RunSpec
    versions : dict of str
    record : str
        `engine.report.Report.record` as JSON.
    started, finished : str or None
        The events as JSON.
    steps : tuple of str
        The `Step` events as JSON in order; the last may be a `Drafted` whose step never came.
    tags : tuple of str
    note : str
    """

    id: str
    created_at: str
    spec: RunSpec
    versions: dict[str, str]
    record: str
    started: str | None
    finished: str | None
    steps: tuple[str, ...]
    tags: tuple[str, ...]
    note: str


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, none longer than may be.

    Raises
    ------
    RunFileError
        If the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                yield line
    except OSError as failure:
        raise RunFileError(f"the file {path} cannot be read: {failure.strerror or failure}") from failure


def read_runs(lines: Iterable[bytes], name: str) -> list[ImportedRun]:
    """The runs of a file.

    Parameters
    ----------
    lines : iterable of bytes
        Each with its line break.
    name : str
        What the file is called in messages.

    Raises
    ------
    RunFileError
        If anything in it is not as `engine.export_jsonl` writes it.

    Examples
    --------
    >>> from engine.export_jsonl import run_jsonl
    >>> from engine.build import build
    >>> from engine.stored_run import StoredRun
    >>> spec = RunSpec(prompt="The draft", max_tokens=3, seed=6)
    >>> run = StoredRun("a1", "2026-01-01T00:00:00+00:00", "finished", spec, {}, {})
    >>> lines = [line.encode() for line in run_jsonl(run, build(spec).events())]
    >>> [imported] = read_runs(lines, "runs.jsonl")
    >>> imported.spec == spec, len(imported.steps)
    (True, 1)
    """
    runs: list[ImportedRun] = []
    taken: set[str] = set()
    reader: _Reader | None = None
    size = 0
    for number, line in enumerate(lines, 1):
        with _told(name, number):
            size += len(line)
            if size > MOST_BYTES:
                raise RunFileError(f"the file is larger than {MOST_BYTES // 2**20} MB; export fewer runs at once")
            if not line.strip():
                continue
            data = _object(line)
            if reader is None:
                reader = _Reader(data)
                if reader.id in taken:
                    raise RunFileError(f"the run {reader.id} is in the file twice")
                taken.add(reader.id)
            elif data.get("type") == "end":
                runs.append(reader.end(data))
                reader = None
            else:
                reader.add(data)
    if reader is not None:
        raise RunFileError(f"{name} ends in the middle of the run {reader.id}: it is cut short; nothing was imported")
    if not runs:
        raise RunFileError(f"{name} has no run in it; give a file that `python -m engine runs export --jsonl` wrote")
    return runs


class _Reader:
    """Takes the lines of one run, header first."""

    def __init__(self, header: dict[str, Any]) -> None:
        if header.pop("type", None) != "run":
            raise RunFileError(
                "a run must begin here, with an object of the type 'run'; "
                "give a file that `python -m engine runs export --jsonl` wrote"
            )
        schema = header.pop("schema", None)
        if schema != SCHEMA or isinstance(schema, bool):
            newer = isinstance(schema, int) and schema > SCHEMA
            raise RunFileError(
                f"the run has schema {_short(schema)}; this version of Draftscope reads schema {SCHEMA}"
                + ("; update it to read this file" if newer else "")
            )
        expected = {"id", "created_at", "spec", "versions", "tags", "note"}
        if set(header) != expected:
            wrong = sorted(set(header) ^ expected)[0]
            raise RunFileError(f"the header of a run has {', '.join(sorted(expected))}; look at {_short(wrong)}")
        self.id = _run_id(header["id"])
        self.created_at = _time(header["created_at"])
        self.spec = RunSpec.from_json(json.dumps(header["spec"]))
        self.versions = _versions(header["versions"])
        self.tags, self.note = _labels(header["tags"], header["note"])
        self._report = Report()
        self._started: str | None = None
        self._finished: str | None = None
        self._guess = False  # a draft has come whose step has not
        self._steps: list[str] = []
        self._n_events = 0

    def add(self, data: dict[str, Any]) -> None:
        event = event_from_object(data)
        self._check_place(event)
        check_times(event)
        self._n_events += 1
        self._report.add(event)
        text = event_to_json(event)
        if isinstance(event, Started):
            self._started = text
        elif isinstance(event, Finished):
            self._finished = text
        else:
            self._guess = isinstance(event, Drafted)
            self._steps.append(text)

    def _check_place(self, event: Event) -> None:
        if self._finished is not None:
            raise RunFileError("the run goes on behind its end")
        if isinstance(event, Started):
            if self._started is not None:
                raise RunFileError("the run begins a second time")
        elif self._started is None:
            raise RunFileError("the run must begin here, with an object of the type 'started'")
        elif isinstance(event, Drafted | Step):
            if self._guess:
                raise RunFileError("a draft whose step never came must be the last of its run")
            if event.index != len(self._steps):
                raise RunFileError(f"the step {len(self._steps)} must follow here; this is the step {event.index}")
        if isinstance(event, Step):
            given = tuple(
                decision.target_token
                for decision in event.decisions
                if decision.target_token is not None and not decision.discarded
            )
            if given != event.emitted:
                raise RunFileError(f"the step {event.index} emits other tokens than its decisions give")
            check_step(event)
        elif isinstance(event, Drafted):
            check_guess(event)

    def end(self, data: dict[str, Any]) -> ImportedRun:
        del data["type"]
        figures = self._report.figures()
        expected = counts(self._n_events, figures)
        for name, value in expected.items():
            if data.get(name) != value:
                raise RunFileError(
                    f"the end of the run {self.id} says {name} {_short(data.get(name))}, its lines give {value}: "
                    "lines are missing or were changed"
                )
        if set(data) != set(expected):
            raise RunFileError(f"the end of a run has {', '.join(expected)} and nothing else")
        if not figures.identities_ok:
            raise RunFileError(f"the counts of the run {self.id} contradict each other")
        try:
            record = record_json(self._report)
        except (ValueError, OverflowError):
            raise RunFileError(f"the times of the run {self.id} are too large to add up") from None
        return ImportedRun(
            self.id,
            self.created_at,
            self.spec,
            self.versions,
            record,
            self._started,
            self._finished,
            tuple(self._steps),
            self.tags,
            self.note,
        )


@contextmanager
def _told(name: str, number: int) -> Iterator[None]:
    """Put the place before what is wrong."""
    try:
        yield
    except DraftscopeError as failure:
        raise RunFileError(f"{name}, line {number}: {_short(str(failure), 500)}; nothing was imported") from None


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise RunFileError(f"the line is longer than {LONGEST_LINE // 2**20} MB; this is no file of runs")
    try:
        data = json.loads(line.decode("utf-8-sig"), parse_constant=_no_number, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as failure:
        if isinstance(failure, RunFileError):
            raise
        raise RunFileError(
            "this is not one whole JSON object; the file is damaged, cut short, or no file of runs"
        ) from None
    if not isinstance(data, dict):
        raise RunFileError(f"a line must be a JSON object; this is a {type(data).__name__}")
    return data


def _no_number(text: str) -> NoReturn:
    raise RunFileError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise RunFileError(f"the number {_short(text)} is too large")
    return value


def _whole(text: str) -> int:
    value = int(text)
    if not -LARGEST_NUMBER < value < LARGEST_NUMBER:
        raise RunFileError(f"the number {_short(text)} is too large")
    return value


def _run_id(value: object) -> str:
    if not isinstance(value, str) or not RUN_ID.fullmatch(value):
        raise RunFileError(f"the id of the run is {_short(value)}; expected up to 64 letters, digits, '-' and '_'")
    return value


def _time(value: object) -> str:
    """The time in UTC, as the store writes it, so that times sort and compare as texts."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) and len(value) <= 40 else None
        if time is not None and time.tzinfo is not None:
            return time.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        pass
    raise RunFileError(f"the run was created at {_short(value)}; expected a time such as 2026-01-31T12:00:00+00:00")


def _versions(value: object) -> dict[str, str]:
    if (
        not isinstance(value, dict)
        or len(value) > MOST_VERSIONS
        or not all(isinstance(text, str) and len(text) <= LONGEST_VERSION for pair in value.items() for text in pair)
    ):
        raise RunFileError(f"the versions of the run are {_short(value)}; expected names and short texts")
    return value


def _labels(tags: object, note: object) -> tuple[tuple[str, ...], str]:
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags) or not isinstance(note, str):
        raise RunFileError(f"the tags and the note are {_short([tags, note])}; expected a list of texts and a text")
    return checked_tags(tags), checked_note(note)


def _short(value: object, most: int = 60) -> str:
    """A value of an unknown file, at a length that fits a sentence."""
    text = value if isinstance(value, str) and most > 60 else repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."
