/* SPDX-License-Identifier: MIT */
/*
 * The Huffman coefficient stream (i.MX 8M Plus, S905D3): what the NN cores read
 * kernels from. Format: specification, sections 5.2 and 5.3, and
 * docs/coefficient-streams.md. A buffer is a header of 64 bytes, one bit stream
 * per core, each padded to 64 bytes, and on i.MX 8M Plus a table of biases.
 *
 * A writer takes explicit choices; an encoder on top of it searches for the
 * choices that give the smallest buffer.
 */
#ifndef MICA_VIVANTE_COMPILE_COEF_HUFFMAN_H
#define MICA_VIVANTE_COMPILE_COEF_HUFFMAN_H

#include "npu/vivante/compile/coef_v7.h"
#include "util/threads.h"

#define VIV_HUFFMAN_MAX_CORES 16u
#define VIV_HUFFMAN_MAX_RUNS 18u

enum viv_huffman_effort {
    VIV_HUFFMAN_QUICK,
    VIV_HUFFMAN_EXHAUSTIVE, /* every average bias, every table size refined: some ten times slower */
};

/*
 * What the job says besides its kernels. The taps of a kernel set for a chip
 * with coef_blocks_of_nine are in plain order, [channel][row][column]; a
 * hardware depthwise job's kernels have one channel each.
 */
struct viv_huffman_job {
    uint32_t kernels_per_core; /* of a superblock */
    bool depthwise;            /* in hardware: chips with hardware_depthwise only */
    enum viv_huffman_effort effort;
    struct mica_threads *threads; /* may be NULL */
};

/* How runs of zeros are cut into the table's lengths. */
enum viv_run_split {
    VIV_SPLIT_CHEAPEST, /* fewest bits */
    VIV_SPLIT_VENDOR,   /* longest first, and closed at fixed points (specification, sections 5.2.7, 5.3.4) */
};

struct viv_huffman_choices {
    bool precode;         /* differences of successive bytes; chips with coef_precode only, and average bias 0 then */
    uint8_t average_bias; /* added to every decoded value */
    uint8_t runs;         /* entries of the run table: 0 (no zero-run coding), 4, 6, 10 or 18 */
    uint16_t run[VIV_HUFFMAN_MAX_RUNS]; /* their lengths, 1..256 */
    /* Class of values that each symbol stands for: bit length 0..7; with runs 0 and 8 are runs, 7 raw, one of 1..6 is
     * missing. */
    uint8_t symbol_map[8];
    enum viv_run_split split;
};

/* Which kernels a core has, in the order of its stream: kernels[first[core]] to kernels[first[core + 1] - 1]. */
struct viv_huffman_placement {
    const uint32_t *kernels;
    uint32_t first[VIV_HUFFMAN_MAX_CORES + 1];
};

/* Bytes that the same kernels must take at least (docs/coefficient-streams.md). */
struct viv_huffman_floor {
    double entropy;  /* header, order-0 entropy of the coded bytes, bias table */
    uint64_t format; /* header, code bits under the best parameters, bias table */
    uint64_t padded; /* the same with each core's stream in blocks of 64 bytes, and the buffer too */
};

/*
 * Searches and encodes; `choices` (may be NULL) gets what was chosen. Sets
 * coefficients->zero_run_bits to 0: it means nothing here. False when memory
 * runs out.
 */
bool viv_coef_huffman_encode(const struct viv_chip *chip, const struct viv_kernel_set *set,
                             const struct viv_huffman_job *job, struct viv_coefficients *coefficients,
                             struct viv_huffman_choices *choices);

/*
 * Encodes with given choices; `placement` NULL: the chip's usual one. Chips with a
 * bias table have no other. False when memory runs out.
 */
bool viv_coef_huffman_write(const struct viv_chip *chip, const struct viv_kernel_set *set,
                            const struct viv_huffman_job *job, const struct viv_huffman_choices *choices,
                            const struct viv_huffman_placement *placement, struct viv_coefficients *coefficients);

/* Slow: for benches and tests. False when memory runs out. */
bool viv_coef_huffman_floor(const struct viv_chip *chip, const struct viv_kernel_set *set,
                            const struct viv_huffman_job *job, struct viv_huffman_floor *bounds);

#endif
