# ./dev doctor, which reads this file: what this machine has and lacks.

tool() { # NAME WAY-TO-ITS-VERSION FIX
  if has "$1"; then
    printf '  %-14s %s\n' "$1" "$($2 2>&1 | awk 'NR == 1 || /release/ {line = $0} END {print line}')"
  else
    printf '  %-14s missing. Fix: %s\n' "$1" "$3"
  fi
}

doctor() {
  local missing
  printf 'machine\n  %-14s %s, %s cores\n' system "$(uname -sm)" "$jobs"
  printf 'tools\n'
  tool g++ "g++ --version" "apt-get install g++"
  tool cmake "cmake --version" "apt-get install cmake (3.25 or newer)"
  tool ninja "ninja --version" "apt-get install ninja-build"
  tool ccache "ccache --version" "apt-get install ccache (builds work without it)"
  tool python3 "python3 --version" "apt-get install python3 python3-venv python3-dev"
  tool glslc "glslc --version" "apt-get install glslc"
  tool nvcc "nvcc --version" "install NVIDIA's CUDA toolkit (the CUDA backend is left out without it)"
  tool nvidia-smi "nvidia-smi -L" "install NVIDIA's driver (CUDA tests are skipped by name without it)"
  tool clang-format "clang-format --version" "./dev check installs it"
  tool valgrind "valgrind --version" "./dev bench installs it"
  if has dpkg-query; then
    mapfile -t missing < <(missing_packages "${build_packages[@]}")
    printf 'packages\n  %s\n' "$([ ${#missing[@]} -eq 0 ] && echo complete || echo "missing: ${missing[*]}. Fix: ./dev setup")"
  fi
  printf 'python\n  %s\n' "$([ -f "$root/.venv/.holds" ] && echo ".venv: $(cat "$root/.venv/.holds")" || echo '.venv is missing. Fix: ./dev setup')"
  printf 'builds\n'
  for preset in release debug asan tsan; do
    [ -f "$root/build/$preset/build.ninja" ] && printf '  %s\n' "build/$preset"
  done
  preset=release
  if [ -x "$root/build/release/bin/backplane" ]; then
    environment
    printf 'backplane\n'
    backplane doctor | sed 's/^/  /'
  fi
}
