"""Whether the tests run under the address sanitizer, as ./dev preloads it: it puts space between variables, and takes ten times as long."""

import os

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
