/* SPDX-License-Identifier: MIT */
/* Tensors across the border of a partition: the host's channels-last bytes to the device's layout and back. */
#ifndef MICA_RUNTIME_LAYOUT_H
#define MICA_RUNTIME_LAYOUT_H

#include "npu/program.h"

/*
 * `io` is one of a valid program, `host` its value of io->size bytes, `device` the host's view of its
 * first byte in the buffer. Nothing outside is read; nothing outside is written, nor between surfaces.
 * Where both are the same memory, nothing is done.
 */
void mica_layout_write(const struct mica_program_io *io, const uint8_t *host, uint8_t *device);
void mica_layout_read(const struct mica_program_io *io, uint8_t *host, const uint8_t *device);

#endif
