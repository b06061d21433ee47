#!/usr/bin/env bash
# A pack's way to bench/gpu.py: what it carries, and NVIDIA's libraries where the machine's Python has them as packages.
set -euo pipefail
pack=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
python=${GPU_PYTHON:-python3}
libraries=$("$python" -c '
import glob, importlib.util
found = importlib.util.find_spec("nvidia")
print(":".join(folder for path in (found.submodule_search_locations if found else []) for folder in glob.glob(path + "/*/lib")))')
export PATH="$pack/bin:$PATH" PYTHONPATH="$pack/python${PYTHONPATH:+:$PYTHONPATH}"
export LD_LIBRARY_PATH="$pack/lib:$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
peer=()
! "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || peer=(--peer "$python")
exec "$python" "$pack/bench/gpu.py" --launch "$pack/bin/gpu_launch" "${peer[@]}" "$@"
