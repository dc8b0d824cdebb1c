/* SPDX-License-Identifier: MIT */
/* Programs as bytes of an executable file; the layout is in docs/executable-format.md. */
#ifndef MICA_RUNTIME_PROGRAM_FILE_H
#define MICA_RUNTIME_PROGRAM_FILE_H

#include "npu/program.h"
#include "runtime/byte_stream.h"

void mica_program_write(struct mica_byte_writer *writer, const struct mica_program *program);

/*
 * NULL on failure, with the reader's `error` or `no_memory` set. What comes out
 * has no pointer out of bounds, but mica_program_valid() was not asked yet.
 */
struct mica_program *mica_program_read(struct mica_byte_reader *reader);

#endif
