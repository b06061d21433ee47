// The transforms as functions of the module, with their documentation: the contract that a Python user reads.
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/transforms/traced_call.hpp"
#include "bindings/transforms/transformed.hpp"

namespace backplane::python {
namespace {

constexpr Declared kGradDoc =
    R"(grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable[..., Any]
--

The gradient of a function, as a function of the same arguments.

fun: returns a real floating tensor without dimensions; with has_aux a pair of that and anything else.
argnums: the position of the argument to differentiate, or a tuple of positions; negative ones count from the end. The
    argument is a floating or complex tensor, a Python float or complex, or a container of these.
has_aux: the result is the pair (gradient, aux).
holomorphic: fun is holomorphic, from complex tensors to a complex tensor; the result is its complex derivative.

The gradient has the argument's structure, shapes and dtypes; zeros where the value does not depend on it. With a tuple of
positions it is a tuple. Of a real function of a complex z = x + iy it is df/dx + i df/dy, the direction of steepest
ascent. Keyword arguments are passed on and not differentiated.

Errors: DtypeError for integer and boolean arguments or values, and for complex values without holomorphic; ShapeError
    for a value with dimensions; ArgumentValueError where argnums names no positional argument.
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

The result is (value, pullback), with has_aux (value, pullback, aux). pullback(cotangent) takes what has the structure,
shapes and dtypes of the value (None for a zero) and returns a tuple, one cotangent per primal. It may be called again, later, and
inside other transforms. It is the adjoint under the product <a, b> = Re sum(conj(a) b).

Errors: DtypeError for integer and boolean primals; ValueError, ShapeError and DtypeError for a cotangent that does not fit.
Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2.)";

constexpr Declared kJvpDoc =
    R"(jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]
--

The value of fun(*primals), and its derivative along tangents, in one forward pass.

fun: returns a tensor or a container of tensors; with has_aux a pair of that and anything else.
primals, tangents: tuples or lists with one element per argument of fun. An element of primals is a floating or complex
    tensor, a Python float or complex, or a container of these; that of tangents has its structure, shapes and dtypes.

The result is (value, derivative), with has_aux (value, derivative, aux). The derivative has the structure of the value; zeros
where it does not depend on primals.

Errors: DtypeError for integer and boolean primals; ValueError, ShapeError and DtypeError for a tangent that does not fit.
Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.1.)";

constexpr Declared kVmapDoc =
    R"(vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None, *, randomness: str = 'error') -> Callable[..., Any]
--

A function for batches: fun sees one element, the result is called with all of them at once.

fun: returns a tensor, a number, or a container of these.
in_axes: the batch axis of the arguments: an int, None for what is the same for all elements, or a tuple with an entry
    per positional argument, each an int, None or a container that is a prefix of the argument's. Negative axes count
    from the end. Keyword arguments are mapped over axis 0.
out_axes: where the batch goes in the results: an int, a prefix of the result's structure, or None for what is the same for
    all elements.
axis_size: the number of elements, needed where nothing is mapped.
randomness: what random ops do: 'error', 'same' numbers for all elements, or 'different' ones.

The result equals fun on each element, stacked. Reading a batched value (float, bool, item) is an error; so is an op whose result's
shape depends on values.

Errors: OutOfRangeError for an axis that a tensor lacks; ShapeError where the mapped axes differ in size;
    ArgumentValueError where in_axes or out_axes is no prefix, naming the place.)";

constexpr Declared kMakeGraphDoc =
    R"(make_graph(fun: Callable[..., Any], *, dynamic: DynamicSizes | None = None) -> Callable[..., Graph]
--

A function that traces fun: called with fun's arguments, it returns the Graph of what fun does with them.

fun: takes tensors and containers of them, and returns such; tensors and other libraries' arrays among the arguments become the
    graph's inputs, of which only shape, dtype and device are looked at. All other arguments are static: they stand in the
    graph as they are.

dynamic: sizes that may differ from call to call, by name: {"x": {0: "batch"}} for axis 0 of the argument x, of each tensor in it
    where it is a container ("x['w']" is one of these); or a sequence with such a dict, or None, per positional argument. Axes of one
    name have one size. fun then runs some ten times, at other sizes, and the graph states the constraints that were found.

Every op is written down, those of gradients and batches too, and nothing runs. Tensors from outside become constants of the
graph, of which a replay sees in-place changes. What fun changes in place, of its arguments and of tensors from outside, a replay
changes likewise (graph.updates). Random numbers are drawn anew at each replay, as fun would draw them.

Errors: ArgumentValueError where fun reads the value of a traced tensor (bool, float, item, numpy), a tensor's grad, or writes
    through what detach gave; ShapeError naming a dynamic size that fun has to know; MissingRuleError for an op whose result's shape depends on values.)";

constexpr Declared kCompileDoc =
    R"(compile(fun: Function, *, dynamic: DynamicSizes | None = None, donate: int | Sequence[int] | None = None, fullgraph: bool = True, memory_budget: int | None = None) -> Function
--

fun as a function that is traced once for each kind of call, and then run from its graph.

A kind of call is the structure of the arguments, the shape, dtype and device of each tensor, and the value of everything else, of
objects the attributes that fun reads.
The latest eight kinds are kept; compile_log() says what was traced and why. With options alone, as in
@compile(donate=0), it is a decorator.
dynamic: sizes that make no other kind of call, as make_graph takes them; where they break a constraint of the graph, fun is traced
    again. The plans of the latest eight sizes are kept.
donate: the position of an argument, or several, whose tensors a call may overwrite with its results: the caller uses them no
    more. Memory that somebody else holds too, or that another library owns, is left alone.
fullgraph: False runs a kind of call that cannot be traced as fun itself does, and says so in the log; True raises.
memory_budget: bytes of what a call keeps between its ops, neither arguments nor results. Where it would keep more, values are
    computed again where they are next needed, the cheapest first, as far as that helps. Under grad or the tape it holds for the
    forward and the backward half together. explain_plan says what comes of it.

Where a transform is active, or an argument has a history or requires a gradient, the derivatives and batches are graphs too, made
when they are first asked for. fun itself is called where its derivative is not that of its ops: custom_function with rules,
checkpoint, no_grad; the log says so.

Errors: those of make_graph.)";

constexpr Declared kCompileLogDoc = R"(compile_log() -> list[str]
--

What compile has traced, the latest last: a list of lines, each with the function's name and the guard that failed.)";

constexpr Declared kUnguardedDoc = R"(unguarded(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any
--

Calls fun(*args, **kwargs) and returns its result. While a function is traced, what fun reads is not guarded and what it stores
is not repeated by later calls: fun runs when the function is traced, and only then. For counters, caches and messages of the trace.

Errors: those of fun.)";

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
    {"vjp_as", vjp_as_function, METH_VARARGS, nullptr},
    {"jvp_as", jvp_as_function, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_transforms(PyObject* module) {
  return add_transformed_type(module) && add_pullback_type() && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace backplane::python
