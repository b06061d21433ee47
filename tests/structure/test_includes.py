"""The direction of the house: ops.yaml -> codegen -> dispatcher -> backends and plugins, with Python on top.

An #include that runs against it fails here, with its line. The second half tries the rules on a small tree of its own, so
that a rule which stopped catching anything would be noticed.
"""

import re

import pytest
import source_tree

ABI = "dispatcher/abi/"
PUBLIC = "dispatcher/include/"
SDK = "sdk/include/"  # kernels of plugins for devices of vendors
# From the lowest: each may include those before it. An upper layer registers itself in the tables of a lower one.
LAYERS = ("record", "memory", "registry", "call", "levels", "tape", "grad", "jvp", "batch", "functions", "graph",
          "control", "trace", "loader", "checked", "log")
INSIDE = tuple(f"dispatcher/{layer}/" for layer in LAYERS)

# Folder -> what of this tree its files may include, besides files of the folder itself.
ALLOWED = {
    ABI: (),
    PUBLIC: (ABI,),
    **{folder: (ABI, PUBLIC, *INSIDE[:i]) for i, folder in enumerate(INSIDE)},
    "conformance/": (ABI, PUBLIC),
    "codegen/schema/": (ABI,),
    "codegen/check/": (ABI, "codegen/schema/"),
    "codegen/emit/": (ABI, PUBLIC + "backplane/plugin/whole_file.hpp", "codegen/schema/", "codegen/check/"),
    "codegen/cli/": (ABI, "codegen/"),
    "backends/cpu/": (ABI, PUBLIC),
    "backends/cuda/": (ABI, PUBLIC),
    "backends/vulkan/": (ABI, PUBLIC),
    **{f"plugins/{project}/": (ABI, PUBLIC) for project in ("example", "minimal", "minimal_vulkan", "wave_kernel", "wave_c", "opencl")},
    **{f"plugins/{project}/": (ABI, PUBLIC, SDK) for project in ("wave_cuda", "wave_opencl", "wave_vulkan")},
    SDK: (ABI, PUBLIC),
    "plugins/minimal_c/": (ABI, PUBLIC, "plugins/minimal/"),  # its kernels are a link to those
    "plugins/minimal_cuda/": (ABI, PUBLIC, "plugins/minimal_vulkan/"),  # likewise
    "plugins/minimal_webgpu/": (ABI, PUBLIC, "plugins/minimal_vulkan/"),
    "python/": ("dispatcher/",),
}
# Folder -> headers from outside this tree that it must not see.
FORBIDDEN_OUTSIDE = {
    ABI: re.compile(r"(?!std(int|def)\.h$)"),  # C's fixed-width types alone
    PUBLIC: re.compile(r"(?!sys/).*/"),  # nothing but the standard library and POSIX
    **{folder: re.compile(r"(cuda|cublas|vulkan|cblas|hwy|pybind11|Python\.h|yaml-cpp|CLI)") for folder in INSIDE},
    "codegen/": re.compile(r"(cuda|cublas|vulkan|cblas|hwy|pybind11|Python\.h)"),
}


def folder_of(path, table):
    return next((folder for folder in table if path.startswith(folder)), None)


def complaint(include):
    """Why the include is wrong, or None."""
    folder = folder_of(include.source, ALLOWED)
    where = f"{include.source}:{include.line}: includes {include.name}"
    if include.target is not None:
        if folder and not include.target.startswith((folder, *ALLOWED[folder])):
            return f"{where}, but {folder} may include only {', '.join(ALLOWED[folder]) or 'its own files'}"
        return None
    outside = folder_of(include.source, FORBIDDEN_OUTSIDE)
    if outside and FORBIDDEN_OUTSIDE[outside].match(include.name):
        return f"{where}, a header that {outside} must not depend on"
    return None


def complaints(files, root=source_tree.ROOT):
    return [text for text in map(complaint, source_tree.includes(files, root)) if text]


def test_no_include_runs_backward():
    assert complaints(source_tree.tracked_files()) == []


@pytest.fixture
def tree(tmp_path):
    def make(**sources):
        files = []
        for path, text in sources.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            files.append(path)
        return complaints(files, tmp_path)

    return lambda sources: make(**sources)


@pytest.mark.parametrize(
    "sources",
    [
        {"dispatcher/call/a.cpp": '#include "codegen/schema/b.hpp"\n', "codegen/schema/b.hpp": ""},
        {"dispatcher/include/backplane/a.hpp": '#include "call/b.hpp"\n', "dispatcher/call/b.hpp": ""},
        {"backends/cpu/kernels/a.cpp": '#include "call/b.hpp"\n', "dispatcher/call/b.hpp": ""},
        {"backends/cpu/a.cpp": '#include "../cuda/b.hpp"\n', "backends/cuda/b.hpp": ""},
        {"codegen/schema/a.cpp": '#include "emit/b.hpp"\n', "codegen/emit/b.hpp": ""},
        {"dispatcher/abi/backplane/abi/a.h": "#include <stdio.h>\n"},
        {"dispatcher/call/a.cpp": "#  include <cuda_runtime.h>\n"},
        {"dispatcher/call/a.cpp": '#include "tape/b.hpp"\n', "dispatcher/tape/b.hpp": ""},
        {"dispatcher/memory/a.cpp": '#include "loader/b.hpp"\n', "dispatcher/loader/b.hpp": ""},
        {"dispatcher/tape/a.cpp": '#include "loader/b.hpp"\n', "dispatcher/loader/b.hpp": ""},
    ],
    ids=lambda sources: next(iter(sources)),
)
def test_a_backward_include_is_caught(tree, sources):
    found = tree(sources)
    assert len(found) == 1 and ":1: includes" in found[0]


@pytest.mark.parametrize(
    "sources",
    [
        {"backends/cpu/a.cpp": '#include "backplane/abi/b.h"\n#include <cblas.h>\n', "dispatcher/abi/backplane/abi/b.h": ""},
        {"backends/cuda/a.cpp": '#include "kernels/b.hpp"\n', "backends/cuda/kernels/b.hpp": "", "backends/cpu/kernels/b.hpp": ""},
        {"codegen/emit/a.cpp": '#include "schema/b.hpp"\n#include <yaml-cpp/yaml.h>\n', "codegen/schema/b.hpp": ""},
        {"dispatcher/loader/a.cpp": '#include "call/b.hpp"\n#include <vector>\n', "dispatcher/call/b.hpp": ""},
    ],
    ids=lambda sources: next(iter(sources)),
)
def test_a_forward_include_is_not(tree, sources):
    assert tree(sources) == []
