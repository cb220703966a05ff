"""The page: it shows what the engine does, and computes nothing."""
