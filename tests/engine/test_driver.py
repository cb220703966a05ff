"""The loop: what comes out, where it ends, and how far it drafts."""

from itertools import groupby

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.errors import PromptError, SettingError
from engine.lengths import FixedLength
from engine.models.callable import CallableModel
from engine.sampling import Sampling, law
from engine.values import Drafted, Finished, Started, Step
from tests.engine.toys import Pieces, letters, random_model, script_model

GREEDY = Sampling(temperature=0)
PLAIN = Sampling(temperature=1)


def run(target, drafter=None, prompt=(0,), *, length=4, **settings):
    """All events of a run, split by kind."""
    settings = {"sampling": GREEDY, "lengths": FixedLength(length)} | settings
    events = list(decode(target, drafter or NoDraft(), prompt, **settings))
    kinds = [kind for kind, _ in groupby(map(type, events))]
    assert kinds[0] is Started
    assert kinds[-1] is Finished
    steps = [event for event in events if isinstance(event, Step)]
    assert [event.index for event in events if isinstance(event, Drafted)][: len(steps)] == list(range(len(steps)))
    assert events[-1].ids == tuple(token for step in steps for token in step.emitted)
    return steps, events[-1], [event for event in events if isinstance(event, Drafted)]


def scripted(said, drafted=None, *, vocab_size=26, **settings):
    """A target that says `said` and a drafter that guesses `drafted` (the same, unless told otherwise)."""
    target = script_model(letters(said), vocab_size, **settings)
    return target, ModelDrafter(script_model(letters(drafted or said), vocab_size), vocab_size)


def outcomes(step):
    return [decision.outcome + "*" * decision.discarded for decision in step.decisions]


@pytest.mark.parametrize("length", range(9))
@pytest.mark.parametrize("kind", ["good", "bad", "same", "ngram", "first", "none"])
def test_greedy_text_is_the_plain_text(kind, length):
    """mlx-lm#1423, transformers#39421: greedy text with a draft was not the plain text."""
    target = random_model(1)
    noisy = CallableModel(lambda ids: target.logits(ids)[0] + random_model(2, scale=1.0).logits(ids)[0], 6)
    drafters = {
        "good": ModelDrafter(noisy, 6), "bad": ModelDrafter(random_model(9), 6), "same": ModelDrafter(target, 6),
        "ngram": PromptLookup(3), "first": PromptLookup(2, "first"), "none": NoDraft(),
    }  # fmt: skip
    prompt, ids = (0, 3, 1, 0, 3), [0, 3, 1, 0, 3]
    for _ in range(25):
        ids.append(int(np.argmax(target.logits(ids)[0])))
    _, finished, _ = run(target, drafters[kind], prompt, length=length, max_tokens=25)
    assert finished.ids == tuple(ids[5:])
    assert finished.reason == "length"


@pytest.mark.parametrize("sampling", [GREEDY, PLAIN, Sampling(0.6, 3, 0.9)], ids=str)
@pytest.mark.parametrize("length", [1, 3, 8])
def test_draft_that_is_the_target_is_accepted_whole(sampling, length):
    target = random_model(4)
    for seed in range(5):
        steps, _, _ = run(target, ModelDrafter(target, 6), length=length, sampling=sampling, seed=seed, max_tokens=30)
        assert {decision.outcome for step in steps for decision in step.decisions} <= {"accepted", "bonus", "plain"}


def test_output_law_of_the_whole_loop_is_the_target_law():
    """Chi-square over the 27 texts of three tokens, 3,000 seeds from 0 on; 54.1 is the 0.1 % point of 26."""
    target, n_runs = random_model(6, 3, scale=0.5), 3000
    drafter = ModelDrafter(random_model(7, 3, scale=1.0), 3)
    counts = np.zeros((3, 3, 3))
    for seed in range(n_runs):
        *_, finished = decode(target, drafter, [0], sampling=PLAIN, lengths=FixedLength(2), max_tokens=3, seed=seed)
        counts[finished.ids] += 1
    expected = np.zeros_like(counts)
    for text in np.ndindex(3, 3, 3):
        probs = [law(target.logits([0, *text[:place]])[0], PLAIN).prob(token) for place, token in enumerate(text)]
        expected[text] = n_runs * np.prod(probs)
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < 54.1


