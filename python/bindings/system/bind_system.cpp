// Everything here may wait for a device, a file or another thread, and so runs without the interpreter lock.
#include "bindings/system/bind_system.hpp"

#include <pybind11/stl.h>

#include <map>
#include <string>

#include "backplane/device.hpp"
#include "backplane/error.hpp"
#include "backplane/op.hpp"
#include "backplane/placement.hpp"
#include "backplane/plugins.hpp"
#include "backplane/stream.hpp"
#include "backplane/threads.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/ops/convert.hpp"
#include "bindings/ops/op_type.hpp"
#include "bindings/system/device_argument.hpp"
#include "bindings/tensor/default_float.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_caster.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

py::object device_object(bp_device device) { return py::reinterpret_steal<py::object>(wrap_device(device)); }
py::object dtype_object(bp_dtype dtype) { return py::reinterpret_steal<py::object>(wrap_dtype(dtype)); }

// Rule -> ops, for each backend that is open.
using Reach = std::map<std::string, std::map<std::string, int64_t>>;

Reach reach_of_backends() {
  Reach reach;
  for (const OpHandle op : all_ops()) {
    try {
      for (const BackendRule& rule : backend_rules(op)) ++reach[rule.backend][rule.rule];
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_NOT_IMPLEMENTED) throw;  // another thread has replaced or withdrawn the op
    }
  }
  return reach;
}

py::dict describe(const DeviceInfo& info, const Reach& reach) {
  py::dict row;
  row["device"] = device_object(info.device);
  row["name"] = info.name;
  row["description"] = py::reinterpret_steal<py::object>(text_of(info.description));  // a driver's words
  row["plugin"] = info.plugin;
  row["total_memory"] = info.properties.total_memory;
  const auto found = reach.find(info.name.substr(0, info.name.find(':')));
  row["ops"] = found == reach.end() ? std::map<std::string, int64_t>{} : found->second;
  return row;
}

py::dict describe(const PluginInfo& info) {
  py::dict row;
  row["name"] = py::reinterpret_steal<py::object>(text_of(info.name));
  row["version"] = py::reinterpret_steal<py::object>(text_of(info.version));
  const auto length = static_cast<Py_ssize_t>(info.path.size());
  row["path"] = py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefaultAndSize(info.path.data(), length));
  row["state"] = info.state;
  row["why"] = py::reinterpret_steal<py::object>(text_of(info.why));
  row["backends"] = info.backends;
  row["ops"] = info.ops;
  row["leases"] = info.leases;
  row["waits_for"] = info.waits_for;
  return row;
}

py::dict memory_of(bp_device device) {
  const MemoryStats now = memory_stats(device);
  py::dict row;
  row["allocated_bytes"] = now.allocated;
  row["peak_bytes"] = now.peak;
  row["reserved_bytes"] = now.reserved;
  row["limit_bytes"] = now.limit ? py::object(py::int_(*now.limit)) : py::object(py::none());
  row["allocations"] = now.allocations;
  row["cache_hits"] = now.cache_hits;
  return row;
}

std::optional<uint64_t> limit_argument(const py::object& bytes) {
  if (bytes.is_none()) return std::nullopt;
  BP_CHECK(PyIndex_Check(bytes.ptr()), TYPE, "set_memory_limit: argument bytes: found a value of type ",
           Py_TYPE(bytes.ptr())->tp_name, ", expected an integer or None");
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(bytes.ptr()));
  if (!index) throw py::error_already_set();
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) forget_error();  // out of range: refused with the negative ones
  BP_CHECK(value >= 0, VALUE, "set_memory_limit: argument bytes: found ", py::str(index).cast<std::string>(),
           ", expected 0 to 2**63 - 1, or None for no limit");
  return static_cast<uint64_t>(value);
}

py::list list_devices() {
  std::vector<DeviceInfo> found;
  Reach reach;
  {
    WithoutGil unlocked;
    found = devices();
    reach = reach_of_backends();
  }
  py::list rows;
  for (const DeviceInfo& info : found) rows.append(describe(info, reach));
  return rows;
}

py::list list_plugins() {
  std::vector<PluginInfo> found;
  {
    WithoutGil unlocked;
    found = plugins();
  }
  py::list rows;
  for (const PluginInfo& info : found) rows.append(describe(info));
  return rows;
}

py::dict load(const std::string& path) {
  PluginInfo info;
  {
    WithoutGil unlocked;
    info = load_plugin(path);
  }
  return describe(info);
}

py::dict counts() {
  const CallCounts now = call_counts();
  py::dict row;
  row["kernels"] = now.kernels;
  row["decompositions"] = now.decompositions;
  row["host_fallbacks"] = now.host_fallbacks;
  row["batch_loops"] = now.batch_loops;
  return row;
}

py::list rows_of(const PlacementScope& scope) {
  py::list rows;
  for (const Placement& row : scope.rows())
    rows.append(py::make_tuple(row.op, row.device, row.how, row.plugin, row.calls));
  return rows;
}

constexpr const char* kFallbackWords[] = {"allow", "warn", "forbid"};

