"""Speculative decoding, step by step: an engine that yields an event at every turn.

Drafter, acceptance rule, draft length and metrics are parts to swap, any function
`prefix_ids -> logits` can be a model, and nothing here knows of the dashboard.
Importing this package loads numpy and the standard library only.

Examples
--------
>>> from engine import RunSpec, Step, build
>>> for event in build(RunSpec(prompt="The draft", max_tokens=3, seed=6)).events():
...     if isinstance(event, Step):
...         print([decision.outcome for decision in event.decisions])
['accepted', 'accepted', 'bonus']
"""

from engine.acceptance import (
    AcceptanceRule,
    BlockVerification,
    Ensemble,
    ExactRejection,
    GumbelMatch,
    Lenience,
    NaiveThreshold,
    SampleMatch,
    TypicalAcceptance,
)
from engine.build import BuiltRun, build
from engine.decode import decode
from engine.drafters import (
    CallableDrafter,
    Drafter,
    EagleDrafter,
    LookupFirst,
    ModelDrafter,
    NoDraft,
    PromptLookup,
    SuffixDecoding,
    SuffixFirst,
    TokenRecycling,
)
from engine.errors import DraftscopeError
from engine.evidence import Evidence
from engine.explain import explain
from engine.lengths import FixedLength, LengthPolicy
from engine.metrics import Figures, Tally, measure
from engine.models.base import HiddenModel, LoadedModel, Model, Tokenizer
from engine.models.callable import CallableModel
from engine.models.catalog import load
from engine.report import Report
from engine.sampling import (
    Dense,
    Law,
    Noise,
    OneHot,
    Purpose,
    Rows,
    Sampling,
    Sparse,
    law,
    law_of_scores,
    log_probability,
    penalised,
)
from engine.spec import RunSpec
from engine.store import RunStore
from engine.values import (
    Decision,
    Draft,
    Drafted,
    Event,
    Finished,
    Started,
    Step,
    Tested,
    Verdict,
)

__all__ = [
    "AcceptanceRule",
    "BlockVerification",
    "BuiltRun",
    "CallableDrafter",
    "CallableModel",
    "Decision",
    "Dense",
    "Draft",
    "Drafted",
    "Drafter",
    "DraftscopeError",
    "EagleDrafter",
    "Ensemble",
    "Event",
    "Evidence",
    "ExactRejection",
    "Figures",
    "Finished",
    "FixedLength",
    "GumbelMatch",
    "HiddenModel",
    "Law",
    "LengthPolicy",
    "Lenience",
    "LoadedModel",
    "LookupFirst",
    "Model",
    "ModelDrafter",
    "NaiveThreshold",
    "NoDraft",
    "Noise",
    "OneHot",
    "PromptLookup",
    "Purpose",
    "Report",
    "Rows",
    "RunSpec",
    "RunStore",
    "SampleMatch",
    "Sampling",
    "Sparse",
    "Started",
    "Step",
    "SuffixDecoding",
    "SuffixFirst",
    "Tally",
    "Tested",
    "TokenRecycling",
    "Tokenizer",
    "TypicalAcceptance",
    "Verdict",
    "build",
    "decode",
    "explain",
    "law",
    "law_of_scores",
    "load",
    "log_probability",
    "measure",
    "penalised",
]
