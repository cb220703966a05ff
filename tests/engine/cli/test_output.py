"""Standard output that cannot be written: a sentence, and nothing else is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
RUN = [sys.executable, "-m", "engine", "run", "--prompt", "The draft", "--max-tokens", "5"]


def engine(*arguments, **settings):
    return subprocess.run([*RUN, *arguments], stderr=subprocess.PIPE, text=True, check=False, **settings)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_full_disk_behind_standard_output_is_told_in_a_sentence(arguments):
    with FULL.open("w") as full:
        done = engine(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the output cannot be written")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_what_is_to_be_written_elsewhere_still_is(tmp_path):
    with FULL.open("w") as full:
        done = engine("--save", "--csv", str(tmp_path / "tokens.csv"), stdout=full)
    assert "Traceback" not in done.stderr
    assert len((tmp_path / "tokens.csv").read_text().splitlines()) > 5
    listed = subprocess.run(
        [sys.executable, "-m", "engine", "runs", "list"], capture_output=True, text=True, check=True
    )
    assert "finished" in listed.stdout
