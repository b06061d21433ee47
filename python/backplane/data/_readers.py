"""Readers of common files of data: IDX, CSV, images and sound. Each gives tensors on the CPU."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import DType, Tensor

__all__ = ["read_csv", "read_idx", "read_image", "read_wav"]

_IDX_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MODES = {"L": 1, "RGB": 3, "RGBA": 4}


def read_idx(path: str | os.PathLike[str]) -> Tensor:
    """The array of an IDX file, the format of MNIST. A file that is compressed with gzip is decompressed.

    Returns a tensor of the file's shape and dtype: uint8, int8, int16, int32, float32 or float64.
    Errors: ArgumentValueError for a file of another format, or of another size than its header says.
    """
    import gzip

    import numpy

    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    kind, axes = (data[2], data[3]) if len(data) >= 4 and data[:2] == b"\0\0" else (0, 0)
    start = 4 + 4 * axes
    if kind not in _IDX_DTYPES or len(data) < start:
        raise bp.ArgumentValueError(f"read_idx: {os.fspath(path)}: found a file that begins with {data[:4].hex()}, expected an IDX file")
    shape = [int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4)]
    dtype = numpy.dtype(_IDX_DTYPES[kind])
    if len(data) - start != math.prod(shape) * dtype.itemsize:
        raise bp.ArgumentValueError(
            f"read_idx: {os.fspath(path)}: found {len(data) - start} bytes of elements, expected {math.prod(shape) * dtype.itemsize} for the shape {tuple(shape)}"
        )
    return bp.asarray(numpy.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("=")))


def read_csv(
    path: str | os.PathLike[str], *, delimiter: str = ",", header: bool | None = None, columns: Sequence[int | str] | None = None,
    dtype: DType | str | None = None,
) -> dict[str, Tensor] | Tensor:  # fmt: skip
    """The numbers of a CSV file.

    header: whether the first row has the names of the columns; None: it does if one of its fields is not a number.
    columns: the names or positions of the columns to read; None reads all. An empty field is a NaN.
    Returns a tensor (rows, columns); with a header, a dict of tensors (rows,) by name. dtype: by default the default floating dtype.
    Errors: ArgumentValueError for a field that is not a number, a row of another length, or an unknown column, with its place;
        DtypeError for an empty field of an integer dtype.
    """
    import csv

    dtype = bp.default_dtype() if dtype is None else bp._core.as_dtype(dtype, "read_csv")
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=delimiter)
        rows = [(reader.line_num, row) for row in reader if row]
    if header is None:
        header = bool(rows) and not all(_is_number(field) for field in rows[0][1])
    names = [field.strip() for field in rows.pop(0)[1]] if header and rows else []
    if len(set(names)) != len(names):
        raise bp.ArgumentValueError(f"read_csv: {os.fspath(path)}: found two columns of one name in {names}; pass header=False and skip the row, or rename one")
    width = len(names) or (len(rows[0][1]) if rows else 0)
    wanted = [_position(column, names, width) for column in (range(width) if columns is None else columns)]
    if dtype.kind not in ("real floating", "signed integer", "unsigned integer"):
        raise bp.DtypeError(f"read_csv: argument dtype: found {dtype.name}, expected an integer or real floating dtype")
    read = float if dtype.kind == "real floating" else int
    table: list[list[Any]] = [[] for _ in wanted]
    for line, row in rows:
        if len(row) != width:
            raise bp.ArgumentValueError(f"read_csv: {os.fspath(path)}, line {line}: found {len(row)} fields, expected {width}")
        for values, i in zip(table, wanted):
            values.append(_number(row[i], read, dtype, f"{os.fspath(path)}, line {line}, column {names[i] if names else i}"))
    if names:
        return {names[i]: bp.asarray(values, dtype=dtype) for i, values in zip(wanted, table)}
    return bp.asarray(table, dtype=dtype).T if rows and wanted else bp.zeros((len(rows), len(wanted)), dtype=dtype)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return not field.strip()
    return True


def _position(column: int | str, names: list[str], width: int) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and -width <= column < width:
        return column % width
    raise bp.ArgumentValueError(f"read_csv: argument columns: found {column!r}, expected {'one of ' + str(names) if names else f'a position below {width}'}")


def _number(field: str, read: Any, dtype: DType, place: str) -> Any:
    text = field.strip()
    if not text:
        if read is int:
            raise bp.DtypeError(f"read_csv: {place}: found an empty field, which {dtype.name} cannot represent; read a floating dtype")
        return math.nan
    try:
        return read(text)
    except ValueError:
        raise bp.ArgumentValueError(
            f"read_csv: {place}: found {text!r}, expected {'an integer' if read is int else 'a number'}; columns= chooses the columns to read"
        ) from None


def read_image(path: str | os.PathLike[str], mode: str = "RGB") -> Tensor:
    """The pixels of an image file, uint8 (channels, height, width). It needs Pillow, which decides about the formats.

    mode: "RGB", "L" (grey) or "RGBA"; other images are converted. A photograph is turned upright as its EXIF data says.
    Errors: ImportError without Pillow; ArgumentValueError for another mode, or a file that Pillow cannot read.
    """
    if mode not in _MODES:
        raise bp.ArgumentValueError(f"read_image: argument mode: found {mode!r}, expected 'RGB', 'L' or 'RGBA'")
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise ImportError("read_image: Pillow is not installed; run: pip install pillow") from None
    import numpy

    try:
        with Image.open(path) as image:
            pixels = numpy.array(ImageOps.exif_transpose(image).convert(mode))
    except UnidentifiedImageError:
        raise bp.ArgumentValueError(f"read_image: {os.fspath(path)}: found a file that is not an image in one of Pillow's formats") from None
    return bp.asarray(pixels.reshape((*pixels.shape[:2], _MODES[mode]))).permute_dims((2, 0, 1)).contiguous()


def read_wav(path: str | os.PathLike[str]) -> tuple[Tensor, int]:
    """(samples, rate): the sound of a WAV file of integers, float32 (channels, frames) from -1 to 1, and the frames per second.

    Errors: ArgumentValueError for a file of another format.
    """
    import wave

    import numpy

    try:
        with wave.open(os.fspath(path), "rb") as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise bp.ArgumentValueError(f"read_wav: {os.fspath(path)}: found a file that cannot be read ({error}), expected a WAV file of integers") from None
    data = data[: len(data) // (width * channels) * width * channels]
    if width == 1:
        samples = (numpy.frombuffer(data, numpy.uint8).astype(numpy.float32) - 128) / 128
    elif width == 3:
        bytes_ = numpy.frombuffer(data, numpy.uint8).reshape(-1, 3)
        wide = numpy.concatenate([numpy.zeros((len(bytes_), 1), numpy.uint8), bytes_], axis=1)  # the sample as the upper bytes of an int32
        samples = wide.reshape(-1).view("<i4").astype(numpy.float64) / 2**31
    else:
        samples = numpy.frombuffer(data, f"<i{width}").astype(numpy.float64) / 2 ** (8 * width - 1)
    return bp.asarray(samples.astype(numpy.float32).reshape(-1, channels).T.copy()), rate
