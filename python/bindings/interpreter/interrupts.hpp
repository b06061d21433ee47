// Ctrl-C during a long call: lets libbackplane ask Python for signals between the parts of its work.
#pragma once

namespace backplane::python {

// Once, with the interpreter lock, from any thread. False with a Python error set.
bool watch_interrupts();

// Is this Python's main thread, which alone handles signals and ends the interpreter?
bool on_main_thread() noexcept;

}  // namespace backplane::python
