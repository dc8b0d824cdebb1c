/* SPDX-License-Identifier: MIT */
/*
 * Classifies a picture, in the shape of TensorFlow Lite's example of that name
 * and, like its external-delegate wrapper, without an error callback:
 *
 *   label_image -m MODEL.tflite -i PICTURE.bmp [-l LABELS] [-e DELEGATE.so] [-o "key: value; key: value"]
 *
 * There is no packaged C library of TensorFlow Lite for Debian 12, so the
 * interpreter is the tests' own host (host.h) with Mica's CPU kernels; what the
 * delegate sees of it has the same layout. The picture must be an uncompressed
 * 24-bit BMP; it is scaled to the model's input by nearest neighbour.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/tflite/reader.h"
#include "host_graph.h"

enum { MAX_OPTIONS = 32, TOP = 5 };

struct arguments {
    const char *model, *picture, *labels, *delegate;
    char *options;
};

struct plugin {
    struct tfl_delegate *(*create)(char **keys, char **values, size_t count, void (*report_error)(const char *));
    void (*destroy)(struct tfl_delegate *delegate);
    struct tfl_delegate *delegate;
};

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    void *data = NULL;
    long length = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    if (length > 0 && !fseek(file, 0, SEEK_SET))
        data = aligned_alloc(16, ((size_t)length + 31) / 16 * 16);
    *size = data ? fread(data, 1, (size_t)length, file) : 0;
    fclose(file);
    if (data)
        ((char *)data)[*size] = '\0';
    return data;
}

/* ---- delegate --------------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t\"'");
    text[strcspn(text, " \t\"'")] = '\0';
    return text;
}

/* Cuts "key: value; key: value" up. */
static size_t split_options(char *text, char **keys, char **values)
{
    size_t count = 0;
    for (char *pair = strtok(text, ";"); pair && count < MAX_OPTIONS; pair = strtok(NULL, ";")) {
        char *colon = strchr(pair, ':');
        if (!colon)
            continue;
        *colon = '\0';
        keys[count] = trim(pair);
        values[count++] = trim(colon + 1);
    }
    return count;
}

static bool load_plugin(const struct arguments *arguments, struct plugin *plugin)
{
    void *library = dlopen(arguments->delegate, RTLD_NOW | RTLD_LOCAL);
    void *create = library ? dlsym(library, "tflite_plugin_create_delegate") : NULL;
    void *destroy = library ? dlsym(library, "tflite_plugin_destroy_delegate") : NULL;
    if (!create || !destroy) {
        fprintf(stderr, "%s is no delegate: %s\n", arguments->delegate, dlerror());
        return false;
    }
    memcpy(&plugin->create, &create, sizeof create);
    memcpy(&plugin->destroy, &destroy, sizeof destroy);
    char *keys[MAX_OPTIONS], *values[MAX_OPTIONS];
    size_t count = arguments->options ? split_options(arguments->options, keys, values) : 0;
    plugin->delegate = plugin->create(keys, values, count, NULL);
    return true;
}

/* Like the original, goes on without the delegate only where none was asked for. */
static bool apply_delegate(const struct arguments *arguments, struct host *host, struct plugin *plugin)
{
    if (!arguments->delegate)
        return true;
    if (!load_plugin(arguments, plugin))
        return false;
    if (host_delegate(host, plugin->delegate) != TFL_OK) {
        fprintf(stderr, "the delegate could not be applied: %s\n", host->error);
        return false;
    }
    printf("applied the delegate: %d of %d nodes in %d kernels\n", host->node_count - host->plan->size,
           host->node_count - host_kernel_count(host), host_kernel_count(host));
    return true;
}

/* ---- picture and labels ----------------------------------------------- */

