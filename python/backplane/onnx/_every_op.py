"""Imports every file of ops, so that the table is full."""

from . import (  # noqa: F401
    _cast_ops,
    _control_ops,
    _detection_ops,
    _elementwise_ops,
    _grouped_attention_ops,
    _host_ops,
    _index_ops,
    _linear_ops,
    _microsoft_ops,
    _microsoft_quantized_ops,
    _normalization_ops,
    _pooling_ops,
    _quantized_ops,
    _random_ops,
    _recurrent_ops,
    _reduction_ops,
    _resize_ops,
    _shape_ops,
    _signal_ops,
)
from ._table import supported_ops  # noqa: F401
