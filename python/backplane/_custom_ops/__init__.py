"""Ops defined in Python, and opcheck, which tests ops."""
