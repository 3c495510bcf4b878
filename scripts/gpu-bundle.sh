#!/usr/bin/env bash
# Builds build/gpu-bundle and build/gpu-bundle.tar.gz: everything scripts/gpu-check.sh needs on a machine that has a GPU and its
# driver but none of our libraries: the programs, the shared libraries they use, the reference traces, the bundled
# model, and the script itself.  cuBLASLt is not in it: it comes with CUDA; nor are NCCL and MPI.
#   scripts/gpu-bundle.sh           then copy the folder and run ./gpu-check.sh in it
#   scripts/gpu-bundle.sh results CORPUS...    build/gpu-results: the program, its libraries, scripts/gpu-results.sh and the
#                                   corpora CORPUS*.xz of the folder CORPORA
#   ARCHS="80;90" scripts/gpu-bundle.sh        CUDA=OFF: without a GPU, to try the script
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/gpu-bundle kind=${1:-check}
targets=(lamemo_cli opcases gpu_bench serve_load infer_exact_test ops_exact_test)
programs=(build/gpu/lamemo build/gpu/tests/opcases build/gpu/bench/{gpu_bench,serve_load} build/gpu/tests/{infer,ops}_exact_test)
if [ "$kind" = results ]; then
    shift
    out=build/gpu-results targets=(lamemo_cli) programs=(build/gpu/lamemo)
fi
rm -rf "$out"
mkdir -p "$out/lib"

# Not tuned to this machine's CPU; a CBLAS, because it is the smaller library.  Programs look for their libraries in
# lib beside them, and so do these libraries (--disable-new-dtags): LD_LIBRARY_PATH would give them to mpirun, too.
cmake -S . -B build/gpu -G Ninja -DCMAKE_C_FLAGS_RELEASE=-O3 -DLAMEMO_TESTS=ON -DLAMEMO_GEMM=cblas \
    -DLAMEMO_ARCH=x86-64-v3 -DLAMEMO_CUDA="${CUDA:-ON}" -DLAMEMO_CUDA_ARCHS="${ARCHS:-90}" \
    -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags | grep -- '-- lamemo'
cmake --build build/gpu -j "${JOBS:-$(nproc)}" --target "${targets[@]}" > build/gpu/log ||
    { cat build/gpu/log; exit 1; }

for program in "${programs[@]}"; do strip -o "$out/${program##*/}" "$program"; done
# Every library but those of the compiler and the C library, which must be the other machine's.
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$out/lib/"
if [ "$kind" = results ]; then # as small as it can be: with a corpus of 26 MB it travels anew every time
    tar -C "$out" -cJf "$out/program.tar.xz" lamemo lib
    rm -r "$out/lamemo" "$out/lib"
    mkdir "$out/corpora"
    for corpus in "$@"; do cp "${CORPORA:-data}/$corpus"*.xz "$out/corpora/"; done
    cp scripts/gpu-results.sh "$out/"
    echo "with the files of the repository: $({ git ls-files -z; find "$out" -type f -print0; } |
        du -cb --files0-from=- | tail -1 | cut -f1) bytes"
else
    [ ! -e build/gpu/lamemo-mpi.so ] || cp build/gpu/lamemo-mpi.so "$out/" # for the Open MPI of the other machine
    mkdir "$out/traces"
    cp tests/golden/*.safetensors "$out/traces/"
    cp -r models "$out/"
    cat src/*/*.c src/ops/*/*.c > "$out/text.txt" # a megabyte to train on
    cp scripts/gpu-check.sh "$out/"
fi
git describe --always --dirty > "$out/commit" 2> /dev/null || echo unknown > "$out/commit"
[ "$kind" = results ] || tar -czf "$out.tar.gz" -C build gpu-bundle
du -shL --apparent-size "$out"*
