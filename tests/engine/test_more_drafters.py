"""Token recycling, any function as a drafter, and suffix decoding or lookup in front of another drafter."""

from dataclasses import replace

import numpy as np
import pytest

from engine.acceptance import ExactRejection, SampleMatch, TypicalAcceptance
from engine.bench.prompts import Prompt
from engine.build import build
from engine.compare.run import CompareSettings, run_comparison
from engine.decode import decode
from engine.drafters import CallableDrafter, LookupFirst, NoDraft, SuffixDecoding, SuffixFirst, TokenRecycling
from engine.drafters.base import LearnsFromOutputs, LearnsFromRows
from engine.drafters.earlier_outputs import EarlierOutputs, forget_outputs, outputs_of
from engine.lengths import Always, Confident, FixedLength
from engine.metrics import measure
from engine.models.callable import CallableModel
from engine.sampling import Noise, OneHot, Sampling
from engine.spec import RunSpec
from engine.values import Draft, Drafted, Finished, Step
from tests.engine.toys import Proposing, broken_model, random_model

ASK = {"sampling": Sampling(temperature=0), "noise": Noise(0), "end_tokens": frozenset()}


def test_recycling_follows_what_the_target_last_said():
    drafter = TokenRecycling()
    assert drafter.propose([0], 3, **ASK) == Draft(
        note="the target has said nothing yet of what follows the last token"
    )
    drafter.observe([0, 1], np.eye(4)[[1, 2]])
    assert drafter.propose([0], 3, **ASK).tokens == (1, 2)
    drafter.observe([1], np.eye(4)[[3]])
    draft = drafter.propose([0], 2, **ASK)
    assert (draft.tokens, draft.laws, draft.note) == ((1, 3), (OneHot(1), OneHot(3)), "")
    assert drafter.propose([0], 3, **ASK | {"end_tokens": frozenset({1})}).tokens == (1,)
    drafter.observe([2, 2], np.array([[0.0, 1.0, 0.0, 0.0], [-np.inf, 1.0, 2.0, 2.0]]))
    assert drafter.propose([2], 1, **ASK).tokens == (2,)  # its last row counts, and the lowest id of a tie


def test_recycling_is_right_once_it_has_seen_a_target_that_looks_at_one_token():
    target = CallableModel(lambda ids: np.eye(6)[(ids[-1] + 1) % 6], 6)
    settings = {"sampling": Sampling(temperature=0), "lengths": FixedLength(3), "max_tokens": 14}
    steps = [event for event in decode(target, TokenRecycling(), [0], **settings) if isinstance(event, Step)]
    assert [(step.n_drafted, step.n_accepted) for step in steps] == [(0, 0)] * 6 + [(3, 3)] * 2


class Watching(Proposing):
    """Notes all that a run tells a drafter."""

    def __init__(self, draft):
        super().__init__(draft)
        self.rows, self.outputs = [], []

    def observe(self, tokens, rows):
        self.rows.append((list(tokens), rows.copy()))

    def finished(self, output):
        self.outputs.append(tuple(output))


def test_a_run_shows_the_targets_rows_of_every_step_and_tells_what_it_emitted():
    target, drafter = random_model(1), Watching(Draft((2, 3), (OneHot(2), OneHot(3))))
    assert isinstance(drafter, LearnsFromRows)
    assert isinstance(drafter, LearnsFromOutputs)
    *steps, finished = decode(target, drafter, [4], lengths=FixedLength(2), max_tokens=7)
    context, n_steps = [4], 0
    for event in steps:
        if isinstance(event, Step):
            tokens, rows = drafter.rows[n_steps]
            drafted = [decision.draft_token for decision in event.decisions if decision.draft_token is not None]
            assert tokens == [context[-1], *drafted]
            assert np.array_equal(rows, target.logits([*context, *drafted], len(drafted) + 1))
            context += event.emitted
            n_steps += 1
    assert n_steps == len(drafter.rows)
    assert drafter.outputs == [finished.ids]


def test_a_run_that_fails_is_not_remembered():
    drafter = Watching(Draft())
    *_, finished = decode(broken_model(lambda: np.full(6, np.nan), from_length=4), drafter, [1], max_tokens=9)
    assert finished.reason == "error"
    assert drafter.outputs == []


def test_a_drafter_that_does_not_learn_is_shown_nothing():
    assert not isinstance(NoDraft(), LearnsFromRows | LearnsFromOutputs)
    assert not isinstance(SuffixDecoding(), LearnsFromRows)


