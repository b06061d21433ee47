"""Transforms of images: (..., channels, height, width), one image or a batch, each image of a batch with random numbers of its own.

    augment = bp.data.transforms.Compose([
        bp.data.transforms.ToFloat(), bp.data.transforms.RandomCrop(32, padding=4), bp.data.transforms.RandomHorizontalFlip(),
    ])
    x = augment(images)

They are functions of tensors, on any device, and may be part of a compiled function. Random ones take a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from .._calls._ops import refuse_names as _refuse_names

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "Normalize", "RandomAffine", "RandomCrop", "RandomErasing", "RandomHorizontalFlip",
    "RandomVerticalFlip", "Resize", "ToFloat",
]  # fmt: skip
__dir__ = __all__.copy


def _pair(name: str, size: Any) -> tuple[int, int]:
    pair = (size, size) if hasattr(size, "__index__") else tuple(size)
    if len(pair) != 2 or any(n < 1 for n in pair):
        raise bp.ArgumentValueError(f"{name}: argument size: found {size!r}, expected a number of pixels, or (height, width)")
    return (int(pair[0]), int(pair[1]))


def _images(name: str, x: Tensor, floating: bool = False) -> Tensor:
    """x as (batch, channels, height, width)."""
    if x.ndim < 3:
        raise bp.ShapeError(f"{name}: found a tensor of shape {tuple(x.shape)}, expected (..., channels, height, width)")
    if floating and x.dtype.kind != "real floating":
        raise bp.DtypeError(f"{name}: found {x.dtype.name}, expected a floating dtype; use ToFloat first")
    return x.reshape((-1, *x.shape[-3:]))


class _Random:
    """A transform that draws numbers. generator: None takes the default generator."""

    def __init__(self, generator: Generator | None) -> None:
        self._how = {} if generator is None else {"generator": generator}

    def _uniform(self, x: Tensor, low: float, high: float, *shape: int, dtype: Any = None) -> Tensor:
        return bp.uniform((x.shape[0], *shape), low=low, high=high, dtype=dtype or bp.float32, device=x.device, **self._how)

    def _chosen(self, x: Tensor, p: float) -> Tensor:
        """Of each image whether it is changed."""
        return (self._uniform(x, 0.0, 1.0) < p)[:, None, None, None]


def _probability(name: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise bp.ArgumentValueError(f"{name}: argument p: found {p}, expected a probability from 0 to 1")
    return p


class Compose:
    """One transform after the other."""

    def __init__(self, transforms: Iterable[Callable[[Tensor], Tensor]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x


class ToFloat:
    """uint8 from 0 to 255 as floats from 0 to 1; floats stay as they are."""

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = bp.default_dtype() if dtype is None else dtype

    def __call__(self, x: Tensor) -> Tensor:
        if "floating" in x.dtype.kind:
            return x.astype(self.dtype)
        if x.dtype != bp.uint8:
            raise bp.DtypeError(f"ToFloat: found {x.dtype.name}, expected uint8 or a floating dtype")
        return x.astype(self.dtype) / 255


class Normalize:
    """(x - mean) / std, with a number per channel."""

    def __init__(self, mean: Sequence[float] | float, std: Sequence[float] | float) -> None:
        self.mean, self.std = ([value] if isinstance(value, (int, float)) else list(value) for value in (mean, std))
        if any(value <= 0 for value in self.std):
            raise bp.ArgumentValueError(f"Normalize: argument std: found {std}, expected numbers above 0")

    def __call__(self, x: Tensor) -> Tensor:
        _images("Normalize", x, floating=True)
        for word, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, x.shape[-3]):
                raise bp.ShapeError(f"Normalize: argument {word}: found {len(values)} numbers, expected one per channel, {x.shape[-3]}")
        mean, std = (bp.asarray(values, dtype=x.dtype, device=x.device).reshape((-1, 1, 1)) for values in (self.mean, self.std))
        return (x - mean) / std


class CenterCrop:
    """The middle of each image, of this size. Errors: ShapeError for smaller images."""

    def __init__(self, size: Any) -> None:
        self.size = _pair("CenterCrop", size)

    def __call__(self, x: Tensor) -> Tensor:
        _images("CenterCrop", x)
        (height, width), (h, w) = x.shape[-2:], self.size
        _fits("CenterCrop", (height, width), self.size)
        top, left = (height - h) // 2, (width - w) // 2
        return x[..., top : top + h, left : left + w]


def _fits(name: str, found: tuple[int, int], size: tuple[int, int]) -> None:
    if found[0] < size[0] or found[1] < size[1]:
        raise bp.ShapeError(f"{name}: found images of {found[0]} by {found[1]} pixels, expected at least {size[0]} by {size[1]}; use Resize or padding")


class Resize:
    """Each image with this height and width. mode: "bilinear", "bicubic", "nearest" or "area"; antialias: as in PyTorch's interpolate."""

    def __init__(self, size: Any, mode: str = "bilinear", antialias: bool = True) -> None:
        self.size, self.mode = _pair("Resize", size), mode
        self.antialias = antialias and mode in ("bilinear", "bicubic")

    def __call__(self, x: Tensor) -> Tensor:
        images = _images("Resize", x, floating=True)
        made = bp.nn.functional.interpolate(images, size=self.size, mode=self.mode, antialias=self.antialias)
        return made.reshape((*x.shape[:-2], *self.size))


