"""Devices, streams, settings, plugins and processes."""
