// Rows of the table as kernels of operators, and operators that the host computes.
#pragma once

#include <Python.h>

#include <ATen/core/dispatch/Dispatcher.h>

namespace backplane_torch {

// One row serves three forms of an operator.
enum class Form : int { kFunctional, kInPlace, kOut };

// Registers the row of the functional operator `row` as the kernel of `name`. `kinds`: of each argument (python_value).
// `any_size`:
// one program serves all sizes. `rows` has
// function_of(row), and program_of(row, args, places of numbers), a description of a Program or None. The registration
// lasts as long as the process.
void register_row(const char* name, const char* row, const char* kinds, Form form, bool any_size, PyObject* rows);

enum class HostPolicy : int { kAllow, kWarn, kForbid };
// Computes an operator on PyTorch's CPU, if the policy allows it. Random numbers are always drawn there.
void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// The same after the operator's row has refused the arguments. A failure of the CPU is PyTorch's error, and not
// counted.
void retry_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);
void set_host_policy(HostPolicy policy);
HostPolicy host_policy();
// {operator: calls}, of the calls that the host computed.
PyObject* host_calls();
void reset_host_calls();
// Every operator without a kernel goes to run_on_host.
void register_host_fallback();

}  // namespace backplane_torch
