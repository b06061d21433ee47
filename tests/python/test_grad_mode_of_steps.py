"""Laws of no_grad and enable_grad on generators and coroutines: each step runs in the block, and nothing between the steps."""

import asyncio
import inspect

import backplane as bp
import pytest

MODES = {"no_grad": (bp.no_grad, True, False), "enable_grad": (bp.enable_grad, False, True)}
modes = pytest.mark.parametrize("mode", MODES)


def inside_and_outside(mode):
    block, outside, inside = MODES[mode]
    bp.set_grad_enabled(outside)
    return block, outside, inside


@pytest.fixture(autouse=True)
def recording_again():
    yield
    bp.set_grad_enabled(True)


@modes
def test_steps_of_a_generator(mode):
    block, outside, inside = inside_and_outside(mode)

    @block()
    def steps():
        for _ in range(3):
            yield bp.grad_enabled()
        return bp.grad_enabled()

    found, made = [], steps()
    try:
        while True:
            found.append(next(made))
            assert bp.grad_enabled() == outside
    except StopIteration as stop:
        assert found == [inside] * 3 and stop.value == inside
    assert inspect.isgeneratorfunction(steps)


@modes
def test_what_is_sent_and_thrown_arrives(mode):
    block, outside, inside = inside_and_outside(mode)

    @block
    def steps():
        sent = yield "first"
        try:
            yield sent, bp.grad_enabled()
        except KeyError:
            yield "caught", bp.grad_enabled()

    made = steps()
    assert next(made) == "first" and made.send(5) == (5, inside) and made.throw(KeyError()) == ("caught", inside)
    assert bp.grad_enabled() == outside
    with pytest.raises(ZeroDivisionError):
        made.throw(ZeroDivisionError())


@modes
def test_a_generator_that_is_closed_ends_in_the_block(mode):
    block, outside, inside = inside_and_outside(mode)
    found = []

    @block()
    def steps():
        try:
            yield 1
        finally:
            found.append(bp.grad_enabled())

    made = steps()
    next(made)
    made.close()
    assert found == [inside] and bp.grad_enabled() == outside


@modes
def test_steps_of_a_coroutine(mode):
    block, outside, inside = inside_and_outside(mode)
    found = []

    @block()
    async def steps():
        found.append(bp.grad_enabled())
        await asyncio.sleep(0)
        found.append(bp.grad_enabled())
        return "done"

    async def other():
        for _ in range(3):
            assert bp.grad_enabled() == outside
            await asyncio.sleep(0)

    async def main():
        return await asyncio.gather(steps(), other())

    assert asyncio.run(main())[0] == "done" and found == [inside] * 2 and inspect.iscoroutinefunction(steps)


@modes
def test_steps_of_an_asynchronous_generator(mode):
    block, outside, inside = inside_and_outside(mode)

    @block()
    async def steps():
        for _ in range(2):
            yield bp.grad_enabled()
            await asyncio.sleep(0)

    async def main():
        found = []
        async for value in steps():
            found.append((value, bp.grad_enabled()))
        return found

    assert asyncio.run(main()) == [(inside, outside)] * 2 and inspect.isasyncgenfunction(steps)


def test_gradients_of_a_generator_that_does_not_record():
    w = bp.asarray([1.0, 2.0])
    w.requires_grad = True

    @bp.no_grad()
    def steps():
        yield w * 2

    made = next(steps())
    assert not made.requires_grad and (w * 2).requires_grad