static uint32_t word(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Fills in `to`, rows of RGB. False when the file is no such picture. */
static bool read_picture(const char *path, uint8_t *to, uint32_t width, uint32_t height)
{
    size_t size = 0;
    uint8_t *file = read_file(path, &size);
    bool good = file && size > 54 && file[0] == 'B' && file[1] == 'M' && word(file + 28) == 24;
    uint64_t offset = good ? word(file + 10) : 0, columns = good ? word(file + 18) : 0;
    int32_t rows = good ? (int32_t)word(file + 22) : 0; /* negative: top row first */
    uint64_t count = rows < 0 ? (uint64_t) - (int64_t)rows : (uint64_t)rows, pitch = (columns * 3 + 3) / 4 * 4;
    good = good && columns && columns < 65536 && count && count < 65536 && offset + pitch * count <= size;
    for (uint32_t y = 0; good && y < height; y++) {
        uint64_t row = y * count / height;
        const uint8_t *line = file + offset + pitch * (rows < 0 ? row : count - 1 - row);
        for (uint32_t x = 0; x < width; x++, to += 3) {
            const uint8_t *pixel = line + 3 * (x * columns / width);
            to[0] = pixel[2];
            to[1] = pixel[1];
            to[2] = pixel[0];
        }
    }
    free(file);
    return good;
}

/* Line `index` of the labels, "" where there is none; the text is cut up by it. */
static const char *label(char *labels, size_t size, size_t index)
{
    char *line = labels;
    for (size_t i = 0; line && i < index; i++) {
        line = memchr(line, '\n', size - (size_t)(line - labels));
        line = line ? line + 1 : NULL;
    }
    if (!line || line >= labels + size)
        return "";
    static char text[80];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\r\n"), line);
    return text;
}

static void print_top(const struct tfl_tensor *scores, char *labels, size_t size)
{
    bool taken[65536] = {false};
    size_t count = scores->bytes < sizeof taken ? scores->bytes : sizeof taken;
    const uint8_t *bytes = scores->data;
    for (int k = 0; k < TOP && (size_t)k < count; k++) {
        size_t best = 0;
        while (taken[best])
            best++;
        for (size_t i = best; i < count; i++) {
            if (!taken[i] && bytes[i] > bytes[best])
                best = i;
        }
        taken[best] = true;
        printf("%d: %zu %s\n", bytes[best], best, labels ? label(labels, size, best) : "");
    }
}

/* ---- main ------------------------------------------------------------- */

static bool classify(const struct arguments *arguments, const struct mica_graph *graph, struct host *host)
{
    const struct mica_tensor *input = graph->input_count == 1 ? &graph->tensors[graph->inputs[0]] : NULL;
    const struct mica_tensor *output = graph->output_count == 1 ? &graph->tensors[graph->outputs[0]] : NULL;
    if (!input || !output || input->type != MICA_TYPE_UINT8 || output->type != MICA_TYPE_UINT8 || input->rank != 4 ||
        input->dims[0] != 1 || input->dims[3] != 3) {
        fprintf(stderr, "%s does not turn a uint8 picture into uint8 scores\n", arguments->model);
        return false;
    }
    uint8_t *pixels = host_allocate(host) ? host->context.tensors[graph->inputs[0]].data : NULL;
    if (!pixels || !read_picture(arguments->picture, pixels, (uint32_t)input->dims[2], (uint32_t)input->dims[1])) {
        fprintf(stderr, "%s is not an uncompressed 24-bit BMP\n", arguments->picture);
        return false;
    }
    if (host_invoke(host) != TFL_OK) {
        fprintf(stderr, "%s\n", host->error);
        return false;
    }
    size_t size = 0;
    char *labels = arguments->labels ? read_file(arguments->labels, &size) : NULL;
    print_top(&host->context.tensors[graph->outputs[0]], labels, size);
    free(labels);
    return true;
}

static void print_message(void *user, enum mica_log_level level, const char *message)
{
    fprintf(stderr, "label_image: %s\n", message);
}

static bool run(const struct arguments *arguments)
{
    struct mica_log log = {.sink = print_message, .level = MICA_LOG_WARNING};
    struct mica_graph *graph = NULL;
    struct plugin plugin = {0};
    size_t size = 0;
    void *model = read_file(arguments->model, &size);
    if (!model)
        fprintf(stderr, "can't read %s\n", arguments->model);
    struct host *host = model && !mica_tflite_read(model, size, &log, &graph) ? host_from_graph(graph) : NULL;
    bool good = host && apply_delegate(arguments, host, &plugin) && classify(arguments, graph, host);
    host_destroy(host);
    if (plugin.delegate)
        plugin.destroy(plugin.delegate);
    mica_graph_destroy(graph);
    free(model);
    return good;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {0};
    for (int option; (option = getopt(argc, argv, "m:i:l:e:o:")) != -1;) {
        if (option == 'm')
            arguments.model = optarg;
        else if (option == 'i')
            arguments.picture = optarg;
        else if (option == 'l')
            arguments.labels = optarg;
        else if (option == 'e')
            arguments.delegate = optarg;
        else if (option == 'o')
            arguments.options = optarg;
        else
            return 2;
    }
    if (!arguments.model || !arguments.picture) {
        fputs(
            "usage: label_image -m MODEL.tflite -i PICTURE.bmp [-l LABELS] [-e DELEGATE.so] [-o \"key: value; ...\"]\n",
            stderr);
        return 2;
    }
    return run(&arguments) ? 0 : 1;
}
