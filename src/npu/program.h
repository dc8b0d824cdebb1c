/* SPDX-License-Identifier: MIT */
/*
 * What a family's compiler makes of a partition and what the runtime gives to
 * a winsys: buffers, an ordered list of jobs, submissions. No address stands
 * in it: every address is a relocation, applied when buffers have one.
 */
#ifndef MICA_NPU_PROGRAM_H
#define MICA_NPU_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mica_access {
    MICA_ACCESS_READ = 1,
    MICA_ACCESS_WRITE = 2,
};

struct mica_program_buffer {
    uint64_t size;      /* bytes the device may touch */
    uint8_t *data;      /* initial contents (coefficients, descriptors, tables), owned; NULL: zeros */
    uint64_t data_size; /* <= size */
    unsigned access;    /* what the device does with it: enum mica_access bits */
    /*
     * 0: anywhere. Else on-chip memory of the device, at this page-aligned device
     * address (on_chip.h): no data, no tensor of the partition's border and no
     * relocated word is in it, and it overlaps no other buffer.
     */
    uint64_t fixed_address;
};

/*
 * The 32-bit little-endian word at `offset` (any alignment) of buffer `where`,
 * or of the stream of submission `where` when in_stream, gets
 * ((address of `target` + addend) >> shift) ORed in.
 */
struct mica_program_reloc {
    bool in_stream;
    uint32_t where;
    uint32_t offset; /* bytes */
    uint32_t target; /* buffer index */
    uint32_t shift;  /* 0..31 */
    uint64_t addend; /* bytes, below the target's size */
};

/* A graph tensor that crosses the partition's border, as a byte range of a buffer. */
struct mica_program_io {
    uint32_t tensor; /* graph index */
    uint32_t buffer;
    uint64_t offset, size; /* bytes; size = the tensor's */
    bool flip_sign;        /* the device wants int8 as uint8: every byte is XORed with 0x80 on the way */
};

/* One job of the device, for reports: nothing of it reaches the device. */
struct mica_program_job {
    char unit[4];  /* "NN", "TP" */
    uint32_t op;   /* graph index of the operation it works for */
    uint64_t macs; /* multiply-accumulates of the operation that this job does */
};

/* One submission: a command stream. Jobs [first_job, first_job + job_count) are started by it, in order. */
struct mica_program_submit {
    uint32_t *stream; /* owned */
    uint32_t words;
    uint32_t first_job, job_count;
};

struct mica_program {
    uint32_t buffer_count, reloc_count, input_count, output_count, job_count, submit_count;
    struct mica_program_buffer *buffers;
    struct mica_program_reloc *relocs;
    struct mica_program_io *inputs, *outputs;
    struct mica_program_job *jobs;
    struct mica_program_submit *submits;
};

void mica_program_destroy(struct mica_program *program); /* accepts NULL */

/* Every index and range inside its bounds? For programs that were read from a file. */
bool mica_program_valid(const struct mica_program *program);

#endif
