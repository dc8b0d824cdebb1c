#!/bin/sh
# SPDX-License-Identifier: MIT
# The rooms include only what the architecture lets them see. Usage: rooms.sh TOP_OF_THE_SOURCES
set -u
cd "$1" || exit 1
failed=0 known=

# names FILE: what it includes. Between < and >, only headers of ours: others are the system's business.
names() {
    sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$1"
    for name in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$1"); do
        if [ -e "src/$name" ] || [ -e "include/$name" ]; then echo "$name"; fi
    done
}

may_see() { # NAME PREFIX...
    wanted=$1
    shift
    for prefix; do
        case $wanted in "$prefix"*) return 0 ;; esac
    done
    return 1
}

# room FOLDER [PREFIX...]: files of the folder include its own files and what starts with a prefix.
room() {
    folder=$1
    shift
    known="$known $folder "
    for file in "$folder"/*.c "$folder"/*.h "$folder"/*.cc "$folder"/*.def; do
        [ -e "$file" ] || continue
        for name in $(names "$file"); do
            case $name in *_generated.h) continue ;; esac
            case $name in */*) own=src/$name ;; *) own=$folder/$name ;; esac
            if [ "${own%/*}" = "$folder" ] && [ -e "$own" ]; then continue; fi
            if ! may_see "$name" "$@"; then
                echo "$file includes $name"
                failed=1
            fi
        done
    done
}

room src/util
room src/graph mica/mica.h util/
room src/frontend/tflite mica/mica.h graph/ util/
room src/frontend/onnx mica/mica.h graph/ util/
room src/cpu mica/mica.h graph/ util/
room src/npu mica/mica.h graph/ util/
room src/npu/vivante npu/ util/
room src/npu/vivante/hw npu/on_chip.h util/
room src/npu/vivante/sim mica/mica.h npu/npu.h npu/device_memory.h npu/program.h npu/on_chip.h npu/vivante/hw/ util/
room src/npu/vivante/decode npu/decode.h npu/vivante/hw/ npu/vivante/sim/coef_ util/
room src/npu/vivante/compile mica/mica.h graph/ cpu/table.h npu/npu.h npu/program.h npu/on_chip.h npu/vivante/hw/ util/
room src/npu/rockchip npu/ util/
room src/npu/rockchip/hw util/
room src/npu/rockchip/decode npu/decode.h npu/rockchip/hw/ util/
room src/npu/rockchip/sim mica/mica.h npu/npu.h npu/device_memory.h npu/program.h npu/on_chip.h npu/rockchip/hw/ util/
room src/npu/rockchip/compile mica/mica.h graph/ cpu/table.h npu/npu.h npu/program.h npu/on_chip.h npu/rockchip/hw/ util/
room src/uapi uapi/
room src/winsys npu/npu.h npu/device_memory.h npu/program.h npu/on_chip.h uapi/ util/
room src/intercept uapi/ util/
room src/vnpu npu/npu.h npu/device_memory.h npu/program.h npu/on_chip.h uapi/ util/
room src/runtime mica/mica.h cpu/ frontend/ graph/ npu/npu.h npu/program.h runtime/ winsys/ util/
room src/delegate mica/mica.h graph/ runtime/ npu/npu.h npu/program.h winsys/winsys.h util/
room src/analysis mica/mica.h npu/npu.h npu/decode.h npu/device_memory.h npu/program.h npu/vivante/hw/ npu/vivante/decode/ npu/vivante/sim/ npu/rockchip/hw/ npu/rockchip/decode/ npu/rockchip/sim/ util/
room tools/mica mica/mica.h
room tools/mica/analysis mica/mica.h analysis/analysis.h cli.h file.h json.h table.h

for folder in $(find src tools -name '*.[ch]' -o -name '*.cc' | sed 's,/[^/]*$,,' | sort -u); do
    case $known in *" $folder "*) ;; *) echo "what $folder may include isn't listed in $0" && failed=1 ;; esac
done
exit $failed
