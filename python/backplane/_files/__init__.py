"""Saving and loading: the file formats, shards and checkpoints."""
