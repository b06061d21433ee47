# ./dev deb and ./dev test deb. packages/verbs.sh reads this file.

deb_tools=(dpkg-dev fakeroot lintian)

# The packages of this Debian, in dist/. build/deb has the flags of the preset release, so the compiler cache has most of it.
deb() {
  has dpkg-query || die "deb: this system has no dpkg. Fix: run it on Debian"
  setup
  install_packages "${deb_tools[@]}"
  source_date
  local system_minor minor
  minor=$("$root/.venv/bin/python" -c 'import sys; print(sys.version_info[1])')
  system_minor=$(/usr/bin/python3 -c 'import sys; print(sys.version_info[1])' 2>/dev/null || true)
  [ "$minor" = "$system_minor" ] || die "deb: .venv has Python 3.$minor, Debian's is 3.${system_minor:-?}. Fix: make .venv with /usr/bin/python3"
  mkdir -p "$root/dist"
  rm -f "$root"/dist/*.deb
  local launchers=()
  if has ccache; then launchers=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  (cd "$root" && run cmake --preset release -B build/deb "${launchers[@]}" "-DPython_EXECUTABLE=$root/.venv/bin/python" \
    "-Dpybind11_DIR=$("$root/.venv/bin/python" -m pybind11 --cmakedir)" -DBACKPLANE_TESTS=OFF -DBACKPLANE_CUDA=OFF -DBACKPLANE_DEBIAN=ON \
    -DBACKPLANE_PYTHON_DIR=lib/python3/dist-packages -DCMAKE_INSTALL_PREFIX=/usr "-DCMAKE_INSTALL_LIBDIR=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" \
    -DCMAKE_SKIP_INSTALL_RPATH=ON -DCMAKE_{SHARED,MODULE,EXE}_LINKER_FLAGS=-Wl,-s >&2) # why -s: pyproject.toml
  run cmake --build "$root/build/deb" --parallel "$jobs" >&2
  rm -rf "$root/build/deb/packages"
  (cd "$root/build/deb" && run cpack -G DEB >&2)
  mv "$root"/build/deb/packages/*.deb "$root/dist/"
  (cd "$root/dist" && run lintian --allow-root --fail-on error ./*.deb >&2)
  (cd "$root/dist" && ls -l ./*.deb)
}

# A new Debian in $1, without anything else, that gets packages from where this machine gets them. debootstrap runs once; later roots are copies.
debian_root() {
  local suite base mirror
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  base=$root/build/packages/$suite
  if [ ! -d "$base" ]; then
    install_packages debootstrap
    mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ {print $2; exit}')
    mirror=${mirror:-$(awk '$1 == "deb" {print $2; exit}' /etc/apt/sources.list 2>/dev/null)}
    [ -n "$mirror" ] || die "no package source: found no URI in /etc/apt/sources.list.d and no line of deb in /etc/apt/sources.list. Fix: state one there"
    rm -rf "$base.part"
    mkdir -p "$root/build/packages"
    run debootstrap --variant=minbase --include=ca-certificates "$suite" "$base.part" "$mirror" >"$base.log"
    mv "$base.part" "$base"
  fi
  cp -a "$base/." "$1"
  rm -f "$1/etc/apt/sources.list"
  cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$1/etc/apt/"
  cp -r /usr/share/keyrings/. "$1/usr/share/keyrings/"
  cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

# Installs the packages of dist/ in a new Debian without anything else, and tries them there. In a subshell, for its trap.
test_deb() (
  compgen -G "$root/dist/*.deb" >/dev/null || deb
  [ "$(id -u)" -eq 0 ] || die "test deb: a new Debian needs root. Fix: sudo ./dev test deb"
  place=$(mktemp -d)
  trap 'umount "$place/proc" 2>/dev/null; rm -rf --one-file-system "$place"' EXIT
  debian_root "$place"
  mkdir "$place/packages"
  cp "$root"/dist/*.deb "$root/packages/try_debs.sh" "$place/packages/"
  mount -t proc proc "$place/proc"
  run env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$place" bash /packages/try_debs.sh >&2
)
