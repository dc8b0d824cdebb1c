/* SPDX-License-Identifier: MIT */
/*
 * libmica: runs quantized TensorFlow Lite models on neural processing units
 * and on bit-accurate simulators of them.
 *
 * The order of use: context -> device and model -> executable (compiled or
 * loaded) -> session (inputs, invoke, outputs, profile). Each object must be
 * destroyed before what it was made from; every destroy accepts NULL.
 *
 * Errors: functions that can fail return 0 or a negative errno; the sentence
 * that says what, where and what would help is in mica_last_error(). The
 * library prints nothing; install a log sink to see messages.
 *
 * Threads: objects of one context must not be used by two threads at once,
 * except that each session may have its inputs set, be invoked and have its
 * outputs read in a thread of its own, and be waited for from any. The log
 * sink may be called from all threads in which a run is under way.
 */
#ifndef MICA_MICA_H
#define MICA_MICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define MICA_VERSION_MAJOR 0
#define MICA_VERSION_MINOR 1
#define MICA_VERSION_PATCH 0

#define MICA_MAX_RANK 8

typedef struct mica_context mica_context;
typedef struct mica_device mica_device;
typedef struct mica_model mica_model;
typedef struct mica_executable mica_executable;
typedef struct mica_session mica_session;
typedef struct mica_comparison mica_comparison;

enum mica_type {
    MICA_TYPE_OTHER, /* exists in files, nothing here computes with it */
    MICA_TYPE_FLOAT32,
    MICA_TYPE_INT32,
    MICA_TYPE_UINT8,
    MICA_TYPE_INT8,
    MICA_TYPE_INT16,
    MICA_TYPE_INT64,
    MICA_TYPE_BOOL,
};

/* The library's version, "0.1.0". */
const char *mica_version(void);

/* ---- context ---------------------------------------------------------- */

enum mica_level {
    MICA_LEVEL_ERROR,
    MICA_LEVEL_WARNING,
    MICA_LEVEL_INFO,
    MICA_LEVEL_DEBUG,
};

int mica_context_create(mica_context **context);
void mica_context_destroy(mica_context *context);

/* Messages up to `level` go to `sink` (NULL: nowhere, the default). The text is valid during the call only. */
void mica_context_set_log(mica_context *context, enum mica_level level,
                          void (*sink)(void *user, enum mica_level level, const char *message), void *user);

/* Worker threads for simulators and CPU kernels; 0 (the default) means one per processor. Set before opening devices.
 */
int mica_context_set_threads(mica_context *context, unsigned threads);

/* The sentence of the last failure on this context, "" if none. Valid until the next call on the context. */
const char *mica_last_error(const mica_context *context);

/* ---- devices ---------------------------------------------------------- */

/* One row of the device list. Strings are static. */
struct mica_device_info {
    const char *name;        /* what mica_device_open() takes, "sim:a311d" */
    const char *description; /* for people */
    bool available;          /* false: known, but this library or machine can't open it */
    const char *reason;      /* why not, "" when available */
    const char *notes;       /* what is inferred about it rather than verified: lines, "" for none */
};

/* Row `index` of the known devices, -ENOENT past the last. */
int mica_device_list(const mica_context *context, size_t index, struct mica_device_info *info);

/*
 * Opens "sim:CHIP", "drm:PATH", "accel:PATH", "cpu" (no NPU at all), "CHIP" (its
 * hardware if there is any, else its simulator), or "auto" (also NULL or ""): real
 * hardware if there is any, else "sim:a311d". The choice is in mica_device_name().
 */
int mica_device_open(mica_context *context, const char *name, mica_device **device);
void mica_device_close(mica_device *device);
const char *mica_device_name(const mica_device *device);

