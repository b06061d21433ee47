#!/bin/sh
# Builds axpby without CMake, by the compiler line of the guide, and checks what it exports.
# usage: compiler_line.sh PREFIX-OF-THE-SDK SOURCE-FOLDER OUTPUT-FOLDER
set -eu
prefix=$1 source=$2 out=$3
pc=$(dirname "$(find "$prefix" -name backplane-plugin.pc)")
flags() { PKG_CONFIG_PATH=$pc pkg-config "$@"; }

mkdir -p "$out"
"$prefix/bin/backplane-codegen" --ops "$source/ops.yaml" --import "$(flags --variable=ops_yaml backplane)" --out "$out" \
  --symbol example --emit records,formulas
for part in records formulas; do
  ${CC:-cc} -O2 $(flags --cflags backplane-plugin) -c "$out/example_$part.c" -o "$out/$part.o"
done
${CXX:-c++} -std=c++20 -O2 -I"$out" -DBP_PLUGIN_NAME='"axpby"' $(flags --cflags backplane-plugin) \
  "$source/plugin.cpp" "$out/records.o" "$out/formulas.o" -o "$out/axpby.so" $(flags --libs backplane-plugin)

exported=$(nm -D --defined-only "$out/axpby.so" | awk '{print $NF}')
[ "$exported" = bp_plugin_query ] || { echo "exported: $exported" >&2; exit 1; }
