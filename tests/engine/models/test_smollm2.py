"""The real file: de-quantised by hand, run by the slow reference, and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from engine.models.base import LoadedModel
from engine.models.vocabulary import check_vocabulary
from tests.engine.models import reference

pytestmark = pytest.mark.real_model

TEXT = """Speculative decoding lets a small model guess the next few words, and a large model check all of the
guesses at once. Where the two agree, several tokens are gained for the price of one; where they do not, the first
wrong guess is replaced by what the large model would have said, and everything behind it is thrown away. Nothing is
lost by it but the time that the small model took. In 1998, a chess player who thought 3 moves ahead did much the same:
he prepared his answer while the clock of the other side was running, and played it at once if the expected move came.
How far ahead it pays to guess depends on how often the guesses are right, and on how cheap they are. If 4 out of 5
are kept, a block of five or six is about right; if only one in three is kept, guess one or two, or none at all.
The text itself decides a great deal: code, lists and quotations are easy to foresee, a poem is not.
"""


def by_hand(path: Path) -> dict[str, np.ndarray]:
    """All tensors as float32, from the bytes of the file (block layouts: ggml-common.h of llama.cpp)."""
    tensors = {}
    for tensor in GGUFReader(path).tensors:
        raw = np.fromfile(path, np.uint8, tensor.n_bytes, offset=tensor.data_offset)
        if tensor.tensor_type.name == "Q4_1":  # 2 bytes scale, 2 bytes minimum, 16 bytes of two 4-bit numbers
            blocks = raw.reshape(-1, 20)
            scale, low = blocks[:, :4].copy().view(np.float16).astype(np.float32).T
            numbers = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
            values = scale[:, None] * numbers + low[:, None]
        elif tensor.tensor_type.name == "Q8_0":  # 2 bytes scale, 32 signed bytes
            blocks = raw.reshape(-1, 34)
            values = blocks[:, :2].copy().view(np.float16).astype(np.float32) * blocks[:, 2:].view(np.int8)
        else:
            assert tensor.tensor_type.name == "F32"
            values = raw.view(np.float32)
        tensors[tensor.name] = values.astype(np.float32).reshape(tensor.shape[::-1].tolist())
    return tensors


def text_of(smollm2: LoadedModel, ids: list[int]) -> bytes:
    return b"".join(map(smollm2.tokenizer.token_bytes, ids))


def test_the_capital_of_france(smollm2: LoadedModel) -> None:
    model = smollm2.model.fork()
    ids = smollm2.tokenizer.encode("The capital of France is")
    for _ in range(2):
        ids.append(int(model.logits(ids).argmax()))
    assert text_of(smollm2, ids) == b"The capital of France is Paris."


def test_every_row_equals_the_reference(smollm2: LoadedModel, smollm2_path: Path) -> None:
    ids = smollm2.tokenizer.encode(TEXT)[:200]
    assert len(ids) == 200
    shape = reference.Shape(
        n_layers=30,
        n_heads=9,
        n_kv_heads=3,
        head_dim=64,
        n_rope_dims=64,
        rope_base=100_000.0,
        rope_scale=1.0,
        interleaved=True,
    )
    expected = reference.logits(by_hand(smollm2_path), shape, ids)
    rows = smollm2.model.fork().logits(ids, last=200)
    assert np.array_equal(rows.argmax(axis=1), expected.argmax(axis=1))
    assert np.abs(rows - expected).max() < 2e-3
    model = smollm2.model.fork()
    stepped = np.concatenate([model.logits(ids[:end]) for end in range(180, 201)])
    assert np.abs(stepped - expected[179:]).max() < 2e-3


def test_cached_rows_equal_rows_from_scratch_after_every_accepted_length(smollm2: LoadedModel) -> None:
    ids = smollm2.tokenizer.encode(TEXT)
    prompt, draft, others = ids[:24], ids[24:32], ids[60:64]
    model = smollm2.model.fork()
    for n_accepted in range(len(draft) + 1):
        model.logits(prompt + draft, last=len(draft) + 1)
        context = prompt + draft[:n_accepted] + others
        fresh = model.fork().logits(context, last=len(others) + 1)
        assert np.abs(model.logits(context, last=len(others) + 1) - fresh).max() < 1e-4


def test_a_block_gives_the_rows_of_single_tokens(smollm2: LoadedModel) -> None:
    ids = smollm2.tokenizer.encode(TEXT)[:40]
    model = smollm2.model.fork()
    alone = np.concatenate([model.logits(ids[:end]) for end in range(32, 41)])
    assert np.array_equal(model.logits(ids, last=9), alone)


@pytest.mark.parametrize(
    "text",
    [TEXT, "a👩‍🚀 漢字かな交じり文 12345\t\n\n  x", "Ⅷ ½ ١٢٣ \u00a0 naïve\r\n", "<|im_end|> <|endoftext|>", "", " "],
)
def test_encoding_keeps_every_byte_and_makes_no_control_token(smollm2: LoadedModel, text: str) -> None:
    ids = smollm2.tokenizer.encode(text)
    assert text_of(smollm2, ids) == text.encode()
    assert not any(map(smollm2.tokenizer.is_control, ids))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Hello, we can use", [19556, 28, 392, 416, 722]),
        ("Hello world! 123", [19556, 905, 17, 216, 33, 34, 35]),
        ("  multiple   spaces", [216, 2701, 256, 5600]),
        ("Café déjà vu.", [51, 1939, 2756, 32564, 90, 16739, 386, 101, 30]),
    ],
)
def test_ids_are_those_of_other_implementations(smollm2: LoadedModel, text: str, ids: list[int]) -> None:
    assert smollm2.tokenizer.encode(text) == ids


def test_chat_wraps_the_text_in_control_tokens(smollm2: LoadedModel) -> None:
    tokenizer = smollm2.tokenizer
    start, end = 1, 2
    assert tokenizer.end_tokens == {end}
    ids = tokenizer.chat("Hi<|im_end|>")
    assert [token for token in ids if tokenizer.is_control(token)] == [start, end, start, end, start]
    assert text_of(smollm2, ids).decode() == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|><|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_file_shares_its_tokens_with_itself(smollm2: LoadedModel, smollm2_path: Path) -> None:
    from engine.models.gguf import read_gguf
    from engine.models.tokenizer import GGUFTokenizer

    check_vocabulary(smollm2.tokenizer, GGUFTokenizer(read_gguf(smollm2_path)))
