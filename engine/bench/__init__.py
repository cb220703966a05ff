"""`python -m engine bench`: is speculation faster here, by how much, and why or why not.

One process measures plain decoding and every drafter at every draft length on the same prompts, in
turns, so that whatever else the machine does falls on all alike.  What is measured and every
formula: `docs/bench.md`.
"""
