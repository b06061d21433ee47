"""The steps of a release, numbered: `./dev release [--from N] [--to N] [--yes]`. Without --yes a dry run.

A dry run changes neither the repository nor dist/: it checks what can be checked, shows the changelog that would be written, and prints the
commands of all other steps. Every step is safe to repeat, so a release that stopped goes on with --from N. Nothing is pushed or uploaded.

The version is that of project() in CMakeLists.txt; all packages read it there.
"""

import argparse
import datetime
import gzip
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

TREE = pathlib.Path(__file__).resolve().parent.parent
DIST = TREE / "dist"


def defined(pattern, file):
    found = re.search(pattern, (TREE / file).read_text())
    if not found:
        raise SystemExit(f"release: {file} has no line that matches {pattern}")
    return found.group(1)


VERSION = defined(r"project\(Backplane VERSION ([0-9.]+)", "CMakeLists.txt")
MINOR = "_".join(defined(rf"#define BP_ABI_{part} (\d+)", "dispatcher/abi/backplane/abi/base.h") for part in ("MAJOR", "MINOR"))
TAG = f"v{VERSION}"
FRAGMENTS = [path for path in sorted((TREE / "changes").glob("*.*.md")) if path.name != "README.md"]


class Release:
    def __init__(self, dry):
        self.dry = dry

    def output(self, *words):
        return subprocess.run(words, cwd=TREE, check=True, capture_output=True, text=True).stdout

    def run(self, *words):
        """Runs a command that changes something; a dry run prints it."""
        print(("  would run: " if self.dry else "  + ") + " ".join(map(str, words)), flush=True)
        if not self.dry:
            subprocess.run(words, cwd=TREE, check=True)

    def refuse(self, message):
        """A dry run goes on, so that one run names all that is in the way."""
        if not self.dry:
            raise SystemExit(f"release: {message}")
        print(f"  in the way: {message}")

    def check_the_tree(self):
        """The tree: nothing uncommitted, no tag of this version."""
        if changed := self.output("git", "status", "--porcelain"):
            self.refuse(f"the tree has uncommitted changes. Fix: commit them, or git stash\n{changed.rstrip()}")
        if self.output("git", "tag", "--list", TAG):
            self.refuse(f"the tag {TAG} exists. Fix: raise the version of project() in CMakeLists.txt")
        print(f"  version {VERSION}, contract {MINOR.replace('_', '.')}, commit {self.output('git', 'rev-parse', '--short', 'HEAD').strip()}")

    def test(self):
        """The rules of the tree and all tests."""
        self.run("./dev", "check")
        self.run("./dev", "test")

    def write_changelog(self):
        """The changelog, from the fragments in changes/."""
        today = datetime.date.today().isoformat()
        towncrier = [TREE / ".venv-release/bin/python", "-m", "towncrier", "build", "--version", VERSION, "--date", f"{today}, contract {MINOR.replace('_', '.')}"]
        if re.search(rf"^## {re.escape(VERSION)} \(in work", (TREE / "CHANGELOG.md").read_text(), re.MULTILINE):
            self.refuse(f"CHANGELOG.md has a section of {VERSION} that is in work. Fix: move its entries to fragments in changes/, and remove the section")
        if not FRAGMENTS:
            print("  no fragments: CHANGELOG.md stays as it is")
        elif self.dry:
            print(self.output(*map(str, towncrier), "--draft"))
        else:
            self.run(*map(str, towncrier), "--yes")

    def keep_the_contract(self):
        """The contract of this minor: plugins built for it, which every later version must load."""
        folder = f"tests/abi/released/{MINOR}"
        if (TREE / folder).is_dir():
            print(f"  {folder} is there; it is never built again")
            return
        for compiler in ("gcc", "clang"):
            if not shutil.which(compiler):
                self.refuse(f"tests/abi/released/build.sh needs {compiler}. Fix: apt-get install {compiler}")
        self.run("sh", "tests/abi/released/build.sh", folder)
        self.run("git", "add", folder)

    def commit(self):
        """The commit of the release, if the steps before changed something."""
        self.run("git", "add", "CHANGELOG.md", "changes")
        if self.dry or self.output("git", "status", "--porcelain"):
            self.run("git", "commit", "-m", f"Release {VERSION}")

    def make_wheels(self):
        """Wheels, and their tests in fresh environments."""
        self.run("./dev", "wheel")
        self.run("./dev", "test", "wheel")

    def make_debian_packages(self):
        """Debian packages, and their test in a new Debian."""
        self.run("./dev", "deb")
        self.run("./dev", "test", "deb")

    def make_the_site(self):
        """The pages of this version, checked, as an archive."""
        self.run("./dev", "docs")
        self.run("tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{self.output('git', 'log', '-1', '--format=%ct').strip()}",
                 "--use-compress-program=gzip -n9", "-C", "build/site/html", "-cf", f"dist/backplane-{VERSION}-site.tar.gz", VERSION.rpartition(".")[0])  # fmt: skip

    def make_archives(self):
        """The source, and an archive of the SDK that runs from any folder, made of the wheel's files."""
        name = f"backplane-{VERSION}"
        print(f"  {'would write' if self.dry else 'writes'}: dist/{name}.tar.gz, dist/{name}-linux-x86_64.tar.gz")
        if self.dry:
            return
        source = subprocess.run(["git", "archive", "--format=tar", f"--prefix={name}/", "HEAD"], cwd=TREE, check=True, capture_output=True).stdout
        with open(DIST / f"{name}.tar.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(source)
        archive_of_wheel(sorted(DIST.glob(f"{name}-cp3*.whl"))[0], DIST / f"{name}-linux-x86_64.tar.gz",
                         int(self.output("git", "log", "-1", "--format=%ct")))  # fmt: skip

    def write_checksums(self):
        """SHA256SUMS of everything in dist/."""
        print(f"  {'would write' if self.dry else 'writes'}: dist/SHA256SUMS")
        if not self.dry:
            files = [path for path in sorted(DIST.iterdir()) if path.is_file() and path.name != "SHA256SUMS"]
            lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
            (DIST / "SHA256SUMS").write_text("".join(lines))
            print("".join(lines), end="")

    def tag(self):
        """The tag."""
        self.run("git", "tag", "--annotate", TAG, "--message", f"Backplane {VERSION}, contract {MINOR.replace('_', '.')}")

    def steps(self):
        return [self.check_the_tree, self.test, self.write_changelog, self.keep_the_contract, self.commit, self.make_wheels, self.make_debian_packages,
                self.make_the_site, self.make_archives, self.write_checksums, self.tag]  # fmt: skip


def archive_of_wheel(wheel, archive, date):
    """`bin`, `lib`, `include` and `share` of the wheel, with the libraries that it brings. The programs find these by paths relative to
    themselves, so the folders stay as they are in the wheel: PREFIX is backplane/ in the archive."""
    top = archive.name.removesuffix(".tar.gz")
    wanted = re.compile(r"backplane/(bin|lib|include|share)/|backplane\.libs/|backplane-[^/]*\.dist-info/(licenses|sboms)/")
    with zipfile.ZipFile(wheel) as files, open(archive, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:  # fmt: skip
        for info in sorted(files.infolist(), key=lambda info: info.filename):
            if not wanted.match(info.filename) or info.is_dir():
                continue
            row = tarfile.TarInfo(f"{top}/{re.sub(r'^backplane-[^/]*.dist-info/', 'backplane/share/doc/', info.filename)}")
            row.size, row.mtime, row.mode = info.file_size, date, 0o755 if info.external_attr >> 16 & 0o100 else 0o644
            with files.open(info) as content:
                tar.addfile(row, content)


def main():
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__.splitlines()[0])
    parser.add_argument("--yes", action="store_true", help="run the steps; without it, a dry run")
    parser.add_argument("--dry-run", action="store_true", help="the default")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="the first step")
    parser.add_argument("--to", dest="last", type=int, default=0, metavar="N", help="the last step")
    options = parser.parse_args()
    if options.yes and options.dry_run:
        parser.error("found --yes and --dry-run, expected one of them")
    release = Release(dry=not options.yes)
    steps = release.steps()
    print(f"Backplane {VERSION}: {'a release' if options.yes else 'a dry run (--yes runs the steps)'}")
    for number, step in enumerate(steps, 1):
        if options.first <= number <= (options.last or len(steps)):
            print(f"{number}/{len(steps)} {step.__doc__}", flush=True)
            step()
    if options.yes:
        print("Next, by hand: git push --follow-tags; upload the wheels of dist/")


if __name__ == "__main__":
    sys.exit(main())
