// Ctrl-C during a long call: lets libbackplane ask Python for signals between the parts of its work.
#pragma once

namespace backplane::python {

// From the main thread, which alone handles signals in Python.
void watch_interrupts();

}  // namespace backplane::python
