"""Module and the layers, one theme per file. compile looks at the instructions of this folder, as at users' code: modules have state."""
