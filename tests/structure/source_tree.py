"""What the structure tests share: the tracked files of the tree, and what each #include line of them refers to."""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh"}
# Folders that compilers search, in the order in which our targets name them.
SEARCHED = [".", "dispatcher/abi", "dispatcher/include", "dispatcher", "conformance", "codegen", "backends/cpu", "backends/cuda",
            "backends/vulkan", "plugins/example", "plugins/minimal", "plugins/minimal_c", "plugins/minimal_cuda",
            "plugins/minimal_vulkan", "plugins/minimal_webgpu", "plugins/wave", "plugins/wave_c", "plugins/wave_kernel", "plugins/wave_cuda", "plugins/wave_opencl", "plugins/wave_vulkan", "plugins/opencl",
            "python", "tests", "sdk/include"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Include:
    source: str  # path of the including file, from the root
    line: int
    name: str  # as written
    target: str | None  # path from the root; None: not a file of this tree


def tracked_files(root=ROOT):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def registry_files(root=ROOT):
    """ops.yaml and the files that it includes, in its order; no YAML is needed for the one form that we write."""
    return ["ops.yaml", *re.findall(r"^  - (ops/\w+\.yaml)$", (root / "ops.yaml").read_text(encoding="utf-8"), re.MULTILINE)]


def registry_lines(root=ROOT):
    """(path, line number, line) of the whole registry."""
    for path in registry_files(root):
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            yield path, number, line


def op_names():
    """The names of the registry's ops, without namespace and overload."""
    return {found[1] for _, _, line in registry_lines() if (found := re.match(r"\s*- op: (\w+)", line))}


def resolve(root, source, name):
    own = [folder for folder in SEARCHED if source.startswith(folder + "/")]  # a project's headers before another's
    for folder in [str(pathlib.PurePosixPath(source).parent), *own, *SEARCHED]:
        candidate = (root / folder / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root.resolve()):
            return candidate.relative_to(root.resolve()).as_posix()
    # Generated headers exist only in a build; they live in the public namespace folder.
    return f"dispatcher/include/{name}" if name.startswith("backplane/") else None


def includes(files, root=ROOT):
    for source in files:
        if pathlib.PurePosixPath(source).suffix not in SOURCE_SUFFIXES:
            continue
        text = (root / source).read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            yield Include(source, line, match[2], resolve(root, source, match[2]))