def test_a_function_is_given_the_context_and_cut_to_what_is_asked_for():
    asked = []
    drafter = CallableDrafter(lambda ids: asked.append(ids) or iter([5, 6, 7]), name="mine", context_length=9)
    draft = drafter.propose((1, 2), 2, **ASK)
    assert (draft.tokens, draft.laws, draft.note) == ((5, 6), (OneHot(5), OneHot(6)), "")
    assert asked == [[1, 2]]
    assert (drafter.name, drafter.context_length) == ("mine", 9)
    assert CallableDrafter(lambda ids: np.array([3])).propose([1], 2, **ASK).tokens == (3,)
    assert CallableDrafter(lambda ids: None).propose([1], 2, **ASK) == Draft(note="the function gave 0 tokens")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (5, "mine gave 5; expected a sequence of ids"),
        ("ab", "mine gave 'ab'; expected"),
        ([1, 2.5], "mine gave 2.5 among its ids; expected whole numbers"),
        ([True], "mine gave True among"),
        ([1, 99], "proposed the id 99; the target knows the ids 0 to 5"),
        ([-1], "proposed the id -1"),
    ],
)
def test_what_a_function_may_not_give_ends_the_run_with_a_sentence(given, told):
    drafter = CallableDrafter(lambda ids: given, name="mine")
    *_, finished = decode(random_model(1), drafter, [1], max_tokens=9)
    assert (finished.reason, told in finished.error) == ("error", True), finished.error


OTHER = Draft((99,), (OneHot(99),))


@pytest.mark.parametrize("first", [LookupFirst, SuffixFirst])
def test_the_other_drafter_is_asked_where_the_match_is_too_short(first):
    drafter = first(Proposing(OTHER))
    two, three = [1, 2, 7, 8, 1, 2], [0, 1, 2, 7, 8, 0, 1, 2]
    warm = ASK | {"sampling": Sampling(temperature=1)}
    assert drafter.propose(two, 2, **ASK).tokens == (7, 8)
    assert drafter.propose(two, 2, **warm).tokens == (99,)
    assert drafter.propose(three, 2, **warm).tokens == (7, 8)
    assert drafter.propose([2, 7, 2], 2, **ASK).tokens == (99,)
    assert drafter.name == {LookupFirst: "odd+ngram", SuffixFirst: "odd+suffix"}[first]


class Listening(Watching):
    """Notes the sampling it is asked with, too."""

    def __init__(self, draft):
        super().__init__(draft)
        self.asked = []

    def propose(self, context, limit, *, sampling, **rest):
        self.asked.append(sampling)
        return super().propose(context, limit, sampling=sampling, **rest)


@pytest.mark.parametrize("first", [LookupFirst, SuffixFirst])
@pytest.mark.parametrize("rule", [SampleMatch(), TypicalAcceptance(), ExactRejection()])
def test_how_sure_a_copy_is_depends_on_the_targets_temperature_whatever_the_draft_does(first, rule):
    """Two matching tokens are enough where the target takes its best token, not where it draws."""
    prompt = [1, 2, 3, 4, 1, 2]
    for temperature in (0.7, 0.0):
        other = Listening(Draft())
        drafted = next(
            event
            for event in decode(
                random_model(1), first(other), prompt, rule=rule, sampling=Sampling(temperature=temperature),
                lengths=FixedLength(2), max_tokens=4,
            )
            if isinstance(event, Drafted)
        )  # fmt: skip
        assert drafted.tokens == ((3, 4) if temperature == 0 else ())
        if temperature:
            assert other.asked[0].greedy == rule.greedy_draft  # the draft itself stays the most probable token
            assert other.asked[0].target_temperature == temperature


def test_how_likely_a_copy_is_kept_is_told_by_the_targets_temperature_too():
    context = [1, 2, 3, 9, 8, 7, 6, 5, 1, 2, 3]
    copies = [
        LookupFirst(NoDraft()).propose(context, 4, **ASK | {"sampling": sampling}, go_on=Confident()).tokens
        for sampling in (Sampling(0.0), Sampling(0.0, judged_at=1.0), Sampling(1.0))
    ]
    assert copies == [(9, 8), (9,), (9,)]  # 0.65 x 0.67 = 0.44; 0.44 x 0.62 = 0.27


class WantsNoCopy(Always):
    """A policy that wants nothing of which the chance is known."""

    reason = "not sure"

    def before(self, prospect):
        return prospect.survival is None


@pytest.mark.parametrize("first", [LookupFirst, SuffixFirst])
def test_the_other_drafter_is_asked_where_the_policy_wants_none_of_the_copy(first):
    drafter = first(Proposing(OTHER))
    copied = [1, 2, 7, 8, 1, 2]
    assert drafter.propose(copied, 2, **ASK).tokens == (7, 8)
    assert drafter.propose(copied, 2, **ASK, go_on=WantsNoCopy()).tokens == (99,)


@pytest.mark.parametrize("first", [LookupFirst, SuffixFirst])
def test_the_other_drafter_learns_behind_a_copy_too(first):
    other = Watching(Draft())
    *events, finished = decode(random_model(1), first(other), [4, 1, 4, 1], lengths=FixedLength(2), max_tokens=7)
    assert len(other.rows) == sum(isinstance(event, Step) for event in events)
    assert other.outputs == [finished.ids]
    deaf = first(NoDraft())
    deaf.observe([1], np.zeros((1, 6)))
    deaf.finished([1])


