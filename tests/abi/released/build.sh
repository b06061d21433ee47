#!/bin/sh
# Builds the sample plugins of a release of the contract, once: by gcc and by clang, stripped, each a few KB. What it
# wrote is committed in the folder of the minor and never built again: tests load it as it is.
# usage: build.sh FOLDER, from the root of the tree whose headers they are to be built with
set -eu
here=tests/abi/released out=${1:?the folder of the minor, tests/abi/released/MAJOR_MINOR}
mkdir -p "$out"
flags="-shared -fPIC -O2 -fvisibility=hidden -Idispatcher/abi -Idispatcher/include -Itests/loader/plugins -s
  -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -Wl,--version-script=cmake/plugin.map"

build() { # NAME SOURCE COMPILER OPTION...
  name=$1 source=$2
  shift 2
  # shellcheck disable=SC2086
  "$@" "-DPLUGIN=\"released_$name\"" -o "$out/$name.so" "$here/$source" $flags
}

for compiler in gcc clang; do
  build "device_c_$compiler" device.c "$compiler" -std=c11
  build "device_c_${compiler}_for_minor_1" device.c "$compiler" -std=c11 -DBP_TARGET_MINOR=1
  build "stream_c_$compiler" stream.c "$compiler" -std=c11
done
build op_cpp_gcc op.cpp g++ -std=c++20 -fno-gnu-unique -DBP_PLUGIN_FLAGS=BP_PLUGIN_UNLOADABLE
build op_cpp_clang op.cpp clang++ -std=c++20 -DBP_PLUGIN_FLAGS=BP_PLUGIN_UNLOADABLE
ls -l "$out"
