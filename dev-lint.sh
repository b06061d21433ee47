# ./dev format, ./dev lint, and their part of ./dev check: clang-format, ruff, mypy and clang-tidy. Read by ./dev.

cpp_files() { # [GIT-OPTION...]: our C++ and CUDA sources, without goldens and libraries of others
  (cd "$root" && git ls-files "$@" -- '*.h' '*.hpp' '*.c' '*.cpp' '*.cu' ':!tests/**/golden*/**' ':!third_party/**')
}

format_sources() {
  install_packages "${check_packages[@]}"
  (cd "$root" && cpp_files | run xargs -r clang-format -i)
}

format_check() {
  install_packages "${check_packages[@]}"
  (cd "$root" && cpp_files | run xargs -r clang-format --dry-run --Werror)
}

# The package as a type checker sees it: our sources, and the stubs of the latest build.
lint_types() {
  local built=$root/build/$preset/python/backplane types=$root/build/types
  if [ ! -f "$built/_core.pyi" ]; then
    say "dev: types are not checked: no build has made the stubs. Fix: ./dev build"
    return 0
  fi
  rm -rf "$types/backplane" && mkdir -p "$types"
  cp -r "$root/python/backplane" "$types/backplane"
  cp "$built"/_core.pyi "$built"/_registry.pyi "$types/backplane"
  cp -r "$built/compat/numpy" "$built/compat/torch" "$types/backplane/compat"
  (cd "$types" && run "$root/.venv-lint/bin/mypy" --config-file "$root/pyproject.toml" --cache-dir "$types/cache" --no-error-summary -p backplane)
}

lint_python() {
  venv .venv-lint "${lint_packages[@]}" || return 1
  local broken=0
  (cd "$root" && run .venv-lint/bin/ruff check --quiet .) || broken=1
  lint_types || broken=1
  return $broken
}

# The C++ files that differ from main, or on main from the commit before: at most `most_tidied` of them, since one takes seconds.
most_tidied=6
changed_sources() {
  local base
  base=$(cd "$root" && git merge-base HEAD origin/main 2>/dev/null || git -C "$root" merge-base HEAD main 2>/dev/null) || return 0
  [ "$base" != "$(git -C "$root" rev-parse HEAD)" ] || base=HEAD~1
  (cd "$root" && git diff --name-only --diff-filter=d "$base" -- 'dispatcher/**/*.cpp' 'python/bindings/**/*.cpp') | head -n "$most_tidied"
}

lint_cpp() { # [FILE...]; without: the changed ones
  local generated=$root/build/$preset/dispatcher/generated files=("$@")
  [ ${#files[@]} -gt 0 ] || mapfile -t files < <(changed_sources)
  [ ${#files[@]} -gt 0 ] || return 0
  if [ ! -d "$generated/include" ]; then
    say "dev: clang-tidy is left out: no build has made the generated headers. Fix: ./dev build"
    return 0
  fi
  if ! (install_packages "${tidy_packages[@]}") || ! has clang-tidy; then
    say "dev: clang-tidy is left out"
    return 0
  fi
  (cd "$root" && run timeout 90 clang-tidy --quiet "${files[@]}" -- -std=c++20 -DBACKPLANE_BUILD '-DBACKPLANE_VERSION=""' -I. -Idispatcher -Idispatcher/abi -Iconformance \
    -Idispatcher/include -Ipython "-I$generated" "-I$generated/include" $("$root/.venv/bin/python" -m pybind11 --includes) 2> >(grep -v 'warnings generated' >&2)) && return 0
  [ $? -ne 124 ] || { say "dev: clang-tidy was stopped after 90 seconds; ./dev lint FILE looks at one file"; return 0; }
  return 1
}
