"""Where texts part, and whether rounding may be to blame."""

from engine.bench.identical import Divergence, divergences, n_compared
from engine.bench.measure import Measurement
from engine.bench.plan import Configuration, Turn
from engine.bench.prompts import Prompt


def run(ids, margins=(), prompt="1", repeat=0):
    return Measurement(Turn(repeat, Prompt(prompt, "text"), Configuration()), tuple(ids), len(ids), 1.0, 0.0, margins)


def test_equal_ids_do_not_diverge():
    assert divergences([run([1, 2, 3])], [run([1, 2, 3])]) == []


def test_margin_is_the_plain_runs_at_the_first_difference():
    (found,) = divergences([run([1, 9, 9], (5.0, 5.0, 5.0))], [run([1, 2, 3], (5.0, 0.25, 4.0))])
    assert found == Divergence("1", 1, 0.25)
    assert not found.near_tie


def test_a_small_margin_is_a_near_tie():
    (found,) = divergences([run([1, 9])], [run([1, 2], (5.0, 0.0004))])
    assert found.near_tie


def test_a_text_that_ends_early_differs_where_it_ends():
    assert divergences([run([1, 2])], [run([1, 2, 3], (1.0, 1.0, 1.0))]) == [Divergence("1", 2, None)]
    assert divergences([run([1, 2, 3])], [run([1, 2], (1.0, 1.0))]) == [Divergence("1", 2, None)]


def test_a_prompt_counts_once_with_its_earliest_place_and_prompts_are_sorted_by_it():
    plain = [run([1, 2, 3], prompt=prompt, repeat=repeat) for prompt in "ab" for repeat in (0, 1)]
    others = [
        run([1, 2, 9], prompt="a"), run([1, 9, 9], prompt="a", repeat=1), run([9, 2, 3], prompt="b"),
        run([7], prompt="c"),
    ]  # fmt: skip
    assert [(found.prompt, found.position) for found in divergences(others, plain)] == [("b", 0), ("a", 1)]


def test_a_run_is_compared_with_the_plain_run_of_its_own_repeat():
    plain = [run([1], repeat=0), run([2], repeat=1)]
    assert divergences([run([1], repeat=0), run([2], repeat=1)], plain) == []


def test_only_prompts_with_a_plain_run_of_the_same_repeat_are_compared():
    plain = [run([1], prompt="a"), run([1], prompt="b", repeat=1)]
    others = [run([1], prompt="a"), run([1], prompt="b"), run([1], prompt="c")]
    assert n_compared(others, plain) == 1
    assert n_compared(others, []) == 0
