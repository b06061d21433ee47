# Runs of the kit (`backplane conformance`) on the devices that need no vendor's hardware; tests/verbs.sh reads this file.

# kept_conformance NAME COMMAND...: a run of the kit whose table is kept with the results, and whose last line is printed.
kept_conformance() {
  local table=$results/conformance-$1.txt status=0
  shift
  run "$@" >"$table" || { status=1; grep -B 1 '^  FAIL' "$table" | head -n 60 >&2; }
  tail -n 1 "$table" >&2
  return $status
}

# Is a driver registered with OpenCL's loader?
has_opencl() { compgen -G "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}/*.icd" >/dev/null; }

# Every mode of the kit, on each device of this tree that runs anywhere, and on OpenCL where there is a driver. The tables
# are kept with the results.
whole_conformance() {
  local device mode words status=0 devices=(cpu sim simh)
  if has_opencl; then
    build_project opencl && devices+=(opencl) || status=1
  else
    say "conformance: no OpenCL driver (Debian: pocl-opencl-icd): plugins/opencl is left out"
  fi
  for device in "${devices[@]}"; do
    case $device in
      cpu) words=() ;;
      opencl) words=(--plugin "$root/build/$preset/opencl/lib/backplane/plugins/opencl.so") ;;
      *) words=(--plugin "$BACKPLANE_EXAMPLE_PLUGINS/simulator.so") ;;
    esac
    for mode in test grad support stress async; do
      kept_conformance "$device-$mode" backplane conformance --device "$device" --mode "$mode" "${words[@]}" || status=1
    done
  done
  return $status
}

# async_conformance [DEVICE...]: the kit's mode async on each device that runs without a vendor's hardware. The unkind ones
# in three schedules.
async_conformance() {
  local device plan status=0 build=$root/build/$preset words
  [ $# -gt 0 ] || set -- cpu sim simh unkind unkindh vulkan cuda opencl
  for device in "$@"; do
    words=(backplane conformance --mode async --device "$device")
    case $device in
      sim | simh) words+=(--plugin "$BACKPLANE_EXAMPLE_PLUGINS/simulator.so") ;;
      unkind*) words+=(--plugin "$build/tests/unkind/files/unkind.so") ;;
      cuda)
        has_emulated_driver || continue
        # Not with exact memory: readers of what failed work left unwritten come to it, and the emulator refuses them then.
        words=(env "LD_LIBRARY_PATH=$build/emulated_driver" "${words[@]}") ;;
      vulkan) [ -e "$build/lib/backplane/plugins/backplane_vulkan.so" ] || { say "async: vulkan is not built: left out"; continue; } ;;
      opencl)
        has_opencl || { say "async: no OpenCL driver (Debian: pocl-opencl-icd): plugins/opencl is left out"; continue; }
        build_project opencl || { status=1; continue; }
        words+=(--plugin "$build/opencl/lib/backplane/plugins/opencl.so") ;;
    esac
    case $device in
      unkind*)
        for plan in seed=1 seed=2 seed=3,pace=eager; do
          kept_conformance "$device-async-$plan" env "BACKPLANE_UNKIND=$plan" "${words[@]}" || status=1
        done ;;
      *) kept_conformance "$device-async" "${words[@]}" || status=1 ;;
    esac
  done
  return $status
}

# vulkan_validated MODE OPS: the kit under the validation layer with synchronisation validation, which may say nothing.
# VkSemaphore-state-timeout is no word on the backend: the layer gave up waiting for itself, and adds that this is a bug
# of its own (KhronosGroup/Vulkan-ValidationLayers, issues 4968 and 5928).
vulkan_validated() {
  local said status=0 log=$results/conformance-vulkan.txt
  run env VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation \
    VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT \
    backplane conformance --device vulkan --mode "$1" --op "$2" >"$log" 2>&1 || { status=1; grep -B 1 '^  FAIL' "$log" | head -n 60 >&2; }
  said=$(grep -E 'VUID|UNASSIGNED|SYNC-HAZARD' "$log" | grep -v 'UNASSIGNED-VkSemaphore-state-timeout')
  [ -z "$said" ] || { head -n 5 <<<"$said" >&2; status=1; }
  tail -n 1 "$log" >&2
  return $status
}

# The Vulkan backend on the drivers of this machine: every mode of the kit that judges. The layer keeps what it sees, 14 GiB
# before it has seen all ops, so those go in groups by their first letter; the last one is of the rest.
vulkan_whole() {
  local ops status=0
  for ops in '(device)' '[ab]*' 'c*' '[d-f]*' '[g-k]*' 'l*' '[mn]*' '[o-q]*' 'r*' 's*' '[!a-s]*'; do
    vulkan_validated test "$ops" || status=1
  done
  vulkan_validated grad '*' || status=1
  vulkan_validated stress '*' || status=1
  return $status
}
