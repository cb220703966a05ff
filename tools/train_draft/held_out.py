"""The held-out prompts and what the target writes after them, kept for every later evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from tools.train_draft.generate import TAPS, write_texts
from tools.train_draft.shards import Row, read_shards, write_shard
from tools.train_draft.target import Target

__all__ = ["Text", "held_out_texts", "read_prompts"]

PROMPTS = Path(__file__).with_name("held_out.txt")
TEMPERATURES = (0.0, 1.0, 0.7)
N_TOKENS = 160


@dataclass(frozen=True, slots=True)
class Text:
    """A held-out text: ids with the prompt in front, which `n_prompt` counts."""

    category: str
    ids: list[int]
    n_prompt: int
    temperature: float


def read_prompts(path: Path = PROMPTS) -> list[tuple[str, str]]:
    """(category, prompt) of every line that is not a comment."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pairs = [line.split("\t", 1) for line in lines]
    return [(category, prompt.replace("\\n", "\n")) for category, prompt in pairs]


def held_out_texts(model: Path, kept: Path, prompts: Path = PROMPTS) -> list[Text]:
    """What the target writes after each prompt, once greedily and once at each other temperature; kept in `kept`."""
    shard = kept / "held_out.pt"
    if not shard.exists():
        kept.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        target = Target(model, TAPS)
        asked = [
            (category, target.tokenizer.chat(prompt), t)
            for t in TEMPERATURES
            for category, prompt in read_prompts(prompts)
        ]
        with torch.inference_mode():
            written = write_texts(target, [ids for _, ids, _ in asked], torch.tensor([t for *_, t in asked]), N_TOKENS)
        write_shard(shard, [
            Row(category, ids, len(prompt), t, features[:0])
            for (category, prompt, t), (ids, features) in zip(asked, written, strict=True)
        ])  # fmt: skip
    return [Text(row.category, row.ids.tolist(), row.n_prompt, row.temperature) for row in read_shards(kept)]
