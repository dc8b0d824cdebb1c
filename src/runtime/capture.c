/* SPDX-License-Identifier: MIT */
#include "runtime/capture.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/objects.h"
#include "util/checked.h"

/* What the kernel interface calls them: soft-pinned addresses, write-combined memory (etnaviv, uapi/drm/etnaviv_drm.h).
 */
#define ETNA_SUBMIT_SOFTPIN 8
#define ETNA_BO_WC 131072
/* Sizes of its structures (rocket, uapi/drm/rocket_accel.h). */
#define ROCKET_JOB_SIZE 40
#define ROCKET_TASK_SIZE 8

/* The last file that has a buffer's contents. */
struct dumped {
    uint32_t handle, submit;
    XXH128_hash_t sum;
};

struct mica_capture {
    struct mica_log *log;
    const struct mica_chip *chip;
    int directory;
    uint32_t submit_count;
    struct dumped *dumped;
    size_t dumped_count;
};

static int fail_file(struct mica_capture *capture, const char *name)
{
    int error = errno;
    return mica_fail(capture->log, -error, "capture: %s can't be written: %s", name, strerror(error));
}

static int write_file(struct mica_capture *capture, int directory, const char *name, const void *data, size_t size)
{
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_file(capture, name);
    const uint8_t *bytes = data;
    while (size) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            int error = fail_file(capture, name);
            close(file);
            return error;
        }
        bytes += written;
        size -= (size_t)written;
    }
    return close(file) ? fail_file(capture, name) : 0;
}

static int open_text(struct mica_capture *capture, int directory, const char *name, FILE **stream)
{
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return fail_file(capture, name);
    *stream = fdopen(file, "w");
    if (*stream)
        return 0;
    int error = fail_file(capture, name);
    close(file);
    return error;
}

static int close_text(struct mica_capture *capture, FILE *stream, const char *name)
{
    errno = 0;
    bool failed = ferror(stream);
    failed |= fclose(stream) != 0;
    if (!failed)
        return 0;
    errno = errno ? errno : EIO;
    return fail_file(capture, name);
}

/* ---- the directory ---------------------------------------------------- */

static int open_directory(struct mica_capture *capture, const char *path)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        return fail_file(capture, path);
    capture->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return capture->directory < 0 ? fail_file(capture, path) : 0;
}

/* Files of an older capture among new ones would lie about what was submitted. */
static int check_empty(struct mica_capture *capture, const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return fail_file(capture, path);
    bool empty = true;
    for (const struct dirent *entry; (entry = readdir(directory));)
        empty = empty && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
    closedir(directory);
    return empty ? 0 : mica_fail(capture->log, -ENOTEMPTY, "capture: the directory %s is not empty", path);
}

int mica_capture_create(const char *directory, const struct mica_chip *chip, struct mica_log *log,
                        struct mica_capture **result)
{
    if (!chip || (strcmp(chip->driver, "etnaviv") && strcmp(chip->driver, "rocket")))
        return mica_fail(log, -ENOTSUP, "capture: no format is defined for %s",
                         chip ? chip->driver : "the CPU: it has no submissions");
    struct mica_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return mica_fail_nomem(log);
    *capture = (struct mica_capture){.log = log, .chip = chip, .directory = -1};
    int error = open_directory(capture, directory);
    if (!error)
        error = check_empty(capture, directory);
    if (error) {
        mica_capture_destroy(capture);
        return error;
    }
    *result = capture;
    return 0;
}

void mica_capture_destroy(struct mica_capture *capture)
{
    if (!capture)
        return;
    if (capture->directory >= 0)
        close(capture->directory);
    free(capture->dumped);
    free(capture);
}

/* ---- the run ---------------------------------------------------------- */

int mica_capture_tensor(struct mica_capture *capture, const char *kind, uint32_t index, const void *data, size_t size)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%u.bin", kind, index);
    return write_file(capture, capture->directory, name, data, size);
}

/* The names of the format are those of TFLite. */
static const char *type_text(enum mica_type type)
{
    static const char *const names[] = {"OTHER", "FLOAT32", "INT32", "UINT8", "INT8", "INT16", "INT64", "BOOL"};
    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : names[0];
}

