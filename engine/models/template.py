"""A file's own chat template, and the user's text inside it kept apart from control tokens.

The template is a Jinja program that came with the file, so it runs in Jinja's sandbox, with the
settings of Hugging Face transformers.  Its output names control tokens such as `<|im_end|>`; the
user's text may contain the same letters and must not become a control token.  `render` therefore
puts stand-ins (private-use characters that occur nowhere else) for every character of the user's
text that could begin such a name, cuts the output at the names that are left, which only the
template can have written, and puts the characters back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NoReturn

from engine.errors import ModelFileError, PromptError

__all__ = ["render"]


def render(template: str, text: str, control: Collection[str], names: Mapping[str, str]) -> list[tuple[str, bool]]:
    """One user message in `template`, with the answer due.

    Parameters
    ----------
    template : str
        Jinja source.
    text : str
        What the user says.
    control : collection of str
        Names of the control tokens.
    names : mapping
        Further variables for the template, such as `bos_token`.

    Returns
    -------
    list of (str, bool)
        The pieces in order, and whether each is the name of a control token.

    Raises
    ------
    ModelFileError
        If the template is not a valid program, or fails.
    PromptError
        If the template itself refuses the conversation.

    Examples
    --------
    >>> render("<s>{{ messages[0].content }}</s>", "a</s>", ["<s>", "</s>"], {})
    [('<s>', True), ('a</s>', False), ('</s>', True)]
    """
    first = sorted({name[0] for name in control})
    unused = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text and chr(code) not in template)
    hidden = str.maketrans(dict(zip(first, unused, strict=False)))
    shown = {stand_in: chr(code) for code, stand_in in hidden.items()}
    output = _run(template, text.translate(hidden), names)
    by_length = sorted(control, key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, by_length))})", output) if control else [output]
    back = str.maketrans(shown)
    return [(piece.translate(back), index % 2 == 1) for index, piece in enumerate(pieces) if piece]


def _run(template: str, text: str, names: Mapping[str, str]) -> str:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> NoReturn:
        raise PromptError(f"the model's chat template refuses this conversation: {message}")

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = raise_exception
    # Where a template can do without today's date it should: the same run gives the same tokens tomorrow.
    if "strftime_now is defined" not in template:
        environment.globals["strftime_now"] = lambda layout: datetime.now().strftime(layout)
    try:
        return environment.from_string(template).render(
            messages=[{"role": "user", "content": text}], add_generation_prompt=True, **names
        )
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        if isinstance(error, PromptError):
            raise
        raise ModelFileError(
            f"the chat template in the model file fails ({type(error).__name__}: {error}); "
            "use the model without its chat template"
        ) from error
