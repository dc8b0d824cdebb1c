/* SPDX-License-Identifier: MIT */
/* The front end: walks a command stream and starts a job at each write to its unit's instruction address. */
#include <errno.h>

#include "npu/vivante/hw/states.h"
#include "npu/vivante/sim/internal.h"
#include "npu/vivante/sim/sim.h"

/* One run of a stream. */
struct frontend {
    struct viv_sim *sim;
    const uint32_t *words;
    size_t size, position;
    struct mica_job_report *reports;
    size_t capacity, *count;
    /* TP jobs since the last completion point run beside each other. */
    uint32_t beside;
    uint64_t beside_cycles; /* of the longest of them */
};

static int illegal(struct frontend *fe, const char *why)
{
    return mica_fail(fe->sim->log, -EIO, "command stream, word %zu (0x%08x): %s", fe->position, fe->words[fe->position],
                     why);
}

static void report(struct frontend *fe, const struct viv_cost *cost, uint64_t cycles)
{
    if (*fe->count < fe->capacity)
        fe->reports[*fe->count] = (struct mica_job_report){
            .cycles = cycles,
            .read_bytes = cost->read_bytes,
            .write_bytes = cost->write_bytes,
            .coefficient_bytes = cost->coefficient_bytes,
        };
    ++*fe->count;
}

static void end_tp_set(struct frontend *fe)
{
    fe->beside = 0;
    fe->beside_cycles = 0;
}

static int start_nn(struct frontend *fe, uint32_t value)
{
    struct viv_cost cost = {0};
    end_tp_set(fe);
    int result = viv_nn_run(fe->sim, value & ~63u, &cost);
    if (!result)
        report(fe, &cost, cost.cycles);
    return result;
}

static int start_tp(struct frontend *fe, uint32_t value)
{
    struct viv_cost cost = {0};
    int result = viv_tp_run(fe->sim, value & ~63u, &cost);
    if (result)
        return result;
    if (fe->beside == fe->sim->chip->tp_cores)
        end_tp_set(fe);
    uint64_t longer = cost.cycles > fe->beside_cycles ? cost.cycles - fe->beside_cycles : 0;
    fe->beside++;
    fe->beside_cycles += longer;
    report(fe, &cost, longer);
    return 0;
}

static int write_state(struct frontend *fe, uint32_t address, uint32_t value)
{
    switch (address) {
    case VIV_PS_NN_INST_ADDR:
        return start_nn(fe, value);
    case VIV_PS_TP_INST_ADDR:
        return start_tp(fe, value);
    case VIV_PS_10A4:
        end_tp_set(fe);
        return 0;
    case VIV_GL_OCB_REMAP_START:
        fe->sim->registers.ocb_start = value;
        return 0;
    case VIV_GL_OCB_REMAP_END:
        fe->sim->registers.ocb_end = value;
        return 0;
    }
    if (!viv_state_find(address))
        mica_log(fe->sim->log, MICA_LOG_DEBUG, "command stream, word %zu: unknown state 0x%05x = 0x%08x, ignored",
                 fe->position, address, value);
    return 0;
}

static int load_state(struct frontend *fe)
{
    uint32_t header = fe->words[fe->position];
    uint32_t count = header >> 16 & 0x3ff, address = (header & 0xffff) << 2;
    if (header >> 26 & 1)
        return illegal(fe, "LOAD_STATE with fixed-point conversion is not for NPU jobs");
    if (count == 0)
        count = 1024; /* inferred; nobody uses it */
    size_t length = (1 + (size_t)count + 1) & ~(size_t)1;
    if (length > fe->size - fe->position)
        return illegal(fe, "LOAD_STATE runs over the end of the stream");
    size_t first = fe->position + 1;
    for (uint32_t i = 0; i < count; i++) {
        fe->position = first + i;
        int result = write_state(fe, address + 4 * i, fe->words[fe->position]);
        if (result)
            return result;
    }
    fe->position = first - 1 + length;
    return 0;
}

/* A command of two words that does nothing. */
static int skip_pair(struct frontend *fe)
{
    if (fe->size - fe->position < 2)
        return illegal(fe, "the command runs over the end of the stream");
    fe->position += 2;
    return 0;
}

static int command(struct frontend *fe)
{
    uint32_t header = fe->words[fe->position];
    switch (header >> 27) {
    case VIV_OP_FILLER:
        return header ? illegal(fe, "not a command") : skip_pair(fe);
    case VIV_OP_LOAD_STATE:
        return load_state(fe);
    case VIV_OP_NOP:
    case VIV_OP_STALL: /* jobs end before the next command is read */
        return skip_pair(fe);
    case VIV_OP_END:
    case VIV_OP_WAIT:
    case VIV_OP_LINK:
        return illegal(fe, "only the kernel may use END, WAIT and LINK");
    default:
        return illegal(fe, "the command is not for NPU jobs");
    }
}

int viv_sim_run(void *opaque, const uint32_t *stream, size_t words, struct mica_job_report *reports, size_t capacity,
                size_t *count)
{
    struct viv_sim *sim = opaque;
    struct frontend fe = {
        .sim = sim, .words = stream, .size = words, .reports = reports, .capacity = capacity, .count = count};
    *count = 0;
    sim->cycles_left = sim->cycle_limit;
    while (fe.position < fe.size) {
        int result = command(&fe);
        if (result)
            return result;
    }
    return 0;
}
