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

/*
 * How the device has the bytes of a tensor of `pixels` x `channels` one-byte elements, channels
 * fastest. block 0 (then all else is 0): as the host has them. Else 8 or 16, blocked by channels: element
 * c of pixel p is at (c / block) * surface + p * block + c % block, and lanes of the last surface
 * past the channels hold `padding` in an input (as the device reads it), anything in an output.
 */
struct mica_program_layout {
    uint32_t block;
    uint32_t channels, pixels;
    uint8_t padding;
    uint64_t surface; /* bytes, at least pixels * block */
};

/*
 * A graph tensor that crosses the partition's border, as a byte range of a buffer. Or a piece of one: bytes [first,
 * first + size) of its value; a tensor's pieces stand one after the other in the list and make all of it, in order.
 */
struct mica_program_io {
    uint32_t tensor; /* graph index */
    uint32_t buffer;
    uint64_t offset, size; /* bytes; size = the tensor's (the piece's), which a blocked layout exceeds in the buffer */
    bool flip_sign;        /* the device's bytes are the tensor's XORed with 0x80 */
    struct mica_program_layout layout;
    uint64_t first; /* 0 of a whole tensor */
};

/* One job of the device, for reports: nothing of it reaches the device. */
struct mica_program_job {
    char unit[4];  /* "NN", "TP" */
    uint32_t op;   /* graph index of the operation it works for */
    uint64_t macs; /* multiply-accumulates of the operation that this job does */
};

/*
 * One submission. Its stream is what the kernel interface takes: a command stream for etnaviv; for
 * rocket the array of its tasks, two words each (address of a register program, its count of 64-bit
 * words). Jobs [first_job, first_job + job_count) are started by it, in order, behind those of the
 * submission before it.
 */
struct mica_program_submit {
    uint32_t *stream; /* owned */
    uint32_t words;
    uint32_t first_job, job_count;
    /*
     * Submissions in order always give the result. Those of one stage depend on each other in
     * nothing and may run at the same time, each on its core of the device (below the chip's
     * count); a stage begins when the one before it is done. Stages don't fall.
     */
    uint32_t core, stage;
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

/* Bytes from the first to the last that a tensor takes in its buffer; 0 when they are too many to count. */
uint64_t mica_program_io_extent(const struct mica_program_io *io);

/* How many cores the submissions name, at least 1: the highest of them and one more. Accepts NULL. */
uint32_t mica_program_width(const struct mica_program *program);

/* Every index and range inside its bounds, layouts sound, stages in order? For programs that were read from a file. */
bool mica_program_valid(const struct mica_program *program);

#endif
