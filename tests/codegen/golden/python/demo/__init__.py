# The ops of namespace demo as a package. Made by backplane-codegen from golden.yaml; edit that instead.
import pathlib as _pathlib

import backplane as _backplane

# Where the plugin lies beside this file, with its manifest, it is found without being installed.
_backplane.add_plugin_path(str(_pathlib.Path(__file__).resolve().parent))
_ops = _backplane.ops.demo

axpby = _ops.axpby
axpby_ = _ops.axpby_
scaled_sum = _ops.scaled_sum
scaled_sum_ = _ops.scaled_sum_
cube = _ops.cube
window = _ops.window
noise = _ops.noise
turn = _ops.turn

__all__ = ['axpby', 'axpby_', 'scaled_sum', 'scaled_sum_', 'cube', 'window', 'noise', 'turn']