@pytest.mark.parametrize("offset", range(6))
def test_end_token_at_every_offset_of_a_block(offset):
    """transformers#47912, koboldcpp#1276: the end token inside an accepted block was passed over."""
    said = "abcdefghijk"
    target, drafter = scripted(said)
    end = letters(said[offset])
    steps, finished, drafted = run(target, drafter, length=4, max_tokens=20, end_tokens=frozenset(end))
    assert (finished.reason, finished.ids) == ("end_token", tuple(letters(said[: offset + 1])))
    assert all(end[0] not in event.tokens[:-1] for event in drafted)  # nothing is drafted behind it
    assert outcomes(steps[-1])[-1] in ("bonus*", "bonus")
    assert steps[-1].emitted[-1] == end[0]


def test_accepted_end_token_is_followed_by_no_bonus():
    target, drafter = scripted("abcde")
    (step,), _, _ = run(target, drafter, length=4, end_tokens=frozenset(letters("c")))
    assert outcomes(step) == ["accepted", "accepted", "accepted", "bonus*"]
    assert step.emitted == tuple(letters("abc"))


def test_rejected_end_token_ends_nothing():
    target, drafter = scripted("abcdef", "abzzzz")
    _, finished, _ = run(target, drafter, max_tokens=4, end_tokens=frozenset(letters("z")))
    assert (finished.reason, finished.ids) == ("length", tuple(letters("abcd")))


def test_lookup_is_cut_behind_an_end_token():
    target = script_model(letters("bcdbcdbcd"))
    steps, _, drafted = run(target, PromptLookup(1), letters("abxcdab"), length=4, end_tokens=frozenset(letters("x")))
    assert drafted[0].tokens == tuple(letters("x"))
    assert outcomes(steps[0]) == ["rejected"]


@pytest.mark.parametrize("offset", range(9))
def test_stop_string_at_every_offset_of_a_block_and_across_steps(offset):
    said = "abcdefghijklm"
    target, drafter = scripted(said)
    for n_letters in (1, 2, 3):
        stop = said[offset : offset + n_letters]
        steps, finished, _ = run(target, drafter, length=3, max_tokens=20, stop=[stop], tokenizer=Pieces())
        assert (finished.reason, finished.text) == ("stop_string", said[:offset])
        assert finished.ids == tuple(letters(said[: offset + n_letters]))
        marks = [decision.discarded for decision in steps[-1].decisions]
        assert marks == sorted(marks)  # all that is discarded is at the end
        assert marks.count(False) == len(steps[-1].emitted)


def test_stop_string_inside_a_recovered_token_discards_what_follows():
    target, drafter = scripted("abcdef", "abxdef")
    (step,), finished, _ = run(target, drafter, length=4, stop=["b"], tokenizer=Pieces())
    assert outcomes(step) == ["accepted", "accepted", "rejected*", "unreached"]
    assert (finished.text, finished.ids) == ("a", tuple(letters("ab")))


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("length", [0, 1, 4, 8])
def test_budget_is_met_to_the_token_and_nothing_is_drafted_beyond_it(budget, length):
    """transformers#46993: prompt lookup overshoots max_length; koboldcpp and others cut what they had counted."""
    target, drafter = scripted("abcdefghijklmnop")
    steps, finished, drafted = run(target, drafter, length=length, max_tokens=budget)
    assert (finished.reason, len(finished.ids)) == ("length", budget)
    left = budget
    for step, event in zip(steps, drafted, strict=True):
        assert len(event.tokens) == min(length, left - 1)
        left -= len(step.emitted)
    assert not any(decision.discarded for step in steps for decision in step.decisions)
    if budget == 1 and length:
        assert "one token is left" in steps[0].note


@pytest.mark.parametrize("room", [1, 2, 5])
def test_run_ends_where_the_context_of_the_target_ends(room):
    """vllm#42533, exllamav2#274: drafts beyond the context."""
    target, drafter = scripted("abcdefghij", context_length=3 + room)
    _, finished, _ = run(target, drafter, (0, 1, 2), max_tokens=50)
    assert (finished.reason, len(finished.ids)) == ("context", room)


def test_run_goes_on_plainly_and_says_why_where_the_context_of_the_draft_ends():
    target = script_model(letters("abcdefghij"))
    longest = []
    draft = CallableModel(
        lambda ids: longest.append(len(ids)) or target.logits(ids)[0], 26, name="short", context_length=6
    )
    steps, finished, _ = run(target, ModelDrafter(draft, 26), max_tokens=10, length=4)
    assert finished.ids == tuple(letters("abcdefghij"))
    assert max(longest) <= 6
    assert [step.n_drafted for step in steps] == [4, 1, 0, 0, 0]
    assert [step.note for step in steps[2:-1]] == ["the context is longer than the drafter's 6 tokens"] * 2
    (step, *_), _, _ = run(target, ModelDrafter(draft, 26), [0] * 7, max_tokens=1)
    assert outcomes(step) == ["plain"]


