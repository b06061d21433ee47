"""Laws of settings that a block makes: they belong to the context in which it was entered, and no exception leaves one behind."""

import asyncio
import contextvars
import signal
import threading
import time

import backplane as bp
import pytest



# name: (a block that sets it, a function that reads it, the value inside). The value outside differs.
BLOCKS = {
    "no_grad": (lambda: bp.no_grad(), bp.grad_enabled, False),
    "inference_mode": (lambda: bp.inference_mode(), bp.grad_enabled, False),
    "set_grad_enabled": (lambda: bp.set_grad_enabled(False), bp.grad_enabled, False),
    "default_dtype": (lambda: bp.default_dtype(bp.float64), bp.default_dtype, bp.float64),
    "host_fallback": (lambda: bp.host_fallback("forbid"), lambda: str(bp.host_fallback()), "forbid"),
    "allow_host_fallback": (lambda: bp.allow_host_fallback(False), lambda: str(bp.host_fallback()), "forbid"),
    "printoptions": (lambda: bp.printoptions(precision=2), lambda: bp.get_printoptions()["precision"], 2),
}
# What calls make of it, seen in a result.
RESULTS = {
    "no_grad": lambda x: (x * 2).requires_grad,
    "inference_mode": lambda x: x.sum().requires_grad,
    "set_grad_enabled": lambda x: x[1:].requires_grad,
    "default_dtype": lambda x: bp.asarray([0.5]).dtype,
}
each = pytest.mark.parametrize("name", BLOCKS)


@pytest.fixture
def x():
    return bp.ones(3).requires_grad_()


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = [read() for _, read, _ in BLOCKS.values()]
    yield
    assert [read() for _, read, _ in BLOCKS.values()] == before


def run(*tasks):
    async def together():
        return await asyncio.gather(*(task() for task in tasks))

    return asyncio.run(together())


@each
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first in first out", "nested"])
def test_tasks_with_overlapping_blocks_see_their_own(name, order, x):
    block, read, inside = BLOCKS[name]
    outside, seen = read(), {}
    of_result = RESULTS.get(name, lambda x: None)
    want_in, want_out = (inside, None), (outside, None)
    if name in RESULTS:
        with block():
            want_in = (inside, of_result(x))
        want_out = (outside, of_result(x))
        assert want_in[1] != want_out[1]

    def note(who):
        seen.setdefault(who, []).append((read(), of_result(x)))

    async def switch():
        for _ in range(3):
            await asyncio.sleep(0)

    steps = [asyncio.Event() for _ in range(3)]

    async def task(who):
        note(who)
        if who == 1:
            await steps[0].wait()
        with block():
            note(who)
            steps[0].set()
            await switch()
            note(who)
            await (steps[1].wait() if order[0] != who else switch())
            note(who)
        steps[1].set()
        note(who)
        await switch()
        note(who)

    async def bystander():
        for _ in range(12):
            note("bystander")
            await asyncio.sleep(0)

    run(lambda: task(0), lambda: task(1), bystander)
    for who in (0, 1):
        assert seen[who] == [want_out, want_in, want_in, want_in, want_out, want_out]
    assert set(seen["bystander"]) == {want_out}


@each
def test_threads_do_not_see_each_others_blocks(name):
    block, read, _ = BLOCKS[name]
    outside, seen = read(), []
    with block():
        thread = threading.Thread(target=lambda: seen.append(read()))
        thread.start()
        thread.join()
    assert seen == [outside]


@each
def test_a_copied_context_has_the_blocks_it_was_copied_in(name):
    block, read, inside = BLOCKS[name]
    with block():
        copied = contextvars.copy_context()

        async def in_thread():
            return await asyncio.to_thread(read), await asyncio.create_task(asyncio.to_thread(read))

        assert asyncio.run(in_thread()) == (inside, inside)
    assert read() != inside and copied.run(read) == inside and read() != inside


@each
def test_generators_that_end_in_another_order_restore_their_own(name):
    if name == "printoptions":
        pytest.skip("restores what was before")
    block, read, inside = BLOCKS[name]
    outside = read()

    def hold():
        with block():
            yield

    first, second = hold(), hold()
    next(first), next(second)
    first.close()
    assert read() == inside
    second.close()
    assert read() == outside


