/* SPDX-License-Identifier: MIT */
/*
 * A small TensorFlow Lite host, in the process and under our sanitizers: the
 * part of an interpreter that a delegate sees. Its tensors and nodes are plain
 * structures that a test may bend as it likes before it hands them to the
 * delegate. It aborts where memory runs out, as tests may.
 */
#ifndef MICA_TESTS_CLIENTS_HOST_H
#define MICA_TESTS_CLIENTS_HOST_H

#include <stdarg.h>

#include "delegate/tflite_abi.h"

#define HOST_MAX_RANK 8

struct host;

/* Runs a node that no delegate took. 0 or negative errno. */
typedef int host_cpu(void *user, struct host *host, int node);

struct host {
    struct tfl_context context; /* first: the delegate's view */
    int node_count;
    struct tfl_node **nodes; /* pointers stay valid when nodes are added */
    struct tfl_registration *registrations;
    struct tfl_int_array *plan;
    struct tfl_int_array *outputs; /* of the whole graph */
    int *owners;                   /* per node: the delegate node that replaced it, or -1 */
    host_cpu *cpu;                 /* may be NULL: then nodes left over fail to run */
    void *cpu_user;
    char error[512]; /* last ReportError, "" when none */
    /* What a test may ask for. */
    int prepares; /* how often prepare runs for each kernel; 1 */
    bool fail_plan, fail_nodes, fail_replace;
};

struct tfl_int_array *host_ints(int count, const int *values);
struct tfl_float_array *host_floats(int count, const float *values);

/* `tensors`: how many there will be. */
struct host *host_create(int tensors);
void host_destroy(struct host *host); /* frees kernels first; accepts NULL */

/* Sets tensor `index`. Arrays are copied. */
void host_set_tensor(struct host *host, int index, int type, int rank, const int *dims, const char *name);
void host_set_quantization(struct host *host, int index, int count, const float *scales, const int *zero_points,
                           int axis);

/* Makes the tensor a constant. `data` is borrowed. */
void host_set_constant(struct host *host, int index, const void *data);

/* Adds a node to the graph and to the plan; `builtin_data` of `size` bytes is copied. Returns its index. */
int host_add_node(struct host *host, int builtin_code, const void *builtin_data, size_t size, int input_count,
                  const int *inputs, int output_count, const int *outputs);

void host_set_outputs(struct host *host, int count, const int *outputs);

/* Hands the graph to a delegate; TFL_OK or TFL_ERROR, then host->error tells. Prepares the kernels. */
int host_delegate(struct host *host, struct tfl_delegate *delegate);

/* Gives every tensor that has none its memory (zeroed). Returns false when a size is absurd. */
bool host_allocate(struct host *host);

int host_invoke(struct host *host);

/* Nodes of the plan that belong to a delegate. */
int host_kernel_count(const struct host *host);

#endif
