"""GGUF's quantised types: how a block of bytes becomes numbers. The layouts are those of ggml-org/ggml, src/ggml-common.h."""

from __future__ import annotations

from collections import namedtuple

__all__ = []

_Type = namedtuple("_Type", "name elements size read")


class Block(_Type):
    """One type: its name, the elements and the bytes of a block, and the function of (blocks, bytes) that gives (blocks, elements)."""

    def values(self, data):
        """A float32 array of all elements."""
        import numpy as np

        blocks = np.frombuffer(data, np.uint8).reshape(-1, self.size)
        return self.read(np, blocks).astype(np.float32, copy=False).reshape(-1)


def _half(np, blocks, at):
    """The float16 at a byte of each block, as a column of float32."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(np, qs):
    return np.concatenate([qs & 15, qs >> 4], axis=1).astype(np.float32)


def _fifth_bits(np, qh):
    """(blocks, 32): bit j of the four bytes, times 16."""
    return np.unpackbits(qh, axis=1, bitorder="little").astype(np.float32) * 16


def _q4_0(np, b):
    return _half(np, b, 0) * (_nibbles(np, b[:, 2:]) - 8)


def _q4_1(np, b):
    return _half(np, b, 0) * _nibbles(np, b[:, 4:]) + _half(np, b, 2)


def _q5_0(np, b):
    return _half(np, b, 0) * (_nibbles(np, b[:, 6:]) + _fifth_bits(np, b[:, 2:6]) - 16)


def _q5_1(np, b):
    return _half(np, b, 0) * (_nibbles(np, b[:, 8:]) + _fifth_bits(np, b[:, 4:8])) + _half(np, b, 2)


def _q8_0(np, b):
    return _half(np, b, 0) * b[:, 2:].view(np.int8)


def _crumbs(np, qs):
    """(blocks, 2, 4, 32) two-bit numbers: of each half of the 64 bytes, those at each of the four places."""
    halves = qs.reshape(-1, 2, 1, 32)
    return (halves >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3


def _q2_k(np, b):
    scales = b[:, :16].reshape(-1, 2, 4, 2, 1)
    q = _crumbs(np, b[:, 16:80]).reshape(-1, 2, 4, 2, 16)
    d, least = (_half(np, b, at).reshape(-1, 1, 1, 1, 1) for at in (80, 82))
    return (d * (scales & 15)) * q - least * (scales >> 4)


def _q3_k(np, b):
    packed = b[:, 96:108]
    low = np.concatenate([packed[:, :8] & 15, packed[:, :8] >> 4], axis=1)
    high = (packed[:, None, 8:] >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3
    scales = (low | high.reshape(-1, 16) << 4).astype(np.float32) - 32
    third = (b[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    q = _crumbs(np, b[:, 32:96]).astype(np.float32) - 4 * (1 - third.reshape(-1, 2, 4, 32).astype(np.float32))
    return _half(np, b, 108).reshape(-1, 1, 1) * scales[:, :, None] * q.reshape(-1, 16, 16)


def _scales_and_least(np, s):
    """(blocks, 8) each: eight scales and eight offsets of six bits, in twelve bytes."""
    first, second, third = s[:, :4], s[:, 4:8], s[:, 8:]
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], axis=1)
    least = np.concatenate([second & 63, (third >> 4) | (second >> 6) << 4], axis=1)
    return scales.astype(np.float32), least.astype(np.float32)


def _of_eight(np, b, q):
    """q: (blocks, 8, 32), each part with a scale and an offset."""
    scales, least = _scales_and_least(np, b[:, 4:16])
    return (_half(np, b, 0) * scales)[:, :, None] * q - (_half(np, b, 2) * least)[:, :, None]


def _q4_k(np, b):
    qs = b[:, 16:].reshape(-1, 4, 1, 32)
    return _of_eight(np, b, np.concatenate([qs & 15, qs >> 4], axis=2).reshape(-1, 8, 32).astype(np.float32))


def _q5_k(np, b):
    qs = b[:, 48:].reshape(-1, 4, 1, 32)
    fifth = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]) & 1
    q = np.concatenate([qs & 15, qs >> 4], axis=2).reshape(-1, 8, 32) | fifth << 4
    return _of_eight(np, b, q.astype(np.float32))


def _q6_k(np, b):
    ql = b[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([ql & 15, ql >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = _crumbs(np, b[:, 128:192])
    q = (low | high << 4).astype(np.float32) - 32
    scales = b[:, 192:208].view(np.int8).astype(np.float32)
    return _half(np, b, 208).reshape(-1, 1, 1) * scales[:, :, None] * q.reshape(-1, 16, 16)


BLOCKS = {
    2: Block("Q4_0", 32, 18, _q4_0),
    3: Block("Q4_1", 32, 20, _q4_1),
    6: Block("Q5_0", 32, 22, _q5_0),
    7: Block("Q5_1", 32, 24, _q5_1),
    8: Block("Q8_0", 32, 34, _q8_0),
    10: Block("Q2_K", 256, 84, _q2_k),
    11: Block("Q3_K", 256, 110, _q3_k),
    12: Block("Q4_K", 256, 144, _q4_k),
    13: Block("Q5_K", 256, 176, _q5_k),
    14: Block("Q6_K", 256, 210, _q6_k),
}
