"""Which head belongs to which target, and what is said where none does or a file is no use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.build import build
from engine.drafters.head_file import read_head
from engine.errors import ModelFileError, ModelNotFound, SettingError
from engine.heads import HEADS, SHIPPED, eagle, eagle_and_lookup, has_shipped_head
from engine.models.gguf_loader import load_gguf
from engine.models.markov import load_markov
from engine.models.pull import DOWNLOADS
from engine.models.token_rows import TokenRows
from engine.spec import RunSpec
from tests.engine.models.tiny_files import TOKENS, Tiny, write
from tests.engine.tiny_heads import write_head


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("tiny") / "tiny.gguf", Tiny())


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_heads_are_small_and_belong_to_their_target(name):
    assert SHIPPED[name].parent == HEADS
    assert SHIPPED[name].stat().st_size <= 8_000_000
    assert read_head(SHIPPED[name]).target_sha256 == DOWNLOADS[name].sha256
    assert has_shipped_head(name)


def test_run_with_a_head_of_ones_own(target, tmp_path):
    head = write_head(tmp_path / "head.npz", target, Tiny())
    for kind in ("eagle", "eagle+ngram"):
        built = build(RunSpec(target=str(target), drafter=f"{kind}:{head}", prompt="hello hello hello", max_tokens=8))
        assert built.drafter.name == kind
        *_, finished = built.events()
        assert finished.error == ""
        assert len(finished.ids) == 8


def test_lookup_speaks_first_where_the_last_tokens_occurred_before(target, tmp_path):
    head = write_head(tmp_path / "head.npz", target, Tiny())
    model = load_gguf(target).model
    both, alone = eagle_and_lookup(str(target), model, str(head)), eagle(str(target), model, str(head))
    from engine.sampling import Noise, Sampling

    ask = {"sampling": Sampling(temperature=0), "noise": Noise(0), "end_tokens": frozenset()}
    assert both.propose([1, 2, 3, 9, 1, 2], 2, **ask).tokens == (3, 9)
    assert both.propose([1, 2, 3, 9, 2], 2, **ask).tokens == alone.propose([1, 2, 3, 9, 2], 2, **ask).tokens


def test_target_without_a_head_is_told_how_to_get_one(target):
    assert not has_shipped_head(str(target))
    with pytest.raises(SettingError, match="train one as"):
        build(RunSpec(target=str(target), drafter="eagle", prompt="x"))


def test_embedded_target_has_no_head():
    assert not has_shipped_head("markov")
    with pytest.raises(SettingError, match="no model file"):
        eagle("markov", load_markov().model)


def test_head_of_another_file_is_refused(target, tmp_path):
    other = write(tmp_path / "other.gguf", Tiny(n_layers=1))
    head = write_head(tmp_path / "head.npz", other, Tiny())
    with pytest.raises(SettingError, match="trained for another file"):
        eagle(str(target), load_gguf(target).model, str(head))


def test_missing_file_is_named(target, tmp_path):
    with pytest.raises(ModelNotFound, match="give the path of a draft head"):
        eagle(str(target), load_gguf(target).model, str(tmp_path / "none.npz"))


DAMAGE = {
    "empty": b"",
    "text": b"not a head",
    "zip magic only": b"PK\x03\x04 and no more",
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_file_that_is_no_archive(tmp_path, content):
    path = tmp_path / "head.npz"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"not a draft head or is damaged; fetch or train it again$"):
        read_head(path)


def test_file_that_is_cut_short_or_changed(target, tmp_path):
    whole = write_head(tmp_path / "head.npz", target, Tiny()).read_bytes()
    path = tmp_path / "damaged.npz"
    for content in (whole[:-100], whole[: len(whole) // 2], whole[:3000] + b"\xff" * 64 + whole[3064:]):
        path.write_bytes(content)
        with pytest.raises(ModelFileError):
            read_head(path)


def test_single_array_is_no_head(tmp_path):
    with (tmp_path / "head.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ModelFileError, match="not a draft head"):
        read_head(tmp_path / "head.npz")


WRONG = {
    "an array is missing": ({"down.scale": None}, "has no down.scale"),
    "another format": ({"format": np.int64(2)}, "format 2"),
    "a wrong shape": ({"ffn_norm": np.ones(3, np.float32)}, "ffn_norm of shape"),
    "not a number": ({"output_bias": np.full(24, np.nan, np.float32)}, "not finite"),
    "tokens out of order": ({"tokens": np.array([3, 2], np.int32)}, "rising"),
    "no tokens": ({"tokens": np.array([], np.int32)}, "rising"),
    "pickled objects": ({"taps": np.array([{}], object)}, "damaged"),
}


@pytest.mark.parametrize(("changed", "words"), WRONG.values(), ids=WRONG)
def test_file_with_something_wrong_in_it(target, tmp_path, changed, words):
    with pytest.raises(ModelFileError, match=words):
        read_head(write_head(tmp_path / "head.npz", target, Tiny(), **changed))


def test_token_rows_are_those_of_the_file(tmp_path):
    for tied in (True, False):
        tiny = Tiny(tied=tied)
        path = write(tmp_path / f"{tied}.gguf", tiny)
        tensors = tiny.tensors()
        kept = np.array([2, 9, 100])
        rows = TokenRows(path, kept)
        asked = np.array([100, 3, 2, len(TOKENS) - 1])
        np.testing.assert_array_equal(rows.embedding(asked), tensors["token_embd.weight"][asked])
        head = tensors["token_embd.weight" if tied else "output.weight"]
        np.testing.assert_array_equal(rows.head, head[kept])
    with pytest.raises(ModelFileError, match="the id 5000"):
        TokenRows(path, np.array([2, 5000]))


@pytest.mark.real_model
def test_draft_model_of_the_real_target_is_its_head(smollm2_path: Path) -> None:
    """`--drafter model` means the partner that ships, and the file is told by its content, wherever it lies."""
    assert has_shipped_head(str(smollm2_path))
    assert build(RunSpec(target=str(smollm2_path), drafter="model", prompt="x")).drafter.name == "eagle"
