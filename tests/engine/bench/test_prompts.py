"""The built-in prompts, and files of prompts."""

import json
from collections import Counter

import pytest

from engine.bench.prompts import Prompt, built_in_prompts, one_of_each, parse_prompts, read_prompts
from engine.errors import PromptError


def test_the_built_in_set_has_six_prompts_in_each_of_seven_categories():
    prompts = built_in_prompts()
    assert Counter(prompt.category for prompt in prompts) == dict.fromkeys(
        ("chat", "question answering", "explanation", "story", "summarising", "rewriting", "code"), 6
    )
    assert len({prompt.text for prompt in prompts}) == 42


def test_a_text_file_has_one_prompt_a_line(tmp_path):
    file = tmp_path / "prompts.txt"
    file.write_bytes("\ufeffOne.\r\n\r\n  Two [is] {odd}. \n".encode())
    assert read_prompts(file) == (Prompt("1", "One."), Prompt("2", "Two [is] {odd}."))


def test_json_lines_have_a_prompt_and_may_have_a_category():
    lines = [{"prompt": "One\nand a half."}, {"prompt": "Two.", "category": "numbers", "more": 1}]
    assert parse_prompts("\n".join(map(json.dumps, lines)), "a file") == (
        Prompt("1", "One\nand a half."), Prompt("2", "Two.", "numbers"),
    )  # fmt: skip


def test_spec_bench_gives_the_first_turn():
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["Compose a text.", "Rewrite it."]},
        {"question_id": 241, "category": "translation", "turns": ["Translate."], "reference": []},
    ]
    assert parse_prompts("\n".join(map(json.dumps, lines)), "question.jsonl") == (
        Prompt("81", "Compose a text.", "writing"), Prompt("241", "Translate.", "translation"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no prompt"),
        (" \n\n", "has no prompt"),
        ('{"prompt": "a"}\n{"prompt": ', "line 2 of f is not JSON"),
        ('{"prompt": "a"}\nplain', "line 2 of f is not JSON"),
        ('{"prompt": "a"}\n[1]', "line 2 of f must be a JSON object"),
        ('{"text": "a"}', "line 1 of f has no prompt"),
        ('{"prompt": "  "}', "line 1 of f has no prompt"),
        ('{"turns": []}', "line 1 of f has no prompt"),
        ('{"turns": [3]}', "line 1 of f has no prompt"),
        ('{"prompt": "a", "category": 3}', "category must be a string"),
        ('{"prompt": "a", "question_id": 1}\n{"prompt": "b", "question_id": 1}', "question_id 1 2 times"),
    ],
)
def test_a_bad_file_is_told_with_its_line(text, told):
    with pytest.raises(PromptError, match=told):
        parse_prompts(text, "f")


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(PromptError, match="cannot be read"):
        read_prompts(tmp_path / "missing.txt")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(PromptError, match="UTF-8"):
        read_prompts(tmp_path / "binary")


def test_a_few_prompts_are_taken_from_all_categories():
    prompts = tuple(Prompt(str(place), "text", category) for place, category in enumerate("aaabbc"))
    assert [prompt.identity for prompt in one_of_each(prompts, 2)] == ["0", "3"]
    assert [prompt.identity for prompt in one_of_each(prompts, 4)] == ["0", "1", "3", "5"]
    assert one_of_each(prompts, 99) == prompts
