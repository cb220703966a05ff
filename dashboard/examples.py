"""Prompts to start from: for a model that answers, and for the embedded pair that continues a text."""

from __future__ import annotations

__all__ = ["CHAT", "CONTINUE", "NUMBERS"]

CHAT = {
    "Correct a text": (
        "Correct the spelling in this text and repeat it:\n\n"
        "The cat sat on the mat. The dog sat on the log. The cat saw the dog and the dog saw the cat. "
        "The cat and the dog sat on the mat and on the log."
    ),
    "Tell a story": "Tell a short story about a small model that guesses what a large model will say next.",
    "Write code": (
        "Write a Python class Stack with the methods push, pop, peek and is_empty, "
        "then a short example that uses every method."
    ),
    "Write a page": "Write an HTML page with a table of the seven days of the week.",
    "Explain a word": "Explain what a cache is, in three short paragraphs, to somebody who has never programmed.",
    "Answer a question": "Why is the sky blue during the day and red in the evening?",
}
"""What a user says to a chat model. Where the answer repeats the prompt, prompt lookup has something to find."""

CONTINUE = {
    "The draft": "The draft model",
    "The target": "The target model reads the whole block and",
    "When it pays": "Speculative decoding helps when",
    "A rejected token": "When a token is rejected,",
}
"""How a text begins that the embedded pair goes on with."""

NUMBERS = {"Three numbers": "3 14 15", "One number": "7"}
"""What the pair without words starts from."""
