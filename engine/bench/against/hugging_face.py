"""Hugging Face transformers on the same file: plain, and with its prompt lookup.

The GGUF file is turned into float32 weights by transformers itself (`gguf_file=`).  A streamer
notes when tokens come; the clock runs from the first to the last.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from engine.bench.against.base import Answer, RivalSetting

__all__ = ["Arrivals", "HuggingFace"]

NGRAM_MAX = 3


class Arrivals:
    """A streamer of transformers that notes how many tokens have come, and when.

    `generate` hands over the prompt first, then tokens as they are decoded, one or several at once.
    """

    def __init__(self) -> None:
        self.marks: list[tuple[int, float]] = []
        self._prompt_seen = False

    def put(self, value: Any) -> None:
        """Take tokens."""
        if self._prompt_seen:
            self.marks.append((int(value.numel()), time.perf_counter()))
        self._prompt_seen = True

    def end(self) -> None:
        """Nothing to do."""


class HuggingFace:
    """transformers on a GGUF file.

    Parameters
    ----------
    path : Path
    threads : int or None
        For all of torch, from now on.
    """

    name = "transformers"
    packages = ("transformers", "torch")
    settings: Sequence[RivalSetting] = (RivalSetting("none", 0), RivalSetting("ngram", 4))
    how_timed = (
        "with a streamer, from the arrival of the first tokens to that of the last, the first not counted; float32; "
        "ngram 4 is prompt_lookup_num_tokens=4, max_matching_ngram_size=3"
    )

    def __init__(self, path: Path, *, threads: int | None) -> None:
        torch: Any = import_module("torch")
        transformers: Any = import_module("transformers")
        if threads is not None:
            torch.set_num_threads(threads)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self._torch = torch
        with redirect_stderr(StringIO()):  # a bar of its own that it cannot be talked out of
            self._model = transformers.AutoModelForCausalLM.from_pretrained(
                str(path.parent), gguf_file=path.name, local_files_only=True, dtype=torch.float32
            ).eval()

    def answer(self, ids: Sequence[int], setting: RivalSetting, *, max_tokens: int, temperature: float) -> Answer:
        """See `Rival.answer`."""
        torch = self._torch
        prompt = torch.tensor([list(ids)])
        arrivals = Arrivals()
        options: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            options = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        if setting.drafter == "ngram":
            options |= {"prompt_lookup_num_tokens": setting.draft_length, "max_matching_ngram_size": NGRAM_MAX}
        begin = time.perf_counter()
        with torch.inference_mode():
            output = self._model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=max_tokens, streamer=arrivals, **options
            )
        n_first, first = arrivals.marks[0]
        return Answer(
            tuple(output[0, len(ids) :].tolist()),
            sum(n_tokens for n_tokens, _ in arrivals.marks) - n_first,
            arrivals.marks[-1][1] - first,
            first - begin,
        )
