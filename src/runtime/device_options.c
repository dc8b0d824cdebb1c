/* SPDX-License-Identifier: MIT */
#include "runtime/device_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost.h"

/* A key with its two values, the default first. */
static const struct {
    const char *key, *off, *on;
} flags[] = {
    {"on-chip", "0", "1"},
    {"optimize", "speed", "size"},
    {"fuse", "0", "1"},
    {"per-channel", "exact", "folded"},
};
#define FLAGS (sizeof flags / sizeof flags[0])

/* A key whose value is a number from 1 on. */
static const struct {
    const char *key;
    uint32_t most; /* of any device; the one at hand may allow less */
} numbers[] = {
    {"cores", MICA_MAX_CORES},
    {"clock", 10000},
    {"split", MICA_MAX_CORES},
};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

#define PARTITION "partition"

static bool *flag_of(struct mica_compile_options *options, size_t row)
{
    bool *const flag[FLAGS] = {&options->on_chip, &options->optimize_size, &options->fuse, &options->fold_scales};
    return flag[row];
}

static int fail_unknown(const char *key, struct mica_log *log)
{
    char names[96] = "";
    size_t used = 0;
    for (size_t i = 0; i < FLAGS + NUMBERS && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s, ",
                                 i < FLAGS ? flags[i].key : numbers[i - FLAGS].key);
    return mica_fail(log, -EINVAL, "there is no device option \"%.64s\"; the options are %s" PARTITION, key, names);
}

/* "all", "cost", or "cost:N" with the CPU's MACs a microsecond. */
static int set_partition(struct mica_compile_options *options, const char *value, const char *called,
                         struct mica_log *log)
{
    char *end;
    if (!strcmp(value, "all") || !strcmp(value, "cost")) {
        options->cost_cpu_macs = value[0] == 'c' ? MICA_CPU_MACS_PER_US : 0;
        return 0;
    }
    bool rate = !strncmp(value, "cost:", 5) && value[5] >= '0' && value[5] <= '9';
    errno = 0;
    unsigned long macs = rate ? strtoul(value + 5, &end, 10) : 0;
    if (!rate || errno || *end || macs < 1 || macs > MICA_MAX_CPU_MACS_PER_US)
        return mica_fail(log, -EINVAL,
                         "%s must be all, cost, or cost:N with N MACs that the CPU does a microsecond, from 1 to %u, "
                         "not \"%.64s\"",
                         called, MICA_MAX_CPU_MACS_PER_US, value);
    options->cost_cpu_macs = (uint32_t)macs;
    return 0;
}

int mica_compile_option_set(struct mica_compile_options *options, const char *key, const char *value,
                            const char *called, struct mica_log *log)
{
    for (size_t i = 0; i < FLAGS; i++) {
        if (strcmp(key, flags[i].key))
            continue;
        bool on = !strcmp(value, flags[i].on);
        if (!on && strcmp(value, flags[i].off))
            return mica_fail(log, -EINVAL, "%s must be %s or %s, not \"%.64s\"", called, flags[i].off, flags[i].on,
                             value);
        *flag_of(options, i) = on;
        return 0;
    }
    if (!strcmp(key, PARTITION))
        return set_partition(options, value, called, log);
    return fail_unknown(key, log);
}

static int parse_number(const char *value, uint32_t most, const char *called, struct mica_log *log, uint32_t *number)
{
    char *end;
    errno = 0;
    unsigned long parsed = strtoul(value, &end, 10);
    /* strtoul() accepts signs and blanks; an option doesn't. */
    if (errno || *end || value[0] < '0' || value[0] > '9' || parsed < 1 || parsed > most)
        return mica_fail(log, -EINVAL, "%s must be a number from 1 to %u, not \"%.64s\"", called, most, value);
    *number = (uint32_t)parsed;
    return 0;
}

int mica_device_option_number(const char *key, const char *value, const char *called, struct mica_log *log,
                              uint32_t *number)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!strcmp(key, numbers[i].key))
            return parse_number(value, numbers[i].most, called, log, number);
    }
    return fail_unknown(key, log);
}

static bool is_about_compiling(const char *key)
{
    if (!strcmp(key, PARTITION))
        return true;
    for (size_t i = 0; i < FLAGS; i++) {
        if (!strcmp(key, flags[i].key))
            return true;
    }
    return false;
}

int mica_device_option_set(struct mica_cores *cores, struct mica_compile_options *options, const char *key,
                           const char *value, const char *called, struct mica_log *log)
{
    uint32_t number;
    if (is_about_compiling(key))
        return mica_compile_option_set(options, key, value, called, log);
    int error = mica_device_option_number(key, value, called, log, &number);
    if (error)
        return error;
    if (!strcmp(key, "cores"))
        return mica_cores_set_limit(cores, number, log);
    if (!strcmp(key, "clock"))
        return mica_cores_set_clock(cores, number, log);
    error = mica_cores_check_split(cores, number, log);
    if (!error)
        options->split = number;
    return error;
}

bool mica_warn_on_chip(const struct mica_program *program, const struct mica_chip *chip, struct mica_log *log)
{
    for (uint32_t i = 0; program && i < program->buffer_count; i++) {
        if (!program->buffers[i].fixed_address)
            continue;
        mica_log(log, MICA_LOG_WARNING, "on-chip: tensors are kept in the %s's on-chip memory, %s", chip->name,
                 "which is not verified on hardware");
        return true;
    }
    return false;
}
