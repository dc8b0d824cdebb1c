/* SPDX-License-Identifier: MIT */
/*
 * Runs a .tflite model on the CPU kernels, operation by operation, for
 * comparisons with TensorFlow Lite.
 *
 *   cpu_run MODEL --arithmetic NAME [--threads N] [--input FILE]... --output-dir DIR
 *           [--all] [--feed-exact DIR] [--skip-unsupported] [--repeat N]
 *
 * Writes DIR/out_N.bin for every graph output, with --all also tensor_N.bin
 * for every computed tensor. With --feed-exact each operation reads its inputs
 * from DIR/tensor_N.bin where there is such a file, so that it is judged alone.
 * With --skip-unsupported, operations that can't run are named on standard
 * output, and those that depend on them are left out. --repeat runs the model
 * again and again and prints the best time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/cpu.h"
#include "frontend/tflite/reader.h"

enum { MAX_INPUTS = 16 };

struct arguments {
    const char *model, *output_dir, *feed_exact, *inputs[MAX_INPUTS];
    unsigned input_count, threads, repeat;
    bool all, skip_unsupported;
    enum mica_arithmetic arithmetic;
};

struct state {
    const struct arguments *arguments;
    struct mica_graph *graph;
    struct mica_log log;
    struct mica_cpu_options options;
    void **computed; /* own copy of every tensor that is not constant */
    void **exact;    /* what --feed-exact gives, or NULL */
    bool *known;     /* has a value */
};

static int usage(void)
{
    fputs("usage: cpu_run MODEL --arithmetic tflite|vivante-v7|vivante-v8|rockchip|rockchip-rk356x\n"
          "               [--threads N] [--input FILE]... --output-dir DIR [--all] [--feed-exact DIR] "
          "[--skip-unsupported] [--repeat N]\n",
          stderr);
    return 2;
}

static bool parse_arithmetic(const char *name, enum mica_arithmetic *arithmetic)
{
    static const char *const names[] = {"tflite", "vivante-v7", "vivante-v8", "rockchip", "rockchip-rk356x"};
    static const enum mica_arithmetic values[] = {MICA_ARITHMETIC_TFLITE, MICA_ARITHMETIC_VIVANTE_V7,
                                                  MICA_ARITHMETIC_VIVANTE_V8, MICA_ARITHMETIC_ROCKCHIP,
                                                  MICA_ARITHMETIC_ROCKCHIP_RK356X};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strcmp(name, names[i])) {
            *arithmetic = values[i];
            return true;
        }
    }
    return false;
}

/* An option with a value. */
static bool parse_option(struct arguments *a, const char *option, const char *value)
{
    if (!strcmp(option, "--arithmetic"))
        return parse_arithmetic(value, &a->arithmetic);
    if (!strcmp(option, "--threads"))
        a->threads = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(option, "--repeat"))
        a->repeat = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(option, "--output-dir"))
        a->output_dir = value;
    else if (!strcmp(option, "--feed-exact"))
        a->feed_exact = value;
    else if (!strcmp(option, "--input") && a->input_count < MAX_INPUTS)
        a->inputs[a->input_count++] = value;
    else
        return false;
    return true;
}

static bool parse(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--all"))
            a->all = true;
        else if (!strcmp(argv[i], "--skip-unsupported"))
            a->skip_unsupported = true;
        else if (argv[i][0] != '-' && !a->model)
            a->model = argv[i];
        else if (i + 1 >= argc || !parse_option(a, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return a->model && a->output_dir;
}

/* The whole file, 16-byte aligned; NULL if it can't be read. */
static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    long length = -1;
    if (file && !fseek(file, 0, SEEK_END))
        length = ftell(file);
    if (length >= 0 && !fseek(file, 0, SEEK_SET))
        data = aligned_alloc(16, ((size_t)length + 16) & ~(size_t)15);
    if (data && fread(data, 1, (size_t)length, file) != (size_t)length) {
        free(data);
        data = NULL;
    }
    if (file)
        fclose(file);
    *size = data ? (size_t)length : 0;
    return data;
}

static int write_tensor(const struct state *s, const char *kind, uint32_t number, int32_t tensor)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s_%u.bin", s->arguments->output_dir, kind, number);
    FILE *file = fopen(path, "wb");
    size_t size = s->graph->tensors[tensor].bytes;
    bool failed = !file || fwrite(s->computed[tensor], 1, size, file) != size;
    failed |= file && fclose(file);
    if (failed)
        fprintf(stderr, "cpu_run: can't write %s\n", path);
    return failed ? -EIO : 0;
}

static void *load_tensor(const char *path, const struct mica_tensor *tensor)
{
    size_t size;
    void *data = read_file(path, &size);
    if (data && size != tensor->bytes) {
        fprintf(stderr, "cpu_run: %s has %zu bytes, tensor %s %zu\n", path, size, tensor->name, tensor->bytes);
        free(data);
        data = NULL;
    }
    return data;
}