/*
 * Sets an option of the device. For what is compiled from then on:
 *   "on-chip"   "0" (default) or "1": keep tensors in on-chip memory. Faster, and
 *               unverified on hardware; a warning says so at every compilation.
 *   "optimize"  "speed" (default) or "size": search longer for smaller coefficients.
 *   "partition" "all" (default): all that the NPU takes runs there. "cost": parts of the graph
 *               that a rough cost model has faster on the CPU, copies counted, stay there;
 *               "cost:N" with a CPU that does N MACs a microsecond.
 *   "fuse"      "0" (default) or "1": additions run inside the convolution before them where the
 *               NPU can (Rockchip) and a sum then differs by at most 1 from that of both alone.
 *   "per-channel" "exact" (default): weights with a scale for each channel are computed within 1 of
 *               TFLite. "folded": where an NPU has one multiplier a job (Vivante), scales are folded
 *               into 8-bit weights: quicker, and off by what mica_model_way() says for each operation.
 *   "split"     "1" (default) to the number of the chip's cores: spread one inference over
 *               so many. Simulators only: no kernel interface allows it.
 * For sessions that are made from then on:
 *   "cores"     "1" to the number of the chip's cores (default): how many of them sessions
 *               are spread over. One session uses one core; runs on different ones go on
 *               at the same time. Each core has weights and tensors of its own.
 * For all runs from then on:
 *   "clock"     MHz that a simulator's timing model counts at, if the chip has a choice.
 * -EINVAL for another key or value, with a message that names the known ones; -ENOTSUP
 * for what this device has no way to do.
 */
int mica_device_configure(mica_device *device, const char *key, const char *value);

/* MHz that cycles are turned into time with, 0 for "cpu". *least and *most (NULL: unwanted) get what "clock" takes,
 * or the same where it takes nothing. */
double mica_device_clock(const mica_device *device, double *least, double *most);

/* How many cores sessions are spread over. */
unsigned mica_device_cores(const mica_device *device);

enum mica_limit_kind {
    MICA_LIMIT_RANGE,
    MICA_LIMIT_POWERS_OF_TWO, /* only those of the range */
    MICA_LIMIT_FLAG,          /* 0 is without, 1 is with */
};

/* What an operation counts, and how far: below `least` and above `most` (INT32_MAX: no end) the NPU doesn't take it. */
struct mica_operation_limit {
    const char *name; /* "kernel", "channels in", "per channel" */
    enum mica_limit_kind kind;
    int32_t least, most;
};

#define MICA_OPERATION_LIMITS 8

/* One row of the table of operations that a device's NPU takes. Strings are static. */
struct mica_operation_support {
    const char *name;       /* the model's, "CONV_2D" */
    const char *types;      /* of the tensors that it computes with, one space between: "uint8 int8" */
    const char *how;        /* what does it */
    const char *conditions; /* what no number says, "" for nothing */
    uint32_t off;           /* how far values may be from TFLite's reference kernels; 0: exact */
    struct mica_operation_limit limits[MICA_OPERATION_LIMITS]; /* up to the first without a name */
};

/*
 * Row `index` of the device's table, -ENOENT past the last. What has no row runs on the CPU. The table says what
 * operations are taken in general; scales and sizes of one may still forbid it, then mica_model_placement() has the
 * reason.
 */
int mica_device_operation(const mica_device *device, size_t index, struct mica_operation_support *operation);

/* ---- models ----------------------------------------------------------- */

/* Reads and verifies a .tflite or quantized .onnx file. The file is mapped, not copied, and must not change while the
 * model lives. */
int mica_model_load(mica_context *context, const char *path, mica_model **model);

/* The same from memory, 16-byte aligned, which must outlive the model. */
int mica_model_load_memory(mica_context *context, const void *data, size_t size, mica_model **model);
void mica_model_destroy(mica_model *model);

/* A tensor. Strings and arrays live as long as the model. */
struct mica_tensor_info {
    const char *name;
    enum mica_type type;
    uint32_t rank;
    const int32_t *dims; /* rank entries, batch first, channels last */
    size_t bytes;
    float scale; /* per-tensor quantization: real = scale * (q - zero_point); 0 when there is none */
    int32_t zero_point;
};

size_t mica_model_input_count(const mica_model *model);
size_t mica_model_output_count(const mica_model *model);
int mica_model_input(const mica_model *model, size_t index, struct mica_tensor_info *info);
int mica_model_output(const mica_model *model, size_t index, struct mica_tensor_info *info);

struct mica_operation_info {
    const char *type;   /* "CONV_2D" */
    const char *output; /* name of its first output tensor */
    uint32_t rank;      /* shape of that output */
    const int32_t *dims;
    uint64_t macs;          /* multiply-accumulates of one inference */
    uint32_t output_count;  /* all it makes */
    const int32_t *outputs; /* for mica_model_tensor(); negative where an optional one is absent */
};

