"""python -m backplane.torch build: the command backplane-torch."""

import sys

from ._build import main

sys.exit(main())