static int allocate(struct state *s)
{
    uint32_t count = s->graph->tensor_count;
    s->computed = calloc(count + 1, sizeof *s->computed);
    s->exact = calloc(count + 1, sizeof *s->exact);
    s->known = calloc(count + 1, sizeof *s->known);
    if (!s->computed || !s->exact || !s->known)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct mica_tensor *tensor = &s->graph->tensors[i];
        s->known[i] = tensor->data != NULL;
        s->computed[i] = tensor->data ? NULL : calloc(1, tensor->bytes + 1);
        if (!tensor->data && !s->computed[i])
            return -ENOMEM;
        char path[4096];
        snprintf(path, sizeof path, "%s/tensor_%u.bin", s->arguments->feed_exact ? s->arguments->feed_exact : "", i);
        if (s->arguments->feed_exact && !tensor->data && tensor->bytes)
            s->exact[i] = load_tensor(path, tensor);
    }
    return 0;
}

static void release(struct state *s)
{
    for (uint32_t i = 0; s->graph && i < s->graph->tensor_count; i++) {
        if (s->computed)
            free(s->computed[i]);
        if (s->exact)
            free(s->exact[i]);
    }
    free(s->computed);
    free(s->exact);
    free(s->known);
    mica_threads_destroy(s->options.threads);
    mica_graph_destroy(s->graph);
}

static int load_inputs(struct state *s)
{
    const struct mica_graph *graph = s->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        int32_t tensor = graph->inputs[i];
        s->known[tensor] = true;
        if (i >= s->arguments->input_count)
            continue; /* stays zero */
        free(s->computed[tensor]);
        s->computed[tensor] = load_tensor(s->arguments->inputs[i], &graph->tensors[tensor]);
        if (!s->computed[tensor]) {
            fprintf(stderr, "cpu_run: can't read input %s\n", s->arguments->inputs[i]);
            return -EIO;
        }
    }
    return 0;
}

static bool inputs_known(const struct state *s, const struct mica_op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i] != MICA_NO_TENSOR && !s->known[op->inputs[i]] && !s->exact[op->inputs[i]])
            return false;
    return true;
}

/* Inputs come from the exact values where there are some; outputs never go there. */
static int run_op(struct state *s, uint32_t index, void **data)
{
    const struct mica_op *op = &s->graph->ops[index];
    for (uint32_t i = 0; i < op->input_count; i++) {
        int32_t t = op->inputs[i];
        if (t == MICA_NO_TENSOR)
            continue;
        const void *constant = s->graph->tensors[t].data;
        data[t] = constant ? (void *)(uintptr_t)constant : s->exact[t] ? s->exact[t] : s->computed[t];
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        data[op->outputs[i]] = s->computed[op->outputs[i]];
    int result = mica_cpu_run(s->graph, index, data, &s->options, &s->log);
    for (uint32_t i = 0; i < op->output_count && !result; i++)
        s->known[op->outputs[i]] = true;
    return result;
}

static int run_model(struct state *s, void **data, bool first)
{
    for (uint32_t i = 0; i < s->graph->op_count; i++) {
        const struct mica_op *op = &s->graph->ops[i];
        char reason[256];
        int result = mica_cpu_supports(s->graph, i, reason, sizeof reason);
        if (s->arguments->skip_unsupported && (result || !inputs_known(s, op))) {
            if (first)
                printf("skipped %u %s: %s\n", i, op->type, result ? reason : "an input was not computed");
            continue;
        }
        result = run_op(s, i, data);
        if (result)
            return result;
    }
    return 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int run_repeatedly(struct state *s)
{
    void **data = calloc(s->graph->tensor_count + 1, sizeof *data);
    int result = data ? run_model(s, data, true) : -ENOMEM;
    double best = 1e30;
    for (unsigned i = 0; i < s->arguments->repeat && !result; i++) {
        double start = now();
        result = run_model(s, data, false);
        double time = now() - start;
        best = time < best ? time : best;
    }
    if (s->arguments->repeat && !result)
        printf("best of %u: %.3f ms\n", s->arguments->repeat, best);
    free(data);
    return result;
}

static int write_results(const struct state *s)
{
    const struct mica_graph *graph = s->graph;
    int result = 0;
    for (uint32_t i = 0; i < graph->output_count && !result; i++)
        if (s->known[graph->outputs[i]] && s->computed[graph->outputs[i]])
            result = write_tensor(s, "out", i, graph->outputs[i]);
    for (uint32_t i = 0; i < graph->op_count && s->arguments->all; i++)
        for (uint32_t j = 0; j < graph->ops[i].output_count && !result; j++)
            if (s->known[graph->ops[i].outputs[j]])
                result = write_tensor(s, "tensor", (uint32_t)graph->ops[i].outputs[j], graph->ops[i].outputs[j]);
    return result;
}

static void print_message(void *user, enum mica_log_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "cpu_run: %s\n", message);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.threads = 1};
    if (!parse(&arguments, argc, argv))
        return usage();
    struct state s = {.arguments = &arguments, .log = {.sink = print_message, .level = MICA_LOG_WARNING}};
    s.options.arithmetic = arguments.arithmetic;
    s.options.threads = mica_threads_create(arguments.threads);
    size_t size;
    void *model = read_file(arguments.model, &size);
    int result = model ? mica_tflite_read(model, size, &s.log, &s.graph) : -EIO;
    if (!model)
        fprintf(stderr, "cpu_run: can't read %s\n", arguments.model);
    if (!result)
        result = allocate(&s);
    if (!result)
        result = load_inputs(&s);
    if (!result)
        result = run_repeatedly(&s);
    if (!result)
        result = write_results(&s);
    release(&s);
    free(model);
    return result ? 1 : 0;
}