/* All tensors of the model, constants too. */
size_t mica_model_tensor_count(const mica_model *model);
int mica_model_tensor(const mica_model *model, size_t index, struct mica_tensor_info *info);

size_t mica_model_operation_count(const mica_model *model);
int mica_model_operation(const mica_model *model, size_t index, struct mica_operation_info *info);

/*
 * Would `device` run operation `index`? 1 = on the NPU, 0 = on the CPU, and
 * negative = nowhere; `reason`, of `size` bytes, then says why not on the NPU.
 */
int mica_model_placement(const mica_model *model, const mica_device *device, size_t index, char *reason, size_t size);

/* How an NPU computes an operation that is compiled by itself: layouts and memory may make it cheaper among others. */
struct mica_way {
    char text[160]; /* one short phrase, "3 groups of channels, second stage" */
    uint32_t jobs;  /* jobs or tasks of the device; 0: none, or the family can't tell (then `us` is negative) */
    double us;      /* of them at the chip's own clock, by the timing model, their starts included; negative: unknown */
    uint32_t off;   /* how far values may be from TFLite's reference kernels, in steps of the output; 0: exact */
};

/*
 * How would `device` compute operation `index`, with the options it has now? -ENOTSUP, with a message, when its NPU
 * doesn't take it.
 */
int mica_model_way(const mica_model *model, const mica_device *device, size_t index, struct mica_way *way);

/* ---- executables ------------------------------------------------------ */

/* Compiles for the device. The executable keeps using model and device. */
int mica_executable_compile(mica_model *model, mica_device *device, mica_executable **executable);

/* Writes model and compiled programs into one file that mica_executable_load() reads. */
int mica_executable_save(const mica_executable *executable, const char *path);

/* Loads a saved executable; -EINVAL when it is damaged, of another version, or for another chip. */
int mica_executable_load(mica_device *device, const char *path, mica_executable **executable);
void mica_executable_destroy(mica_executable *executable);

/* The model inside; it lives as long as the executable. */
const mica_model *mica_executable_model(const mica_executable *executable);

/* Number of partitions that run on the NPU, and of operations in them. */
size_t mica_executable_partition_count(const mica_executable *executable);
size_t mica_executable_npu_operation_count(const mica_executable *executable);

/* Which of the partitions, in the order they run, operation `operation` is part of; -1: it runs on the CPU. */
int mica_executable_partition_of(const mica_executable *executable, size_t operation);

/* How many cores one inference is split over: 1 unless it was compiled with "split". */
unsigned mica_executable_split(const mica_executable *executable);

/* What the programs of an executable take, in bytes. */
struct mica_memory_info {
    uint64_t coefficient_bytes;  /* weights and biases as the NPU reads them */
    uint64_t command_bytes;      /* descriptors and command streams */
    uint64_t intermediate_bytes; /* peak of what lives inside the partitions, in DDR */
    uint64_t tensor_bytes;       /* inputs and outputs of the partitions */
    uint64_t on_chip_bytes;      /* of the largest partition: they share on-chip memory one after the other */
};

int mica_executable_memory(const mica_executable *executable, struct mica_memory_info *info);

/* ---- sessions --------------------------------------------------------- */

int mica_session_create(mica_executable *executable, mica_session **session);
void mica_session_destroy(mica_session *session); /* waits for a running invocation */

/* Copies input `index` in; `size` must be the tensor's bytes. Inputs keep their value over invocations. */
int mica_session_set_input(mica_session *session, size_t index, const void *data, size_t size);

/* Runs once, to the end. */
int mica_session_invoke(mica_session *session);

/* Starts one run in the background; -EBUSY while another is under way. */
int mica_session_invoke_async(mica_session *session);

/* Waits at most `timeout_ms` (negative: forever) and returns the run's result; -ETIMEDOUT if it still runs. */
int mica_session_wait(mica_session *session, int timeout_ms);

/* Copies output `index` of the last run out; `size` must be the tensor's bytes. */
int mica_session_get_output(mica_session *session, size_t index, void *data, size_t size);

/*
 * *data gets the memory of input or output `index`, of the tensor's bytes: set_input()
 * writes the same memory, get_output() reads it. Where only one partition of the NPU uses
 * the tensor, in the form the model has it, this is the memory that the device itself
 * reads or writes, and nothing is copied; else the session's own. It lives as long as the
 * session, or until the next bind of the tensor. Write to inputs only, between runs only.
 */