def test_of_several_occurrences_the_one_that_agrees_furthest_back_is_copied():
    """A lookup of 3 tokens takes the most recent occurrence, though a longer match tells the places apart."""
    context = [5, 1, 2, 3, 10, 6, 1, 2, 3, 11, 5, 1, 2, 3]
    assert LookupFirst(NoDraft()).propose(context, 1, **ASK).tokens == (10,)
    again = [1, 2, 3, 10, 0, 1, 2, 3, 11, 9, 1, 2, 3]  # none agrees further back: the most recent, or the first
    assert LookupFirst(NoDraft()).propose(again, 1, **ASK).tokens == (11,)
    assert LookupFirst(NoDraft(), match="first").propose(again, 1, **ASK).tokens == (10,)


def test_suffix_decoding_in_front_of_another_drafter_remembers_outputs_too():
    outputs = EarlierOutputs()
    drafter = SuffixFirst(NoDraft(), SuffixDecoding(outputs=outputs))
    *_, finished = decode(
        random_model(2), drafter, [3], sampling=Sampling(temperature=0), lengths=FixedLength(2), max_tokens=12
    )
    assert isinstance(finished, Finished)
    assert outputs.n_outputs == 1
    assert drafter.propose(finished.ids[:3], 2, **ASK).tokens == finished.ids[3:5]


PROMPT = "The draft model reads the draft model and the target"
DRAFTING = {
    "suffix": {},
    "suffix, long": {"suffix_factor": 4.0, "suffix_offset": 2.0, "suffix_min_prob": 0.0, "suffix_choice": "recent"},
    "suffix, earlier outputs": {"suffix_outputs": True},
    "recycling": {},
    "ngram": {},
    "model": {},
}


@pytest.mark.parametrize("way", DRAFTING)
@pytest.mark.parametrize("draft_length", range(9))
def test_greedy_text_is_the_plain_text(way, draft_length):
    spec = RunSpec(
        prompt=PROMPT,
        temperature=0.0,
        max_tokens=60,
        draft_length=draft_length,
        drafter=way.partition(",")[0],
        **DRAFTING[way],
    )
    events = list(build(spec).events())
    *_, plain = build(replace(spec, drafter="none")).events()
    assert events[-1].ids == plain.ids
    if draft_length:
        assert sum(event.n_accepted for event in events if isinstance(event, Step)) > 0


@pytest.mark.parametrize("drafter", ["suffix", "recycling"])
def test_the_same_settings_and_seed_give_the_same_tokens_whatever_ran_before(drafter):
    spec = RunSpec(prompt=PROMPT, temperature=1.0, max_tokens=60, drafter=drafter)
    first = list(build(spec).events())[-1].ids
    list(build(replace(spec, seed=9)).events())
    assert list(build(spec).events())[-1].ids == first


def test_a_run_remembers_its_output_only_if_its_spec_says_so():
    forget_outputs()
    spec = RunSpec(prompt=PROMPT, temperature=0.0, max_tokens=40, drafter="suffix", suffix_factor=2.0)
    list(build(spec).events())
    assert outputs_of("markov").n_outputs == 0
    one, two = (measure(build(replace(spec, suffix_outputs=True)).events()) for _ in range(2))
    assert outputs_of("markov").n_outputs == 2
    assert two.steps < one.steps  # the second run has the first one's text to copy
    forget_outputs()
    assert measure(build(replace(spec, suffix_outputs=True)).events()).steps == one.steps
    forget_outputs()


def test_repeats_and_configurations_of_a_comparison_do_not_learn_from_each_other():
    """The second repeat of a prompt would else copy the first one's output."""
    forget_outputs()
    base = RunSpec(
        temperature=0.0, max_tokens=40, drafter="suffix", suffix_outputs=True, suffix_factor=2.0,
        target_call_seconds=0.01, draft_call_seconds=0.001,
    )  # fmt: skip
    prompts = (Prompt("1", PROMPT), Prompt("2", PROMPT + " model"))
    steps = {}
    run_comparison(
        CompareSettings((base, replace(base, draft_length=5)), prompts, repeats=3),
        seen=lambda turn, event: steps.setdefault((turn.configuration, turn.prompt.identity, turn.repeat), []).append(
            event
        ),
    )
    counted = {key: sum(isinstance(event, Step) for event in events) for key, events in steps.items()}
    for configuration, identity, _ in counted:
        assert len({counted[configuration, identity, repeat] for repeat in range(3)}) == 1
    assert outputs_of("markov").n_outputs == 0  # nor does the page learn from it
    alone = measure(build(replace(base, prompt=prompts[1].text, suffix_outputs=False)).events()).steps
    suffix = next(configuration for configuration, _, _ in counted if configuration.draft_length == 4)
    assert counted[suffix, "2", 0] < alone  # but a prompt does from those before it
