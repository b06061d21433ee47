"""Writes the files `copyright` and `changelog.Debian.gz` that a Debian package needs in /usr/share/doc/PACKAGE.

    debian_documents.py --package NAME --version VERSION --out FOLDER

The changelog's date is SOURCE_DATE_EPOCH, else that of the last commit, so that two builds write the same bytes.
"""

import argparse
import email.utils
import gzip
import os
import pathlib
import subprocess

TREE = pathlib.Path(__file__).resolve().parent.parent


def date():
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "-C", TREE, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True
    ).stdout
    return email.utils.formatdate(int(seconds))


def indented(text):
    return "".join(f" {line}\n" if line.strip() else " .\n" for line in text.splitlines())


def copyright_text():
    pocketfft = (TREE / "third_party/pocketfft/LICENSE.md").read_text()
    return f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Backplane

Files: *
Copyright: the Backplane developers
License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.

Files: third_party/pocketfft/*
Copyright: Max-Planck-Society, Peter Bell and others (see the text)
License: BSD-3-Clause
{indented(pocketfft)}
Files: third_party/xla_ffi/*
Copyright: The OpenXLA Authors
License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    (options.out / "copyright").write_text(copyright_text())
    changelog = f"""backplane ({options.version}) unstable; urgency=medium

  * See CHANGELOG.md of this version.

 -- Backplane developers <developers@backplane.invalid>  {date()}
"""
    with open(options.out / "changelog.Debian.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(changelog.encode())


if __name__ == "__main__":
    main()
