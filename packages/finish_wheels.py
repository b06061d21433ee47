"""Adds the licences of everything inside to the wheels that auditwheel has repaired, completes their SBOM, and checks them.

    finish_wheels.py --raw FOLDER --repaired FOLDER --out FOLDER

A wheel's dist-info/licenses/third_party/NAME holds the licence of each library that it contains: those that auditwheel copied in, which the
SBOM (CycloneDX, dist-info/sboms/auditwheel.cdx.json) names, and those of components.json, which are compiled in as headers. The wheel is refused
if it has a path of the machine that built it, if the core is larger than 40 MB, or if auditwheel has given it no manylinux tag.
"""

import argparse
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

TREE = pathlib.Path(__file__).resolve().parent.parent
LARGEST_CORE = 40_000_000  # bytes


def debian_version(package):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return shown.stdout if shown.returncode == 0 else None


def debian_licence(package):
    file = pathlib.Path("/usr/share/doc", package, "copyright")
    if not file.exists():
        raise SystemExit(f"finish_wheels: no licence of {package}: {file} does not exist. Fix: install the Debian package, or build on Debian")
    return file.read_text(errors="replace")


def purl(package, version):
    return f"pkg:deb/debian/{package}@{urllib.parse.quote(version, safe='')}"


def compiled_in(entry):
    """(version, identifier, text of the licence) of a line in components.json."""
    if "file" in entry:
        return None, None, (TREE / entry["file"]).read_text()
    if "python" in entry:
        found = importlib.metadata.distribution(entry["python"])
        texts = [file.read_text() for file in found.files if file.name.startswith("LICENSE") and ".dist-info" in str(file)]
        return found.version, f"pkg:pypi/{entry['python']}@{found.version}", "\n".join(texts)
    version = debian_version(entry["debian"])
    return version, purl(entry["debian"], version) if version else None, debian_licence(entry["debian"])


def complete(folder):
    """Licences and SBOM of an unpacked wheel; the names of what is inside."""
    (info,) = folder.glob("*.dist-info")
    name = info.name.split("-")[0]
    sboms = info / "sboms" / "auditwheel.cdx.json"
    version = info.name.removesuffix(".dist-info").split("-", 1)[1]
    own = {"type": "library", "bom-ref": f"pkg:pypi/{name}@{version}", "name": name, "version": version}
    sbom = {"bomFormat": "CycloneDX", "specVersion": "1.4", "version": 1, "metadata": {"component": own}, "components": [own],
            "dependencies": [{"ref": own["bom-ref"], "dependsOn": []}]}
    texts = {}
    if sboms.exists():
        sbom = json.loads(sboms.read_text())
        for part in sbom["components"][1:]:
            texts[part["name"]] = debian_licence(part["name"])
    for entry in json.loads((TREE / "packages" / "components.json").read_text())[name]:
        version, identifier, text = compiled_in(entry)
        texts[entry["name"]] = text
        part = {"type": "library", "bom-ref": identifier or entry["name"], "name": entry["name"]}
        part |= {"version": version} if version else {}
        part |= {"purl": identifier} if identifier else {}
        sbom["components"].append(part)
        sbom["dependencies"][0]["dependsOn"].append(part["bom-ref"])
        sbom["dependencies"].append({"ref": part["bom-ref"]})
    sboms.parent.mkdir(exist_ok=True)
    sboms.write_text(json.dumps(sbom, indent=1, sort_keys=True) + "\n")
    for library, text in texts.items():
        file = info / "licenses" / "third_party" / library
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    metadata = info / "METADATA"
    head, blank, body = metadata.read_text().partition("\n\n")
    head += "".join(f"\nLicense-File: third_party/{library}" for library in sorted(texts))
    metadata.write_text(head + blank + body)
    return sorted(texts)


def problems(wheel, folder):
    """The faults of a wheel that is unpacked in the folder."""
    if "manylinux" not in wheel.name:
        yield f"{wheel.name}: auditwheel gave it no manylinux tag"
    if wheel.name.startswith("backplane-") and wheel.stat().st_size > LARGEST_CORE:
        yield f"{wheel.name}: {wheel.stat().st_size} bytes, expected at most {LARGEST_CORE}"
    for file in folder.rglob("*"):
        if file.is_file() and str(TREE).encode() in file.read_bytes():
            yield f"{wheel.name}: {file.relative_to(folder)} has the path {TREE} in it"


def wheel_command(*words):
    subprocess.run([sys.executable, "-m", "wheel", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", type=pathlib.Path, required=True)
    parser.add_argument("--repaired", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    repaired = sorted(options.repaired.glob("*.whl"))
    raw = sorted(options.raw.glob("*.whl"))
    names = lambda wheels: {"-".join(wheel.name.split("-")[:4]) for wheel in wheels}
    wrong = [f"{name}: auditwheel did not repair it" for name in sorted(names(raw) - names(repaired))]
    for wheel in repaired:
        with tempfile.TemporaryDirectory() as place:
            wheel_command("unpack", "-d", place, wheel)
            (folder,) = pathlib.Path(place).iterdir()
            inside = complete(folder)
            wheel_command("pack", "-d", options.out, folder)
            made = options.out / wheel.name
            wrong += problems(made, folder)
        print(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB; inside: {', '.join(inside) or 'nothing of others'}")
    print("\n".join(wrong), file=sys.stderr)
    return bool(wrong) or not repaired


if __name__ == "__main__":
    sys.exit(main())
