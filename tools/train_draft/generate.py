"""Let the target write: texts with the features that a draft head reads, as shards for `train`.

    python -m tools.train_draft.generate MODEL.gguf DATA/first --seconds 1500 --seed 1

Half of the texts are greedy, half are drawn at a temperature from 0.7 to 1. Runs until the time is
up; what is written can be trained on at any time. The same seed writes the same shards in the same
order (on one machine; other processors round differently). Set MALLOC_MMAP_THRESHOLD_ and
MALLOC_TRIM_THRESHOLD_ to 4294967296: without them a third of the time goes to the system.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import torch
from torch import Tensor

from tools.train_draft.prompts import draw
from tools.train_draft.shards import Row, write_shard
from tools.train_draft.target import Target

__all__ = ["write_texts"]

TAPS = (9, 19)
LONGEST_PROMPT = 256
N_EACH = 56  # prompts of each category in a round; sorted by length, so that a batch has little padding


def write_texts(
    target: Target, prompts: list[list[int]], temperatures: Tensor, n_tokens: int
) -> list[tuple[Tensor, Tensor]]:
    """What follows each prompt: ids (n,) with the prompt, and features (n - 1 or n, 1 + taps, W)."""
    ends = torch.tensor(sorted(target.tokenizer.end_tokens))
    features = target.start(prompts, n_tokens)
    longest = features.shape[1]
    columns_of_features = [features[:, column].bfloat16() for column in range(longest)]
    columns_of_ids: list[Tensor] = []
    present = torch.arange(len(prompts))  # which prompt each row of the batch belongs to
    finished = torch.zeros(len(prompts), dtype=torch.bool)
    n_written = torch.full((len(prompts),), n_tokens)  # by row of the batch
    results: list[tuple[Tensor, Tensor] | None] = [None] * len(prompts)
    hidden = features[:, -1, 0]

    def collect(rows: Tensor) -> None:
        for row in rows.tolist():
            prompt, n = prompts[int(present[row])], int(n_written[row])
            written = torch.stack([column[row] for column in columns_of_ids[:n]])
            read = torch.stack([column[row] for column in columns_of_features[longest - len(prompt) : longest + n]])
            results[int(present[row])] = (torch.cat([torch.tensor(prompt), written]).int(), read)

    for step in range(n_tokens):
        tokens = _draw(hidden @ target.head.T, temperatures[present])
        columns_of_ids.append(tokens)
        ended = torch.isin(tokens, ends) & ~finished
        n_written[ended] = step + 1
        finished |= ended
        if finished.all() or step == n_tokens - 1:
            break
        if step % 8 == 7 and finished.float().mean() > 0.12:  # a batch of the living is cheaper
            collect(finished.nonzero()[:, 0])
            living = (~finished).nonzero()[:, 0]
            target.keep(living)
            columns_of_ids = [column[living] for column in columns_of_ids]
            columns_of_features = [column[living] for column in columns_of_features]
            present, finished, n_written = present[living], finished[living], n_written[living]
        read = target.feed(columns_of_ids[-1])
        columns_of_features.append(read.bfloat16())
        hidden = read[:, 0]
    collect(torch.arange(len(present)))
    return [result for result in results if result is not None]


def _draw(logits: Tensor, temperatures: Tensor) -> Tensor:
    """The argmax at temperature 0, else a draw by the inverse of the cumulative law."""
    tokens = logits.argmax(-1)
    warm = temperatures > 0
    if warm.any():
        cumulative = (logits[warm] / temperatures[warm, None]).softmax(-1).cumsum(-1)
        places = torch.searchsorted(cumulative, torch.rand(len(cumulative), 1) * cumulative[:, -1:], right=True)
        tokens[warm] = places[:, 0].clamp_(max=logits.shape[1] - 1)
    return tokens


def passages(target: Target, rows: list[Row]) -> list[str]:
    """Paragraphs of 100 to 500 letters that end in a full stop, from what was written."""
    found = []
    for row in rows:
        if row.category in ("explanation", "story", "chat", "question answering"):
            written = row.ids[row.n_prompt :].tolist()
            text = b"".join(
                target.tokenizer.token_bytes(token) for token in written if not target.tokenizer.is_control(token)
            )
            for paragraph in text.decode("utf-8", "replace").split("\n"):
                paragraph = paragraph.strip()
                if 100 < len(paragraph) < 500 and paragraph[0].isalpha() and paragraph.endswith("."):
                    found.append(paragraph)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=98)
    parser.add_argument("--tokens", type=int, default=160, help="most tokens to write for a prompt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--each", type=int, default=N_EACH)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    rng = random.Random(arguments.seed)
    target = Target(arguments.model, TAPS)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    began, n_written, n_shards, texts = time.monotonic(), 0, 0, []
    while time.monotonic() - began < arguments.seconds:
        asked = [
            (category, target.tokenizer.chat(prompt))
            for category, prompt in draw(rng, arguments.each if texts else 14, texts)
        ]
        asked = sorted((pair for pair in asked if len(pair[1]) <= LONGEST_PROMPT), key=lambda pair: len(pair[1]))
        batches = [asked[low : low + arguments.batch] for low in range(0, len(asked), arguments.batch)]
        rng.shuffle(batches)
        for batch in batches:
            if time.monotonic() - began >= arguments.seconds:
                break
            temperatures = torch.tensor([0.0 if rng.random() < 0.5 else rng.uniform(0.7, 1.0) for _ in batch])
            with torch.inference_mode():
                written = write_texts(target, [ids for _, ids in batch], temperatures, arguments.tokens)
            rows = [
                Row(category, ids, len(prompt), float(temperature), features)
                for (category, prompt), (ids, features), temperature in zip(batch, written, temperatures, strict=True)
            ]
            write_shard(arguments.folder / f"{n_shards:04d}.pt", rows)
            n_shards += 1
            texts += passages(target, rows)
            n_written += sum(len(row.ids) - row.n_prompt for row in rows)
            speed = n_written / (time.monotonic() - began)
            print(f"shard {n_shards}: {n_written} tokens, {speed:.0f} tokens/s, {len(texts)} passages", flush=True)


if __name__ == "__main__":
    main()
