/* SPDX-License-Identifier: MIT */
#include "runtime/device_options.h"

#include <errno.h>
#include <string.h>

/* A key with its two values, the default first. */
static const struct {
    const char *key, *off, *on;
} known[] = {
    {"on-chip", "0", "1"},
    {"optimize", "speed", "size"},
};

static bool *flag_of(struct mica_compile_options *options, size_t row)
{
    return row ? &options->optimize_size : &options->on_chip;
}

int mica_compile_option_set(struct mica_compile_options *options, const char *key, const char *value,
                            const char *called, struct mica_log *log)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(key, known[i].key))
            continue;
        bool on = !strcmp(value, known[i].on);
        if (!on && strcmp(value, known[i].off))
            return mica_fail(log, -EINVAL, "%s must be %s or %s, not \"%.64s\"", called, known[i].off, known[i].on,
                             value);
        *flag_of(options, i) = on;
        return 0;
    }
    return mica_fail(log, -EINVAL, "there is no device option \"%.64s\"; the options are %s, %s", key, known[0].key,
                     known[1].key);
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
