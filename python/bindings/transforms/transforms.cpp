// The transforms as functions of the module, with their documentation: the contract that a Python user reads.
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/transforms/traced_call.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {
namespace {

constexpr Declared kGradDoc =
    R"(grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable[..., Any]
--

The gradient of a function, as a function of the same arguments.

fun: returns a real floating tensor without dimensions; with has_aux a pair of that and anything else.
argnums: the position of the argument to differentiate, or a tuple of positions. Negative positions count from the end. The
    argument is a floating or complex tensor, a Python float or complex, or a container of these.
has_aux: the result is the pair (gradient, aux).
holomorphic: fun is holomorphic, from complex tensors to a complex tensor; the result is its complex derivative.

The gradient has the argument's structure, shapes and dtypes. It is zero where the value does not depend on the argument. With a
tuple of positions it is a tuple. For a real function of a complex z = x + iy, it is df/dx + i df/dy, the direction of steepest
ascent. Keyword arguments are passed on and not differentiated.

Errors: DtypeError for integer and boolean arguments or values, and for complex values without holomorphic; ShapeError
    for a value with dimensions; ArgumentValueError if argnums is not the position of an argument.
Source: reverse mode, Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2.)";

constexpr Declared kValueAndGradDoc =
    R"(value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable[..., Any]
--

A function's value and its gradient, as a function of the same arguments.

Arguments and errors are those of grad. The result is the pair (value, gradient), with has_aux ((value, aux), gradient).)";

constexpr Declared kVjpDoc = R"(vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]
--

The value of fun(*primals), and its pullback: from a cotangent of the value to cotangents of the primals.

fun: returns a tensor or a container of tensors, of any shapes; with has_aux a pair of that and anything else.
primals: floating or complex tensors, Python floats or complexes, or containers of these.

The result is (value, pullback), with has_aux (value, pullback, aux). pullback(cotangent) takes a cotangent with the structure,
shapes and dtypes of the value (None is a zero). It returns a tuple with one cotangent per primal. It may be called several times,
also later and inside other transforms. It is the adjoint under the product <a, b> = Re sum(conj(a) b).

Errors: DtypeError for integer and boolean primals; ValueError, ShapeError and DtypeError for a cotangent that does not fit.
Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2.)";

constexpr Declared kJvpDoc =
    R"(jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]
--

The value of fun(*primals), and its derivative along tangents, in one forward pass.

fun: returns a tensor or a container of tensors; with has_aux a pair of that and anything else.
primals, tangents: tuples or lists with one element per argument of fun. An element of primals is a floating or complex
    tensor, a Python float or complex, or a container of these. The tangent has the structure, shapes and dtypes of its primal.

The result is (value, derivative), with has_aux (value, derivative, aux). The derivative has the structure of the value. It is zero
where the value does not depend on primals.

Errors: DtypeError for integer and boolean primals; ValueError, ShapeError and DtypeError for a tangent that does not fit.
Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.1.)";

constexpr Declared kVmapDoc =
    R"(vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None, *, randomness: str = 'error') -> Callable[..., Any]
--

A batched version of fun: fun sees one element; the result takes all elements at once.

fun: returns a tensor, a number, or a container of these.
in_axes: the batch axis of the arguments: an int, None for an argument shared by all elements, or a tuple with one entry
    per positional argument. Each entry is an int, None or a container that is a prefix of the argument's. Negative axes count
    from the end. Keyword arguments are mapped over axis 0.
out_axes: the batch axis of the results: an int, a prefix of the result's structure, or None for a result that is the same for
    all elements. PyTorch's words in_dims and out_dims mean the same.
axis_size: the number of elements. It is required if no argument is mapped.
randomness: for random ops: 'error' raises, 'same' draws the same numbers for all elements, 'different' draws separate numbers.

The result equals fun on each element, stacked. Reading a batched value (float, bool, item) is an error. An op whose result shape
depends on values is an error too.

Errors: OutOfRangeError for an axis that a tensor does not have; ShapeError if the mapped axes differ in size;
    ArgumentValueError if in_axes or out_axes is not a prefix; the message names the place.)";

constexpr Declared kMakeGraphDoc =
    R"(make_graph(fun: Callable[..., Any], *, dynamic: DynamicSizes | None = None) -> Callable[..., Graph]
--

A function that traces fun. Called with fun's arguments, it returns the Graph of the ops that fun calls.

fun: takes and returns tensors and containers of tensors. Tensors and other libraries' arrays among the arguments become the
    graph's inputs; only their shape, dtype and device are used. All other arguments are static: the graph stores them as
    constants.

dynamic: sizes that may differ from call to call, by name: {"x": {0: "batch"}} for axis 0 of the argument x. If x is a container,
    this applies to each tensor in it ("x['w']" is one of these). Or a sequence with a dict or None per positional argument. Axes
    with the same name have the same size. True: every size from 2 on; axes that have equal sizes now have one name. fun then runs
    about ten times, at other sizes; the graph states the constraints it found.