HostFallback fallback_of(const std::string& word) {
  for (size_t i = 0; i < std::size(kFallbackWords); ++i)
    if (word == kFallbackWords[i]) return static_cast<HostFallback>(i);
  detail::fail(BP_ERROR_VALUE, "host_fallback: argument policy: found '", word,
               "', expected 'allow', 'warn' or 'forbid'");
}

const char* word_of(HostFallback policy) { return kFallbackWords[static_cast<size_t>(policy)]; }

const char* first_argument(const bp_op_def& def) {
  const auto& first = *static_cast<const bp_arg_def*>(def.args.data);
  const bool tensor = first.type == BP_TYPE_TENSOR && !(first.flags & BP_ARG_LIST);
  return tensor ? first.name : "";
}

// (full name, in place?, the first argument's name where it is a tensor) of every op that is registered now.
// An entry's further names are among its tags: "alias:absolute".
py::list aliases_of(const bp_op_def& def) {
  constexpr std::string_view kMark = "alias:";
  py::list names;
  for (std::string_view rest = def.tags ? def.tags : ""; !rest.empty();) {
    const std::string_view tag = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(tag.size() + 1, rest.size()));
    if (tag.starts_with(kMark)) names.append(py::str(tag.substr(kMark.size())));
  }
  return names;
}

py::list list_ops() {
  py::list rows;
  for (OpHandle op : all_ops()) {
    const bp_op_def& def = op_def(op);
    rows.append(py::make_tuple(def.name, (def.flags & BP_OP_INPLACE) != 0,
                               def.args.count > 0 ? first_argument(def) : "", aliases_of(def)));
  }
  return rows;
}

std::string explain_op(const py::object& op) {
  OpHandle handle = op_handle_of(op.ptr());
  if (handle == BP_NO_OP && py::isinstance<py::str>(op)) {
    const std::string name = op.cast<std::string>();
    handle = find_op(name);
    BP_CHECK(handle != BP_NO_OP, VALUE, "explain: argument op: found no op '", name,
             "'. Fix: `backplane ops` lists all ops; load_plugin(path) adds the ops of a plugin");
  }
  BP_CHECK(handle != BP_NO_OP, TYPE, "explain: argument op: found a value of type ", Py_TYPE(op.ptr())->tp_name,
           ", expected an op or its full name");
  return explain(handle);
}

// Read as ops read a Shape.
std::vector<int64_t> shape_argument(py::handle object, const char* who) {
  bp_arg_def spec{};
  spec.name = "shape";
  spec.type = BP_TYPE_SHAPE;
  CallArguments arguments(1);
  bp_value& value = *arguments.values();
  const int read = read_argument(spec, object.ptr(), arguments, &value);
  if (read < 0) {
    place_error(who, spec.name);
    throw py::error_already_set();
  }
  BP_CHECK(read == 1, TYPE, who, ": argument 'shape': found ",
           py::str(found_kind(object.ptr()).get()).cast<std::string>(), ", expected ", expected_kind(spec));
  return {value.u.ints, value.u.ints + value.count};
}

