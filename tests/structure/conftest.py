"""Makes source_tree importable from the tests beside it, however pytest was called."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
