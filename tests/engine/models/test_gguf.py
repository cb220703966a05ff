"""Files that cannot be run are refused with words, whatever is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter

from engine.errors import ModelFileError, ModelNotFound
from engine.models import weights
from engine.models.gguf import read_gguf
from engine.models.gguf_loader import load_gguf
from tests.engine.models.tiny_files import TOKENS, Tiny, write


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny.gguf", Tiny())


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"there is no file .*nothing\.gguf"):
        load_gguf(tmp_path / "nothing.gguf")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a directory"):
        load_gguf(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "it is empty"), (b"version https://git-lfs", "it begins with b'vers'"), (b"GG", "it begins with b'GG'")],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "text.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load_gguf(path)


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, tiny_file: Path) -> None:
    whole = tiny_file.read_bytes()
    end = max(tensor.data_offset + tensor.n_bytes for tensor in GGUFReader(tiny_file).tensors)
    path = tmp_path / "cut.gguf"
    for size in [*range(4, end, end // 60), end - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match=r" bytes\) is cut short or damaged; fetch it again$"):
            load_gguf(path)


def test_a_damaged_header_ends_in_an_error_of_ours_or_in_a_model(tmp_path: Path, tiny_file: Path) -> None:
    whole = bytearray(tiny_file.read_bytes())
    header = GGUFReader(tiny_file).data_offset
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.gguf"
    for place, value in zip(rng.integers(4, header, 150), rng.integers(1, 256, 150), strict=True):
        damaged = whole.copy()
        damaged[place] ^= int(value)
        path.write_bytes(damaged)
        try:
            load_gguf(path)
        except ModelFileError:
            continue


@pytest.mark.parametrize("length", [b"\xff" * 8, (1 << 40).to_bytes(8, "little")])
def test_a_token_longer_than_the_file_is_refused(tmp_path: Path, tiny_file: Path, length: bytes) -> None:
    whole = tiny_file.read_bytes()
    last = TOKENS[-1].encode()
    place = whole.index(len(last).to_bytes(8, "little") + last)
    path = tmp_path / "damaged.gguf"
    path.write_bytes(whole[:place] + length + whole[place + 8 :])
    with pytest.raises(ModelFileError, match="is cut short or damaged"):
        read_gguf(path)


def test_a_token_that_is_no_text_is_refused(tmp_path: Path, tiny_file: Path) -> None:
    whole, last = tiny_file.read_bytes(), TOKENS[-1].encode()
    size = len(last).to_bytes(8, "little")
    path = tmp_path / "damaged.gguf"
    path.write_bytes(whole.replace(size + last, size + b"\xff" * len(last)))
    with pytest.raises(ModelFileError, match="is cut short or damaged"):
        read_gguf(path)


def test_strings_are_read_as_the_package_reads_them(tiny_file: Path) -> None:
    fields = {key: field.contents() for key, field in GGUFReader(tiny_file).fields.items()}
    assert read_gguf(tiny_file).fields == fields


def test_some_rows_of_a_tensor_are_read_alone(tiny_file: Path) -> None:
    file, shape = read_gguf(tiny_file), (len(TOKENS), Tiny().width)
    whole = file.tensor("token_embd.weight", *shape)
    assert np.array_equal(file.tensor("token_embd.weight", *shape, rows=slice(3, 9)), whole[3:9])
    with pytest.raises(ModelFileError, match="its metadata promise"):
        file.tensor("token_embd.weight", 6, Tiny().width, rows=slice(3, 9))


@pytest.mark.parametrize("family", ["gemma3", "mamba", "qwen2moe", "clip"])
def test_another_architecture_is_named_and_ours_are_listed(tmp_path: Path, family: str) -> None:
    path = write(tmp_path / "other.gguf", Tiny(family=family))
    with pytest.raises(ModelFileError, match=f"'{family}'; Draftscope runs llama, qwen2, qwen3"):
        load_gguf(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"llama.attention.sliding_window": 32}, "sliding window of 32 tokens"),
        ({"llama.expert_count": 8}, "llama.expert_count to 8"),
        ({"llama.logit_scale": 0.5}, "llama.logit_scale to 0.5"),
        ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}, "by 4.0 the 'yarn' way"),
        ({"llama.rope.freq_base": float("nan")}, "'nan' as llama.rope.freq_base"),
        ({"llama.rope.dimension_count": 8}, "rotates 8 of 6"),
        ({"llama.attention.head_count": 3}, "3 query heads on 2 key-value heads"),
        ({"llama.attention.head_count_kv": [2, 1]}, "another llama.attention.head_count_kv in each layer"),
        ({"llama.attention.value_length": 4}, "values of 4"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "has no llama.attention.layer_norm_rms_epsilon"),
        ({"llama.block_count": "two"}, "'two' as llama.block_count; expected a value of type int"),
        ({"llama.block_count": 0}, "0 as llama.block_count"),
        ({"llama.block_count": 3}, "has no tensor blk.2.attn_norm.weight"),
        ({"llama.block_count": 1}, "tensors that a llama model as Draftscope runs it does not have"),
        ({"split.count": 3}, "split over 3 files"),
    ],
)
def test_a_setting_that_we_do_not_run_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "tiny.gguf", Tiny(fields=fields))
    with pytest.raises(ModelFileError, match=message):
        load_gguf(path)


def test_a_window_as_wide_as_the_context_changes_nothing(tmp_path: Path) -> None:
    load_gguf(write(tmp_path / "tiny.gguf", Tiny(fields={"llama.attention.sliding_window": 64})))


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("llama", "token_embd.weight"),
        ("llama", "output_norm.weight"),
        ("llama", "blk.1.ffn_down.weight"),
        ("qwen2", "blk.0.attn_k.bias"),
        ("qwen3", "blk.1.attn_q_norm.weight"),
    ],
)
def test_a_missing_tensor_is_named(tmp_path: Path, family: str, name: str) -> None:
    tiny = Tiny(family=family)
    tensors = tiny.tensors()
    del tensors[name]
    with pytest.raises(ModelFileError, match=f"no tensor {name}"):
        load_gguf(write(tmp_path / "tiny.gguf", tiny, tensors))


def test_a_tensor_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    tensors = Tiny().tensors() | {"blk.0.attn_sinks.weight": np.ones(4, np.float32)}
    with pytest.raises(ModelFileError, match=r"blk\.0\.attn_sinks\.weight among them"):
        load_gguf(write(tmp_path / "tiny.gguf", Tiny(), tensors))


def test_a_tensor_of_another_shape_is_refused(tmp_path: Path) -> None:
    tensors = Tiny().tensors() | {"blk.0.attn_k.weight": np.ones((6, 24), np.float32)}
    with pytest.raises(ModelFileError, match=r"attn_k.weight of shape \(6, 24\); its metadata promise \(12, 24\)"):
        load_gguf(write(tmp_path / "tiny.gguf", Tiny(), tensors))


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    tensors = Tiny().tensors()
    tensors["blk.0.ffn_up.weight"][3, 3] = np.nan
    with pytest.raises(ModelFileError, match=r"ffn_up.weight that are not finite"):
        load_gguf(write(tmp_path / "tiny.gguf", Tiny(), tensors))


def test_fewer_tokens_than_rows_are_refused(tmp_path: Path) -> None:
    tensors = Tiny().tensors()
    tensors["token_embd.weight"] = np.concatenate([tensors["token_embd.weight"]] * 2)
    with pytest.raises(ModelFileError, match="271 tokens and an embedding of 542 rows"):
        load_gguf(write(tmp_path / "tiny.gguf", Tiny(), tensors))


def test_a_loaded_model_does_not_need_its_file_any_more(tiny_file: Path) -> None:
    model = load_gguf(tiny_file).model
    before = model.logits([1, 2, 3])
    with tiny_file.open("r+b") as file:
        file.write(bytes(tiny_file.stat().st_size))
    assert np.array_equal(model.fork().logits([1, 2, 3]), before)


def test_half_precision_is_read(tmp_path: Path) -> None:
    tensors = {name: array.astype(np.float16) if array.ndim == 2 else array for name, array in Tiny().tensors().items()}
    rows = load_gguf(write(tmp_path / "half.gguf", Tiny(), tensors)).model.logits([1, 2, 3])
    exact = load_gguf(write(tmp_path / "tiny.gguf", Tiny())).model.logits([1, 2, 3])
    assert 0 < np.abs(rows - exact).max() < 0.01


def test_a_quantisation_without_a_way_back_is_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("odd", np.zeros((4, 40), np.uint8), raw_dtype=GGMLQuantizationType.Q8_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelFileError, match="stores odd as Q8_1, which the installed gguf package cannot"):
        read_gguf(path).tensor("odd", 4, 32)


def test_a_tensor_type_from_the_future_is_refused(tmp_path: Path, tiny_file: Path) -> None:
    reader = GGUFReader(tiny_file)
    type_of_first = reader.tensors[0].field.parts[4]
    place = type_of_first.ctypes.data - reader.data.ctypes.data
    content = bytearray(tiny_file.read_bytes())
    content[place : place + 4] = (999).to_bytes(4, "little")
    path = tmp_path / "future.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="a tensor type that the installed gguf package does not know"):
        load_gguf(path)


def test_weights_larger_than_the_memory_are_refused(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights.os, "sysconf", lambda name: 100)
    with pytest.raises(ModelFileError, match=r"GB as float32, this machine has 0\.0 GB of memory"):
        load_gguf(tiny_file)