/* Bytes of the UTF-8 sequence that starts here, 0 if none does. */
static size_t utf8_length(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80 ? 1 : byte[0] < 0xc2 ? 0 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    }
    bool surrogate = length == 3 && byte[0] == 0xed && byte[1] >= 0xa0;
    bool overlong = (byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xf0 && byte[1] < 0x90);
    bool beyond = byte[0] > 0xf4 || (byte[0] == 0xf4 && byte[1] >= 0x90);
    return surrogate || overlong || beyond ? 0 : length;
}

/* Names come from model files and may hold anything. */
static void put_string(FILE *stream, const char *text)
{
    putc('"', stream);
    while (*text) {
        size_t length = utf8_length(text);
        if (!length)
            putc('?', stream);
        else if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
            fprintf(stream, "\\u%04x", (unsigned)*text);
        else
            fwrite(text, 1, length, stream);
        text += length ? length : 1;
    }
    putc('"', stream);
}

/* With a point whatever the locale. */
static void put_number(FILE *stream, double number)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", number);
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    fputs(text, stream);
}

/* The tensor's keys beyond those of other captures, for who wants to find it in the device's memory. */
static void put_place(FILE *stream, const struct mica_tensor_place *place)
{
    fprintf(stream,
            ",\n   \"bo\": %u,\n   \"va\": \"0x%" PRIx64 "\",\n   \"offset\": %" PRIu64 ",\n   \"flip_sign\": %s",
            place->bo, place->address, place->offset, place->flip_sign ? "true" : "false");
    const struct mica_program_layout *layout = place->layout;
    if (layout->block)
        fprintf(stream,
                ",\n   \"layout\": {\"block\": %u, \"channels\": %u, \"pixels\": %u, \"surface\": %" PRIu64
                ", \"padding\": %u}",
                layout->block, layout->channels, layout->pixels, layout->surface, layout->padding);
}

static void put_tensor(FILE *stream, const struct mica_tensor *tensor, const char *kind, uint32_t index,
                       const struct mica_tensor_place *place)
{
    bool quantized = tensor->quant.count == 1;
    fprintf(stream, "  {\n   \"kind\": \"%s\",\n   \"index\": %u,\n   \"name\": ", kind, index);
    put_string(stream, tensor->name);
    fprintf(stream, ",\n   \"type\": \"%s\",\n   \"bytes\": %zu,\n   \"scale\": ", type_text(tensor->type),
            tensor->bytes);
    put_number(stream, quantized ? (double)tensor->quant.scale[0] : 0);
    fprintf(stream, ",\n   \"zero_point\": %d,\n   \"shape\": [", quantized ? (int)tensor->quant.zero_point[0] : 0);
    for (uint32_t i = 0; i < tensor->rank; i++)
        fprintf(stream, "%s%d", i ? ", " : "", (int)tensor->dims[i]);
    putc(']', stream);
    if (place)
        put_place(stream, place);
    fputs("\n  }", stream);
}

static void put_tensors(FILE *stream, const struct mica_run *run, bool output, const int32_t *tensors, uint32_t count,
                        bool *first)
{
    const struct mica_graph *graph = run->executable->model->graph;
    for (uint32_t i = 0; i < count; i++) {
        struct mica_tensor_place place;
        bool crosses = mica_run_locate(run, (uint32_t)tensors[i], output, &place);
        fputs(*first ? "\n" : ",\n", stream);
        *first = false;
        put_tensor(stream, &graph->tensors[tensors[i]], output ? "output" : "input", i, crosses ? &place : NULL);
    }
}

int mica_capture_run(struct mica_capture *capture, const struct mica_run *run)
{
    const mica_model *model = run->executable->model;
    const struct mica_graph *graph = model->graph;
    bool first = true;
    FILE *stream;
    int error = open_text(capture, capture->directory, "run.json", &stream);
    if (error)
        return error;
    fputs("{\n \"model\": ", stream);
    put_string(stream, model->name);
    fprintf(stream,
            ",\n \"delegate\": \"Mica %s\",\n \"seed\": 0,\n \"driver\": \"%s\",\n \"chip\": \"%s\",\n \"tensors\": [",
            mica_version(), capture->chip->driver, capture->chip->name);
    put_tensors(stream, run, false, graph->inputs, graph->input_count, &first);
    put_tensors(stream, run, true, graph->outputs, graph->output_count, &first);
    fputs("\n ]\n}\n", stream);
    return close_text(capture, stream, "run.json");
}

