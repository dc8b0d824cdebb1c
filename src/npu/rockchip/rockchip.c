/* SPDX-License-Identifier: MIT */
/* The Rockchip family and its chips, as the rest of the library sees them. */
#include <stdlib.h>

#include "npu/npu.h"
#include "npu/rockchip/compile/plan.h"
#include "npu/rockchip/hw/chips.h"
#include "npu/rockchip/hw/timing.h"
#include "npu/rockchip/sim/sim.h"
#include "util/checked.h"

/* The timing model's clocks: mainline's 200 MHz to what the silicon runs at (specification, section 18). */
#define LEAST_MHZ 200
#define MOST_MHZ 1000
/* What the first task of a submission costs more than others (specification, section 18). */
#define SUBMIT_US 8

static double stream_us(const struct mica_chip *chip, double mhz, const struct mica_job_report *reports, size_t count,
                        uint32_t inferences, uint32_t cores)
{
    struct rk_task_cost *tasks = count <= UINT32_MAX ? mica_new_array(count, sizeof *tasks) : NULL;
    if (!tasks)
        return -1;
    for (size_t i = 0; i < count; i++)
        tasks[i] = (struct rk_task_cost){
            .compute_cycles = reports[i].compute_cycles,
            .bytes = reports[i].read_bytes + reports[i].write_bytes,
            .dispatch_us = reports[i].dispatch_us,
        };
    double us = rk_stream_us(chip->parameters, mhz, tasks, (uint32_t)count, inferences, cores);
    free(tasks);
    return us;
}

const struct mica_npu_family mica_rockchip = {
    .name = "rockchip",
    .supports = rk_supports,
    .compile = rk_compile,
    .sim_create = rk_sim_create,
    .sim_destroy = rk_sim_destroy,
    .sim_set_clock = rk_sim_set_clock,
    .sim_run = rk_sim_run,
    .stream_us = stream_us,
    .operations = rk_operations,
    .describe = rk_describe,
};

/* Specification, sections 1, 2 and 18. */
const struct mica_chip mica_chip_rk3588 = {
    .name = "rk3588",
    .description = "Rockchip RK3588 (NPU of three cores)",
    .driver = "rocket",
    .clock_mhz = 200,
    .family = &mica_rockchip,
    .parameters = &rk_chip_rk3588,
    .cores = 3,
    .clock_least_mhz = LEAST_MHZ,
    .clock_most_mhz = MOST_MHZ,
    .submit_us = SUBMIT_US,
    .identity = "rockchip,rk3588-rknn-core",
    .notes =
        "nothing that this compiler wrote has run on a board: programs follow the vendor compiler's, register by "
        "register\n"
        "rounding of the output stage is inferred from the vendor's simulator, which computes in float\n"
        "200 MHz is what mainline's device tree sets; the silicon runs at up to 1000 MHz\n"
        "one inference on several cores is possible on the simulator only: the kernel has one core for each open file",
};

/* Specification, section 17. */
const struct mica_chip mica_chip_rk3566 = {
    .name = "rk3566",
    .description = "Rockchip RK3566 and RK3568",
    .driver = "rocket",
    .clock_mhz = 1000,
    .family = &mica_rockchip,
    .parameters = &rk_chip_rk3566,
    .cores = 1,
    .clock_least_mhz = LEAST_MHZ,
    .clock_most_mhz = MOST_MHZ,
    .submit_us = SUBMIT_US,
    .notes = "no mainline kernel drives this NPU: programs run on the simulator alone\n"
             "nothing that this compiler wrote has run on a board: convolutions follow the vendor compiler's programs, "
             "element-wise tasks are inferred from them and from RK3588's\n"
             "the NPU's clock and the cost of starting a task are unknown: the vendor's tables count at 1000 MHz, the "
             "cost is "
             "RK3588's",
};
