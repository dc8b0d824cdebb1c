/* SPDX-License-Identifier: MIT */
/*
 * The whole simulator of the chip that the first byte selects: the rest of the
 * input fills the device's memory, its first words are a command stream, and
 * an NN and a TP job are started besides.
 */
#include <stdlib.h>
#include <string.h>

#include "npu/npu.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/hw/states.h"
#include "npu/vivante/sim/sim.h"

#define MEMORY 0x400000u
#define MEMORY_BYTES 0x10000u
#define STREAM_WORDS 16u
#define NN_DESCRIPTOR (MEMORY + 0x40u)
#define TP_DESCRIPTOR (MEMORY + 0x100u)
#define CYCLES 100000u /* what a stream may take by the timing model */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHIPS 3u

static struct mica_device_memory memory;
static void *simulators[CHIPS];

static void start(void)
{
    static const struct mica_chip chips[CHIPS] = {
        {.name = "a311d", .clock_mhz = 800, .parameters = &viv_a311d},
        {.name = "imx8mp", .clock_mhz = 1000, .parameters = &viv_imx8mp},
        {.name = "s905d3", .clock_mhz = 800, .parameters = &viv_s905d3},
    };
    if (mica_device_memory_create(&memory) || mica_device_memory_map(&memory, MEMORY, MEMORY_BYTES))
        abort();
    mica_device_memory_protect(&memory, MEMORY, MEMORY_BYTES, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    for (unsigned i = 0; i < CHIPS; i++) {
        if (viv_sim_create(&chips[i], &memory, NULL, NULL, &simulators[i]))
            abort();
        viv_sim_set_cycle_limit(simulators[i], CYCLES);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t jobs[] = {VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR), NN_DESCRIPTOR,
                                    VIV_LOAD_STATE(VIV_PS_TP_INST_ADDR), TP_DESCRIPTOR};
    uint32_t stream[STREAM_WORDS];
    size_t count;
    if (!simulators[0])
        start();
    if (size == 0)
        return 0;
    void *simulator = simulators[data[0] % CHIPS];
    data++, size--;
    size = size < MEMORY_BYTES ? size : MEMORY_BYTES;
    memset(memory.base + MEMORY, 0, MEMORY_BYTES);
    memcpy(memory.base + MEMORY, data, size);
    memcpy(stream, memory.base + MEMORY, sizeof stream);
    viv_sim_run(simulator, stream, STREAM_WORDS, NULL, 0, &count);
    viv_sim_run(simulator, jobs, 2, NULL, 0, &count);
    viv_sim_run(simulator, jobs + 2, 2, NULL, 0, &count);
    return 0;
}
