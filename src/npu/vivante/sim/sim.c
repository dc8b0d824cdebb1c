/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/sim/internal.h"

bool viv_buffer_reserve(struct viv_buffer *buffer, size_t size)
{
    if (buffer->size >= size)
        return true;
    free(buffer->data);
    buffer->data = malloc(size);
    buffer->size = buffer->data ? size : 0;
    return buffer->data != NULL;
}

int viv_sim_create(const struct mica_chip *chip, struct mica_device_memory *memory, struct mica_threads *threads,
                   struct mica_log *log, void **out)
{
    struct viv_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return mica_fail_nomem(log);
    sim->chip = chip->parameters;
    sim->coef_format = sim->chip->coef_format;
    sim->memory = memory;
    sim->threads = threads;
    sim->log = log;
    sim->kernels = viv_kernels_best();
    sim->cycle_limit = (uint64_t)(sim->chip->clock_mhz * 1e6);
    *out = sim;
    return 0;
}

void viv_sim_destroy(void *opaque)
{
    struct viv_sim *sim = opaque;
    if (!sim)
        return;
    viv_weights_cache_clear(&sim->weights);
    free(sim->image.data);
    free(sim->unpooled.data);
    free(sim->lanes.data);
    free(sim);
}

void viv_sim_set_cycle_limit(void *opaque, uint64_t cycles)
{
    struct viv_sim *sim = opaque;
    sim->cycle_limit = cycles;
}

void viv_sim_read_v7(void *opaque)
{
    struct viv_sim *sim = opaque;
    sim->coef_format = VIV_COEF_V7;
}

void *viv_sim_at(struct viv_sim *sim, uint64_t address, uint64_t size, unsigned access, const char *what)
{
    uint64_t fault = 0;
    void *host = mica_device_at(sim->memory, address, size, access, &fault);
    if (!host)
        mica_fail(sim->log, -EFAULT, "%s at 0x%08llx: the device may not %s 0x%08llx; is its buffer in the submission?",
                  what, (unsigned long long)address, access & MICA_ACCESS_WRITE ? "write" : "read",
                  (unsigned long long)fault);
    return host;
}

enum viv_place viv_sim_place(const struct viv_sim *sim, uint64_t address)
{
    const struct mica_on_chip *windows = sim->chip->on_chip;
    bool two = windows[1].size != 0; /* then AXI-SRAM comes first */
    for (size_t i = 0; i < MICA_ON_CHIP_WINDOWS; i++)
        if (address - windows[i].address < windows[i].size)
            return two && i == 0 ? VIV_IN_AXI_SRAM : VIV_IN_VIP_SRAM;
    return VIV_IN_DDR;
}

int viv_sim_spend(struct viv_sim *sim, const char *unit, uint32_t descriptor, uint64_t cycles)
{
    if (cycles > sim->cycles_left)
        return mica_fail(sim->log, -EIO, "%s job 0x%08x: at %llu cycles it would run longer than the kernel's timeout",
                         unit, descriptor, (unsigned long long)cycles);
    sim->cycles_left -= cycles;
    return 0;
}

void viv_sim_note_unknown(struct viv_sim *sim, const char *unit, uint32_t descriptor, const uint32_t *words,
                          const struct viv_field *fields, size_t count)
{
    if (!sim->log || !sim->log->sink || sim->log->level < MICA_LOG_DEBUG)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct viv_field *field = &fields[i];
        bool unknown = field->evidence == 'U' || !strncmp(field->name, "RSVD", 4);
        uint32_t value = viv_field_get(words, field);
        if (unknown && value != field->idle)
            mica_log(sim->log, MICA_LOG_DEBUG, "%s job 0x%08x: unknown field %s holds 0x%x", unit, descriptor,
                     field->name, value);
    }
}
