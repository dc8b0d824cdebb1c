# SPDX-License-Identifier: MIT
# The rest of `scripts/test --all`; sourced by it.

mutants=${MICA_MUTANTS:-10000}
fuzz_seconds=${MICA_FUZZ_SECONDS:-20}

need_packages clang libclang-rt-dev gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user

for chip in a311d imx8mp s905d3 rk3588; do
    say "Conformance tests over the kernel's interface: $chip on a virtual node"
    run_pytest build/tools/mica/mica vnpu --chip "$chip" -- \
        tests/conformance/test_{add,conv2d_grid,depthwise_grid,fully_connected,layers,models}.py
done

say "Building with clang, AddressSanitizer and UBSan in build-sanitized/"
CC=clang CXX=clang++ build_mica build-sanitized -Dbuildtype=debugoptimized -Dtests=true -Dfuzzing=true \
    -Db_sanitize=address,undefined -Db_lundef=false
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
say "Unit tests under the sanitizers"
run_meson_tests build-sanitized -t 4 # sanitizers are slow, and so may the machine be

models=(share/mica/*.tflite)
for model in ../shared/captures/*/model.tflite ../shared/models/ops_*/*.tflite ../shared/models/tiny_*.tflite; do
    if [ -f "$model" ]; then models+=("$model"); fi
done
run_one "$mutants mutants of ${#models[@]} models through info, run and the delegate" \
    build-sanitized/tests/fuzz/mutants "$mutants" "${models[@]}"
for target in build-sanitized/tests/fuzz/fuzz_*; do
    if [ -x "$target" ] && [ ! -d "$target" ]; then
        run_one "$(basename "$target") for $fuzz_seconds s" \
            "$target" -max_total_time="$fuzz_seconds" -max_len=65536 -verbosity=0 -timeout=10
    fi
done

say "Building the kernels for aarch64 in build-aarch64/"
build_mica build-aarch64 --cross-file cross/aarch64-linux-gnu.ini -Dcli=disabled
say "Kernels under emulation"
run_meson_tests build-aarch64 'vivante-sim kernels' 'rockchip-sim kernels'
