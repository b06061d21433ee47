"""The functions that rows of aten.txt call, by theme."""
