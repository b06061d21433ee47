"""GGUF files: every type of the format's list that load reads, the metadata, and damaged files."""

import struct
import zlib

import numpy as np
import pytest

import backplane as bp

# (type number, name, elements and bytes of a block, CRC-32 of the float32 values that the Python package gguf 0.19 gives of _pattern)
QUANTISED = [
    (2, "Q4_0", 32, 18, 255559061),
    (3, "Q4_1", 32, 20, 2241037139),
    (6, "Q5_0", 32, 22, 3971980511),
    (7, "Q5_1", 32, 24, 3068306817),
    (8, "Q8_0", 32, 34, 746887397),
    (10, "Q2_K", 256, 84, 2400500698),
    (11, "Q3_K", 256, 110, 2716584212),
    (12, "Q4_K", 256, 144, 4002065551),
    (13, "Q5_K", 256, 176, 1472411024),
    (14, "Q6_K", 256, 210, 3700536347),
]
PLAIN = [(0, "<f4"), (1, "<f2"), (24, "<i1"), (25, "<i2"), (26, "<i4"), (27, "<i8"), (28, "<f8")]


def _pattern(count):
    return ((np.arange(count) * 37 + 11) % 251).astype(np.uint8).tobytes()


def _text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _file(path, tensors, entries=()):
    """tensors: (name, shape, type number, bytes); entries: (name, kind, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    for name, kind, data in entries:
        head += _text(name) + struct.pack("<I", kind) + data
    offset, body = 0, b""
    for name, shape, kind, data in tensors:
        head += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, offset)
        body += data + b"\0" * (-len(data) % 32)
        offset = len(body)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


@pytest.mark.parametrize(("kind", "name", "elements", "size", "crc"), QUANTISED, ids=[row[1] for row in QUANTISED])
def test_quantised_tensors_have_the_values_of_the_reference(kind, name, elements, size, crc, tmp_path):
    loaded = bp.load(_file(tmp_path / "a.gguf", [("w", (2, elements), kind, _pattern(2 * size))]))["w"]
    assert loaded.shape == (2, elements) and loaded.dtype == bp.float32
    assert zlib.crc32(loaded.numpy().tobytes()) == crc


def test_plain_tensors_and_metadata(tmp_path):
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal((2, 3, 5)) * 10).astype(code) for _, code in PLAIN]
    entries = [("general.name", 8, _text("né")), ("count", 4, struct.pack("<I", 7)), ("list", 9, struct.pack("<IQ3f", 6, 3, 1, 2, 3))]
    entries.append(("words", 9, struct.pack("<IQ", 8, 2) + _text("a") + _text("b")))
    path = _file(tmp_path / "a.gguf", [(code, x.shape, kind, x.tobytes()) for (kind, code), x in zip(PLAIN, arrays)], entries)
    loaded = bp.load(path)
    for (_, code), x in zip(PLAIN, arrays):
        np.testing.assert_array_equal(loaded[code].numpy(), x)
    lazy = bp.load(path, lazy=True)
    assert len(lazy) == len(PLAIN) and lazy.metadata == {"general.name": "né", "count": 7, "list": [1.0, 2.0, 3.0], "words": ["a", "b"]}
    half = bp.load(_file(tmp_path / "b.gguf", [("h", (2,), 30, b"\x80\x3f\x00\xc0")]))["h"]
    assert half.dtype == bp.bfloat16 and half.tolist() == [1.0, -2.0]


def test_a_type_that_is_not_read_is_named(tmp_path):
    path = _file(tmp_path / "a.gguf", [("w", (32,), 20, b"\0" * 18), ("v", (1,), 0, b"\0\0\x80\x3f")])
    with pytest.raises(bp.ArgumentValueError, match="tensor 'w': found GGUF's type number 20"):
        bp.load(path)
    assert bp.load(path, lazy=True)["v"].tolist() == [1.0]


def test_damaged_files_are_refused(tmp_path):
    entries = [("list", 9, struct.pack("<IQ3f", 6, 3, 1, 2, 3)), ("name", 8, _text("x"))]
    whole = _file(tmp_path / "a.gguf", [("w", (4,), 0, b"\0" * 16)], entries).read_bytes()
    damaged = tmp_path / "b.gguf"
    rng = np.random.default_rng(1)
    for size in range(4, len(whole) - 17):  # the last 16 bytes are padding
        damaged.write_bytes(whole[:size])
        with pytest.raises(bp.ArgumentValueError, match="GGUF"):
            bp.load(damaged)
    for _ in range(200):  # any byte of the header: refused, or read without another error
        data = bytearray(whole)
        data[rng.integers(4, 120)] = rng.integers(0, 256)
        damaged.write_bytes(data)
        try:
            bp.load(damaged)
        except bp.ArgumentValueError:
            pass


@pytest.mark.parametrize("damage", ["one name twice", "an alignment of 3", "an offset between blocks"])
def test_files_that_the_format_forbids_are_refused(damage, tmp_path):
    names = ("a", "a") if damage == "one name twice" else ("a", "b")
    entries = [("general.alignment", 4, struct.pack("<I", 3))] if damage == "an alignment of 3" else []
    path = _file(tmp_path / "a.gguf", [(name, (1,), 0, bytes(4)) for name in names], entries)
    if damage == "an offset between blocks":
        path.write_bytes(path.read_bytes().replace(struct.pack("<IQ", 0, 32), struct.pack("<IQ", 0, 4)))
    with pytest.raises(bp.ArgumentValueError, match="a.gguf"):
        bp.load(path)
