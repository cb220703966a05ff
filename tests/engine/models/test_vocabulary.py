"""Two models may decode together only if every id means the same to both."""

from __future__ import annotations

from time import perf_counter

import pytest

from engine.errors import VocabularyError
from engine.models.vocabulary import check_vocabulary


class Listed:
    """A tokenizer that is a list of tokens."""

    has_chat_template = False
    end_tokens: frozenset[int] = frozenset()

    def __init__(self, tokens: list[bytes], control: frozenset[int] = frozenset()) -> None:
        self._tokens, self._control = tokens, control

    @property
    def vocab_size(self) -> int:
        return len(self._tokens)

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def chat(self, text: str) -> list[int]:
        raise NotImplementedError

    def token_bytes(self, token: int) -> bytes:
        return self._tokens[token]

    def is_control(self, token: int) -> bool:
        return token in self._control


WORDS = [b"a", b"b", b" c", b"\xf0\x9f"]


def test_the_same_tokens_are_shared() -> None:
    check_vocabulary(Listed(WORDS), Listed(WORDS.copy()))


def test_the_first_id_that_differs_is_named_with_both_meanings() -> None:
    # vLLM issue 5203, llama.cpp issue 17480: sizes agreed, tokens did not
    with pytest.raises(VocabularyError, match="id 2 is ' c' for the target and 'c' for the draft"):
        check_vocabulary(Listed(WORDS), Listed([b"a", b"b", b"c", b"d"]))


def test_part_of_a_character_is_shown_as_bytes() -> None:
    with pytest.raises(VocabularyError, match=r"id 3 is '\\\\xf0\\\\x9f' for the target"):
        check_vocabulary(Listed(WORDS), Listed([*WORDS[:3], b"d"]))


def test_a_control_token_is_not_the_word_of_its_letters() -> None:
    with pytest.raises(VocabularyError, match="id 1 is the control token 'b' for the target and 'b' for the draft"):
        check_vocabulary(Listed(WORDS, frozenset({1})), Listed(WORDS))


@pytest.mark.parametrize(
    "padding",
    [b"<|extra_0|>", b"[PAD151936]", b"<|reserved_special_token_247|>", b"<unused12>", b"<pad>", b"<|PAD_9|>", b""],
)
def test_padding_at_the_end_of_either_is_allowed(padding: bytes) -> None:
    check_vocabulary(Listed(WORDS), Listed([*WORDS, padding]))
    check_vocabulary(Listed([*WORDS, padding, padding]), Listed(WORDS))


@pytest.mark.parametrize("extra", [b"d", b"<|im_end|>", b"<tool_call>", b"x[PAD1]", b"[PAD", b"padding"])
def test_a_real_token_at_the_end_is_refused(extra: bytes) -> None:
    with pytest.raises(VocabularyError, match="and id 5, which only the draft has, is "):
        check_vocabulary(Listed(WORDS), Listed([*WORDS, b"[PAD4]", extra]))
    with pytest.raises(VocabularyError, match="the target has 5 ids and the draft 4, and id 4, which only the target"):
        check_vocabulary(Listed([*WORDS, extra]), Listed(WORDS))


def test_padding_in_the_middle_is_a_difference() -> None:
    with pytest.raises(VocabularyError, match="id 1 is "):
        check_vocabulary(Listed(WORDS), Listed([b"a", b"[PAD1]", b" c", b"\xf0\x9f"]))


def test_a_large_vocabulary_is_checked_at_once() -> None:
    tokens = [str(number).encode() for number in range(151_936)]
    began = perf_counter()
    check_vocabulary(Listed(tokens), Listed(tokens.copy()))
    assert perf_counter() - began < 2  # 0.06 s on a quiet machine; the bound only catches a quadratic check
