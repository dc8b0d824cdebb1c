/* SPDX-License-Identifier: MIT */
/*
 * Damaged models through everything a user would give them to: `mica info`,
 * `mica run`, and the delegate under the small host. An error is a fine
 * answer; a crash, a sanitizer's report or more than two seconds is not.
 *
 *     mutants COUNT MODEL...         mutants 0 to COUNT-1 of the models, spread over the processors
 *     mutants =SEED MODEL...         that one, to look at
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../clients/host.h"
#include "delegate/delegate.h"
#include "frontend/tflite/reader.h"
#include "graph/graph.h"
#include "mica/mica.h"
#include "mica_cli.h"
#include "mutate.h"
#include "util/threads.h"

#define HANG_SECONDS 2.0
#define MAX_INPUT_BYTES ((size_t)1 << 26)

struct model {
    const char *path;
    uint8_t *data;
    size_t size;
};

/* Shared with the parent, so that it can name what a crashed child was at. */
struct progress {
    unsigned long seed, done, accepted, slow;
    const char *stage;
};

struct work {
    const struct model *models;
    size_t model_count;
    char folder[64];
    char path[80]; /* the mutant's file */
    char input[80];
    FILE *null;
    struct progress *progress;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *need(void *pointer)
{
    if (!pointer) {
        perror("mutants");
        exit(2);
    }
    return pointer;
}

static bool write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    bool written = file && (size == 0 || fwrite(data, 1, size, file) == size);
    return file && fclose(file) == 0 && written;
}

static int command(struct work *work, const char *stage, int count, const char **arguments)
{
    char *copy[32];
    work->progress->stage = stage;
    for (int i = 0; i < count; i++)
        copy[i] = (char *)arguments[i];
    copy[count] = NULL;
    return mica_cli_main(count, copy, work->null, work->null);
}

/* ---- run: with zeros of the size that the model asks for ---------------- */

static bool write_inputs(struct work *work, size_t *count)
{
    mica_context *context = NULL;
    mica_model *model = NULL;
    size_t largest = 0;
    bool ok = !mica_context_create(&context) && !mica_model_load(context, work->path, &model);
    *count = ok ? mica_model_input_count(model) : 0;
    for (size_t i = 0; i < *count; i++) {
        struct mica_tensor_info info;
        ok = ok && !mica_model_input(model, i, &info);
        largest = ok && info.bytes > largest ? info.bytes : largest;
        ok = ok && info.bytes == largest; /* one file serves all */
    }
    mica_model_destroy(model);
    mica_context_destroy(context);
    if (!ok || *count > 8 || largest > MAX_INPUT_BYTES)
        return false;
    void *zeros = need(calloc(largest ? largest : 1, 1));
    ok = write_file(work->input, zeros, largest);
    free(zeros);
    return ok;
}

static bool run(struct work *work, const char *device)
{
    size_t inputs;
    const char *arguments[32] = {"mica", "run", work->path, "--device", device, "--threads", "1"};
    int count = 7;
    if (!write_inputs(work, &inputs))
        return false;
    for (size_t i = 0; i < inputs; i++) {
        arguments[count++] = "--input";
        arguments[count++] = work->input;
    }
    return command(work, device, count, arguments) == CLI_OK;
}

/* ---- the delegate -------------------------------------------------------- */

static int tfl_type(enum mica_type type)
{
    static const int types[] = {
        [MICA_TYPE_FLOAT32] = TFL_TYPE_FLOAT32, [MICA_TYPE_INT32] = TFL_TYPE_INT32, [MICA_TYPE_UINT8] = TFL_TYPE_UINT8,
        [MICA_TYPE_INT8] = TFL_TYPE_INT8,       [MICA_TYPE_INT16] = TFL_TYPE_INT16, [MICA_TYPE_INT64] = TFL_TYPE_INT64,
        [MICA_TYPE_BOOL] = TFL_TYPE_BOOL,
    };
    return types[type];
}