int mica_session_map_input(mica_session *session, size_t index, void **data);
int mica_session_map_output(mica_session *session, size_t index, void **data);

/*
 * Has the device read input (write output) `index` in place in the memory behind `fd`, a
 * dma-buf or a memfd sealed with F_SEAL_SHRINK, from `offset` on, a multiple of 4096 bytes.
 * The session keeps the memory; `fd` may be closed. A negative `fd` goes back to the
 * device's own. -ENOTSUP with the reason when the tensor can't be used in place.
 * Whoever else writes the memory must have finished before the run starts.
 */
int mica_session_bind_input_dmabuf(mica_session *session, size_t index, int fd, size_t offset);
int mica_session_bind_output_dmabuf(mica_session *session, size_t index, int fd, size_t offset);

/* One device job (or one CPU operation) of the last run. */
struct mica_job_info {
    const char *unit; /* "NN", "TP", "CPU" */
    size_t operation; /* index in the model */
    uint64_t macs;
    uint64_t cycles;     /* 0 for CPU */
    double us;           /* measured for CPU, cycles at the chip's clock for a simulator */
    uint64_t read_bytes; /* device memory traffic */
    uint64_t write_bytes;
    uint64_t coefficient_bytes; /* of read_bytes */
    bool estimate;              /* the figures come from a timing model, not from a clock */
    uint64_t compute_cycles;    /* with memory infinitely fast, 0: the model doesn't tell; the larger one of these */
    uint64_t memory_cycles;     /* of the traffic with the memory to itself, likewise */
    double dispatch_us;         /* what starting the job costs beside its cycles, not part of `us` */
    uint32_t core, stage;       /* jobs of one stage on different cores run at the same time; stages rise */
};

size_t mica_session_job_count(const mica_session *session);
int mica_session_job(const mica_session *session, size_t index, struct mica_job_info *info);

/*
 * *us gets the microseconds until the NPU is done with `inferences` runs like the last one on `cores` cores of
 * the device's chip, by the timing model at `mhz` (0: the device's clock): jobs and what starting them costs,
 * memory shared by the cores. Operations on the CPU are not part of it. -ENOTSUP where there is no model.
 */
int mica_session_stream_us(const mica_session *session, double mhz, uint32_t inferences, uint32_t cores, double *us);

/*
 * Writes what the session would submit to the device, in the capture format
 * (run.json, in_N.bin, cpu_N.bin, submit_NNNN/), into `directory`, which is made
 * if needed and must be empty. Runs the model once, beside the session: neither
 * its outputs nor its jobs change.
 */
int mica_session_capture(mica_session *session, const char *directory);

/* ---- comparisons ------------------------------------------------------ */

/*
 * A device against TFLite's reference arithmetic, layer by layer. There are two values of every tensor: the
 * reference's, every operation computed on the CPU as TFLite's reference kernels do, bit for bit (floats: but for the
 * last digits); and the device's, of the last of the runs below. All of them stay in memory: twice what the model's
 * tensors take together. -EFBIG for a model that needs too much.
 */
int mica_comparison_create(const mica_executable *executable, mica_comparison **comparison);
void mica_comparison_destroy(mica_comparison *comparison);

/* Inputs are zero until set. What was computed before is forgotten. */
int mica_comparison_set_input(mica_comparison *comparison, size_t index, const void *data, size_t size);

/* Computes the reference's values; the others need them. */
int mica_comparison_run_reference(mica_comparison *comparison);

/* Compiles and runs one operation of the NPU's by itself, on the reference's values. */
int mica_comparison_run_alone(mica_comparison *comparison, size_t operation);

/*
 * Runs the model as a session would, so that differences add up. `every`: partitions are compiled anew with
 * everything that they compute as an output, so that all values can be seen; else only those at their borders.
 */
int mica_comparison_run_chained(mica_comparison *comparison, bool every);

/* The two values of a tensor: of its bytes, valid until the next call that runs something; NULL where there is none. */
const void *mica_comparison_reference(const mica_comparison *comparison, size_t tensor);
const void *mica_comparison_device(const mica_comparison *comparison, size_t tensor);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
