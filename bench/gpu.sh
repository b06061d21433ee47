# The verb `gpu` of ./dev, which reads this file for it: runs bench/gpu.py here, or packs what that needs for a machine with a GPU
# that has none of our packages and no network.

gpu_targets=("${package_targets[@]}" backplane_cuda backplane-cli)

build_gpu() {
  has_cuda || die "gpu needs nvcc"
  setup
  configure
  build "${gpu_targets[@]}"
  mkdir -p "$root/build/gpu"
  run gcc -O2 -o "$root/build/gpu/gpu_launch" "$root/bench/gpu_launch.c" -ldl
}

# Shared objects that FILE... need and that not every Linux has.
needed_libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libbackplane)\.so' | sort -u
}

# build/gpu/pack.tar.xz: a folder `pack` with `run` in it, for a Python of the version that .venv is of.
pack_gpu() {
  local release=$root/build/release pack=$root/build/gpu/pack file
  rm -rf "$pack"
  mkdir -p "$pack/bin" "$pack/lib/backplane/plugins" "$pack/python"
  cp "$release/bin/backplane" "$pack/bin/"
  cp "$release/lib/libbackplane.so.0" "$pack/lib/"
  cp "$release"/lib/backplane/plugins/backplane_{cpu,cuda}.{so,backplane.json} "$pack/lib/backplane/plugins/"
  needed_libraries "$pack/bin/backplane" "$pack"/lib/backplane/plugins/*.so | xargs -I {} cp -L {} "$pack/lib/"
  cp -r "$release/python/backplane" "$pack/python/"
  mkdir -p "$pack/share/backplane"
  cp "$release/share/backplane/samples.json" "$pack/share/backplane/"
  cp -r "$root/bench" "$root/examples" "$pack/"
  cp "$root/build/gpu/gpu_launch" "$pack/bin/"
  cp "$root/bench/gpu_run.sh" "$pack/run"
  find "$pack" -name __pycache__ -prune -exec rm -r {} +
  for file in "$pack/bin/backplane" "$pack"/lib/*.so* "$pack"/lib/backplane/plugins/*.so "$pack"/python/backplane/_core*.so; do
    strip --strip-unneeded "$file"
  done
  run tar -C "$root/build/gpu" -cf "$root/build/gpu/pack.tar.xz" --use-compress-program="xz -T0 -6" pack
  say "gpu: build/gpu/pack.tar.xz, $(du -m "$root/build/gpu/pack.tar.xz" | cut -f1) MiB: unpack it on the machine with the GPU, and pack/run --out FOLDER"
}

gpu() {
  build_gpu
  if [ "${1:-}" = --pack ]; then
    pack_gpu
    return
  fi
  venv .venv "${demo_packages[@]}"
  environment
  run "$root/.venv/bin/python" "$root/bench/gpu.py" --launch "$root/build/gpu/gpu_launch" --out "$root/build/gpu" "$@"
}
