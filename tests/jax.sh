# tests/verbs.sh reads this file.

# The bridge to JAX, with the newest jaxlib and with the oldest that is supported.
jax() { # OPTION...
  local status=0
  case $preset in release | debug) ;; *) die "jax runs with the presets release and debug" ;; esac
  build "${package_targets[@]}"
  venv .venv-jax jax numpy pytest flatbuffers
  environment
  results=$root/build/$preset/results-jax
  mkdir -p "$results"
  (cd "$root" && run .venv-jax/bin/python -m pytest -q -p no:cacheprovider --junitxml="$results/jax.xml" tests/jax "$@" >&2) || status=$?
  venv .venv-jax-oldest jax==0.8.0 jaxlib==0.8.0 numpy pytest flatbuffers
  (cd "$root" && run .venv-jax-oldest/bin/python -m pytest -q -p no:cacheprovider --junitxml="$results/jax-oldest.xml" tests/jax \
    --ignore=tests/jax/test_jax_gradients.py "$@" >&2) || status=$?
  python3 "$root/tests/count_by_file.py" "$results/jax.xml" || status=1
  python3 "$root/tests/count_by_file.py" "$results/jax-oldest.xml" || status=1
  return $status
}
