"""Functions whose every step runs in a block, as of no_grad: generators and coroutines too, which leave it where they wait."""

from __future__ import annotations

import functools
import inspect

__all__ = ()


def in_block(block, function):
    """The function, run in a block that `block()` gives: of a generator or a coroutine each of its steps, and nothing between them."""
    if inspect.isasyncgenfunction(function):
        return _async_generator(block, function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            return await _Steps(block, function(*args, **kwargs))

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            return (yield from _steps(block, function(*args, **kwargs)))

    else:

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with block():
                return function(*args, **kwargs)

    return wrapped


def _steps(block, generator):
    """What the generator or coroutine yields and returns, each step in a block."""
    try:
        with block():
            value = generator.send(None)
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with block():
                    generator.close()
                raise
            except BaseException as error:
                with block():
                    value = generator.throw(error)
            else:
                with block():
                    value = generator.send(sent)
    except StopIteration as stop:
        return stop.value


class _Steps:
    """An awaitable of a coroutine, each step in a block."""

    def __init__(self, block, coroutine):
        self.block, self.coroutine = block, coroutine

    def __await__(self):
        return _steps(self.block, self.coroutine)


def _async_generator(block, function):
    @functools.wraps(function)
    async def wrapped(*args, **kwargs):
        generator = function(*args, **kwargs)
        try:
            value = await _Steps(block, generator.asend(None))
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    await _Steps(block, generator.aclose())
                    raise
                except BaseException as error:
                    value = await _Steps(block, generator.athrow(error))
                else:
                    value = await _Steps(block, generator.asend(sent))
        except StopAsyncIteration:
            return

    return wrapped
