"""Libraries that compute with anybody's arrays, as they are released, on our tensors. `./dev test ecosystem` makes their environment.

SciPy decides at its import whether it does; scikit-learn in the block of a test.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