static void host_tensor(struct host *host, const struct mica_graph *graph, int index)
{
    const struct mica_tensor *tensor = &graph->tensors[index];
    const struct mica_quantization *quant = &tensor->quant;
    uint32_t rank = tensor->rank < HOST_MAX_RANK ? tensor->rank : HOST_MAX_RANK;
    host_set_tensor(host, index, tfl_type(tensor->type), (int)rank, tensor->dims, tensor->name);
    if (quant->count)
        host_set_quantization(host, index, (int)quant->count, quant->scale, quant->zero_point, quant->axis);
    if (tensor->data && !tensor->problem)
        host_set_constant(host, index, tensor->data);
}

union parameters {
    struct tfl_conv_params conv;
    struct tfl_depthwise_params depthwise;
    struct tfl_pool_params pool;
    struct tfl_fully_connected_params fully_connected;
    struct tfl_add_params add;
    struct tfl_concatenation_params concatenation;
    struct tfl_softmax_params softmax;
    struct tfl_resize_params resize;
    struct tfl_leaky_relu_params leaky_relu;
    struct tfl_reducer_params reducer;
    struct tfl_transpose_conv_params transpose_conv;
};

static int code_without_parameters(enum mica_op_kind kind)
{
    static const int codes[] = {
        [MICA_OP_RESHAPE] = TFL_BUILTIN_RESHAPE,
        [MICA_OP_PAD] = TFL_BUILTIN_PAD,
        [MICA_OP_LOGISTIC] = TFL_BUILTIN_LOGISTIC,
        [MICA_OP_QUANTIZE] = TFL_BUILTIN_QUANTIZE,
        [MICA_OP_DEQUANTIZE] = TFL_BUILTIN_DEQUANTIZE,
        [MICA_OP_TANH] = TFL_BUILTIN_TANH,
        [MICA_OP_RELU] = TFL_BUILTIN_RELU,
        [MICA_OP_RELU6] = TFL_BUILTIN_RELU6,
        [MICA_OP_MAXIMUM] = TFL_BUILTIN_MAXIMUM,
        [MICA_OP_MINIMUM] = TFL_BUILTIN_MINIMUM,
        [MICA_OP_HARD_SWISH] = TFL_BUILTIN_HARD_SWISH,
        [MICA_OP_ABS] = TFL_BUILTIN_ABS,
        [MICA_OP_SLICE] = TFL_BUILTIN_SLICE,
        [MICA_OP_TRANSPOSE] = TFL_BUILTIN_TRANSPOSE,
    };
    return (size_t)kind < sizeof codes / sizeof *codes && codes[kind] ? codes[kind] : TFL_BUILTIN_CUSTOM;
}

/* A host's parameters of `op`; explicit padding becomes the scheme it must have come from. */
static int host_parameters(const struct mica_op *op, union parameters *p)
{
    const struct mica_window *w = &op->window;
    int padding = w->padding.left || w->padding.top || w->padding.right || w->padding.bottom ? TFL_PADDING_SAME
                                                                                             : TFL_PADDING_VALID;
    switch (op->kind) {
    case MICA_OP_CONV_2D:
        p->conv = (struct tfl_conv_params){padding,       w->stride_x,  w->stride_y, (int)w->activation,
                                           w->dilation_x, w->dilation_y};
        return TFL_BUILTIN_CONV_2D;
    case MICA_OP_DEPTHWISE_CONV_2D:
        p->depthwise = (struct tfl_depthwise_params){
            padding, w->stride_x, w->stride_y, w->depth_multiplier, (int)w->activation, w->dilation_x, w->dilation_y};
        return TFL_BUILTIN_DEPTHWISE_CONV_2D;
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        p->pool =
            (struct tfl_pool_params){padding, w->stride_x, w->stride_y, w->kernel_x, w->kernel_y, (int)w->activation};
        return op->kind == MICA_OP_MAX_POOL_2D ? TFL_BUILTIN_MAX_POOL_2D : TFL_BUILTIN_AVERAGE_POOL_2D;
    case MICA_OP_FULLY_CONNECTED:
        p->fully_connected.activation = (int)op->activation;
        return TFL_BUILTIN_FULLY_CONNECTED;
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
        p->add.activation = (int)op->activation;
        return op->kind == MICA_OP_ADD ? TFL_BUILTIN_ADD : op->kind == MICA_OP_SUB ? TFL_BUILTIN_SUB : TFL_BUILTIN_MUL;
    case MICA_OP_CONCATENATION:
        p->concatenation = (struct tfl_concatenation_params){op->axis, (int)op->activation};
        return TFL_BUILTIN_CONCATENATION;
    case MICA_OP_SOFTMAX:
        p->softmax.beta = op->beta;
        return TFL_BUILTIN_SOFTMAX;
    case MICA_OP_LEAKY_RELU:
        p->leaky_relu.alpha = op->alpha;
        return TFL_BUILTIN_LEAKY_RELU;
    case MICA_OP_MEAN:
        p->reducer.keep_dims = op->keep_dims;
        return TFL_BUILTIN_MEAN;
    case MICA_OP_TRANSPOSE_CONV:
        p->transpose_conv = (struct tfl_transpose_conv_params){padding, w->stride_x, w->stride_y, (int)w->activation};
        return TFL_BUILTIN_TRANSPOSE_CONV;
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        p->resize = (struct tfl_resize_params){op->resize.align_corners, op->resize.half_pixel_centers};
        return op->kind == MICA_OP_RESIZE_NEAREST ? TFL_BUILTIN_RESIZE_NEAREST_NEIGHBOR : TFL_BUILTIN_RESIZE_BILINEAR;
    default:
        return code_without_parameters(op->kind);
    }
}

