# The verbs of ./dev that make packages and try them. ./dev reads this file for them.

source "$root/packages/wheels.sh"
source "$root/packages/debs.sh"

# The steps of a release; a dry run by default.
release() {
  venv .venv-release towncrier
  run python3 "$root/packages/release.py" "$@"
}
