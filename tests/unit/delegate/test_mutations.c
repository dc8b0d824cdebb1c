/* SPDX-License-Identifier: MIT */
/*
 * Bends random fields of a host's structures and hands them to the delegate,
 * from Prepare() to an invocation: whatever happens, no sanitizer may complain
 * and the host must be able to go on. Deterministic; the argument is the number
 * of rounds.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/delegate.h"
#include "models.h"

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % bound;
}

static int odd_int(void)
{
    static const int values[] = {0, 1, -1, 2, 3, 4, 5, 7, 8, 9, 127, 128, 255, 256, 65535, 65536, INT_MAX, INT_MIN};
    return values[random_below(sizeof values / sizeof values[0])];
}

static float odd_float(void)
{
    static const float values[] = {0, -0.0f, 1, -1, NAN, INFINITY, -INFINITY, 1e-45f, 1e38f, 3e-6f, 1000, 0.5f};
    return values[random_below(sizeof values / sizeof values[0])];
}

/* What was overwritten, put back last first. */
struct patch {
    void *where;
    size_t size;
    unsigned char old[16];
};

static struct patch patches[16];
static int patch_count;

static void set(void *where, const void *value, size_t size)
{
    struct patch *patch = &patches[patch_count++];
    patch->where = where;
    patch->size = size;
    memcpy(patch->old, where, size);
    memcpy(where, value, size);
}

static void set_int(int *where)
{
    int value = odd_int();
    set(where, &value, sizeof value);
}

static void set_null(void *where)
{
    void *null = NULL;
    set(where, &null, sizeof null);
}

static void put_back(void)
{
    while (patch_count > 0) {
        const struct patch *patch = &patches[--patch_count];
        memcpy(patch->where, patch->old, patch->size);
    }
}

/* An array may only claim to be shorter: how long one really is, a delegate can't know. */
static void shorten(struct tfl_int_array *array)
{
    int value = array->size > 0 && random_below(2) ? (int)random_below((uint32_t)array->size) : odd_int();
    if (value > array->size)
        value = -1;
    set(&array->size, &value, sizeof value);
}

static void bend_ints(struct tfl_int_array **array)
{
    if (!*array)
        return;
    switch (random_below(6)) {
    case 0:
        set_null(array);
        break;
    case 1:
        shorten(*array);
        break;
    default:
        if ((*array)->size > 0)
            set_int(&(*array)->data[random_below((uint32_t)(*array)->size)]);
    }
}

static void bend_quantization(struct tfl_tensor *tensor)
{
    struct tfl_affine_quantization *affine = tensor->quantization.params;
    if (!affine || !affine->scale)
        return;
    float scale = odd_float();
    switch (random_below(7)) {
    case 0:
        set_null(&tensor->quantization.params);
        break;
    case 1:
        set_null(&affine->scale);
        break;
    case 2:
        bend_ints(&affine->zero_point);
        break;
    case 3:
        set_int(&affine->quantized_dimension);
        break;
    case 4:
        shorten((struct tfl_int_array *)affine->scale);
        break;
    case 5:
        set_int(&tensor->quantization.type);
        break;
    default:
        if (affine->scale->size > 0)
            set(&affine->scale->data[random_below((uint32_t)affine->scale->size)], &scale, sizeof scale);
    }
}

static void bend_tensor(struct tfl_tensor *tensor)
{
    size_t bytes = random_below(2) ? tensor->bytes - 1 : (size_t)odd_int();
    bool yes = true;
    switch (random_below(9)) {
    case 0:
        set_int(&tensor->type);
        break;
    case 1:
    case 2:
        bend_ints(&tensor->dims);
        break;
    case 3:
        set_int(&tensor->allocation_type);
        break;
    case 4: /* a host's sizes are true where there is data: only smaller ones */
        if (!tensor->data || bytes < tensor->bytes)
            set(&tensor->bytes, &bytes, sizeof bytes);
        break;
    case 5:
        set(&tensor->is_variable, &yes, sizeof yes);
        break;
    case 6:
        set_null(&tensor->name);
        break;
    default:
        bend_quantization(tensor);
    }
}

static void bend_node(struct host *host, int index, size_t parameters)
{
    struct tfl_node *node = host->nodes[index];
    switch (random_below(5)) {
    case 0:
        bend_ints(&node->inputs);
        break;
    case 1:
        bend_ints(&node->outputs);
        break;
    case 2:
        if (node->builtin_data)
            set_int((int *)node->builtin_data + random_below((uint32_t)(parameters / sizeof(int))));
        break;
    case 3:
        set_null(&node->builtin_data);
        break;
    default: /* not to a type with larger parameters than the node has */
        host->registrations[index].builtin_code = random_below(2) ? TFL_BUILTIN_RESHAPE : 1000 + odd_int() / 2;
    }
}

static void bend(struct host *host, size_t parameters)
{
    for (uint32_t i = 0, count = 1 + random_below(4); i < count; i++) {
        if (random_below(3))
            bend_tensor(&host->context.tensors[random_below((uint32_t)host->context.tensors_size)]);
        else
            bend_node(host, (int)random_below((uint32_t)host->node_count), parameters);
    }
}

/* A real host computes shapes and sizes before delegates see them; only the kernel's checks stand for that here. */
static bool run(struct host *host, struct tfl_delegate *delegate)
{
    if (host_delegate(host, delegate) != TFL_OK || !host_kernel_count(host))
        return false;
    host_invoke(host);
    return true;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000, taken = 0;
    struct tfl_delegate *delegate = tflite_plugin_create_delegate(NULL, NULL, 0, NULL);
    for (long i = 0; i < rounds; i++) {
        uint32_t kind = random_below(3);
        bool conv = kind != 0;
        struct host *host = !conv ? model_chain(4) : kind == 1 ? model_conv() : model_conv_per_tensor();
        host_allocate(host);
        bend(host, conv ? sizeof(struct tfl_conv_params) : sizeof(struct tfl_add_params));
        taken += run(host, delegate);
        put_back();
        host_destroy(host);
    }
    tflite_plugin_destroy_delegate(delegate);
    printf("%ld of %ld interpreters had something for the delegate\n", taken, rounds);
    return taken > 0 && taken < rounds ? 0 : 1;
}