/* The host would compute; here the point is the delegate. */
static int skip_node(void *user, struct host *host, int node)
{
    return 0;
}

static struct host *host_of(const struct mica_graph *graph)
{
    struct host *host = host_create((int)graph->tensor_count);
    for (int i = 0; i < (int)graph->tensor_count; i++)
        host_tensor(host, graph, i);
    for (uint32_t i = 0; i < graph->op_count; i++) {
        const struct mica_op *op = &graph->ops[i];
        union parameters parameters = {0};
        int code = host_parameters(op, &parameters);
        host_add_node(host, code, &parameters, sizeof parameters, (int)op->input_count, op->inputs,
                      (int)op->output_count, op->outputs);
    }
    host_set_outputs(host, (int)graph->output_count, graph->outputs);
    host->cpu = skip_node;
    return host;
}

static bool delegate(struct work *work, const char *device, const uint8_t *data, size_t size)
{
    char key[] = "device", value[16], level_key[] = "log_level", level[] = "error", threads_key[] = "threads",
         threads[] = "1";
    char *keys[] = {key, level_key, threads_key}, *values[] = {value, level, threads};
    struct mica_graph *graph = NULL;
    work->progress->stage = "delegate";
    snprintf(value, sizeof value, "%s", device);
    if (mica_tflite_read(data, size, NULL, &graph))
        return false;
    struct tfl_delegate *plugin = tflite_plugin_create_delegate(keys, values, 3, NULL);
    struct host *host = host_of(graph);
    bool ok = plugin && host_delegate(host, plugin) == TFL_OK && host_allocate(host) && host_invoke(host) == TFL_OK;
    host_destroy(host);
    tflite_plugin_destroy_delegate(plugin);
    mica_graph_destroy(graph);
    return ok;
}

/* ---- the mutants --------------------------------------------------------- */

/* One in 64 from the large models, which take their time; the others in turn. */
static const struct model *choose(const struct work *work, unsigned long seed)
{
    size_t large = 0;
    for (size_t i = 0; i < work->model_count; i++)
        large += work->models[i].size > 500000;
    size_t small = work->model_count - large;
    bool want_large = small == 0 || (large && seed % 64 == 63);
    size_t index = want_large ? seed / 64 % large : seed % small;
    for (size_t i = 0;; i++)
        if ((work->models[i].size > 500000) == want_large && index-- == 0)
            return &work->models[i];
}

static void timed(struct work *work, double *start)
{
    double seconds = now() - *start;
    if (seconds > HANG_SECONDS) {
        fprintf(stderr, "mutant %lu took %.1f s in %s\n", work->progress->seed, seconds, work->progress->stage);
        work->progress->slow++;
    }
    *start = now();
}

