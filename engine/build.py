"""A run made from its spec: the parts are checked, loaded and put together.

What needs no model is checked before any is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.acceptance import AcceptanceRule
from engine.decode import decode
from engine.drafter_kinds import check_drafter, load, make_drafter
from engine.drafters import Drafter
from engine.drafters.earlier_outputs import EarlierOutputs
from engine.errors import PromptError, SettingError
from engine.lengths import LengthPolicy
from engine.models.backends import check_backend
from engine.models.base import LoadedModel, LoadProgress
from engine.policies import POLICIES
from engine.probe import check_probe
from engine.rules import RULES
from engine.sampling import Noise, Sampling
from engine.spec import RunSpec
from engine.stopping import Cancelled, never
from engine.values import Event

__all__ = ["BuiltRun", "build", "check"]


@dataclass(frozen=True, slots=True)
class BuiltRun:
    """A spec with its parts made and its prompt encoded, ready to decode once.

    `notes` say why other backends run its target and its draft model than one would expect; empty if none does.
    """

    spec: RunSpec
    loaded: LoadedModel
    drafter: Drafter
    rule: AcceptanceRule
    lengths: LengthPolicy
    sampling: Sampling
    prompt: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def events(self, cancelled: Cancelled = never) -> Iterator[Event]:
        """Decode; see `engine.decode.decode`."""
        timing = {} if self.loaded.clock is None else {"clock": self.loaded.clock}
        return decode(
            self.loaded.model,
            self.drafter,
            self.prompt,
            rule=self.rule,
            lengths=self.lengths,
            sampling=self.sampling,
            max_tokens=self.spec.max_tokens,
            stop=self.spec.stop,
            end_tokens=self.loaded.tokenizer.end_tokens,
            tokenizer=self.loaded.tokenizer,
            seed=self.spec.seed,
            probe=self.spec.probe,
            logprobs=self.spec.logprobs,
            cancelled=cancelled,
            **timing,
        )


def build(
    spec: RunSpec,
    progress: LoadProgress | None = None,
    *,
    loaded: LoadedModel | None = None,
    outputs: EarlierOutputs | None = None,
) -> BuiltRun:
    """Make the parts that a spec names; everything that can be checked without the model is checked before it.

    Parameters
    ----------
    spec : RunSpec
    progress : callable, optional
        Told what is being done, and (parts done, parts in all), while a model is packed and compiled; see
        `engine.models.catalog.load`.
    loaded : LoadedModel, optional
        The target that the spec names, if it is loaded already.
    outputs : EarlierOutputs, optional
        What a spec with `suffix_outputs` looks at, instead of what the runs of this process emitted.

    Raises
    ------
    DraftscopeError
        If a name is unknown, a value out of range, a file unusable, the prompt empty, or the
        draft's tokens are not the target's.

    Examples
    --------
    >>> from engine.metrics import measure
    >>> measure(build(RunSpec(prompt="The draft", max_tokens=5)).events()).tokens_generated
    5
    """
    check(spec)
    rule = RULES[spec.rule](spec)
    loaded = loaded or load(spec, spec.target, progress)
    tokenizer = loaded.tokenizer
    prompt = tokenizer.chat(spec.prompt) if spec.chat and tokenizer.has_chat_template else tokenizer.encode(spec.prompt)
    notes = [loaded.note]
    drafter = make_drafter(spec, loaded, progress, outputs, notes.append)
    lengths = POLICIES[spec.length_policy](spec)
    sampling = replace(spec.sampling, prompt_length=len(prompt))
    return BuiltRun(spec, loaded, drafter, rule, lengths, sampling, tuple(prompt), tuple(filter(None, notes)))


def check(spec: RunSpec) -> None:
    """Refuse what can be refused without loading a model.

    Raises
    ------
    SettingError, PromptError
        If a name is unknown, a value out of range, or the prompt cannot be used.
    """
    spec.sampling  # noqa: B018 - it refuses what is out of range
    Noise(spec.seed)
    check_backend(spec.backend)
    check_probe(spec.probe)
    for make_rule in RULES.values():
        make_rule(spec)
    if spec.length_policy not in POLICIES:
        raise SettingError(f"the length policy is {spec.length_policy!r}; choose {', '.join(POLICIES)}")
    for policy in POLICIES.values():
        policy(spec)
    if spec.rule not in RULES:
        raise SettingError(f"the rule is {spec.rule!r}; choose {', '.join(RULES)}")
    if spec.max_tokens < 1:
        raise SettingError(f"max_tokens is {spec.max_tokens}; it must be at least 1")
    if "" in spec.stop:
        raise SettingError("a stop string is empty; give at least one character")
    if any("\ud800" <= character <= "\udfff" for character in spec.prompt):
        raise PromptError("the prompt has bytes that are no valid UTF-8; give it as UTF-8 text")
    if not spec.prompt.strip():
        raise PromptError("the prompt is empty; give some text to continue from")
    check_drafter(spec)
