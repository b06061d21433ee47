"""python -m backplane.torch: the commands `backplane-torch build` and `backplane bridge torch PLUGIN.so`."""

import sys

USAGE = """usage: backplane-torch build              compiles the device and the native operators for the installed PyTorch
       backplane bridge torch PLUGIN.so   what a plugin provides to PyTorch, and what it does not, with the reasons"""


def main() -> int:
    words = sys.argv[1:]
    if words == ["build"]:
        from backplane.torch._build import build_native

        print(build_native())
        return 0
    if len(words) == 2 and words[0] == "bridge":
        import backplane as bp
        from backplane.torch._plugin_report import report

        try:
            print(report(words[1]))
        except bp.BackplaneError as error:
            print(f"backplane: {error}", file=sys.stderr)
            return 1
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
