/* What a launch costs the host at the least: an empty kernel, by the driver alone. Prints JSON: seconds per launch, and
 * per launch of a graph of 20. */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char* const kPtx =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }\n";

static void* library;
static void* find(const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "no %s\n", name), exit(1);
  return found;
}
static void check(int status, const char* what) {
  if (status) fprintf(stderr, "%s: %d\n", what, status), exit(1);
}
static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + 1e-9 * at.tv_nsec;
}

int main(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*init)(unsigned) = find("cuInit");
  int (*get)(int*, int) = find("cuDeviceGet");
  int (*retain)(void**, int) = find("cuDevicePrimaryCtxRetain");
  int (*set)(void*) = find("cuCtxSetCurrent");
  int (*load)(void**, const void*) = find("cuModuleLoadData");
  int (*function)(void**, void*, const char*) = find("cuModuleGetFunction");
  int (*make)(void**, unsigned) = find("cuStreamCreate");
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) =
      find("cuLaunchKernel");
  int (*wait)(void*) = find("cuStreamSynchronize");
  int (*begin)(void*, int) = find("cuStreamBeginCapture_v2");
  int (*end)(void*, void**) = find("cuStreamEndCapture");
  int (*instantiate)(void**, void*, unsigned long long) = find("cuGraphInstantiateWithFlags");
  int (*replay)(void*, void*) = find("cuGraphLaunch");
  int device;
  void *context, *module, *kernel, *stream, *graph, *executable;
  check(init(0), "cuInit"), check(get(&device, 0), "cuDeviceGet"), check(retain(&context, device), "retain");
  check(set(context), "cuCtxSetCurrent"), check(load(&module, kPtx), "cuModuleLoadData");
  check(function(&kernel, module, "empty"), "cuModuleGetFunction"), check(make(&stream, 1), "cuStreamCreate");
  unsigned long long a = 0, b = 0, c = 0;
  void* parameters[] = {&a, &b, &c};
  check(begin(stream, 2), "begin");
  for (int i = 0; i < 20; ++i) check(launch(kernel, 1, 1, 1, 128, 1, 1, 0, stream, parameters, 0), "launch");
  check(end(stream, &graph), "end"), check(instantiate(&executable, graph, 0), "instantiate");
  double best = 1, best_graph = 1;
  for (int turn = 0; turn < 50; ++turn) {
    double start = now();
    for (int i = 0; i < 200; ++i) check(launch(kernel, 1, 1, 1, 128, 1, 1, 0, stream, parameters, 0), "launch");
    double took = (now() - start) / 200;
    if (took < best) best = took;
    check(wait(stream), "wait");
    start = now();
    for (int i = 0; i < 20; ++i) check(replay(executable, stream), "cuGraphLaunch");
    took = (now() - start) / 20;
    if (took < best_graph) best_graph = took;
    check(wait(stream), "wait");
  }
  printf("{\"launch\": %.9f, \"graph of 20\": %.9f}\n", best, best_graph);
  return 0;
}
