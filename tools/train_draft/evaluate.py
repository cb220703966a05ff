"""How well a draft head guesses on held-out prompts, and what a guess costs; through the engine itself.

    python -m tools.train_draft.evaluate MODEL.gguf head.npz --kept FOLDER

The target writes 160 tokens after each prompt of `held_out.txt`, once greedily and once each at
temperature 1 and 0.7 (kept in FOLDER for the next head). At every written token the engine's own
drafter is asked for a proposal, as in decoding, with the engine's float32 target behind it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from engine.drafters.eagle import EagleDrafter
from engine.drafters.ngram import PromptLookup
from engine.heads import eagle
from engine.models.base import Model
from engine.models.catalog import load
from engine.sampling import Noise, Sampling, law
from tools.train_draft.held_out import PROMPTS, Text, held_out_texts

__all__ = ["agreement", "overlap", "tokens_per_step"]

DEPTHS = 4
GREEDY = {"sampling": Sampling(temperature=0), "noise": Noise(0), "end_tokens": frozenset()}


def proposals(drafter: EagleDrafter | PromptLookup, text: Text) -> list[tuple[int, ...]]:
    """What is proposed before each written token."""
    return [
        drafter.propose(text.ids[:n], DEPTHS, **GREEDY).tokens for n in range(text.n_prompt, len(text.ids))
    ]  # fmt: skip


def agreement(texts: list[Text], proposed: list[list[tuple[int, ...]]]) -> list[float]:
    """Share of guesses that are right at each depth, of those whose fellows before were right."""
    right, asked = [0] * DEPTHS, [0] * DEPTHS
    for text, of_text in zip(texts, proposed, strict=True):
        for place, tokens in enumerate(of_text, text.n_prompt):
            for depth, token in enumerate(tokens[: len(text.ids) - place]):
                asked[depth] += 1
                if token != text.ids[place + depth]:
                    break
                right[depth] += 1
    return [hits / max(1, n) for hits, n in zip(right, asked, strict=True)]


def tokens_per_step(texts: list[Text], proposed: list[list[tuple[int, ...]]], length: int) -> float:
    """Emitted tokens per step of a greedy run with drafts of `length`."""
    n_steps = n_tokens = 0
    for text, of_text in zip(texts, proposed, strict=True):
        place = text.n_prompt
        while place < len(text.ids):
            kept = 0
            for token in of_text[place - text.n_prompt][:length]:
                if place + kept >= len(text.ids) or token != text.ids[place + kept]:
                    break
                kept += 1
            n_steps += 1
            emitted = min(kept + 1, len(text.ids) - place)
            n_tokens += emitted
            place += emitted
    return n_tokens / max(1, n_steps)


def overlap(drafter: EagleDrafter, target: Model, text: Text) -> list[float]:
    """Sum of min(draft, target) before each written token, the chance that a drawn guess is kept."""
    sampling = Sampling(temperature=text.temperature)
    rows = target.logits(text.ids[:-1], len(text.ids) - text.n_prompt)
    sums = []
    for row, n in zip(rows, range(text.n_prompt, len(text.ids)), strict=True):
        draft = drafter.propose(text.ids[:n], 1, sampling=sampling, noise=Noise(0), end_tokens=frozenset())
        target_law, draft_law = law(row, sampling).dense(len(row)), draft.laws[0].dense(len(row))
        sums.append(float(np.minimum(target_law, draft_law).sum()))
    return sums


def cost(drafter: EagleDrafter, target: Model, text: Text, *, length: int = 3, n: int = 60) -> tuple[float, float]:
    """Median seconds of a plain target token and of a draft token (drafts of `length`), in turn."""
    plain, drafted = [], []
    target.logits(text.ids[: text.n_prompt - 1])
    drafter.prepare(text.ids[: text.n_prompt])
    for place in range(text.n_prompt, min(text.n_prompt + n, len(text.ids))):
        began = time.perf_counter()
        target.logits(text.ids[:place])
        middle = time.perf_counter()
        draft = drafter.propose(text.ids[: place + 1], length, **GREEDY)
        plain.append(middle - began)
        drafted.append((time.perf_counter() - middle) / len(draft.tokens))
    return statistics.median(plain), statistics.median(drafted)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("head", type=Path, nargs="+")
    parser.add_argument("--kept", type=Path, required=True, help="folder in which the held-out texts are kept")
    parser.add_argument("--prompts", type=Path, default=PROMPTS)
    parser.add_argument("--backend", default="numpy", help="numpy, the float32 reference (default), or ort")
    arguments = parser.parse_args()
    texts = held_out_texts(arguments.model, arguments.kept, arguments.prompts)
    target = load(arguments.model, backend=arguments.backend).model
    greedy = [text for text in texts if text.temperature == 0]
    drafters = {path.name: eagle(str(arguments.model), target, str(path)) for path in arguments.head}
    lookups = {n: [proposals(PromptLookup(3, min_n=n), text) for text in greedy] for n in (1, 2, 3)}
    by_head = {name: _measured(drafter, target, texts) for name, drafter in drafters.items()}
    for name, (of_greedy, sums, seconds) in by_head.items():
        print(json.dumps({"head": name, **_figures(greedy, of_greedy, lookups), **sums, **seconds}, indent=1))


def _measured(
    drafter: EagleDrafter, target: Model, texts: list[Text]
) -> tuple[list[list[tuple[int, ...]]], dict[str, object], dict[str, object]]:
    of_greedy: list[list[tuple[int, ...]]] = []
    sums: dict[float, list[float]] = defaultdict(list)
    for text in texts:
        target.logits(text.ids[:-1])  # the text is read once; its hidden rows stay
        if text.temperature == 0:
            of_greedy.append(proposals(drafter, text))
        else:
            sums[text.temperature] += overlap(drafter, target, text)
    plain, drafted = cost(drafter, target, texts[0])
    means: dict[str, object] = {f"overlap at T={t}": round(float(np.mean(values)), 4) for t, values in sums.items()}
    milliseconds: dict[str, object] = {
        "plain token, ms": round(1000 * plain, 2),
        "draft token, ms": round(1000 * drafted, 3),
        "cost": round(drafted / plain, 4),
    }
    return of_greedy, means, milliseconds


def _figures(
    greedy: list[Text], of_greedy: list[list[tuple[int, ...]]], lookups: dict[int, list[list[tuple[int, ...]]]]
) -> dict[str, object]:
    by_category = {
        category: round(agreement(*_part(greedy, of_greedy, category))[0], 3)
        for category in dict.fromkeys(text.category for text in greedy)
    }
    steps: dict[str, list[float]] = {"head alone": [], "lookup alone (from 1)": []}
    for length in range(1, DEPTHS + 1):
        steps["head alone"].append(round(tokens_per_step(greedy, of_greedy, length), 3))
        steps["lookup alone (from 1)"].append(round(tokens_per_step(greedy, lookups[1], length), 3))
        for n, of_lookup in lookups.items():
            both = [[a or b for a, b in zip(x, y, strict=True)] for x, y in zip(of_lookup, of_greedy, strict=True)]
            steps.setdefault(f"lookup from {n}, else head", []).append(round(tokens_per_step(greedy, both, length), 3))
    return {
        "tokens": sum(len(text.ids) - text.n_prompt for text in greedy),
        "agreement at T=0 by depth": [round(share, 4) for share in agreement(greedy, of_greedy)],
        "agreement by category": by_category,
        "tokens per step, draft length 1 to 4": steps,
    }


def _part(
    texts: list[Text], proposed: list[list[tuple[int, ...]]], category: str
) -> tuple[list[Text], list[list[tuple[int, ...]]]]:
    chosen = [place for place, text in enumerate(texts) if text.category == category]
    return [texts[place] for place in chosen], [proposed[place] for place in chosen]


if __name__ == "__main__":
    main()
