"""Each token is of exactly one kind."""

import sys
from pathlib import Path

import pytest

from engine.models.markov import load_markov
from engine.token_kinds import KINDS, kind_of


@pytest.mark.parametrize(
    ("before", "text", "kind"),
    [
        ("the", " draft", "start of word"),
        ("", "The", "start of word"),
        ("(", "the", "start of word"),
        (" ", "the", "start of word"),
        ("\u201c", "Yes", "start of word"),
        ("spec", "ulative", "inside a word"),
        ("don", "'t", "inside a word"),
        ("don", "\u2019t", "inside a word"),
        ("token", "-based", "inside a word"),
        ("n_", "tokens", "inside a word"),
        ("x1", "a", "inside a word"),
        ("汉", "字", "inside a word"),
        ("n", "é", "inside a word"),
        ("e", "\u0301", "inside a word"),
        ("end.", " ", "whitespace"),
        ("end.", "\n\n", "whitespace"),
        ("end", "\t", "whitespace"),
        ("the", ".", "punctuation"),
        ("the", ' "', "punctuation"),
        ("the", " \u2014", "punctuation"),
        ("汉字", "。", "punctuation"),
        ("yes", "...", "punctuation"),
        ("the", " 42", "digits"),
        ("4", "2", "digits"),
        ("x", " =", "code"),
        ("x", "x1", "code"),
        ("call ", "foo(", "code"),
        ("a", " ->", "code"),
        ("9", "%", "code"),
        ("9", "3.14", "code"),
        ("a", "_", "code"),
        ("so", " \U0001f600", "other"),
        ("so", "<F0 9F>", "other"),
        ("so", " a<F0>", "other"),
        ("so", "<|im_end|>", "other"),
        ("so", "</s>", "other"),
        ("so", "", "other"),
        ("end.\n", "The", "after a newline"),
        ("\r\n", "\n", "after a newline"),
        ("a\n", "<F0>", "after a newline"),
        ("a\u2028", ".", "after a newline"),
    ],
)
def test_the_kind_of_a_token(before, text, kind):
    assert kind_of(text, before) == kind


def test_every_character_there_is_has_a_kind():
    for number in range(sys.maxunicode + 1):
        if number % 7 == 0 or number < 0x3000:
            assert kind_of(chr(number), "a") in KINDS


def test_every_token_of_the_embedded_model_has_one():
    tokenizer = load_markov().tokenizer
    kinds = {kind_of(tokenizer.token_bytes(token).decode(), "a") for token in range(tokenizer.vocab_size)}
    assert kinds <= set(KINDS)
    assert {"start of word", "punctuation"} <= kinds


def test_every_kind_is_explained():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| {kind} |" not in page] == []
