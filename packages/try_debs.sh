#!/usr/bin/env bash
# Runs as root in a new Debian (./dev test deb): installs the packages beside this file, and uses each of them.
set -euo pipefail
cd /packages
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ./*.deb g++ pkg-config >apt.log || { tail -n 20 apt.log; exit 1; }
echo "installed: $(dpkg-query -W '*backplane*' | tr '\t\n' ' ,')"
backplane doctor
backplane conformance --device cpu --short --op 'bp::matmul' | tail -n 1
[ "$(python3 -c 'import backplane as bp; print(float(bp.grad(lambda x: (x * x).sum())(bp.ones(3)).sum()))')" = 6.0 ]
[ "$(python3 -c 'import importlib.metadata as m; print(m.version("backplane"))')" = "$(backplane --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" ]
printf '%s\n' '#include <backplane/bp.hpp>' 'int main() { return bp::add(bp::ones({2}), bp::ones({2})).defined() ? 0 : 1; }' >program.cpp
g++ -std=c++20 program.cpp $(pkg-config --cflags --libs backplane) -o program
./program
backplane new backend acme /packages/acme >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends cmake make >apt.log
cmake -S acme -B acme/build >cmake.log && cmake --build acme/build --target acme >>cmake.log
backplane conformance --device acme --plugin acme/build/lib/backplane/plugins/acme.so --short --op 'bp::add' | tail -n 1
apt-get remove -y -q libbackplane0 >apt.log
if python3 -c 'import backplane' 2>/dev/null; then echo "removing the library left the Python package"; exit 1; fi
echo "Debian packages: 1 passed, 0 failed"
