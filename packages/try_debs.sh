#!/usr/bin/env bash
# Runs as root in a new Debian (./dev test deb): installs the packages beside this file, uses each of them as its users do, and removes them.
set -euo pipefail
cd /packages
export DEBIAN_FRONTEND=noninteractive
step() { echo "== $*"; }
apt() { apt-get "$@" -y -q --no-install-recommends >apt.log 2>&1 || { tail -n 20 apt.log; exit 1; }; }
expect() { # TEXT COMMAND...: the command's output contains the text
  local text=$1 output
  shift
  output=$("$@" 2>&1) || { printf '%s\n' "$output" "failed: $*"; exit 1; }
  grep -qF -- "$text" <<<"$output" || { printf '%s\n' "$output" "expected: $text" "from: $*"; exit 1; }
}
files() { find /etc /usr /var/lib/dpkg/info -xdev -not -path '/var/lib/dpkg/info/*.list' | sort; }

apt update
step "Python alone"
files >before
apt install ./python3-backplane_*.deb ./libbackplane0_*.deb
expect 6.0 python3 -c 'import backplane as bp; print(float(bp.grad(lambda x: (x * x).sum())(bp.ones(3)).sum()))'
expect cpu python3 -c 'import backplane as bp; print(bp.devices())'

step "all packages"
apt install ./*.deb g++ cmake make pkg-config python3-numpy
echo "installed: $(dpkg-query -W '*backplane*' | tr '\t\n' ' ,')"
expect "$(dpkg-query -W -f '${source:Upstream-Version}' libbackplane0)" python3 -c 'import importlib.metadata as m; print(m.version("backplane"))'
expect '[0.0, 1.0]' python3 -c 'import numpy, backplane as bp; print(numpy.asarray(bp.asarray(numpy.arange(2.0))).tolist())'
# Debian 12 has NumPy 1: backplane.numpy works with NumPy 2, and says so.
python3 -c 'import backplane.numpy as bn; bn.sin' >numpy.log 2>&1 || expect 'expected version 2 or later' cat numpy.log
expect cpu backplane devices
expect 'default device: cpu' backplane doctor
backplane conformance --device cpu --short --op 'bp::matmul' | tail -n 1

step "C++ programs, by pkg-config and by CMake"
mkdir program
cat >program/program.cpp <<'CODE'
#include <backplane/bp.hpp>
#include <cstdio>

int main() { std::printf("%g\n", bp::add(bp::ones({2}), bp::ones({2})).sum().item<double>()); }
CODE
cat >program/CMakeLists.txt <<'CODE'
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES CXX)
find_package(Backplane REQUIRED)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE Backplane::backplane)
CODE
g++ -std=c++20 program/program.cpp $(pkg-config --cflags --libs backplane) -o by_pkg_config
expect 4 ./by_pkg_config
cmake -S program -B program/build >cmake.log && cmake --build program/build >>cmake.log || { tail -n 20 cmake.log; exit 1; }
expect 4 program/build/program

step "an op and a backend of one's own"
backplane new op mine::wave wave
(cd wave && ci/run >ci.log 2>&1) || { tail -n 20 wave/ci.log; exit 1; }
tail -n 5 wave/ci.log
expect 'tensor(2.)' python3 -c 'import backplane as bp; bp.load_plugin("wave/build/lib/backplane/plugins/wave.so"); print(bp.grad(lambda x: bp.ops.mine.wave(x, speed=2))(bp.asarray(0.0)))'
backplane new backend acme acme
cmake -S acme -B acme/build >cmake.log && cmake --build acme/build --target acme >>cmake.log || { tail -n 20 cmake.log; exit 1; }
backplane conformance --device acme --plugin acme/build/lib/backplane/plugins/acme.so --short --op 'bp::add' | tail -n 1

step "removal"
expect 'Remv python3-backplane' apt-get remove --simulate libbackplane0
mapfile -t packages < <(dpkg-query -W -f '${Package}\n' '*backplane*')
apt purge "${packages[@]}"
apt purge --autoremove g++ cmake make pkg-config python3-numpy
left=$(files | comm -13 before - | grep -i backplane || true)
[ -z "$left" ] || { printf 'purge left:\n%s\n' "$left"; exit 1; }
echo "Debian packages: 1 passed, 0 failed"