def test_no_match_is_a_plain_step_with_a_reason():
    """A lookup without a match is no draft with 0 accepted: transformers#27775."""
    steps, _, drafted = run(script_model(letters("abcd")), PromptLookup(3), letters("z"), max_tokens=3)
    assert [outcomes(step) for step in steps] == [["plain"]] * 3
    assert all("no earlier occurrence" in event.note for event in [*steps[:2], *drafted[:2]])


def test_decisions_tell_the_fate_of_every_position():
    target, drafter = scripted("abcdef", "abxdef")
    step = run(target, drafter, (0,), length=4, max_tokens=20, tokenizer=Pieces())[0][0]
    accepted, _, rejected, unreached = step.decisions
    assert outcomes(step) == ["accepted", "accepted", "rejected", "unreached"]
    assert (accepted.draft_token, accepted.target_token, accepted.accepted) == (0, 0, True)
    assert (rejected.draft_token, rejected.target_token, rejected.accepted) == (*letters("xc"), False)
    assert (rejected.draft_text, rejected.target_text) == ("x", "c")
    assert (rejected.draft_prob, rejected.target_prob, rejected.accept_prob, rejected.margin) == (1, 0, 0, 9)
    assert (unreached.draft_token, unreached.target_token, unreached.draw) == (letters("d")[0], None, None)
    assert [decision.position for decision in step.decisions] == [0, 1, 2, 3]
    assert (step.n_drafted, step.n_accepted, step.context_length) == (4, 2, 1)


def test_emitted_probability_is_the_targets_own_for_every_token():
    """llama.cpp#27972: 1.0 for every token; neither the draft's nor the residual's."""
    target, drafter = random_model(11), ModelDrafter(random_model(12), 6)
    ids = [0]
    for step in run(target, drafter, ids, sampling=PLAIN, max_tokens=60, seed=4)[0]:
        for decision in step.decisions:
            if decision.target_token is not None:
                expected = law(target.logits(ids)[0], PLAIN).prob(decision.target_token)
                assert decision.emitted_prob == pytest.approx(expected)
                ids.append(decision.target_token)


def test_naive_rule_is_given_the_argmax_of_the_draft():
    target, draft = random_model(1), random_model(2)
    steps, finished, _ = run(target, ModelDrafter(draft, 6), rule=NaiveThreshold(0.5), sampling=PLAIN, max_tokens=30)
    ids = [0, *finished.ids]
    for step in steps:
        guess = next((decision for decision in step.decisions if decision.draft_token is not None), None)
        if guess:
            assert guess.draft_token == int(np.argmax(draft.logits(ids[: step.context_length])[0]))
            assert guess.draft_prob == 1


@pytest.mark.parametrize(
    ("prompt", "message"),
    [((), "empty"), ((1,) * 8, "has 8 tokens, and random-1 takes 8"), ((1, 6), "id 6"), ((-1,), "id -1")],
)
def test_prompt_that_cannot_be_used_is_refused_before_the_run(prompt, message):
    with pytest.raises(PromptError, match=message):
        decode(random_model(1, context_length=8), NoDraft(), prompt)


@pytest.mark.parametrize(
    "settings",
    [{"max_tokens": 0}, {"max_tokens": 2.5}, {"seed": -1}, {"stop": [""], "tokenizer": Pieces()}, {"stop": ["a"]}],
    ids=" and ".join,
)
def test_setting_that_cannot_be_used_is_refused_before_the_run(settings):
    with pytest.raises(SettingError):
        decode(random_model(1), NoDraft(), [0], **settings)


@pytest.mark.parametrize("length", [-1, 33, 2.5])
def test_draft_length_out_of_range_is_refused(length):
    with pytest.raises(SettingError, match="draft length"):
        FixedLength(length)


def test_started_names_who_decodes():
    started = next(decode(random_model(1), PromptLookup(), [2, 3], seed=9))
    assert started == Started("random-1", "ngram", "exact", ExactRejection.lossless, 9, (2, 3), simulated=False)
