"""The kinds of drafter by name, each made from the spec that asks for it."""

from __future__ import annotations

from collections.abc import Callable

from engine.acceptance.naive import NO_LOGITS, NaiveThreshold
from engine.acceptance.tree import children_of
from engine.drafters import Drafter, ModelDrafter, NoDraft, PromptLookup, SuffixDecoding, TokenRecycling, TreeDrafter
from engine.drafters.earlier_outputs import EarlierOutputs, outputs_of
from engine.drafters.suffix_settings import Speculation
from engine.drafters.tree import check_tree
from engine.errors import SettingError, VocabularyError
from engine.heads import eagle, eagle_and_lookup, eagle_and_suffix, has_shipped_head
from engine.lengths import MAX_DRAFT_LENGTH
from engine.models import catalog
from engine.models.base import LayeredModel, LoadedModel, LoadProgress, Model
from engine.models.early_exit import EarlyExit
from engine.models.shared_vocabulary import SharedVocabulary
from engine.models.vocabulary import check_vocabulary
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["CHOICES", "DRAFTERS", "TREES", "check_drafter", "load", "make_drafter"]

DRAFTERS = (
    "none",
    "ngram",
    "suffix",
    "recycling",
    "early-exit",
    "model",
    "eagle",
    "eagle+ngram",
    "eagle+suffix",
)
"""The kinds of drafter; `model:NAME` names a model, `eagle:PATH` a draft head of one's own."""

NAMED = ("model", "eagle", "eagle+ngram", "eagle+suffix")
"""The kinds that take a name or a path behind a colon."""

WITHOUT_LOGITS = ("ngram", "suffix", "recycling", "eagle+ngram", "eagle+suffix")
"""The kinds that know no logits of what they copy."""

CHOICES = f"{', '.join(DRAFTERS)}, model:NAME, eagle:PATH, eagle+ngram:PATH or eagle+suffix:PATH"
"""What may be chosen, in words."""

TREES = ("early-exit", "model")
"""The kinds that can draft a tree, for a rule that takes trees."""


def check_drafter(spec: RunSpec) -> None:
    """Refuse a drafter that cannot be, without loading anything.

    Raises
    ------
    SettingError
        If the kind is unknown, a parameter of it is out of range, or the rule cannot judge it.
    """
    PromptLookup(spec.ngram_max, match=spec.ngram_match)
    SuffixDecoding(_speculation(spec), spec.suffix_choice)
    if spec.exit_layer < 0:
        raise SettingError(f"the exit layer is {spec.exit_layer}; it must be from 1 up, or 0 for two thirds of them")
    kind, colon, name = spec.drafter.partition(":")
    if kind not in DRAFTERS:
        raise SettingError(f"the drafter is {spec.drafter!r}; choose {CHOICES}")
    if colon and kind not in NAMED:
        number = name.removeprefix("-").isdecimal()
        hint = f"the draft length, 0 to {MAX_DRAFT_LENGTH}, is a setting of its own" if number else f"choose {kind}"
        raise SettingError(f"the drafter is {spec.drafter!r}, and {kind} takes nothing behind a colon; {hint}")
    if colon and not name:
        raise SettingError(f"the drafter is {spec.drafter!r}, with nothing behind the colon; choose {CHOICES}")
    if kind in WITHOUT_LOGITS and spec.rule == NaiveThreshold.name:
        raise SettingError(NO_LOGITS)
    check_tree(spec.tree_width, spec.tree_nodes)


def make_drafter(
    spec: RunSpec,
    loaded: LoadedModel,
    progress: LoadProgress | None = None,
    outputs: EarlierOutputs | None = None,
    tell: Callable[[str], object] | None = None,
) -> Drafter:
    """The drafter that a checked spec names, for a target that is loaded; `tell` takes the note of a draft model.

    Raises
    ------
    DraftscopeError
        If a file is unusable, nothing ships for the target, or the draft shares too few of the target's tokens.
    """
    kind, _, name = spec.drafter.partition(":")
    match kind:
        case "none":
            return NoDraft()
        case "ngram":
            return PromptLookup(spec.ngram_max, match=spec.ngram_match)
        case "suffix":
            return _suffix(spec, outputs)
        case "recycling":
            return TokenRecycling()
        case "early-exit":
            return _drafting(spec, _early_exit(spec, loaded.model), loaded.model.vocab_size)
        case "eagle+ngram":
            return eagle_and_lookup(spec.target, loaded.model, name, spec.ngram_max, spec.ngram_match)
        case "eagle+suffix":
            return eagle_and_suffix(spec.target, loaded.model, name, _suffix(spec, outputs))
    if kind == "eagle" or (not name and loaded.partner is None and has_shipped_head(spec.target)):
        return eagle(spec.target, loaded.model, name)
    return _drafting(spec, _draft_model(spec, loaded, name, progress, tell), loaded.model.vocab_size)


def _drafting(spec: RunSpec, model: Model, vocab_size: int) -> ModelDrafter | TreeDrafter:
    """A model that drafts: a tree, if the rule takes one."""
    children = children_of(RULES[spec.rule](spec))
    if spec.tree_width == 1 or children is None:
        return ModelDrafter(model, vocab_size)
    return TreeDrafter(model, vocab_size, children=children, width=spec.tree_width, n_nodes=spec.tree_nodes)


def load(spec: RunSpec, name: str, progress: LoadProgress | None) -> LoadedModel:
    """Load the model of that name the way the spec says; see `engine.models.catalog.load`."""
    return catalog.load(
        name,
        agreement=spec.agreement,
        target_call_seconds=spec.target_call_seconds,
        draft_call_seconds=spec.draft_call_seconds,
        backend=spec.backend,
        exact_rows=spec.exact_rows,
        progress=progress,
    )


def _speculation(spec: RunSpec) -> Speculation:
    return Speculation(spec.suffix_factor, spec.suffix_offset, spec.suffix_min_prob)


def _suffix(spec: RunSpec, outputs: EarlierOutputs | None) -> SuffixDecoding:
    if spec.suffix_outputs and outputs is None:
        outputs = outputs_of(spec.target, spec.suffix_choice)
    return SuffixDecoding(_speculation(spec), spec.suffix_choice, outputs if spec.suffix_outputs else None)


def _early_exit(spec: RunSpec, model: Model) -> EarlyExit:
    if not isinstance(model, LayeredModel):
        raise SettingError(
            f"{model.name} has no layers to exit behind, and early exit needs a GGUF model; "
            "choose another target or another drafter"
        )
    return EarlyExit(model, spec.exit_layer)


def _draft_model(
    spec: RunSpec,
    loaded: LoadedModel,
    name: str,
    progress: LoadProgress | None,
    tell: Callable[[str], object] | None,
) -> Model:
    if not name:
        if loaded.partner is None:
            raise SettingError(
                f"{loaded.model.name} has no draft model that ships with it; "
                "name one with model:NAME, or choose ngram or none"
            )
        return loaded.partner
    if name == spec.target:
        return loaded.model.fork()
    draft = load(spec, name, progress)
    if tell:
        tell(draft.note)
    try:
        check_vocabulary(loaded.tokenizer, draft.tokenizer)
    except VocabularyError:
        return SharedVocabulary(draft.model, draft.tokenizer, loaded.tokenizer)
    return draft.model