class RandomCrop(_Random):
    """A part of this size at a random place. padding: zeros around each image first, in pixels."""

    def __init__(self, size: Any, padding: int = 0, *, generator: Generator | None = None) -> None:
        super().__init__(generator)
        self.size, self.padding = _pair("RandomCrop", size), padding

    def __call__(self, x: Tensor) -> Tensor:
        images = _images("RandomCrop", x)
        p = self.padding
        if p:
            images = bp.pad(images, ((0, 0), (0, 0), (p, p), (p, p)))
        (height, width), (h, w) = images.shape[-2:], self.size
        _fits("RandomCrop", (height, width), self.size)
        index = []
        for many, few in ((height, h), (width, w)):
            first = bp.floor(self._uniform(images, 0.0, 1.0, dtype=bp.float64) * (many - few + 1)).astype(bp.int64)
            index.append(bp.clip(first, 0, many - few)[:, None] + bp.arange(few, device=x.device))
        rows, columns = index[0][:, None, :, None], index[1][:, None, None, :]
        images = bp.take_along_axis(images, bp.broadcast_to(rows, (*images.shape[:2], h, width)), axis=2)
        images = bp.take_along_axis(images, bp.broadcast_to(columns, (*images.shape[:3], w)), axis=3)
        return images.reshape((*x.shape[:-2], h, w))


class _RandomFlip(_Random):
    axis = -1

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None) -> None:
        super().__init__(generator)
        self.p = _probability(type(self).__name__, p)

    def __call__(self, x: Tensor) -> Tensor:
        images = _images(type(self).__name__, x)
        return bp.where(self._chosen(images, self.p), bp.flip(images, axis=self.axis), images).reshape(x.shape)


class RandomHorizontalFlip(_RandomFlip):
    """Left and right exchanged, of each image with probability p."""


class RandomVerticalFlip(_RandomFlip):
    """Top and bottom exchanged, of each image with probability p."""

    axis = -2


class RandomErasing(_Random):
    """A rectangle of zeros in each image with probability p: scale is the range of its share of the area, ratio of its height by its width."""

    def __init__(
        self, p: float = 0.5, scale: tuple[float, float] = (0.02, 0.33), ratio: tuple[float, float] = (0.3, 3.3), *, generator: Generator | None = None
    ) -> None:
        super().__init__(generator)
        self.p, self.scale, self.ratio = _probability("RandomErasing", p), scale, ratio

    def __call__(self, x: Tensor) -> Tensor:
        import math

        images = _images("RandomErasing", x)
        height, width = images.shape[-2:]
        area = self._uniform(images, *self.scale) * (height * width)
        ratio = bp.exp(self._uniform(images, math.log(self.ratio[0]), math.log(self.ratio[1])))
        inside = self._chosen(images, self.p)
        for axis, size, length in ((-2, height, bp.sqrt(area * ratio)), (-1, width, bp.sqrt(area / ratio))):
            length = bp.clip(bp.round(length), 1, size)
            first = bp.floor(self._uniform(images, 0.0, 1.0) * (size - length + 1))
            at = bp.arange(size, dtype=bp.float32, device=x.device)
            one = (at >= first[:, None]) & (at < (first + length)[:, None])
            inside = inside & (one[:, None, :, None] if axis == -2 else one[:, None, None, :])
        return bp.where(inside, bp.zeros_like(images), images).reshape(x.shape)