def test_blocks_of_several_settings_end_in_any_order():
    def hold(name):
        with BLOCKS[name][0]():
            yield

    names = ["no_grad", "default_dtype", "host_fallback"]
    for first in names:
        held = {name: hold(name) for name in names}
        for generator in held.values():
            next(generator)
        held.pop(first).close()
        assert [BLOCKS[name][1]() == BLOCKS[name][2] for name in names] == [name != first for name in names]
        for generator in held.values():
            generator.close()


class Interrupt(Exception):
    pass


@each
def test_an_interrupt_leaves_no_setting_behind(name):
    """A handler raises at some bytecode of a block: before, in or behind it, and in what makes it."""
    block, read, _ = BLOCKS[name]
    outside, interrupted = read(), 0

    def handler(signum, frame):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        end = time.monotonic() + 0.7
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + interrupted % 50 * 1e-6)
                while True:
                    with block():
                        pass
            except Interrupt:
                interrupted += 1
            assert read() == outside, f"after {interrupted} interrupts"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 100


@each
def test_an_exception_ends_the_block(name):
    block, read, inside = BLOCKS[name]
    outside = read()
    with pytest.raises(ZeroDivisionError), block():
        assert read() == inside
        1 / 0
    assert read() == outside


def test_one_object_serves_for_blocks_within_one_another():
    mode = bp.no_grad()
    with mode:
        with mode, bp.enable_grad(), mode:
            assert not bp.grad_enabled()
        assert not bp.grad_enabled()
    device = bp.device("cpu")
    with device, device:
        assert bp.default_device() == device


def test_a_setter_without_a_block_is_of_all_threads():
    def in_thread():
        seen = []
        thread = threading.Thread(target=lambda: seen.append(bp.asarray([0.5]).dtype))
        thread.start()
        thread.join()
        return seen[0]

    try:
        bp.default_dtype(bp.float64)
        assert (bp.default_dtype(), in_thread()) == (bp.float64, bp.float64)
        bp.set_default_dtype(bp.float16)
        assert in_thread() == bp.float16
        kept = bp.default_dtype(bp.float64)
        with kept:
            assert bp.default_dtype() == bp.float64
        assert (bp.default_dtype(), in_thread()) == (bp.float16, bp.float16)
        repr(bp.default_dtype(bp.float64))
        assert in_thread() == bp.float64
    finally:
        bp.set_default_dtype(bp.float32)
    assert in_thread() == bp.float32


def test_a_setter_in_a_block_is_undone_with_it():
    with bp.no_grad():
        bp.set_grad_enabled(True)
        assert bp.grad_enabled()
        bp.set_grad_enabled(False)
        bp.set_grad_enabled(True)
        assert bp.grad_enabled()
    assert bp.grad_enabled()
    with bp.enable_grad():
        bp.set_grad_enabled(False)
        assert not bp.grad_enabled()
    assert bp.grad_enabled()
    with bp.default_dtype(bp.float64):
        bp.set_default_dtype(bp.float16)
        assert bp.default_dtype() == bp.float16
    assert bp.default_dtype() == bp.float32


def test_a_kept_old_setting_sets_it_back():
    old = bp.set_grad_enabled(False)
    assert not bp.grad_enabled() and old
    older = bp.set_grad_enabled(old)
    assert bp.grad_enabled() and not older
    del old, older
    assert bp.grad_enabled()


def test_a_hook_of_the_backward_pass_has_the_blocks_it_opens(x):
    seen = []

    def hook(gradient):
        seen.append(bp.grad_enabled())
        with bp.enable_grad():
            seen.append(bp.grad_enabled())
            with bp.no_grad():
                seen.append(bp.grad_enabled())
            seen.append(bp.grad_enabled())
        seen.append(bp.grad_enabled())

    with bp.enable_grad():
        x.register_hook(hook)
        (x * x).sum().backward()
        assert bp.grad_enabled()
    assert seen == [False, True, False, True, False]


def test_transforms_record_inside_a_block_around_them(x):
    with bp.no_grad():
        assert bp.grad(lambda v: (v * v).sum())(bp.ones(2)).tolist() == [2, 2]

        def off(v):
            with bp.no_grad():
                still = v * 3
            return (v * still).sum()

        assert bp.grad(off)(bp.ones(2)).tolist() == [3, 3]
        assert not bp.grad_enabled()
