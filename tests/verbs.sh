# The verbs of ./dev that run tests, which reads this file for them: what runs, where, and under which sanitizer.

source "$root/tests/conformance.sh"
source "$root/tests/torch.sh"
source "$root/tests/site.sh"
source "$root/tests/jax.sh"
source "$root/tests/suites.sh"

# What the thread sanitizer is for: tests of C++ whose names match, and files of tests/python.
threaded_cpp='[Tt]hread|[Pp]arallel|[Uu]nload|[Ee]poch|[Ss]tream|[Pp]ool|[Dd]rain'
threaded_python=(test_{threads,autograd_threads,streams,waiting,hung_waits,errors_follow_data,lifetimes,capture,context_settings}.py
  graph/test_traces_of_threads.py graph/staleness/test_stale_during.py distributed/test_device_{group,provider}.py)

# What `./dev test short` leaves out of tests/python: tests that run programs of their own or wait for a driver's compiler, and
# laws of graphs alone. Under a sanitizer these take most of the time, and reach little code that the others do not reach.
long_python=(conformance/test_{faults,report,stopped,hangs,async}.py scalar fuzz numbers onnx_models distributed/test_collectives.py
  test_{exit,native_stack,interrupts,fork,leaks,garbage}.py test_vulkan{,_layers,_rows,_fusion,_processes}.py
  laws/test_law_{trace,dynamic,meta}.py laws/test_opcheck_of_entries.py)

# An allocation beyond the address sanitizer's limit fails, as one that the machine has no memory for.
sanitizer_environment() {
  export ASAN_OPTIONS="allocator_may_return_null=1:max_allocation_size_mb=1024:${ASAN_OPTIONS:-}"
  export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
  export TSAN_OPTIONS="suppressions=$root/tests/tsan.supp:ignore_noninstrumented_modules=1:${TSAN_OPTIONS:-}"
  export LSAN_OPTIONS="suppressions=$root/tests/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
}

# An interpreter leaks by design, so leaks are looked for in the C++ tests alone. Freed memory is held back for less
# than the warm-up of test_leaks.py allocates, so that what it measures has settled.
sanitizer_preload() {
  local library
  case $preset in
    asan) library=libasan.so python_environment=("ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64:${ASAN_OPTIONS:-}") ;;
    tsan) library=libtsan.so ;;
    *) return 0 ;;
  esac
  python_environment+=("LD_PRELOAD=$(g++ -print-file-name=$library) $(g++ -print-file-name=libstdc++.so)")
}

# ctest_in FOLDER NAME ARG...
ctest_in() {
  local folder=$1 name=$2
  shift 2
  run ctest --test-dir "$folder" --parallel "$jobs" --timeout 900 --output-on-failure --no-tests=ignore \
    --output-junit "$results/$name.xml" "$@" >"$results/$name.log" && return 0
  tail -n 200 "$results/$name.log" >&2
  return 1
}

cpp_tests() {
  local status=0
  ctest_in "$root/build/$preset" cpp "$@" || status=1
  ctest_in "$root/build/$preset/example" example-cpp "$@" || status=1
  return $status
}

# pytest_in NAME PATH... [OPTION...]. Status 5 of pytest: no test of that name.
pytest_in() {
  local name=$1 status=0
  shift
  (cd "$root" && run env "BACKPLANE_CRASH_REPORTS=$results" "${python_environment[@]}" .venv/bin/python -m pytest -q \
    -p no:cacheprovider -p no:logging --junitxml="$results/$name.xml" "$@" >&2) || status=$?
  [ $status -eq 0 ] || [ $status -eq 5 ]
}

