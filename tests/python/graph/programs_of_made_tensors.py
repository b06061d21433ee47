"""Random programs: a function makes tensors, holds them in objects, changes, stores and returns them. Its caller changes the results."""

import copy

import backplane as bp
import numpy as np

SIZE = 4


class Box:
    pass


def helper(p, q):
    return {"p": p, "q": (q, p)}


# Per statement: its text, and the tensors that a later one may use. {n}: the number of the statement. {v}: a tensor of before.
STATEMENTS = [
    ("t{n} = bp.asarray([{n}., 2., 3., 5.])", ["t{n}"]),
    ("t{n} = bp.asarray([{n}., 4., 3., 5.])", ["t{n}"]),
    ("l{n} = [bp.full((4,), {n}.), {v}]", ["l{n}[0]", "l{n}[1]"]),
    ("d{n} = {{'a': {v}, 'b': bp.arange(4.)}}", ["d{n}['a']", "d{n}['b']"]),
    ("b{n} = Box(); b{n}.t = bp.ones(4) * {n}; b{n}.u = {v}", ["b{n}.t", "b{n}.u"]),
    ("p{n} = (bp.zeros(4), {v})", ["p{n}[0]", "p{n}[1]"]),
    ("e{n} = {v} * 2 + 1", ["e{n}"]),
    ("{v}.add_({w})", []),
    ("z = {v}; z[1:3] = 7.", []),
    ("w{n} = {v}[:]", ["w{n}"]),
    ("q{n} = list(({v},))", ["q{n}[0]"]),
    ("f{n} = (lambda u: (lambda: u))({v})", ["f{n}()"]),
    ("g{n} = dict(m=[[{v}, bp.ones(4)]])", ["g{n}['m'][0][0]", "g{n}['m'][0][1]"]),
    ("s{n} = [OUT[0], W]", ["s{n}[0]", "s{n}[1]"]),
    ("h{n} = bp.asarray(np.array([1., {n}., 3., 4.], dtype=np.float32))", ["h{n}"]),
    ("i{n} = {v}.detach()", ["i{n}"]),
    ("j{n} = [u for u in (bp.asarray([1., 1., {n}., 1.]), {v})]", ["j{n}[0]", "j{n}[-1]"]),
    ("k{n} = copy.copy([{v}, bp.asarray([4., 3., 2., {n}.])])", ["k{n}[0]", "k{n}[1]"]),
    ("m{n} = {{}}; m{n}.update(z={v}); m{n}['y'] = m{n}.pop('z')", ["m{n}['y']"]),
    ("r{n} = {v}.reshape(2, 2).T.reshape(-1)", ["r{n}"]),
    ("o{n} = helper({v}, bp.asarray([9., 8., 7., {n}.]))", ["o{n}['p']", "o{n}['q'][0]"]),
    ("v{n} = {v} * 1", ["v{n}"]),
    ("CACHE['c'] = {v}", []),
]


def random_program(random):
    """The text of a function of x."""
    lines, tensors = [], ["x"]
    for n in range(1, random.randint(3, 7)):
        text, made = random.choice(STATEMENTS)
        lines.append(text.format(n=n, v=random.choice(tensors), w=random.choice(tensors)))
        tensors += [one.format(n=n) for one in made]
    results = random.sample(tensors, min(len(tensors), random.randint(1, 3)))
    return "def f(x):\n    " + "\n    ".join(lines) + f"\n    return [{', '.join(results)}]\n"


def history(program, written, compiles, n_calls=3):
    """What a caller sees over some calls, and the text of the error that ended them. written: the results that it writes into, as bits."""
    outside = {"W": bp.asarray([1.0, 2.0, 3.0, 4.0]), "OUT": [bp.zeros(SIZE)], "CACHE": {}}
    names = {"bp": bp, "np": np, "copy": copy, "Box": Box, "helper": helper, **outside}
    exec(program, names)
    function = bp.compile(names["f"]) if compiles else names["f"]
    seen = []
    for call in range(n_calls):
        x = bp.asarray([1.0, 2.0, 3.0, 4.0]) + call
        try:
            results = function(x)
        except bp.BackplaneError as error:
            return seen, str(error)
        seen.append([t.tolist() for t in results])
        for k, t in enumerate(results):
            if written >> k & 1:
                t[0] = 100.0 + call
        others = [x, outside["W"], *outside["OUT"], *outside["CACHE"].values()]
        seen.append([t.tolist() for t in [*results, *others]])
    return seen, ""
