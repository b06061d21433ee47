"""Ops as Python functions: how a call selects an op and a form of its arguments, and the errors of calls."""
