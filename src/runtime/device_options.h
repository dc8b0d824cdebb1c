/* SPDX-License-Identifier: MIT */
/* Options of devices by name, for libmica and for the delegate. */
#ifndef MICA_RUNTIME_DEVICE_OPTIONS_H
#define MICA_RUNTIME_DEVICE_OPTIONS_H

#include "runtime/cores.h"

/* See mica_device_configure() in mica.h. `called` is what the user knows the option by. */
int mica_device_option_set(struct mica_cores *cores, struct mica_compile_options *options, const char *key,
                           const char *value, const char *called, struct mica_log *log);

/* Only those that are about compiling alone: on-chip, optimize, partition. */
int mica_compile_option_set(struct mica_compile_options *options, const char *key, const char *value,
                            const char *called, struct mica_log *log);

/* `value` as a number of an option that has one, whatever the device: "cores", "clock" or "split". */
int mica_device_option_number(const char *key, const char *value, const char *called, struct mica_log *log,
                              uint32_t *number);

/* Warns if the program (may be NULL) keeps tensors in on-chip memory, and says whether it does. */
bool mica_warn_on_chip(const struct mica_program *program, const struct mica_chip *chip, struct mica_log *log);

#endif