/* ---- submissions ------------------------------------------------------ */

/* Bytes up to the last that isn't zero. */
static size_t nonzero_end(const struct mica_bo *bo)
{
    size_t end = bo->map ? bo->size : 0;
    while (end && !bo->map[end - 1])
        end--;
    return end;
}

/* The entry of a buffer, a fresh one if it has none; NULL when memory runs out. */
static struct dumped *find_dumped(struct mica_capture *capture, uint32_t handle, bool *fresh)
{
    *fresh = false;
    for (size_t i = 0; i < capture->dumped_count; i++) {
        if (capture->dumped[i].handle == handle)
            return &capture->dumped[i];
    }
    struct dumped *grown = realloc(capture->dumped, (capture->dumped_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    *fresh = true;
    capture->dumped = grown;
    grown[capture->dumped_count] = (struct dumped){.handle = handle};
    return &grown[capture->dumped_count++];
}

/* Memory that the host can't see: zeros, which a replay starts with. */
static int write_zeros(struct mica_capture *capture, int directory, const char *name, size_t size)
{
    int error = write_file(capture, directory, name, NULL, 0);
    int file = error ? -1 : openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (error)
        return error;
    if (file < 0)
        return fail_file(capture, name);
    if (ftruncate(file, (off_t)size))
        error = fail_file(capture, name);
    close(file);
    return error;
}

/* Writes the contents unless an earlier submission's file has them; `name` gets the path relative to this one. */
static int dump_bo(struct mica_capture *capture, int directory, const struct mica_bo *bo, char *name, size_t size)
{
    bool fresh;
    struct dumped *dumped = find_dumped(capture, bo->handle, &fresh);
    if (!dumped)
        return mica_fail_nomem(capture->log);
    XXH128_hash_t sum = XXH3_128bits(bo->map, bo->map ? bo->size : 0);
    if (!fresh && XXH128_isEqual(sum, dumped->sum)) {
        if (dumped->submit == capture->submit_count)
            snprintf(name, size, "bo_%u.bin", bo->handle);
        else
            snprintf(name, size, "../submit_%04u/bo_%u.bin", dumped->submit, bo->handle);
        return 0;
    }
    snprintf(name, size, "bo_%u.bin", bo->handle);
    dumped->sum = sum;
    dumped->submit = capture->submit_count;
    return bo->map ? write_file(capture, directory, name, bo->map, bo->size)
                   : write_zeros(capture, directory, name, bo->size);
}

static bool is_rocket(const struct mica_capture *capture)
{
    return !strcmp(capture->chip->driver, "rocket");
}

static int put_bo(struct mica_capture *capture, int directory, FILE *stream, const struct mica_bo_use *use,
                  uint32_t index)
{
    char file[64];
    const struct mica_bo *bo = use->bo;
    int error = dump_bo(capture, directory, bo, file, sizeof file);
    if (error)
        return error;
    bool read = use->access & MICA_ACCESS_READ, write = use->access & MICA_ACCESS_WRITE;
    fprintf(stream,
            "%s\n  {\"index\":%u,\"access\":\"%s\",\"handle\":%u,\"size\":%zu,\"nonzero_end\":%zu,"
            "\"alloc_flags\":%d,\"va\":\"0x%" PRIx64 "\",\"file\":\"%s\"%s}",
            index ? "," : "", index,
            read && write ? "rw"
            : write       ? "w"
                          : "r",
            bo->handle, bo->size, nonzero_end(bo), is_rocket(capture) ? 0 : ETNA_BO_WC, bo->address, file,
            bo->map ? "" : ",\"on_chip\":true");
    return 0;
}

static int put_bos(struct mica_capture *capture, int directory, FILE *stream, const struct mica_submit *submit)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < submit->bo_count; i++)
        error = put_bo(capture, directory, stream, &submit->bos[i], i);
    return error;
}

