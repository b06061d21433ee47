"""The idioms as a file for a type checker: each line in a function of its own, over names of the types that they have.
"""

import ast

from idiom_running import arrays, lines
from numpy_idioms import IDIOMS as NUMPY
from pytorch_idioms import IDIOMS as PYTORCH

HEAD = """\
import backplane as bp
import backplane as torch
import backplane as xp
import backplane.nn.functional as F

"""


def function(number, code):
    parts = ast.parse(code).body
    body = "\n".join(f"    {ast.unparse(part)}" for part in parts)
    names = ", ".join(f"{name}: bp.Tensor" for name in arrays())
    return f"def idiom_{number}({names}) -> None:\n{body}\n\n"


def codes():
    return lines(NUMPY) + [line.partition(" -> ")[0] for line in lines(PYTORCH)]


def typed(refused=()):
    return HEAD + "\n".join(function(number, code) for number, code in enumerate(codes()) if code not in refused)
