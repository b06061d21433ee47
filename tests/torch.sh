# The bridge to PyTorch, in an environment of its own. tests/verbs.sh reads this file.

# torch is exact: its private interfaces differ between minor versions.
torch_packages=(torch==2.13.0 numpy pytest transformers expecttest)

torch_tests() { # OPTION...
  (cd "$root" && run .venv-torch/bin/python -m pytest -q -p no:cacheprovider --junitxml="$results/torch.xml" tests/torch -p no:logging "$@" >&2)
}

# All of it; the environment is made here.
torch() { # OPTION...
  local status=0
  case $preset in release | debug) ;; *) die "torch runs with the presets release and debug" ;; esac
  build "${package_targets[@]}" backplane_vulkan
  venv .venv-torch "${torch_packages[@]}"
  environment
  results=$root/build/$preset/results-torch
  mkdir -p "$results"
  export BACKPLANE_TORCH_WHOLE=1
  torch_tests "$@" || status=$?
  python3 "$root/tests/count_by_file.py" "$results/torch.xml" || status=1
  return $status
}

# The short form, where the environment has been made.
short_torch() {
  [ -f "$root/.venv-torch/.holds" ] || { say "torch: no .venv-torch (./dev test torch makes it): the bridge to PyTorch is left out"; return 0; }
  torch_tests
}
