"""The loop when a model, a drafter or a rule fails: the run ends, says where, and keeps what it had."""

import math

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.lengths import FixedLength
from engine.sampling import Dense, OneHot, Sampling
from engine.values import Draft, Step, Tested, Verdict
from tests.engine.toys import Pieces, Proposing, broken_model, random_model, script_model

PLAIN = Sampling(temperature=1)
KEPT = Tested(True, 1.0, 1.0, 1.0, 0.5)
REFUSED = Tested(False, 1.0, 0.0, 0.0, 0.5)


def crash():
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("row_at", "message"),
    [
        (lambda: np.full(6, math.nan), "broken gave"),
        (lambda: np.array([0, 1, math.nan, 0, 0, 0]), "broken gave"),
        (lambda: np.array([0, math.inf, 0, 0, 0, 0]), "broken gave"),
        (lambda: np.full(6, -math.inf), "broken gave"),
        (lambda: np.zeros(7), "broken returned logits of shape (7,)"),
        (crash, "RuntimeError: out of memory"),
    ],
    ids=["NaN", "one NaN", "+inf", "all banned", "wrong shape", "raises"],
)
@pytest.mark.parametrize("side", ["target", "draft"])
def test_failing_model_ends_the_run_and_what_was_emitted_is_kept(row_at, message, side):
    """MTPLX#82 (`NaN <= 0` is false), llama.cpp#3812."""
    broken, good = broken_model(row_at, from_length=9), random_model(1)
    target, draft = (broken, good) if side == "target" else (good, broken)
    *events, finished = decode(
        target,
        ModelDrafter(draft, 6),
        [0, 1, 2],
        sampling=Sampling(temperature=0),
        lengths=FixedLength(2),
        max_tokens=20,
    )
    assert finished.reason == "error"
    assert finished.error.startswith("step 3: ")
    assert message in finished.error
    steps = [event for event in events if isinstance(event, Step)]
    assert len(steps) == 2
    assert finished.ids == tuple(token for step in steps for token in step.emitted) != ()


def test_model_that_fails_on_the_prompt_ends_the_run_in_the_prefill():
    *_, finished = decode(broken_model(crash, from_length=1), NoDraft(), [0, 1, 2])
    assert (finished.reason, finished.ids) == ("error", ())
    assert finished.error == "the prefill: RuntimeError: out of memory"


def test_rows_of_another_number_or_width_are_refused():
    class Wrong:
        name, vocab_size, context_length = "wrong", 3, 99

        def logits(self, context, last=1):
            return np.zeros((last + 1, 3))

    *_, finished = decode(Wrong(), NoDraft(), [0])
    assert (finished.reason, finished.error) == ("error", "step 1: wrong gave rows of shape (2, 3); expected (1, 3)")


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        (Draft((6,), (OneHot(6),)), "proposed the id 6; the target knows the ids 0 to 5"),
        (Draft((-1,), (OneHot(-1),)), "proposed the id -1"),
        (Draft((1,) * 5, (OneHot(1),) * 5), "at most 4 tokens"),
        (Draft((1, 2), (OneHot(1),)), "2 tokens with 1 laws"),
        (Draft((1,), (OneHot(2),)), "its own law gives nothing"),
        (Draft((1,), (Dense(np.full(6, math.nan)),)), "its own law gives nothing"),
    ],
    ids=["behind the vocabulary", "negative", "too many", "missing law", "probability 0", "NaN"],
)
def test_impossible_draft_ends_the_run_with_its_reason(draft, message):
    """sglang#24051 (garbage, silently), textgen#6915 (hang): ids that the target does not know."""
    *events, finished = decode(random_model(1), Proposing(draft), [0], sampling=PLAIN)
    assert finished.reason == "error"
    assert finished.error.startswith("step 1: the drafter odd")
    assert message in finished.error
    assert not any(isinstance(event, Step) for event in events)


def test_failing_rule_ends_the_run_with_its_reason():
    class Broken(ExactRejection):
        def judge(self, draft, rows, *, noise, start):
            if start > 3:
                raise ZeroDivisionError("0 / 0")
            return super().judge(draft, rows, noise=noise, start=start)

    *_, finished = decode(random_model(1), NoDraft(), [0], rule=Broken())
    assert (finished.reason, finished.error) == ("error", "step 4: ZeroDivisionError: 0 / 0")
    assert len(finished.ids) == 3


def test_token_that_the_tokenizer_does_not_know_leaves_no_half_committed_step():
    """Rows padded beyond the tokenizer's ids (transformers#45307): the step fails as a whole."""
    target, draft = script_model([1, 2, 3, 7], 8), script_model([1, 2, 3, 1], 8)
    settings = {"sampling": Sampling(temperature=0), "tokenizer": Pieces("abcde")}
    *_, finished = decode(target, ModelDrafter(draft, 8), [0], **settings)
    assert (finished.reason, finished.ids, finished.text) == ("error", (), "")


def test_naive_rule_with_a_lookup_ends_the_run_with_a_reason():
    *_, finished = decode(random_model(1), PromptLookup(1), [1, 1, 1], rule=NaiveThreshold())
    assert finished.error.startswith("step 1: the naive rule compares raw logits")


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict((), 0),
        Verdict((KEPT,), 0),
        Verdict((REFUSED, KEPT), 0),
        Verdict((KEPT, KEPT, KEPT), 0),
        Verdict((KEPT, KEPT), 99),
    ],
    ids=["tests nothing", "stops without a refusal", "keeps behind a refusal", "tests too many", "an unknown id"],
)
def test_rule_whose_verdict_makes_no_sense_ends_the_run_with_an_error(verdict):
    class Odd(ExactRejection):
        name = "odd"

        def judge(self, draft, rows, *, noise, start):
            return verdict

    model = random_model(1)
    *_, finished = decode(model, ModelDrafter(model, 6), [0, 1], rule=Odd(), lengths=FixedLength(2), sampling=PLAIN)
    assert finished.reason == "error"
    assert finished.error.startswith("step 1: the rule odd")
