"""The native stack: calls that nest without end, threads with little of it, and long chains. Each in a process of its own."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from sanitized import SANITIZED

LAWS = Path(__file__).parent / "laws"

SMALL_STACK = (1024 if SANITIZED else 64) << 10


def run(code):
    program = f"import sys, threading\nimport numpy as np\nimport backplane as bp\nSMALL_STACK = {SMALL_STACK}\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


RECURSIONS = {
    "an op that calls itself": """
        @bp.custom_op("own::again")
        def again(x: bp.Tensor) -> bp.Tensor:
            return again(x) + 1
        call = lambda: again(bp.ones(3))
        """,
    "inside grad": """
        @bp.custom_op("own::again")
        def again(x: bp.Tensor) -> bp.Tensor:
            return bp.grad(lambda v: again(v).sum())(x)
        call = lambda: again(bp.ones(3))
        """,
    "a custom function": """
        @bp.custom_function
        def again(x):
            return again(x)
        again.defvjp(lambda x: (again(x), None), lambda saved, g: (g,))
        call = lambda: bp.grad(lambda x: again(x).sum())(bp.ones(3))
        """,
    "a hook that goes back": """
        def call():
            x = bp.ones(3).requires_grad_()
            def hook(g):
                with bp.enable_grad():
                    y = x * 2
                    y.register_hook(hook)
                    y.sum().backward()
            y = x * 2
            y.register_hook(hook)
            y.sum().backward()
        """,
    "gradients of themselves, without an op": """
        def again(x):
            return bp.grad(again)(x)
        call = lambda: again(bp.asarray(1.0))
        """,
    "levels within levels": """
        def again(x):
            return bp.grad(lambda v: again(v * v))(x).sum()
        call = lambda: again(bp.ones(3))
        """,
}


@pytest.mark.parametrize("limit", [1000, 1_000_000])
@pytest.mark.parametrize("name", RECURSIONS)
def test_recursion_without_end_is_an_error(name, limit):
    """By Python's limit, or where that is out of the way, by what is left of the stack; and the next call works."""
    found = run(textwrap.dedent(RECURSIONS[name]) + textwrap.dedent(f"""
        sys.setrecursionlimit({limit})
        for attempt in range(2):
            try:
                call()
            except (RecursionError, MemoryError) as error:
                print(type(error).__name__, str(error)[:200])
        print((bp.ones(2) + 1).tolist())
        """))
    assert found.count("Error") == 2 and found.endswith("[2.0, 2.0]\n")


@pytest.mark.parametrize("call", ["bp.tree.map(abs, deep)", "bp.tree.map(max, deep, deep)", "bp.grad(lambda x: x)(deep)", "bp.tree.structure(deep)",
                                  "bp.tree.leaves(deep)", "bp.vmap(lambda x: x, in_axes=(deep,))(deep)", "bp.jvp(lambda x: x, (deep,), (deep,))"])  # fmt: skip
@pytest.mark.parametrize("kind", ["[deep]", "(deep,)", "{'a': deep}"])
def test_a_container_without_end_is_an_error(call, kind):
    found = run(f"""
        sys.setrecursionlimit(10_000_000)
        deep = 1.0
        for _ in range(200_000):
            deep = {kind}
        try:
            {call}
        except (RecursionError, MemoryError) as error:
            print(type(error).__name__)
        print((bp.ones(2) + 1).tolist())
        import os; os._exit((sys.stdout.flush(), 0)[1])  # what Python itself does with such a list is not the matter
        """)
    assert found in ("OutOfMemoryError\n[2.0, 2.0]\n", "RecursionError\n[2.0, 2.0]\n"), found


@pytest.mark.parametrize("link", ["bp.from_numpy(x.numpy())", "bp.asarray(np.asarray(x)[:])", "bp.from_dlpack(np.from_dlpack(x))"])
def test_long_chains_of_borrowed_memory_end_one_after_the_other(link):
    """Each array holds the tensor before it, whose memory it shows."""
    found = run(f"""
        x = bp.ones(3)
        for _ in range(200_000):
            x = {link}
        print(x.tolist())
        del x
        print("ended")
        """)
    assert found == "[1.0, 1.0, 1.0]\nended\n"


def test_what_a_lender_holds_ends_at_once():
    """Its own code may count on it, as one that closes the file whose memory it lent does."""
    found = run("""
        import mmap
        class Table(np.ndarray):
            def __del__(self):
                if getattr(self, "file", None) is not None:
                    self.tensor = None
                    self.file.close()
                    print("closed")
        file = mmap.mmap(-1, 4096)
        table = np.ones(3).view(Table)
        table.file, table.tensor = file, bp.asarray(np.frombuffer(file, np.float64, 4), copy=False)
        x = bp.asarray(table, copy=False)
        del table
        del x
        """)
    assert found == "closed\n"


def test_functions_compiled_again_and_again_are_refused():
    found = run("""
        f = lambda x: x * 2
        for _ in range(200_000):
            f = bp.compile(f)
        try:
            f(bp.ones(()))
        except (RecursionError, MemoryError):
            print("refused")
        print(f.__name__)
        """)
    assert found == "refused\n<lambda>\n"


def test_a_kernel_may_nest_as_deep_as_python_allows():
    found = run("""
        @bp.custom_op("own::down")
        def down(x: bp.Tensor, n: int) -> bp.Tensor:
            return down(x, n - 1) + 1 if n else x + 0
        print(down(bp.zeros(1), 200).item())
        """)
    assert found == "200.0\n"


@pytest.mark.parametrize("stack", [SMALL_STACK, 4 * SMALL_STACK])
def test_every_op_on_little_stack(stack):
    """The samples of every entry, and their gradients: each runs, or says that the stack is too small, as the error says it is not
    from 256 KiB on."""
    done = subprocess.run([sys.executable, str(LAWS / "little_stack.py"), str(stack)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"status {done.returncode} after {done.stdout[-300:]}\n{done.stderr[-4000:]}"
    refused = [line for line in done.stdout.splitlines() if ": refused" in line]
    assert done.stdout.count(": ran") > (1.5 * len(refused) if stack == SMALL_STACK else 1000), done.stdout
    assert stack == SMALL_STACK or not refused, refused
    assert all("stack are left" in line for line in refused), refused


@pytest.mark.parametrize("within", ["tape", "grad", "jvp", "vmap"])
def test_long_chains_of_views_are_walked(within):
    """Without recursion, and without a walk per view: a quadratic time would be hours."""
    found = run(f"""
        def chain(x):
            y = x * 1
            bottom = y
            for _ in range(200_000):
                bottom = bottom[...]
            y *= 2
            bottom *= 3
            return (y + bottom).sum()
        x = bp.ones(3)
        if {within!r} == "tape":
            x.requires_grad_()
            chain(x).backward()
            print(x.grad.tolist())
        elif {within!r} == "grad":
            print(bp.grad(chain)(x).tolist())
        elif {within!r} == "jvp":
            print(bp.jvp(chain, (x,), (x,))[1].tolist())
        else:
            print(bp.vmap(chain)(bp.ones((2, 3))).tolist())
        """)
    assert found == {"jvp": "36.0\n", "vmap": "[36.0, 36.0]\n"}.get(within, "[12.0, 12.0, 12.0]\n")
