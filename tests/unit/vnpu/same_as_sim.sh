#!/bin/sh
# SPDX-License-Identifier: MIT
# A model on the kernel's interface, behind which the virtual node is, gives the bytes that it gives on the simulator.
# Usage: same_as_sim.sh MICA LIBMICA_VNPU CHIP NODE SHARE
set -eu
mica=$1 library=$2 chip=$3 node=$4 share=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$(echo "$share"/*.tflite) picture=$(echo "$share"/*.png)
"$mica" run "$model" "$picture" --device "sim:$chip" -o "$work/sim.bin" >"$work/sim.txt"
MICA_VNPU_CHIP=$chip MICA_VNPU_VERBOSE=1 LD_PRELOAD=$library \
    "$mica" run "$model" "$picture" --device "$node" --repeat 2 -o "$work/node.bin" >"$work/node.txt"
cmp "$work/sim.bin" "$work/node.bin"
# Without a name, the hardware is found.
MICA_VNPU_CHIP=$chip LD_PRELOAD=$library "$mica" run "$model" "$picture" -o "$work/auto.bin" >"$work/auto.txt" 2>"$work/notes.txt"
cmp "$work/sim.bin" "$work/auto.bin"
grep -q "device $node" "$work/notes.txt"
