# ./dev test site: the pages that ./dev docs made, in headless Chromium. tests/verbs.sh reads this file.

site() { # [PAGE...]
  local html=$root/build/site/html
  html=$html/$(sed -n 's/^project(Backplane VERSION \([0-9]*\.[0-9]*\).*/\1/p' "$root/CMakeLists.txt")
  has chromium || die "test site: needs Chromium. Fix: apt-get install chromium"
  [ -f "$html/index.html" ] || die "test site: there is no $html. Fix: ./dev docs"
  venv .venv-site playwright axe-playwright-python
  run "$root/.venv-site/bin/python" "$root/tests/site/check_site.py" --html "$html" --chromium "$(command -v chromium)" "$@"
}
