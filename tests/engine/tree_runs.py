"""Runs and steps whose draft is a tree, for the tests of trees."""

import numpy as np

from engine.acceptance import TreeDistinct, TreeIndependent, TreeMatch
from engine.decode import decode
from engine.drafters import TreeDrafter
from engine.lengths import FixedLength
from engine.models.markov import load_markov
from engine.sampling import OneHot, Sampling
from engine.values import Draft, Step
from tests.engine.toys import Pieces, Proposing, TickingClock, letters, script_model

PLAIN, GREEDY = Sampling(temperature=1), Sampling(temperature=0)

RULES = {rule.name: rule for rule in (TreeIndependent(), TreeDistinct(), TreeMatch())}
PROMPTS = ("The draft model", "A token is accepted when the", "Speculative decoding", "the target judges, and the")
KEPT = ("accepted", "rejected", "bonus", "plain")


def random_run(number, **settings):
    rng = np.random.default_rng(number)
    loaded = load_markov(agreement=float(rng.choice([-0.5, 0.0, 0.5])))
    words = loaded.tokenizer
    rule = list(RULES.values())[number % 3]
    drafter = TreeDrafter(
        loaded.partner,
        loaded.model.vocab_size,
        children=rng.choice(["independent", "distinct", "best"]),
        width=int(rng.integers(1, 6)),
        n_nodes=int(rng.integers(1, 33)),
    )
    return decode(
        loaded.model,
        drafter,
        words.encode(PROMPTS[number % 4]),
        **{
            "rule": rule,
            "lengths": FixedLength(int(rng.integers(1, 7))),
            "sampling": [GREEDY, Sampling(0.7), PLAIN, Sampling(1.3, 40, 0.95)][rng.integers(4)],
            "max_tokens": int(rng.choice([1, 2, 3, 7, 20, 40])),
            "stop": ["the"] if rng.random() < 0.2 else (),
            "end_tokens": words.end_tokens | frozenset(words.encode(" of") if rng.random() < 0.3 else ()),
            "tokenizer": words,
            "seed": number,
            "clock": TickingClock(),
            **settings,
        },
    )


def steps_of(events):
    return [event for event in events if isinstance(event, Step)]


def tree(text, parents):
    tokens = tuple(letters(text))
    return Draft(tokens, tuple(map(OneHot, tokens)), parents=parents)


def one_step(draft, says, *, max_tokens=9, **settings):
    """The guess and the fate of one step, at temperature 0, of a target that says `says`."""
    target = script_model(letters(says))
    events = decode(
        target, Proposing(draft), [0], rule=TreeMatch(), sampling=GREEDY, max_tokens=max_tokens, tokenizer=Pieces(),
        **{"lengths": FixedLength(8), **settings},
    )  # fmt: skip
    _, guess, step, *_ = events
    return guess, step
