/* SPDX-License-Identifier: MIT */
/* The contract that every NPU family fills in. */
#ifndef MICA_NPU_NPU_H
#define MICA_NPU_NPU_H

#include "graph/graph.h"
#include "npu/device_memory.h"
#include "npu/on_chip.h"
#include "npu/program.h"
#include "util/log.h"
#include "util/threads.h"

/* A piece of a graph that the device runs in one go. */
struct mica_partition {
    const struct mica_graph *graph;
    uint32_t op_count, input_count, output_count;
    const uint32_t *ops;     /* graph indices, in execution order */
    const uint32_t *inputs;  /* tensors made outside and read inside, constants not among them; no duplicates */
    const uint32_t *outputs; /* tensors made inside and needed outside */
};

/* What the user chose about compiling. All zero is the default. */
struct mica_compile_options {
    bool on_chip;       /* keep tensors in on-chip memory, which is unverified on hardware */
    bool optimize_size; /* search longer for smaller coefficient streams */
    /*
     * One job for a convolution and the addition behind it where the hardware can: quicker, and within 1 of TFLite for
     * the two together, but no longer what they give one after the other.
     */
    bool fuse;
    /*
     * Weights with a scale for each channel, where there is one multiplier a job: scales are folded into 8-bit weights,
     * with a bound that describe() tells, instead of results within 1 of TFLite.
     */
    bool fold_scales;
    uint32_t split; /* cores that one inference is spread over; 0 and 1: one. For simulators: no kernel allows it */
    /* What the CPU looks faster at stays there, taking so many MACs a microsecond; 0: the NPU gets all it can. */
    uint32_t cost_cpu_macs;
};

/* What one device job cost. On a simulator the figures are a timing model's. */
struct mica_job_report {
    uint64_t cycles;
    uint64_t read_bytes, write_bytes; /* device memory */
    uint64_t coefficient_bytes;       /* part of read_bytes */
    uint64_t compute_cycles; /* what the job takes with memory infinitely fast; 0: the model has no such split */
    uint64_t memory_cycles;  /* what its traffic takes with the memory to itself; 0: likewise */
    double dispatch_us;      /* what starting it costs beside its cycles: kernel, interrupt */
};

struct mica_chip {
    const char *name;        /* "a311d" */
    const char *description; /* "Amlogic A311D (VeriSilicon VIPNano-QI)" */
    const char *driver;      /* kernel driver whose submissions it takes: "etnaviv" */
    double clock_mhz;        /* turns cycles into time */
    const struct mica_npu_family *family;
    const void *parameters; /* the family's own */
    /* MICA_ON_CHIP_WINDOWS entries; NULL: no on-chip memory has an address. */
    const struct mica_on_chip *on_chip;
    const char *notes; /* what is inferred rather than verified, lines for people; NULL: nothing */
    uint32_t cores;    /* that submissions may name or the kernel spreads jobs over; 0 stands for 1 */
    double clock_least_mhz, clock_most_mhz; /* what sim_set_clock() takes; 0: clock_mhz and no other */
    /*
     * What the driver's interface says of it. etnaviv: "model:revision:product:customer:eco" in hexadecimal; rocket:
     * the device tree's "compatible". NULL: that driver doesn't run it.
     */
    const char *identity;
    double submit_us; /* what a submission costs beside its jobs, for the cost model of partitions */
};

struct mica_npu_family {
    const char *name; /* "vivante" */

    /*
     * Can the chip run operation `op`? 0 = yes; -ENOTSUP = no, and `reason`
     * (of `size` bytes) gets a sentence the user can act on; -ENOMEM = memory ran
     * out before it was known. Answers for the operation alone: any set of supported operations must compile.
     */
    int (*supports)(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                    size_t size);

    /* Compiles a partition of supported operations. `options` may be NULL: defaults. */
    int (*compile)(const struct mica_chip *chip, const struct mica_partition *partition,
                   const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
                   struct mica_program **program);

    /*
     * The simulator: what stands behind a simulated device of this chip. It
     * sees memory and the stream, nothing else. `threads` may be NULL, is
     * borrowed and must outlive the simulator.
     */
    int (*sim_create)(const struct mica_chip *chip, struct mica_device_memory *memory, struct mica_threads *threads,
                      struct mica_log *log, void **sim);
    void (*sim_destroy)(void *sim); /* accepts NULL */

    /* Has the timing model count at another clock than the chip's; memory keeps its speed. NULL: only at the chip's. */
    int (*sim_set_clock)(void *sim, double mhz);

    /*
     * Runs one command stream to its end. Appends one report per job to
     * `reports`, at most `capacity`; *count gets the number of jobs run.
     * A stream that does what the device can't: -EFAULT (bad address) or
     * -EIO (bad command or descriptor), with a message that has the address.
     */
    int (*sim_run)(void *sim, const uint32_t *stream, size_t words, struct mica_job_report *reports, size_t capacity,
                   size_t *count);

    /*
     * Microseconds until `inferences` inferences are done at a clock, each of the same `count` jobs on one
     * core, on `cores` cores that share the memory. Negative when memory runs out. NULL: cores don't share.
     */
    double (*stream_us)(const struct mica_chip *chip, double mhz, const struct mica_job_report *reports, size_t count,
                        uint32_t inferences, uint32_t cores);

    /*
     * The table of what supports() takes: a row for every operation that it takes at least once, by the model's name
     * for it; *count gets their number. Tests try the rows' edges. NULL: there is no table.
     */
    const struct mica_operation_support *(*operations)(const struct mica_chip *chip, size_t *count);

    /*
     * How an operation that supports() takes is computed when it is compiled by itself, found out by lowering it:
     * no streams are written, but it may take as long as compiling it. `way` comes with what the table of operations
     * says, and gets what is known better. `options` may be NULL: defaults. 0, or -ENOMEM, or what lowering fails
     * with. NULL: the table is all that is known.
     */
    int (*describe)(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                    const struct mica_compile_options *options, struct mica_way *way);
};

extern const struct mica_npu_family mica_vivante;
extern const struct mica_chip mica_chip_a311d;
extern const struct mica_chip mica_chip_imx8mp;
extern const struct mica_chip mica_chip_s905d3;

extern const struct mica_npu_family mica_rockchip;
extern const struct mica_chip mica_chip_rk3588;
extern const struct mica_chip mica_chip_rk3566;

/* Every chip there is. */
extern const struct mica_chip *const mica_chips[];
extern const size_t mica_chip_count;
const struct mica_chip *mica_find_chip(const char *name); /* NULL: there is none of that name */

#endif
