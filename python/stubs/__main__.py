"""Writes the two stubs of the package from where each fact stands once; all else is annotated in the Python sources.

    python stubs REGISTRY.pyi FOLDER SOURCE...    FOLDER/_core.pyi and FOLDER/_registry.pyi, from codegen's stub of the ops, the
                                                  extension module's sources, the contract's list of dtypes, and the package's
"""

import pathlib
import sys

import extension
import registry

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "backplane"

if __name__ == "__main__":
    ops, folder, *names = map(pathlib.Path, sys.argv[1:])
    modules = {".".join(name.relative_to(PACKAGE).with_suffix("").parts): name.read_text(encoding="utf-8") for name in names if name.suffix == ".py"}
    core = extension.stub([name.read_text(encoding="utf-8") for name in names if name.suffix != ".py"], modules)
    (folder / "_core.pyi").write_text(core, encoding="utf-8")
    (folder / "_registry.pyi").write_text(registry.stub(ops.read_text(encoding="utf-8"), modules, core), encoding="utf-8")
