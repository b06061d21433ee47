"""In which form the tests run.

SANITIZED: under the address sanitizer, as ./dev preloads it: it puts space between variables, and takes ten times as long.
WHOLE: every case, as ./dev test whole, or with the name of a folder, asks for; else the short form, which CI runs.
"""

import os

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
WHOLE = bool(os.environ.get("BACKPLANE_WHOLE"))