# pytest_shared NAME PATH... [OPTION...]: in as many processes as there are cores; then, one by one in a process without
# workers, the tests marked `alone`, which measure their own process.
pytest_shared() {
  local name=$1 status=0 paths=() options=() ignored=(-e none) alone one
  shift
  pytest_in "$name" "$@" -m "not alone" --numprocesses "$jobs" --dist worksteal || status=1
  for one in "$@"; do
    if [ -e "$root/$one" ]; then paths+=("$one"); else options+=("$one"); fi
    case $one in --ignore=*) ignored+=(-e "${one#--ignore=}") ;; esac
  done
  mapfile -t alone < <(cd "$root" && grep -rl --include='test_*.py' 'mark\.alone' "${paths[@]}" |
    grep -vxF "${ignored[@]}") # to collect all files takes a minute
  [ ${#alone[@]} -eq 0 ] || pytest_in "$name-alone" "${alone[@]}" "${options[@]}" -m alone || status=1
  return $status
}

# In one process: what the sanitizer has seen is its exit status.
threaded_python_tests() { # OPTION...
  pytest_in python "${threaded_python[@]/#/tests/python/}" "$@"
}

python_tests() { # OPTION...
  local status=0
  [ "$preset" != tsan ] || { threaded_python_tests "$@"; return; }
  pytest_shared python tests/python "$@" || status=1
  pytest_in example plugins/example "$@" || status=1
  return $status
}

# laws_on_simulator [OPTION...]: its kernels are the primitives, and only what is `host: true` may run on the host in its place.
laws_on_simulator() {
  python_environment+=(BACKPLANE_LAW_DEVICE=sim BACKPLANE_LAW_PLUGIN="$BACKPLANE_EXAMPLE_PLUGINS/simulator.so")
  pytest_in simulator tests/python/laws --numprocesses "$jobs" --dist worksteal "$@"
}

# sdk_tests [VARIABLE=VALUE...]: projects that `backplane new` makes of the installed SDK. Sanitizers are for the library.
sdk_tests() {
  local options=(--numprocesses "$jobs" --dist loadfile)
  [ "$preset" = release ] || return 0
  [ $# -eq 0 ] || options=(-s) # the whole form shows what its projects print
  python_environment+=("$@")
  has ccache && python_environment+=(CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache)
  python_environment+=("BACKPLANE_EMULATED_DRIVER=$root/build/$preset/emulated_driver")
  pytest_in sdk tests/sdk "${options[@]}"
}

# Compiles tests/cuda/nvidia against NVIDIA's headers, and runs it on NVIDIA's libraries.
cuda_declarations() {
  local nvcc wheel cudnn nccl toolkit
  has_cuda || die "check cuda needs nvcc, whose headers the libraries' headers include"
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include
  [ -f "$toolkit/cuda.h" ] || toolkit=/usr/local/cuda/include
  venv .venv-cuda "${cuda_packages[@]}" "${cudnn_packages[@]}" "${nccl_packages[@]}"
  wheel=$(dirname "$root"/.venv-cuda/lib/python3*/site-packages/nvidia/cu13/include)
  cudnn=$(dirname "$wheel")/cudnn
  nccl=$(dirname "$wheel")/nccl
  mkdir -p "$root/build/check"
  run g++ -std=c++20 -Wno-deprecated-declarations -isystem "$wheel/include" -isystem "$cudnn/include" -isystem "$nccl/include" -isystem "$toolkit" -I "$root/tests/cuda" -I "$root/backends/cuda" -I "$root/plugins/collectives_nccl" \
    -o "$root/build/check/nvidia" "$root/tests/cuda/nvidia/check.cpp" -ldl
  run env "LD_LIBRARY_PATH=$wheel/lib:$cudnn/lib:$nccl/lib" "$root/build/check/nvidia"
}

# Every kernel for each target, as the driver would assemble it. The oldest target is that of the PTX.
cuda_kernels() {
  local nvcc ptxas
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  ptxas=$(command -v ptxas || echo "$(dirname "$(readlink -f "$nvcc")")/ptxas")
  setup
  configure
  build backplane_cuda_kernels
  run python3 "$root/tests/cuda/ptxas_table.py" --ptx "$root/build/$preset/backends/cuda/ptx" --ptxas "$ptxas" --jobs "$jobs" \
    75 80 90 100 >"$root/build/check/kernels.md" || return 1
  cat "$root/build/check/kernels.md"
}

# NVIDIA's NVRTC of the wheel, alone in a folder: its neighbours there are real libraries, which an emulated driver is no
# driver for. Fails where there is none.
nvrtc_alone() {
  local library folder=$root/build/$preset/nvrtc
  library=$(compgen -G "$root/.venv-cuda/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13") || return 1
  mkdir -p "$folder"
  ln -sf "$library" "$(dirname "$library")"/libnvrtc-builtins.so.* "$folder"
}

# The CUDA backend's compiler: NVRTC's PTX on the emulated driver; what was compiled is kept with the build.
cuda_fusion() {
  local driver=$root/build/$preset/emulated_driver
  [ -e "$driver/libcuda.so.1" ] && nvrtc_alone || { say "cuda: no NVRTC (./dev test cuda installs it): its regions are left out"; return 0; }
  local python_environment=("${python_environment[@]}" "LD_LIBRARY_PATH=$driver:$root/build/$preset/nvrtc"
    BACKPLANE_CUDA_EXACT_MEMORY=1 "BACKPLANE_CUDA_CACHE=$root/build/$preset/cuda-cache")
  pytest_in cuda-fusion tests/python/test_cuda_fusion.py
}

has_emulated_driver() {
  [ -e "$root/build/$preset/emulated_driver/libcuda.so.1" ] && return 0
  say "cuda: not built, for there is no nvcc: its tests are left out"
  return 1
}

# The tests of the CUDA backend in Python, on the emulated driver of tests/cuda. Each tensor has a block of its own, so that
# the emulator sees what lies beyond one.
cuda_in_python() {
  has_emulated_driver || return 0
  local python_environment=("${python_environment[@]}" "LD_LIBRARY_PATH=$root/build/$preset/emulated_driver" BACKPLANE_CUDA_EXACT_MEMORY=1)
  pytest_in cuda tests/python/test_cuda{,_attention,_convolution,_fusion,_linalg,_lines,_loss,_products,_sorting}.py tests/python/test_streams.py tests/python/test_capture.py \
    --numprocesses "$jobs" --dist worksteal
}

# These, and every mode of the kit that judges. Without libraries, and again with their stand-ins.
cuda_on_the_emulator() {
  local mode ops status=0 driver=$root/build/$preset/emulated_driver libraries=$root/build/$preset/emulated_libraries
  has_emulated_driver || return 0
  cuda_in_python || status=1
  venv .venv-cuda "${cuda_packages[@]}"
  cuda_fusion || status=1
  python_environment+=("LD_LIBRARY_PATH=$driver:$libraries" BACKPLANE_CUDA_EXACT_MEMORY=1)
  pytest_in cuda-libraries tests/python/test_cuda_{products,convolution,linalg}.py || status=1
  for ops in 'matmul*' '*linear*' addmm 'conv2d*' '*fft*' cholesky 'solve*' inv '*det' 'qr*' 'svd*' 'eig*h' pinv; do # what NVIDIA's libraries compute, on their stand-ins
    kept_conformance cuda-libraries env "LD_LIBRARY_PATH=$driver:$libraries" BACKPLANE_CUDA_EXACT_MEMORY=1 \
      backplane conformance --device cuda --op "$ops" || status=1
  done
  async_conformance cuda || status=1
  for mode in test grad stress; do
    kept_conformance "cuda-$mode" env "LD_LIBRARY_PATH=$driver" BACKPLANE_CUDA_EXACT_MEMORY=1 \
      backplane conformance --device cuda --mode "$mode" || status=1
  done
  return $status
}

# What runs: everything; under the thread sanitizer threaded_cpp and threaded_python.
tests_of_preset() {
  local filter=${1:-} broken=0 cpp=() folder
  sanitizer_preload
  [ "$preset" != tsan ] || cpp=(-R "$threaded_cpp")
  case $filter in
    "" | cpp | python | short) ;;
    *) export BACKPLANE_WHOLE=1 ;; # what is asked for by name runs in its whole form
  esac
  case $filter in
    cpp) cpp_tests "${cpp[@]}" || broken=1 ;;
    python) python_tests || broken=1 ;;
    structure) pytest_in structure tests/structure --numprocesses "$jobs" || broken=1 ;;
    "" | whole)
      cpp_tests "${cpp[@]}" || broken=1
      python_tests || broken=1
      [ "$preset" != release ] || cuda_in_python || broken=1
      [ "$preset" != release ] || cuda_fusion || broken=1
      sdk_tests || broken=1
      [ "$preset" != release ] || short_torch || broken=1
      # Values, variants and errors; the other laws there are ./dev test ops.
      [ "$preset" != release ] || laws_on_simulator -k "test_law_values or test_law_variants" || broken=1 ;;
    short)
      cpp_tests || broken=1
      python_tests "${long_python[@]/#/--ignore=tests/python/}" || broken=1 ;;
    sdk)
      venv .venv "${demo_packages[@]}"
      sdk_tests BACKPLANE_SDK_WHOLE=1 || broken=1 ;;
    ops) # the laws and the fuzzer over every op; then the laws again where primitives alone have kernels
      pytest_shared python tests/python/laws tests/python/fuzz || broken=1
      laws_on_simulator || broken=1 ;;
    conformance)
      cpp_tests -R conformance || broken=1
      pytest_shared python tests/python/conformance || broken=1
      whole_conformance || broken=1 ;;
    async)
      pytest_in async tests/python/conformance/test_async.py || broken=1
      async_conformance "${@:2}" || broken=1 ;;
    unload) # 10,000 reloads while other threads call; the figures
      cpp_tests -R '[Uu]nload' || broken=1
      run env "BACKPLANE_UNLOAD_CYCLES=${BACKPLANE_UNLOAD_CYCLES:-10000}" "$root/build/$preset/bin/test_loader" \
        --gtest_filter='UnloadCycles.*' >&2 || broken=1 ;;
    graph) # the law over every op and dtype, and of transforms, control flow, compile, plans and files
      cpp_tests -R '^(graph|control|trace)/' || broken=1
      pytest_shared python tests/python/graph tests/python/laws/test_law_trace.py || broken=1 ;;
    cuda)
      cpp_tests -R '^(backends/)?cuda/' || broken=1
      cuda_on_the_emulator || broken=1 ;;
    vulkan)
      cpp_tests -R '^backends/vulkan/|backplane_vulkan' || broken=1
      python_tests -k vulkan || broken=1
      vulkan_whole || broken=1 ;;
    transforms) # the generated laws are part of them
      cpp_tests -R '^(levels|tape|grad|jvp|batch|functions)/' || broken=1
      pytest_shared python tests/python/transforms tests/python/laws || broken=1 ;;
    *)
      cpp_tests -R "$filter" || broken=1
      folder=$(find "$root/tests/python" -type d -name "$filter" -print -quit)
      if [ -n "$folder" ]; then # a folder's name: ./dev test laws
        pytest_shared python "$folder" || broken=1
      else
        python_tests -k "$filter" || broken=1
      fi ;;
  esac
  return $broken
}

