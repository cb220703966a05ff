"""llama.cpp through the package xllamacpp: plain, and with its own n-gram speculation.

One of its servers in this process for each way to decode; no port is asked over.  It counts its
own time: `predicted_ms` runs from the first token, which comes out of the prompt's last row, to
the last one.  Sources: llama.cpp `tools/server/server-context.cpp`, xllamacpp `CommonParams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from engine.bench.against.base import Answer, RivalSetting

__all__ = ["LlamaCpp"]

NGRAM_MAX = 3
SETTINGS = (RivalSetting("none", 0), RivalSetting("ngram", 4), RivalSetting("ngram", 48))
"""Plain; n-grams of 3 and drafts of 4, as Draftscope's own default; llama.cpp's own default, n-grams of 12."""


class LlamaCpp:
    """llama.cpp on a GGUF file.

    Parameters
    ----------
    path : Path
    threads : int or None
    context_tokens : int
    """

    name = "llama.cpp"
    packages = ("xllamacpp",)
    settings: Sequence[RivalSetting] = SETTINGS
    how_timed = (
        "by itself (timings.predicted_ms of its server, from the first token to the last, so n tokens count as n - 1); "
        "ngram 4 is ngram-simple with n-grams of 3, ngram 48 is ngram-simple as it comes (n-grams of 12)"
    )

    def __init__(self, path: Path, *, threads: int | None, context_tokens: int) -> None:
        xllamacpp = import_module("xllamacpp")
        self._servers = {setting: _server(xllamacpp, path, setting, threads, context_tokens) for setting in SETTINGS}

    def answer(self, ids: Sequence[int], setting: RivalSetting, *, max_tokens: int, temperature: float) -> Answer:
        """See `Rival.answer`."""
        result: dict[str, Any] = self._servers[setting].handle_completions({
            "prompt": list(ids),
            "n_predict": max_tokens,
            "temperature": temperature,
            "top_k": 1 if temperature == 0 else 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "cache_prompt": False,
            "return_tokens": True,
            "verbose": True,  # its answer in the form of a text has no ids; the long form has
        })  # fmt: skip
        if "timings" not in result:
            raise RuntimeError(f"its server answered {result}")
        timings = result["timings"]
        return Answer(
            tuple(result["__verbose"]["tokens"]),
            timings["predicted_n"] - 1,
            timings["predicted_ms"] / 1000,
            timings["prompt_ms"] / 1000,
            timings.get("draft_n", 0),
            timings.get("draft_n_accepted", 0),
        )


def _server(xllamacpp: Any, path: Path, setting: RivalSetting, threads: int | None, context_tokens: int) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.verbosity = 0
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.cache_ram_mib = 0
    if threads is not None:
        parameters.cpuparams.n_threads = threads
        parameters.cpuparams_batch.n_threads = threads
    if setting.drafter == "ngram":
        speculative = parameters.speculative
        speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        if setting.draft_length != speculative.ngram_simple.size_m:
            speculative.ngram_simple.size_n = NGRAM_MAX
            speculative.ngram_simple.size_m = setting.draft_length
    return xllamacpp.Server(parameters)
