"""Derivatives, control flow, functions with their own rules, and callbacks."""
