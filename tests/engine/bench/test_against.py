"""Rivals as runners, with a rival made of paper; the real ones where they are installed."""

import dataclasses
from importlib.util import find_spec

import pytest

from engine.bench import run as run_module
from engine.bench.against import RIVALS, Answer, RivalEngine, RivalSetting, open_rival
from engine.bench.against.hugging_face import Arrivals
from engine.bench.plan import Configuration, Turn
from engine.bench.prompts import Prompt
from engine.bench.run import run_bench
from engine.build import build
from engine.errors import ForwardError
from engine.spec import RunSpec


class Paper:
    """Answers in a quarter of Draftscope's time, and the same text but for one token."""

    name = "paper"
    packages = ("numpy",)
    settings = (RivalSetting("none", 0), RivalSetting("ngram", 2))
    how_timed = "by the pound"

    def __init__(self):
        self.asked = []

    def answer(self, ids, setting, *, max_tokens, temperature):
        self.asked.append((tuple(ids), setting, max_tokens, temperature))
        seconds = 0.005 if setting.drafter == "none" else 0.0025
        return Answer((7,) * max_tokens, max_tokens - 1, (max_tokens - 1) * seconds, 0.1, 4, 2)


def test_a_rival_is_given_the_same_ids_and_limits():
    rival = Paper()
    engine = RivalEngine(rival, {"1": (5, 6)}, max_tokens=30, temperature=0.0)
    assert [way.name for way in engine.configurations] == ["paper plain", "paper ngram 2"]
    engine.warm_up(engine.configurations[0], Prompt("1", "text"))
    measured = engine.run(Turn(0, Prompt("1", "text"), engine.configurations[1]))
    assert rival.asked == [
        ((5, 6), RivalSetting("none", 0), 8, 0.0),
        ((5, 6), RivalSetting("ngram", 2), 30, 0.0),
    ]
    assert (measured.n_timed, measured.decode_seconds) == (29, pytest.approx(29 * 0.0025))
    assert (measured.n_drafted, measured.n_accepted) == (4, 2)


def test_a_rival_that_fails_is_named():
    rival = Paper()
    rival.answer = lambda *_, **__: 1 / 0
    engine = RivalEngine(rival, {"1": (5, 6)}, max_tokens=30, temperature=0.0)
    with pytest.raises(ForwardError, match=r"paper ngram 2, prompt 1: ZeroDivisionError"):
        engine.run(Turn(0, Prompt("1", "text"), Configuration("paper", "ngram", 2)))


def test_a_rival_takes_its_turns_among_the_others(settings, monkeypatch, tmp_path):
    monkeypatch.setitem(RIVALS, "paper", ("bench-paper", ("numpy",)))
    monkeypatch.setattr(run_module, "open_rival", lambda *_, **__: Paper())
    monkeypatch.setattr("engine.models.catalog.path_of", lambda name: tmp_path)
    result = run_bench(dataclasses.replace(settings, rivals=("paper",), drafters=("ngram",)))
    rows = {row["name"]: row for row in result["configurations"]}
    assert list(rows) == ["plain", "ngram 1", "ngram 3", "paper plain", "paper ngram 2"]
    assert result["runs_done"] == 5 * 3 * 2
    assert rows["paper plain"]["speed_up"] is None
    assert rows["paper ngram 2"]["speed_up"]["value"] == pytest.approx(2.0)
    assert rows["paper ngram 2"]["acceptance_rate"] == 0.5
    assert rows["paper plain"]["prompts_that_differ"] == 3
    against = {row["name"]: row["own_plain_over_it"]["value"] for row in result["against"]}
    assert against == {"paper plain": pytest.approx(0.25), "paper ngram 2": pytest.approx(0.125)}
    assert result["how_rivals_are_timed"] == {"paper": "by the pound"}
    assert "paper" not in result["verdict"]


def test_arrivals_leave_out_the_prompt_and_count_tokens():
    class Tokens:
        def __init__(self, n_tokens):
            self.numel = lambda: n_tokens

    arrivals = Arrivals()
    for n_tokens in (9, 1, 3, 1):
        arrivals.put(Tokens(n_tokens))
    arrivals.end()
    assert [n_tokens for n_tokens, _ in arrivals.marks] == [1, 3, 1]
    assert arrivals.marks == sorted(arrivals.marks, key=lambda mark: mark[1])


@pytest.mark.real_model
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_llama_cpp_answers_in_all_its_ways(smollm2_path, smollm2):
    ids = smollm2.tokenizer.encode("The capital of France is")
    rival = open_rival("llama.cpp", smollm2_path, threads=1, context_tokens=128)
    for setting in rival.settings:
        answer = rival.answer(ids, setting, max_tokens=12, temperature=0.0)
        assert len(answer.ids) == 12
        assert answer.n_timed == 11
        assert answer.decode_seconds > 0
        assert smollm2.tokenizer.token_bytes(answer.ids[0]) == b" Paris"


@pytest.mark.real_model
@pytest.mark.skipif(find_spec("torch") is None or find_spec("transformers") is None, reason="torch is not installed")
def test_transformers_answers_with_the_text_of_the_numpy_engine(smollm2_path, smollm2):
    """Both compute the same weights in float32."""
    ids = smollm2.tokenizer.chat("Name three colours.")
    rival = open_rival("transformers", smollm2_path, threads=1, context_tokens=128)
    built = build(RunSpec(str(smollm2_path), "none", temperature=0.0, max_tokens=10, prompt="Name three colours."))
    *_, finished = built.events()
    for setting in rival.settings:
        answer = rival.answer(ids, setting, max_tokens=10, temperature=0.0)
        assert answer.ids == finished.ids
        assert 0 < answer.n_timed < len(answer.ids)
        assert answer.decode_seconds > 0
