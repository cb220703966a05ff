"""`python -m engine run --metrics-port`: the counters over HTTP, during the run and behind it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from engine.cli.main import main
from tests.engine.telemetry.test_prometheus import scraped, total

ROOT = Path(__file__).parents[3]
RUN = ["run", "--prompt", "The draft", "--max-tokens", "25", "--json"]


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs signals")
def test_the_counters_stay_behind_the_run_until_it_is_interrupted():
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", *RUN, "--metrics-port", "0"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whoever runs the tests may ignore it
    )  # fmt: skip
    try:
        record = json.loads(process.stdout.readline())
        lines = [process.stderr.readline(), process.stderr.readline()]
        assert lines[1].endswith("until Ctrl-C\n")
        with urlopen(re.search(r"http://127\.0\.0\.1:\d+/metrics", lines[1])[0]) as answer:
            samples = scraped(answer.read())
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert rest == ""
    assert total(samples, "emitted_tokens_total") == record["tokens_generated"] == 25
    assert total(samples, "spec_decode_num_draft_tokens_total") == record["drafted"]
    assert total(samples, "spec_decode_num_accepted_tokens_total") == record["accepted"]


def test_without_lingering_the_command_ends_with_the_run(capsys):
    assert main([*RUN, "--metrics-port", "0", "--metrics-linger", "0"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["tokens_generated"] == 25
    assert re.fullmatch(r"metrics at http://127\.0\.0\.1:\d+/metrics\n", told.err)


def test_it_lingers_as_long_as_asked(capsys):
    assert main([*RUN, "--metrics-port", "0", "--metrics-linger", "0.01"]) == 0
    assert "metrics stay at http://127.0.0.1:" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_before_anything_runs(capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert main([*RUN, "--metrics-port", port]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"error: metrics cannot be served at 127.0.0.1:{port}: another program listens there")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metrics-port", "99999"], "the metrics port is 99999"),
        (["--metrics-port", "0", "--metrics-linger", "-1"], "--metrics-linger is -1.0"),
        (["--metrics-port", "0", "--metrics-linger", "nan"], "--metrics-linger is nan"),
        (["--metrics-linger", "3"], "with --metrics-port only"),
    ],
)
def test_what_cannot_be_served_is_told(options, words, capsys):
    assert main([*RUN, *options]) == 2
    assert words in capsys.readouterr().err
