"""The command line: one file per command; only here does the engine print."""
