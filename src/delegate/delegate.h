/* SPDX-License-Identifier: MIT */
/* One loaded delegate: its device, shared by all interpreters that were given it. */
#ifndef MICA_DELEGATE_DELEGATE_H
#define MICA_DELEGATE_DELEGATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "delegate/context_graph.h"
#include "delegate/options.h"
#include "delegate/profile.h"
#include "delegate/tflite_abi.h"
#include "runtime/cores.h"
#include "runtime/device.h"

struct mica_delegate {
    struct tfl_delegate base; /* what the host holds; base.data is this object, NULL when it was not fully created */
    struct mica_log log;
    struct mica_delegate_options options;
    struct mica_threads *threads;
    struct mica_opened_device device;
    struct mica_cores cores; /* of the device: interpreters are spread over them */
    /*
     * Guards everything below. Recursive: while Prepare() holds it, the host calls
     * the kernels back. A core's lock is taken inside it or without it, never before it.
     */
    pthread_mutex_t lock;
    struct mica_context_graph preparing; /* of the Prepare() under way, for the kernels it starts */
    struct mica_core *preparing_core;    /* that they all go to; NULL: none started yet */
    struct mica_profile profile;
    atomic_uint references; /* the host's and one of each kernel: hosts destroy in any order */
};

void mica_delegate_release(struct mica_delegate *delegate);

/* Tells the interpreter the last error. Returns TFL_ERROR. */
int mica_delegate_report(struct mica_delegate *delegate, struct tfl_context *context);

/* The plugin interface of TensorFlow Lite's external delegates. */
struct tfl_delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                                   void (*report_error)(const char *message));
void tflite_plugin_destroy_delegate(struct tfl_delegate *base);

#endif
