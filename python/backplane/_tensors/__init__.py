"""The methods of Tensor that are written in Python, and how tensors print."""
