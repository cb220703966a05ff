"""The kinds of drafter by name, each made from the spec that asks for it."""

from __future__ import annotations

from engine.acceptance.naive import NO_LOGITS, NaiveThreshold
from engine.acceptance.tree import children_of
from engine.drafters import Drafter, ModelDrafter, NoDraft, PromptLookup, TreeDrafter
from engine.drafters.tree import check_tree
from engine.errors import SettingError, VocabularyError
from engine.heads import eagle, eagle_and_lookup, has_shipped_head
from engine.models import catalog
from engine.models.base import LoadedModel, Model, Progress
from engine.models.shared_vocabulary import SharedVocabulary
from engine.models.vocabulary import check_vocabulary
from engine.rules import RULES
from engine.spec import RunSpec

__all__ = ["DRAFTERS", "TREES", "check_drafter", "load", "make_drafter"]

DRAFTERS = ("none", "ngram", "model", "eagle", "eagle+ngram")
"""The kinds of drafter; `model:NAME` names a model, `eagle:PATH` a draft head of one's own."""

NAMED = ("model", "eagle", "eagle+ngram")
"""The kinds that take a name or a path behind a colon."""


TREES = ("model",)
"""The kinds that can draft a tree, for a rule that takes trees."""


def check_drafter(spec: RunSpec) -> None:
    """Refuse a drafter that cannot be, without loading anything.

    Raises
    ------
    SettingError
        If the kind is unknown, a parameter of it is out of range, or the rule cannot judge it.
    """
    PromptLookup(spec.ngram_max, match=spec.ngram_match)
    kind, _, draft_name = spec.drafter.partition(":")
    if kind not in DRAFTERS or spec.drafter.endswith(":") or (draft_name and kind not in NAMED):
        raise SettingError(
            f"the drafter is {spec.drafter!r}; choose {', '.join(DRAFTERS)}, model:NAME, eagle:PATH or eagle+ngram:PATH"
        )
    if kind in ("ngram", "eagle+ngram") and spec.rule == NaiveThreshold.name:
        raise SettingError(NO_LOGITS)
    check_tree(spec.tree_width, spec.tree_nodes)


def make_drafter(spec: RunSpec, loaded: LoadedModel, progress: Progress | None = None) -> Drafter:
    """The drafter that a checked spec names, for a target that is loaded.

    Raises
    ------
    DraftscopeError
        If a file is unusable, nothing ships for the target, or the draft's tokens are not the target's.
    """
    kind, _, name = spec.drafter.partition(":")
    if kind == "none":
        return NoDraft()
    if kind == "ngram":
        return PromptLookup(spec.ngram_max, match=spec.ngram_match)
    if kind == "eagle+ngram":
        return eagle_and_lookup(spec.target, loaded.model, name, spec.ngram_max, spec.ngram_match)
    if kind == "eagle" or (not name and loaded.partner is None and has_shipped_head(spec.target)):
        return eagle(spec.target, loaded.model, name)
    model, vocab_size = _draft_model(spec, loaded, name, progress), loaded.model.vocab_size
    children = children_of(RULES[spec.rule](spec))
    if spec.tree_width == 1 or children is None:
        return ModelDrafter(model, vocab_size)
    return TreeDrafter(model, vocab_size, children=children, width=spec.tree_width, n_nodes=spec.tree_nodes)


def load(spec: RunSpec, name: str, progress: Progress | None) -> LoadedModel:
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


def _draft_model(spec: RunSpec, loaded: LoadedModel, name: str, progress: Progress | None) -> Model:
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
    try:
        check_vocabulary(loaded.tokenizer, draft.tokenizer)
    except VocabularyError:
        return SharedVocabulary(draft.model, draft.tokenizer, loaded.tokenizer)
    return draft.model