The trace records every op, including ops of gradients and batches, and runs nothing. Tensors from outside become constants of the
graph; a replay sees in-place changes of them. If fun changes its arguments or tensors from outside in place, a replay changes them
too (graph.updates). Each replay draws new random numbers, as fun would draw them.

Errors: ArgumentValueError if fun reads the value of a traced tensor (bool, float, item, numpy), reads a tensor's grad, or writes to
    the result of detach; ShapeError if fun needs the value of a dynamic size, which it names; MissingRuleError for an op whose
    result shape depends on values.)";

constexpr Declared kCompileDoc =
    R"(compile(fun: Function, *, dynamic: DynamicSizes | None = None, donate: int | Sequence[int] | None = None, fullgraph: bool = True, memory_budget: int | None = None, state: Any = None) -> Function
--

A compiled fun: it is traced once for each kind of call, and then run from its graph.

A kind of call is the structure of the arguments, the shape, dtype and device of each tensor, and the value of every other
argument. For an object, the value is the attributes that fun reads.
The eight most recent kinds are kept; compile_log() lists every trace with its reason. With options alone, as in
@compile(donate=0), compile is a decorator.
dynamic: sizes that may change without a new kind of call, in the form that make_graph takes. If they break a constraint of the
    graph, fun is traced again. The plans of the eight most recent sizes are kept.
donate: the position of an argument, or several positions. A call may overwrite the tensors of these arguments with its results, so
    the caller must not use them afterwards. Memory that has another reference, or that another library owns, is not overwritten.
fullgraph: if a kind of call cannot be traced, False calls fun itself and logs this; True raises.
memory_budget: the bytes that a call keeps between its ops, without arguments and results. To stay within the budget, values are
    recomputed where they are next needed, the cheapest first, as far as that helps. Under grad or the tape, the forward and the
    backward half share the budget. explain_plan shows the effect.
state: modules, optimisers, and lists and dicts of tensors that fun uses without being given them, several in a list. Gradients are
    not recorded while fun runs: take them inside, with value_and_grad. The state's tensors stay the same objects, whose values
    change. A learning rate may change without another trace. If a call raises, the state stays as it was. inputs and outputs
    name more of it, as in MLX.

If a transform is active, or an argument has a history or requires a gradient, the derivatives and batches are graphs too; each is
made at its first use. fun itself is called if its derivative is not the derivative of its ops: custom_function with rules,
checkpoint, no_grad. The log says so.

Errors: the errors of make_graph.)";

constexpr Declared kCompileLogDoc = R"(compile_log() -> list[str]
--

The latest 256 lines about traces of compile, oldest first, each with the name of the function and the guard that failed.)";

constexpr Declared kUnguardedDoc = R"(unguarded(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any
--

Calls fun(*args, **kwargs) and returns its result. While a function is traced, the values that fun reads are not guarded, and later
calls do not repeat its side effects: fun runs only during the trace. Use it for counters, caches and messages of the trace.

Errors: the errors of fun.)";

PyCFunction with_keywords(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
PyCFunction fast_with_keywords(_PyCFunctionFastWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[] = {
    {"grad", with_keywords(grad_function), METH_VARARGS | METH_KEYWORDS, kGradDoc.text},
    {"value_and_grad", with_keywords(value_and_grad_function), METH_VARARGS | METH_KEYWORDS, kValueAndGradDoc.text},
    {"vjp", fast_with_keywords(vjp_function), METH_FASTCALL | METH_KEYWORDS, kVjpDoc.text},
    {"jvp", with_keywords(jvp_function), METH_VARARGS | METH_KEYWORDS, kJvpDoc.text},
    {"vmap", with_keywords(vmap_function), METH_VARARGS | METH_KEYWORDS, kVmapDoc.text},
    {"compile", with_keywords(compile_function), METH_VARARGS | METH_KEYWORDS, kCompileDoc.text},
    {"compile_log", compile_log, METH_NOARGS, kCompileLogDoc.text},
    {"unguarded", fast_with_keywords(unguarded), METH_FASTCALL | METH_KEYWORDS, kUnguardedDoc.text},
    {"make_graph", with_keywords(make_graph_function), METH_VARARGS | METH_KEYWORDS, kMakeGraphDoc.text},
    {"set_package_folder", set_package_folder, METH_O, nullptr},
    {"holds_tensor", holds_tensor, METH_O, nullptr},
    {"is_dynamic", is_dynamic, METH_O, nullptr},
    {"forbid_keeping", forbid_keeping, METH_O, nullptr},
    {"changed_contents", changed_contents, METH_O, nullptr},
    {"vjp_as", vjp_as_function, METH_VARARGS, nullptr},
    {"jvp_as", jvp_as_function, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_transforms(PyObject* module) {
  return add_transformed_type(module) && add_pullback_type() && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace backplane::python
