"""Prompts to start from: for a model that answers, and for the embedded pair that continues a text."""

from __future__ import annotations

__all__ = ["CHAT", "CONTINUE", "NUMBERS"]

CHAT = {
    "Rewrite a paragraph": (
        "Rewrite this text with correct spelling and punctuation, and change nothing else:\n\n"
        "the lighthouse keeper climbd the stairs every evening he lit the lamp he wound the clock and he wrote "
        "the weather in his book in the morning he climbd the stairs again he put out the lamp he wound the clock "
        "and he wrote the weather in his book once more"
    ),
    "Explain a word": "Explain what a cache is, in three short paragraphs, to somebody who has never programmed.",
    "Write code": (
        "Write a Python class Stack with the methods push, pop, peek and is_empty, "
        "then a short example that uses every method."
    ),
    "Tell a story": "Tell a short story about a small model that guesses what a large model will say next.",
    "Answer a question": "Why is the sky blue during the day and red in the evening?",
    "Make a list": "List the twelve months of the year, each with its number of days.",
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
