"""Readers of files: IDX, CSV, images and WAV."""

import gzip
import wave

import numpy as np
import pytest

import backplane as bp
from backplane.data import read_csv, read_idx, read_image, read_wav


def _idx(array, kind):
    return bytes([0, 0, kind, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize(("kind", "dtype"), [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")])
def test_idx(kind, dtype, tmp_path):
    array = (np.arange(24).reshape(2, 3, 4) - (0 if kind == 8 else 12)).astype(dtype)
    (tmp_path / "a").write_bytes(_idx(array, kind))
    (tmp_path / "a.gz").write_bytes(gzip.compress(_idx(array, kind)))
    for name in ("a", "a.gz"):
        found = read_idx(tmp_path / name)
        assert found.dtype.name == array.dtype.name
        np.testing.assert_array_equal(found.numpy(), array)


@pytest.mark.parametrize("data", [b"", b"\0\0\x08", b"PK12", bytes([0, 0, 8, 1, 0, 0, 0, 9]), bytes([0, 0, 8, 1, 0, 0, 0, 1, 1, 1])])
def test_a_file_that_is_not_idx_is_refused(data, tmp_path):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(bp.ArgumentValueError, match="read_idx"):
        read_idx(tmp_path / "a")


def test_csv_with_and_without_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,2,x\n3,,y\n")
    found = read_csv(path, columns=["b", "a"])
    assert list(found) == ["b", "a"] and found["a"].tolist() == [1, 3] and np.isnan(found["b"].numpy()).tolist() == [False, True]
    path.write_text("1;2\n\n3;4\n")
    assert read_csv(path, delimiter=";").tolist() == [[1, 2], [3, 4]]
    assert read_csv(path, delimiter=";", dtype=bp.int64, columns=[-1]).dtype == bp.int64
    assert read_csv(path, delimiter=";", header=True)["2"].tolist() == [4]


@pytest.mark.parametrize(
    ("text", "options", "error", "words"),
    [
        ("a,b\n1,x\n", {}, bp.ArgumentValueError, "line 2, column b: found 'x'"),
        ("1,2\n3\n", {}, bp.ArgumentValueError, "line 2: found 1 fields, expected 2"),
        ("a,b\n1,2\n", {"columns": ["z"]}, bp.ArgumentValueError, "found 'z'"),
        ("a,a\n1,2\n", {}, bp.ArgumentValueError, "two columns of one name"),
        ("a,b\n1,\n", {"dtype": "int32"}, bp.DtypeError, "empty field"),
        ("1,2\n", {"dtype": "complex64"}, bp.DtypeError, "complex64"),
    ],
)
def test_csv_says_where_it_cannot_be_read(text, options, error, words, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=words):
        read_csv(tmp_path / "a.csv", **options)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wav(width, tmp_path):
    samples = np.array([[0, 0.5], [-0.5, 0.25], [-1, 0.875]])
    numbers = (samples * 2 ** (8 * width - 1)).astype(np.int64).reshape(-1) + (128 if width == 1 else 0)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(b"".join(int(n).to_bytes(width, "little", signed=width > 1) for n in numbers))
    found, rate = read_wav(tmp_path / "a.wav")
    assert rate == 8000 and found.dtype == bp.float32
    np.testing.assert_array_equal(found.numpy(), samples.T.astype(np.float32))
    (tmp_path / "b.wav").write_bytes(b"RIFF")
    with pytest.raises(bp.ArgumentValueError, match="read_wav"):
        read_wav(tmp_path / "b.wav")


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_image(tmp_path / "a.png").numpy(), pixels.transpose(2, 0, 1))
    assert read_image(tmp_path / "a.png", "L").shape == (1, 5, 7) and read_image(tmp_path / "a.png", "RGBA").shape == (4, 5, 7)
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(bp.ArgumentValueError, match="not an image"):
        read_image(tmp_path / "b.png")


def test_an_unknown_mode_of_images_is_refused():
    with pytest.raises(bp.ArgumentValueError, match="'CMYK'"):
        read_image("a.png", "CMYK")
