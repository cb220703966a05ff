"""A comparison: up to four ways to decode beside plain decoding, and a verdict on each.

The measuring is that of the benchmark (`engine.bench`): one process, the same prompts and seed, runs
in turns, warm-up apart, bootstrap intervals.  What is added is that a configuration may differ in
any setting, that events can be watched while they happen, and a sentence for each configuration.
"""