static void try_mutant(struct work *work, unsigned long seed)
{
    static const char *const devices[] = {"cpu", "sim:a311d", "sim:rk3588", "sim:rk3566"};
    const char *device = devices[seed % 4], *npu = devices[1 + seed / 4 % 3];
    const struct model *model = choose(work, seed);
    void *data = NULL;
    if (posix_memalign(&data, 16, model->size))
        need(NULL);
    memcpy(data, model->data, model->size);
    size_t size = mica_mutate(data, model->size, seed);
    double start = now();
    work->progress->seed = seed;
    if (!write_file(work->path, data, size))
        need(NULL);
    const char *info[] = {"mica", "info", work->path, "--device", npu};
    command(work, "info", 5, info);
    timed(work, &start);
    bool accepted = run(work, device);
    timed(work, &start);
    accepted |= delegate(work, npu, data, size);
    timed(work, &start);
    work->progress->accepted += accepted;
    work->progress->done++;
    free(data);
}

static bool read_model(const char *path, struct model *model)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    bool ok = file && !fstat(fileno(file), &status);
    model->path = path;
    model->size = ok ? (size_t)status.st_size : 0;
    model->data = need(malloc(model->size + 1));
    ok = ok && fread(model->data, 1, model->size, file) == model->size;
    if (file)
        fclose(file);
    return ok;
}

static void set_paths(struct work *work)
{
    const char *folder = getenv("TMPDIR");
    snprintf(work->folder, sizeof work->folder, "%.30s/mica-mutants-XXXXXX", folder ? folder : "/tmp");
    need(mkdtemp(work->folder));
    snprintf(work->path, sizeof work->path, "%s/mutant.tflite", work->folder);
    snprintf(work->input, sizeof work->input, "%s/in.bin", work->folder);
}

/* One process's share; its exit status tells of leaks too, under LeakSanitizer. */
static void child(struct work *work, unsigned long first, unsigned long step, unsigned long end)
{
    set_paths(work);
    work->null = need(fopen("/dev/null", "w"));
    for (unsigned long seed = first; seed < end; seed += step)
        try_mutant(work, seed);
    unlink(work->path);
    unlink(work->input);
    rmdir(work->folder);
    fclose(work->null);
}

static int run_children(struct work *work, unsigned long end)
{
    unsigned long children = mica_threads_default();
    struct progress *progress =
        mmap(NULL, children * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(progress == MAP_FAILED ? NULL : progress);
    int bad = 0;
    unsigned long done = 0, accepted = 0, slow = 0;
    for (unsigned long i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            work->progress = &progress[i];
            child(work, i, children, end);
            exit(0);
        }
    }
    for (unsigned long i = 0; i < children; i++) {
        int status;
        if (wait(&status) < 0 || status)
            bad++;
    }
    for (unsigned long i = 0; i < children; i++) {
        done += progress[i].done;
        accepted += progress[i].accepted;
        slow += progress[i].slow;
        if (bad)
            fprintf(stderr, "a process ended at mutant %lu, in %s\n", progress[i].seed, progress[i].stage);
    }
    printf("%lu of %lu mutants tried, %lu ran to the end, %lu took more than %.0f s, %d processes failed\n", done, end,
           accepted, slow, HANG_SECONDS, bad);
    return bad || slow || done != end;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: mutants COUNT|=SEED MODEL...\n");
        return 2;
    }
    struct work work = {.model_count = (size_t)argc - 2};
    struct model *models = need(calloc(work.model_count, sizeof *models));
    for (size_t i = 0; i < work.model_count; i++)
        if (!read_model(argv[i + 2], &models[i])) {
            fprintf(stderr, "%s: %s\n", argv[i + 2], strerror(errno));
            return 2;
        }
    work.models = models;
    int status = 0;
    if (argv[1][0] == '=') {
        struct progress progress = {0};
        work.progress = &progress;
        unsigned long seed = strtoul(argv[1] + 1, NULL, 0);
        child(&work, seed, 1, seed + 1);
        status = progress.slow != 0;
    } else {
        status = run_children(&work, strtoul(argv[1], NULL, 0));
    }
    for (size_t i = 0; i < work.model_count; i++)
        free(models[i].data);
    free(models);
    return status;
}
