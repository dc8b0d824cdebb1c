/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/sim/internal.h"

#define JOB_TIMEOUT_US 500000.0 /* mainline's, for a job with all its tasks (specification, section 2) */

bool rk_buffer_reserve(struct rk_buffer *buffer, size_t size)
{
    if (buffer->size >= size)
        return true;
    free(buffer->data);
    buffer->data = malloc(size);
    buffer->size = buffer->data ? size : 0;
    return buffer->data != NULL;
}

/* Which bits of each register mean something: those of fields that aren't reserved. */
static void learn_registers(struct rk_sim *sim)
{
    for (size_t i = 0; i < RK_FIELD_COUNT; i++) {
        struct rk_field_place place = rk_fields[i].at[sim->chip->generation];
        if (place.width == 0 || place.offset / 4 >= RK_REGISTER_WORDS || !strncmp(rk_fields[i].name, "RESERVED", 8))
            continue;
        sim->known[place.offset / 4] |= (uint32_t)(((UINT64_C(1) << place.width) - 1) << place.lsb);
    }
}

int rk_sim_create(const struct mica_chip *chip, struct mica_device_memory *memory, struct mica_threads *threads,
                  struct mica_log *log, void **out)
{
    struct rk_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return mica_fail_nomem(log);
    sim->chip = chip->parameters;
    sim->memory = memory;
    sim->threads = threads;
    sim->log = log;
    sim->clock_mhz = sim->chip->clock_mhz;
    sim->cycle_limit = (uint64_t)(sim->chip->clock_mhz * JOB_TIMEOUT_US);
    learn_registers(sim);
    *out = sim;
    return 0;
}

void rk_sim_destroy(void *opaque)
{
    struct rk_sim *sim = opaque;
    if (!sim)
        return;
    rk_conv_finish(sim);
    free(sim->coefficients.data);
    free(sim->image.data);
    free(sim->lanes.data);
    free(sim);
}

int rk_sim_set_clock(void *opaque, double mhz)
{
    struct rk_sim *sim = opaque;
    if (!(mhz >= 1 && mhz <= 100000))
        return mica_fail(sim->log, -EINVAL, "a clock of %g MHz is out of range", mhz);
    sim->clock_mhz = mhz;
    return 0;
}

void rk_sim_set_cycle_limit(void *opaque, uint64_t cycles)
{
    struct rk_sim *sim = opaque;
    sim->cycle_limit = cycles;
}

void *rk_sim_at(struct rk_sim *sim, uint64_t address, uint64_t size, unsigned access, const char *what)
{
    uint64_t fault = 0;
    void *host = mica_device_at(sim->memory, address, size, access, &fault);
    if (!host)
        mica_fail(sim->log, -EFAULT, "%s at 0x%08llx: the device may not %s 0x%08llx; is its buffer in the job?", what,
                  (unsigned long long)address, access & MICA_ACCESS_WRITE ? "write" : "read",
                  (unsigned long long)fault);
    return host;
}