test_all() { # [FILTER [ARG...]]
  local broken=()
  results=$root/build/$preset/results
  build
  build_example
  rm -rf "$results" && mkdir -p "$results"
  environment
  sanitizer_environment
  tests_of_preset "$@" || broken=(--broken "$preset")
  python3 "$root/tests/count_results.py" "${broken[@]}" "$results"/*.xml
}

# All of the collectives' tests, on 2 to 4 ranks over MPI; the quick suite has a short form.
collectives() { # OPTION...
  local status=0
  build "${package_targets[@]}"
  environment
  (cd "$root" && run env BACKPLANE_COLLECTIVES_WHOLE=1 .venv/bin/python -m pytest -q -p no:cacheprovider tests/python/distributed "$@" >&2) || status=$?
  return $status
}

# kill -9 at many random points: of a rank within collectives, and of a process that saves.
kills() { # OPTION...
  local status=0
  build "${package_targets[@]}"
  environment
  (cd "$root" && run env BACKPLANE_COLLECTIVES_WHOLE=1 BACKPLANE_COLLECTIVES_KILLS=100 BACKPLANE_SAVING_KILLS=200 .venv/bin/python -m pytest -q \
    -p no:cacheprovider tests/python/distributed tests/python/test_saving.py -k killed "$@" >&2) || status=$?
  return $status
}

# Errors against mpmath, at many points.
numbers() { # OPTION...
  local python=.venv one
  build "${package_targets[@]}"
  for one in "$@"; do [ "$one" != --peers ] || python=.venv-bench; done
  if [ "$python" != .venv ]; then # a folder .venv-bench makes later builds build the benchmarks
    install_packages "${bench_packages[@]}"
    venv .venv-bench "${bench_python_packages[@]}"
  fi
  environment
  (cd "$root" && run "$python/bin/python" tests/python/numbers/report.py "$@")
}

# The parser of graphs and the loader of models, on damaged texts and files.
fuzz_graph() {
  local rounds=100000 seed=$RANDOM
  while [ $# -gt 0 ]; do
    case $1 in
      --rounds) rounds=$2; shift 2 ;;
      --seed) seed=$2; shift 2 ;;
      *) die "fuzz graph knows: --rounds N, --seed S" ;;
    esac
  done
  build
  environment
  export ASAN_OPTIONS=max_allocation_size_mb=64
  sanitizer_environment
  run env "${python_environment[@]}" BACKPLANE_FUZZ_ROUNDS="$rounds" BACKPLANE_FUZZ_SEED="$seed" \
    "$root/build/$preset/bin/test_graph" --gtest_filter='*Damage*'
}

# Programs of streams on the unkind devices: two minutes of them, or as many as --sequences says.
fuzz_streams() {
  local build=$root/build/$preset
  setup
  configure
  build fuzz_streams unkind backplane_cpu
  sanitizer_environment
  run "$build/bin/fuzz_streams" "$build/lib/backplane/plugins/backplane_cpu.so" "$build/tests/unkind/files/unkind.so" "$@"
}

fuzz() {
  case ${1:-} in
    graph) shift; fuzz_graph "$@"; return ;;
    streams) shift; fuzz_streams "$@"; return ;;
    ops | transforms) ;;
    *) die "fuzz knows: ops, transforms, graph, streams" ;;
  esac
  build
  build_example # tensors of another device are among the arguments
  environment
  # Memory for no more elements than a case can compute in its time.
  export ASAN_OPTIONS=max_allocation_size_mb=64 BACKPLANE_SIM_MEMORY=$((64 << 20))
  sanitizer_environment
  sanitizer_preload
  run env "${python_environment[@]}" "$root/.venv/bin/python" "$root/tests/python/fuzz/fuzz_$1.py" "${@:2}"
}
