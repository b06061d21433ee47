# What ./dev installs, which reads this file: Debian packages, and packages of the Python index per environment. A package is
# stated here once; the verb that needs it names its list.

build_packages=(g++ cmake ninja-build ccache pkg-config git libgtest-dev libgmock-dev libyaml-cpp-dev libcli11-dev libfmt-dev
  libhwy-dev libxbyak-dev libopenblas-dev libopenblas-pthread-dev libdnnl-dev libvulkan-dev mesa-vulkan-drivers vulkan-validationlayers glslc spirv-tools nlohmann-json3-dev
  pocl-opencl-icd opencl-headers ocl-icd-opencl-dev python3 python3-dev python3-venv)
mpi_packages=(libopenmpi-dev openmpi-bin) # a build without them has no collectives over MPI
check_packages=(clang-format)
tidy_packages=(clang-tidy)
lint_packages=(ruff==0.17.6 mypy==2.4.1) # exact, so that their findings do not change by themselves
bench_packages=(valgrind libbenchmark-dev)
# NVIDIA's libraries with their headers, to hold the CUDA backend's declarations against.
cuda_packages=("nvidia-cublas==13.0.*" "nvidia-cufft==12.0.*" "nvidia-cusolver==12.0.*" "nvidia-cuda-nvrtc==13.0.*")
cudnn_packages=("nvidia-cudnn-cu13==9.*") # 500 MB: for check cuda alone
nccl_packages=(nvidia-nccl-cu13) # 340 MB: for check cuda alone
python_packages=(pybind11 scikit-build-core pytest pytest-xdist hypothesis numpy mpmath gmpy2 onnx)
demo_packages=(scikit-learn matplotlib tqdm)
docs_packages=("mkdocs-material==9.*")
# What computes with anybody's arrays, as it is released.
ecosystem_packages=(numpy pytest scipy scikit-learn einops opt_einsum array-api-compat array-api-extra ml_dtypes
  mypy basedpyright mpi4py)
# The peers of record (docs/reference/performance.md); torch is exact, so that ratios compare.
bench_python_packages=(numpy torch==2.13.0 jax "mlx[cpu]" pybind11 matplotlib tqdm mpmath gmpy2)