class RandomAffine(_Random):
    """Each image turned, moved and scaled at random around its middle; what comes from outside is zero.

    degrees: the largest angle, or (least, most). translate: the largest shares of height and width. scale: the range of the factor.
    """

    def __init__(
        self, degrees: float | tuple[float, float] = 0.0, translate: tuple[float, float] = (0.0, 0.0), scale: tuple[float, float] = (1.0, 1.0), *,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__(generator)
        if scale[0] <= 0 or scale[1] < scale[0]:
            raise bp.ArgumentValueError(f"RandomAffine: argument scale: found {scale}, expected (least, most), both above 0")
        angles = tuple(degrees) if isinstance(degrees, (tuple, list)) else (-degrees, degrees)
        if len(angles) != 2 or angles[1] < angles[0]:
            raise bp.ArgumentValueError(f"RandomAffine: argument degrees: found {degrees}, expected a number of at least 0, or (least, most)")
        self.degrees, self.translate, self.scale = angles, translate, scale

    def __call__(self, x: Tensor) -> Tensor:
        import math

        images = _images("RandomAffine", x, floating=True)
        height, width = images.shape[-2:]
        least, most = (degrees * math.pi / 180 for degrees in self.degrees)
        angle = self._uniform(images, 0.0, 1.0) * (most - least) + least
        factor = self._uniform(images, 0.0, 1.0) * (self.scale[1] - self.scale[0]) + self.scale[0]
        down, right = (self._uniform(images, -1.0, 1.0) * (2 * share) for share in self.translate)
        cos, sin = bp.cos(angle) / factor, bp.sin(angle) / factor
        aspect = height / width  # the grid goes from -1 to 1 along both axes
        theta = bp.stack([cos, sin * aspect, -right, -sin / aspect, cos, -down], axis=-1).reshape((-1, 2, 3)).astype(images.dtype)
        grid = bp.nn.functional.affine_grid(theta, images.shape, align_corners=False)
        return bp.nn.functional.grid_sample(images, grid, align_corners=False).reshape(x.shape)


class ColorJitter(_Random):
    """Brightness, contrast and saturation of each image times a random factor from 1 - amount to 1 + amount; floats from 0 to 1, RGB."""

    def __init__(self, brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, *, generator: Generator | None = None) -> None:
        super().__init__(generator)
        for word, amount in (("brightness", brightness), ("contrast", contrast), ("saturation", saturation)):
            if not 0 <= amount <= 1:
                raise bp.ArgumentValueError(f"ColorJitter: argument {word}: found {amount}, expected a number from 0 to 1")
        self.brightness, self.contrast, self.saturation = brightness, contrast, saturation

    def _factor(self, x: Tensor, amount: float) -> Tensor:
        return self._uniform(x, 1 - amount, 1 + amount, 1, 1, 1).astype(x.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        images = _images("ColorJitter", x, floating=True)
        if images.shape[1] != 3:
            raise bp.ShapeError(f"ColorJitter: found {images.shape[1]} channels, expected 3")
        if self.brightness:
            images = bp.clip(images * self._factor(images, self.brightness), 0, 1)
        for amount, axes in ((self.contrast, (1, 2, 3)), (self.saturation, (1,))):
            if amount:
                weights = bp.asarray([0.2989, 0.587, 0.114], dtype=x.dtype, device=x.device).reshape((3, 1, 1))
                grey = bp.sum(images * weights, axis=1, keepdims=True)
                middle = bp.mean(grey, axis=axes, keepdims=True)
                factor = self._factor(images, amount)
                images = bp.clip(middle + factor * (images - middle), 0, 1)
        return images.reshape(x.shape)


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
