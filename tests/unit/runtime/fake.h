/* SPDX-License-Identifier: MIT */
/*
 * A device that exists for these tests only: its chip takes RESHAPE and
 * nothing else, its command stream is a list of copies (source address,
 * destination address, bytes), its winsys runs them. It has three cores, each
 * a connection, of which sessions use one unless the test sets "cores", and
 * a clock of 50 to 200 MHz.
 */
#ifndef MICA_TESTS_RUNTIME_FAKE_H
#define MICA_TESTS_RUNTIME_FAKE_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/objects.h"
#include "winsys/winsys.h"

extern struct mica_chip fake_chip;
extern struct mica_npu_family fake_family;

/* What the fake compiler does from now on: channels of border tensors in blocks of so many, 0: as the host has them. */
extern uint32_t fake_block;
/* What opening another core gives. */
extern int fake_connect_result;

struct fake_bo {
    struct mica_bo bo;
    int open; /* brackets that are open */
    struct fake_bo *next;
};

struct fake_winsys {
    struct mica_winsys winsys;
    struct fake_bo *bos;
    uint64_t next_address;
    uint32_t last_handle;
    unsigned bo_count, submit_count, misuses;

    /* What the test asks for. */
    int submit_result, wait_result, begin_result; /* errors to give */
    bool no_reports;
    double clock_mhz;     /* that it was set to, 0: never */
    pthread_mutex_t gate; /* held by the test: submissions wait */
};

struct mica_winsys *fake_winsys_create(void);

/* A device of `context` with the fake chip; close with mica_device_close(). */
mica_device *fake_device_open(mica_context *context);
struct fake_winsys *fake_winsys_of(mica_device *device);
struct fake_winsys *fake_core_of(mica_device *device, uint32_t core); /* NULL: nobody used it */

/* A graph without an arena: `ops` are {kind, inputs, outputs} as strings of letters, 'a' = tensor 0; lower-case names
 * in `constants` are constants. */
struct fake_op {
    bool npu;
    const char *inputs, *outputs;
};
struct mica_graph *fake_graph_create(const struct fake_op *ops, uint32_t count, const char *inputs, const char *outputs,
                                     const char *constants);
void fake_graph_destroy(struct mica_graph *graph);

#endif