// empty(shape, dtype, device), None for the defaults: a small tensor takes less time than a call through pybind11.
PyObject* empty_object(PyObject*, PyObject* const* args, Py_ssize_t n_args) {
  return guarded([&]() -> PyObject* {
    try {
      BP_CHECK(n_args == 3, TYPE, "empty: found ", n_args, " arguments, expected shape, dtype and device");
      const bp_dtype dtype = args[1] == Py_None ? default_float() : dtype_argument(args[1], "empty");
      const bp_device device =
          args[2] == Py_None ? default_device() : device_argument(py::reinterpret_borrow<py::object>(args[2]), "empty");
      return wrap_tensor(empty(shape_argument(args[0], "empty"), dtype, device));
    } catch (py::error_already_set& error) {
      error.restore();
      return nullptr;
    }
  });
}
PyMethodDef kEmpty[] = {
    {"empty", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(empty_object)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

py::object promoted(const py::object& a, const py::object& b) {
  const bp_dtype left = dtype_argument(a, "promote"), right = dtype_argument(b, "promote");
  const bp_dtype result = promote(left, right);
  BP_CHECK(result != BP_DTYPE_NONE, DTYPE, "promote: found ", dtype_name(left), " and ", dtype_name(right),
           ", expected dtypes that promote; cast one of them");
  return dtype_object(result);
}

// What SettingBlock and AppliedSetting take for a dtype.
int64_t float_value(const py::object& object) {
  const bp_dtype dtype = dtype_argument(object, "default_dtype");
  BP_CHECK(BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING, DTYPE, "default_dtype: argument dtype: found ", dtype_name(dtype),
           ", expected float16, bfloat16, float32 or float64");
  return dtype;
}

void change(Setting setting, int64_t value) {
  if (!settle_pending() || !change_setting(setting, value, true)) throw py::error_already_set();
}

}  // namespace

void bind_system(py::module_& module) {
  module.def("devices", &list_devices);
  module.def("default_device", [] {
    use_context_settings();
    return device_object(default_device());
  });
  module.def("set_default_device", [](const py::object& device) {
    const bp_device found = device_argument(device, "set_default_device");
    check_device(found);
    change(Setting::kDevice, value_of_device(found));
  });
  module.def("memory_stats",
             [](const py::object& object) { return memory_of(device_argument(object, "memory_stats")); });
  module.def("reset_peak_memory_stats", [](const py::object& object) {
    reset_peak_memory_stats(device_argument(object, "reset_peak_memory_stats"));
  });
  module.def("empty_cache", [](const py::object& object) {
    const bp_device device = device_argument(object, "empty_cache");
    WithoutGil unlocked;
    empty_cache(device);
  });
  module.def("set_memory_limit", [](const py::object& bytes, const py::object& object) {
    set_memory_limit(device_argument(object, "set_memory_limit"), limit_argument(bytes));
  });
  module.def("synchronize", [](const py::object& object) {
    const bp_device device = device_argument(object, "synchronize");
    WithoutGil unlocked;
    synchronize(device);
  });
  module.def(
      "to_device",
      [](const Tensor& tensor, const py::object& object, bool non_blocking) {
        const bp_device device = device_argument(object, "to_device");
        WithoutGil unlocked;
        return to_device(tensor, device, non_blocking);
      },
      py::arg("tensor"), py::arg("device"), py::arg("non_blocking") = false);
  module.def("to_bytes", [](const Tensor& tensor) {
    py::bytes bytes = py::reinterpret_steal<py::bytes>(
        PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(tensor.get()->nbytes)));
    if (!bytes) throw py::error_already_set();
    char* data = PyBytes_AS_STRING(bytes.ptr());
    WithoutGil unlocked;
    to_host(tensor, data);
    return bytes;
  });
  module.def("from_bytes", [](const py::bytes& bytes, const py::object& sizes, const py::object& dtype_name,
                              const py::object& device) {
    const bp_dtype dtype = dtype_argument(dtype_name, "from_bytes");
    const std::vector<int64_t> shape = shape_argument(sizes, "from_bytes");
    int64_t count = dtype_size(dtype);
    for (const int64_t size : shape)
      BP_CHECK(!__builtin_mul_overflow(count, size, &count), VALUE, "from_bytes: its shape exceeds 64 bits");
    BP_CHECK(count == PyBytes_GET_SIZE(bytes.ptr()), VALUE, "from_bytes: found ", PyBytes_GET_SIZE(bytes.ptr()),
             " bytes, expected ", count);
    return from_host(PyBytes_AS_STRING(bytes.ptr()), shape, {}, dtype, device_argument(device, "from_bytes"));
  });
  PyModule_AddFunctions(module.ptr(), kEmpty);
  module.def("promote", &promoted);
  module.def("as_dtype", [](const py::object& object, const std::string& function) {
    return dtype_object(dtype_argument(object, function.c_str()));
  });
  module.def("default_float", [] {
    use_context_settings();
    return dtype_object(default_float());
  });
  module.def("default_complex", [] {
    use_context_settings();
    return dtype_object(default_complex());
  });
  module.def("float_value", &float_value);
  module.def("set_default_float", [](const py::object& dtype) { change(Setting::kFloat, float_value(dtype)); });
  module.def("get_num_threads", &get_num_threads);
  module.def("set_num_threads", &set_num_threads, py::call_guard<WithoutGil>());

  module.def("load_plugin", &load);
  module.def("unload_plugin", &unload_plugin, py::call_guard<WithoutGil>());
  module.def("plugins", &list_plugins);
  module.def("add_plugin_path", &add_plugin_path, py::call_guard<WithoutGil>());
  module.def("offer_plugin_path", &offer_plugin_path, py::call_guard<WithoutGil>());
  module.def("plugin_folders", [] {
    py::list rows;
    for (const PluginFolder& folder : plugin_folders()) rows.append(py::make_tuple(folder.path, folder.why));
    return rows;
  });

  module.def("ops", &list_ops);
  module.def("explain", &explain_op, py::arg("op"));
  module.def("call_counts", &counts);
  module.def("reset_call_counts", &reset_call_counts);
  module.def("host_fallback", [] {
    use_context_settings();
    return word_of(host_fallback());
  });
  module.def("fallback_value", [](const std::string& word) { return static_cast<int64_t>(fallback_of(word)); });
  module.def("set_host_fallback",
             [](const std::string& word) { return word_of(set_host_fallback(fallback_of(word))); });
  py::class_<PlacementScope>(module, "PlacementScope")
      .def(py::init(), py::call_guard<WithoutGil>())
      .def("end", &PlacementScope::end, py::call_guard<WithoutGil>())
      .def("rows", &rows_of);
  module.def("batch_loop_allowed", [] {
    use_context_settings();
    return batch_loop_allowed();
  });
  // For the laws of the tests.
  module.def("force_decomposition", &force_decompositions, py::arg("forced"));
  module.def("use_native_formulas", &use_native_formulas, py::arg("used"));
}

}  // namespace backplane::python
