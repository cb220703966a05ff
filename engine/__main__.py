"""`python -m engine`: see `engine.cli.main`.

What is imported and loaded here is many objects that stay until the end. To look through them for
garbage took a tenth of a short run's time, and as much again on leaving.
"""

import gc
import sys

from engine.cli.main import main

if __name__ == "__main__":
    gc.set_threshold(100_000, 50, 50)
    code = main()
    gc.freeze()  # nothing is looked through on leaving
    sys.exit(code)
