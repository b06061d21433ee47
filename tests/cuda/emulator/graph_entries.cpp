// The entry points of libcuda.so.1 about graphs: what a stream captures, and its replays.
#include "entries.hpp"

using namespace emulator;

extern "C" {

int cuStreamBeginCapture_v2(driver::Stream stream, int mode) {
  BP_EMULATOR_ENTER_STREAM(cuStreamBeginCapture, stream);
  if (on->capture) return refuse("cuStreamBeginCapture", "the stream is capturing already", 1);
  if (mode < driver::kCaptureGlobal || mode > driver::kCaptureRelaxed) return 1;
  on->capture = std::make_shared<Capture>(Capture{mode, std::this_thread::get_id(), false, {}});
  return 0;
}
int cuStreamEndCapture(driver::Stream stream, driver::Graph* graph) {
  BP_EMULATOR_ENTER_CONTEXT(cuStreamEndCapture);
  *graph = nullptr;
  auto& streams = Device::instance().streams;
  const auto on = streams.find(stream);
  if (!on) return refuse_handle("cuStreamEndCapture", streams, stream, "stream");
  if (!on->capture) return refuse("cuStreamEndCapture", "the stream does not capture", 1);
  if (on->capture->mode != driver::kCaptureRelaxed && on->capture->thread != std::this_thread::get_id())
    return refuse("cuStreamEndCapture", "the capture began on another thread", 908);
  const auto capture = std::move(on->capture);
  on->capture = nullptr;
  if (capture->broken) return 901;
  auto made = std::make_shared<const Graph>(Graph{on->device, std::move(capture->works)});
  *graph = static_cast<driver::Graph>(Device::instance().graphs.add(std::move(made)));
  return 0;
}
int cuGraphInstantiateWithFlags(driver::Executable* executable, driver::Graph graph, unsigned long long flags) {
  BP_EMULATOR_ENTER_CONTEXT(cuGraphInstantiate);
  if (flags != 0) return refuse("cuGraphInstantiate", "its flags are not emulated", 801);
  auto& graphs = Device::instance().graphs;
  const auto found = graphs.find(graph);
  if (!found) return refuse_handle("cuGraphInstantiate", graphs, graph, "graph");
  *executable = static_cast<driver::Executable>(Device::instance().executables.add(found));
  return 0;
}
int cuGraphLaunch(driver::Executable executable, driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuGraphLaunch, stream);
  auto& executables = Device::instance().executables;
  const auto found = executables.find(executable);
  if (!found) return refuse_handle("cuGraphLaunch", executables, executable, "executable graph");
  if (found->device != on->device) return refuse("cuGraphLaunch", "the graph is of another context than the stream", 1);
  for (const Work& work : found->works) Device::instance().record(*on, work);
  return 0;
}
int cuGraphDestroy(driver::Graph graph) {
  BP_EMULATOR_ENTER(cuGraphDestroy);
  auto& graphs = Device::instance().graphs;
  if (!graphs.find(graph)) return refuse_handle("cuGraphDestroy", graphs, graph, "graph");
  graphs.erase(graph);
  return 0;
}
int cuGraphExecDestroy(driver::Executable executable) {
  BP_EMULATOR_ENTER(cuGraphExecDestroy);
  auto& executables = Device::instance().executables;
  if (!executables.find(executable))
    return refuse_handle("cuGraphExecDestroy", executables, executable, "executable graph");
  executables.erase(executable);
  return 0;
}

}  // extern "C"
