"""Printers of gdb for Backplane's types: Tensor and its handles, Dim of a traced size, and OpEntry of the registry.

    (gdb) source debugger/gdb_printers.py

They read the memory of the program and call none of its functions, so that they work on a core file too. The program needs debug information
of its types: the preset `debug`, or `-g` for a program that includes the public headers. Elements are shown of small contiguous tensors on the
host; the memory of another device cannot be read here.
"""

import gdb
import gdb.printing

KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}  # DLDataTypeCode
CONTIGUOUS = 1 << 1  # BP_TENSOR_CONTIGUOUS
WRAPPER = 1 << 0  # BP_TENSOR_WRAPPER
HOST = 1  # kDLCPU
MOST_ELEMENTS = 8
C_TYPES = {"float32": "float", "float64": "double", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long", "uint8": "unsigned char",
           "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long", "bool": "bool"}  # fmt: skip


def dtype_name(dtype):
    kind, bits = KINDS.get(int(dtype["code"]), "?"), int(dtype["bits"])
    return kind if kind == "bool" else f"{kind}{bits}"


def tensor_text(tensor):
    """tensor: a bp_tensor."""
    dl = tensor["dl"]
    rank, name = int(dl["ndim"]), dtype_name(dl["dtype"])
    if not 0 <= rank <= 64:
        return f"<no tensor: rank {rank}>"
    shape = [int(dl["shape"][axis]) for axis in range(rank)]
    text = f"{name}{shape}, device {int(tensor['backend'])}:{int(tensor['ordinal'])}"
    flags = int(tensor["flags"])
    if flags & WRAPPER:
        return f"{text}, of a transform"
    if not flags & CONTIGUOUS:
        return f"{text}, strides {[int(dl['strides'][axis]) for axis in range(rank)]}"
    return text + elements_text(dl, shape, name)


def elements_text(dl, shape, name):
    count = 1
    for size in shape:
        count *= size
    if not 0 < count <= MOST_ELEMENTS or name not in C_TYPES or int(dl["device"]["device_type"]) != HOST or not int(dl["data"]):
        return ""
    first = (dl["data"].cast(gdb.lookup_type("char").pointer()) + int(dl["byte_offset"])).cast(gdb.lookup_type(C_TYPES[name]).pointer())
    kind = float if name.startswith("float") else bool if name == "bool" else int
    return f", elements {[kind(first[place]) for place in range(count)]}"


class Handle:
    """bp_tensor and the library's TensorImpl."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return f"tensor({tensor_text(self.value)})"


class Tensor:
    """backplane::Tensor, which owns a handle."""

    def __init__(self, value):
        self.handle = value["handle_"]

    def to_string(self):
        return f"Tensor({tensor_text(self.handle.dereference())})" if int(self.handle) else "Tensor(empty)"


class Dim:
    """A number, or the place of an expression in the graph's table of sizes."""

    def __init__(self, value):
        self.code = int(value["code_"])

    def to_string(self):
        first = -(1 << 63)
        return f"Dim({self.code})" if self.code >= first + (1 << 32) else f"Dim(expression {self.code - first})"


class OpEntry:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        record = pointee(self.value["record"])
        if record is None:
            return "OpEntry(empty)"
        name = record["name"]
        text = name["_M_str"].string(length=int(name["_M_len"])) if int(name["_M_len"]) else ""
        rows = self.value["rows"]["_M_impl"]
        count = int(rows["_M_finish"] - rows["_M_start"])
        path = str(self.value["fast_path"]).rpartition("::")[2]
        return f'OpEntry("{text}", {int(self.value["n_args"])} arguments, {int(self.value["n_results"])} results, {count} rows, fast path {path})'


def pointee(unique):
    """What a std::unique_ptr of libstdc++ owns, or None."""
    tuple_impl = unique["_M_t"]["_M_t"]
    pointer = tuple_impl.cast(tuple_impl.type.fields()[0].type)  # _Tuple_impl<0, T*, deleter>
    head = next(field for field in pointer.type.fields() if field.is_base_class and "_Head_base" in str(field.type))
    owned = pointer.cast(head.type)["_M_head_impl"]
    return owned.dereference() if int(owned) else None


def printers():
    found = gdb.printing.RegexpCollectionPrettyPrinter("backplane")
    found.add_printer("bp_tensor", r"^(bp_tensor|backplane::core::TensorImpl)$", Handle)
    found.add_printer("Tensor", r"^backplane::Tensor$", Tensor)
    found.add_printer("Dim", r"^backplane::core::graph::Dim$", Dim)
    found.add_printer("OpEntry", r"^backplane::core::OpEntry$", OpEntry)
    return found


gdb.printing.register_pretty_printer(None, printers(), replace=True)