/* Laid out as the other captures are: a line a buffer. */
static int put_etnaviv(struct mica_capture *capture, int directory, FILE *stream, const struct mica_submit *submit)
{
    fprintf(stream,
            "{\n \"driver\":\"%s\",\"chip\":\"%s\",\"index\":%u,\"pipe\":0,\"exec_state\":0,\"flags\":%d,"
            "\"softpin\":true,\n \"stream\":{\"file\":\"stream.bin\",\"words\":%u},\n \"bos\":[",
            capture->chip->driver, capture->chip->name, capture->submit_count, ETNA_SUBMIT_SOFTPIN, submit->words);
    int error = put_bos(capture, directory, stream, submit);
    fputs("],\n \"relocs\":[],\n \"pmrs\":0\n}\n", stream);
    return error;
}

/* The kernel orders jobs by the buffers they write: each goes to one list only. */
static void put_handles(FILE *stream, const struct mica_submit *submit, bool written)
{
    const char *comma = "";
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        if (!(submit->bos[i].access & MICA_ACCESS_WRITE) == written)
            continue;
        fprintf(stream, "%s%u", comma, submit->bos[i].bo->handle);
        comma = ",";
    }
}

/* A task with the place of its register program: the buffer, where one holds it. */
static void put_task(FILE *stream, const struct mica_submit *submit, const uint32_t *task)
{
    fprintf(stream, "{\"regcmd\":\"0x%08x\",\"regcmd_count\":%u", task[0], task[1]);
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        const struct mica_bo *bo = submit->bos[i].bo;
        if (task[0] < bo->address || task[0] - bo->address >= bo->size)
            continue;
        fprintf(stream, ",\"bo\":%u,\"offset\":%" PRIu64, bo->handle, task[0] - bo->address);
        break;
    }
    putc('}', stream);
}

/* One job: all tasks of the submission. */
static int put_rocket(struct mica_capture *capture, int directory, FILE *stream, const struct mica_submit *submit)
{
    fprintf(stream,
            "{\n \"driver\":\"%s\",\"chip\":\"%s\",\"index\":%u,\"job_struct_size\":%d,\n \"jobs\":[\n"
            "  {\"task_struct_size\":%d,\"in_bos\":[",
            capture->chip->driver, capture->chip->name, capture->submit_count, ROCKET_JOB_SIZE, ROCKET_TASK_SIZE);
    put_handles(stream, submit, false);
    fputs("],\"out_bos\":[", stream);
    put_handles(stream, submit, true);
    fputs("],\"tasks\":[", stream);
    for (uint32_t i = 0; i + 2 <= submit->words; i += 2) {
        fputs(i ? ",\n   " : "\n   ", stream);
        put_task(stream, submit, submit->stream + i);
    }
    fputs("]}],\n \"bos\":[", stream);
    int error = put_bos(capture, directory, stream, submit);
    fputs("]\n}\n", stream);
    return error;
}

static int write_submit(struct mica_capture *capture, int directory, const struct mica_submit *submit)
{
    int error = 0;
    FILE *stream;
    if (!is_rocket(capture)) /* whose stream is all in submit.json */
        error = write_file(capture, directory, "stream.bin", submit->stream, submit->words * sizeof(uint32_t));
    if (!error)
        error = open_text(capture, directory, "submit.json", &stream);
    if (error)
        return error;
    error = (is_rocket(capture) ? put_rocket : put_etnaviv)(capture, directory, stream, submit);
    int close_error = close_text(capture, stream, "submit.json");
    return error ? error : close_error;
}

int mica_capture_submit(void *user, const struct mica_submit *submit)
{
    struct mica_capture *capture = user;
    char name[32];
    snprintf(name, sizeof name, "submit_%04u", capture->submit_count);
    if (mkdirat(capture->directory, name, 0777))
        return fail_file(capture, name);
    int directory = openat(capture->directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return fail_file(capture, name);
    int error = write_submit(capture, directory, submit);
    close(directory);
    capture->submit_count++;
    return error;
}
