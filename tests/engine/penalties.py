"""Penalties and runs with them, for the tests of both."""

from engine.decode import decode
from engine.sampling import Sampling
from engine.values import Finished
from tests.engine.oracle import slow_law

REPETITION = Sampling(temperature=1, repetition_penalty=1.8, prompt_length=1)
COUNTED = Sampling(temperature=1, frequency_penalty=0.9, presence_penalty=-0.6, prompt_length=1)
STRONG = Sampling(temperature=1, presence_penalty=2.0, prompt_length=1)
ALL = Sampling(0.8, 3, 0.9, 0.05, 1.4, 0.7, 0.4, prompt_length=1)


def slow(logits, sampling, context):
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty")
    settings = {name: getattr(sampling, name) for name in (*names, "prompt_length")}
    return slow_law(logits, **settings, context=context)


def greedy(**penalties):
    return Sampling(temperature=0, **penalties)


def text_of(target, drafter, prompt, **settings):
    *_, finished = decode(target, drafter, prompt, **settings)
    assert isinstance(finished, Finished)
    assert not finished.error
    return finished.ids
