/* SPDX-License-Identifier: MIT */
/* Executables to files and back; the layout is in docs/executable-format.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/objects.h"
#include "runtime/program_file.h"

#define VERSION 4

static const char magic[8] = "MICAEXE";

/* The file's first 128 bytes as they are. */
struct header {
    char magic[8];
    uint32_t version, header_size;
    char chip[32];
    uint64_t file_size;
    uint64_t model_offset, model_size;
    uint64_t plan_offset, plan_size;
    uint8_t reserved[32];
    uint64_t sum; /* XXH3, 64 bits, over what follows the header and then the header up to here */
};
_Static_assert(sizeof(struct header) == 128 && offsetof(struct header, sum) == 120, "layout of the header");

static const char *chip_name(const mica_device *device)
{
    return device->opened.chip ? device->opened.chip->name : "cpu";
}

/* ---- writing ---------------------------------------------------------- */

static void write_plan(struct mica_byte_writer *writer, const mica_executable *executable)
{
    const struct mica_plan *plan = &executable->plan;
    mica_put32(writer, plan->step_count);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        mica_put32(writer, plan->steps[i].npu);
        mica_put32(writer, plan->steps[i].partition.op_count);
    }
    for (uint32_t i = 0; i < plan->step_count; i++)
        mica_put_bytes(writer, plan->steps[i].partition.ops, plan->steps[i].partition.op_count * sizeof(uint32_t));
    mica_put_padding(writer);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (executable->programs[i])
            mica_program_write(writer, executable->programs[i]);
    }
}

/* The header comes last: it holds what is known then. */
static void write_header(struct mica_byte_writer *writer, struct header *header)
{
    XXH3_64bits_update(&writer->sum, header, offsetof(struct header, sum));
    header->sum = XXH3_64bits_digest(&writer->sum);
    if (!writer->error)
        writer->error = fseek(writer->file, 0, SEEK_SET) || fwrite(header, sizeof *header, 1, writer->file) != 1;
}

static void write_all(struct mica_byte_writer *writer, const mica_executable *executable)
{
    struct header header = {.version = VERSION, .header_size = sizeof header};
    memcpy(header.magic, magic, sizeof magic);
    snprintf(header.chip, sizeof header.chip, "%s", chip_name(executable->device));
    writer->error = fseek(writer->file, sizeof header, SEEK_SET) != 0;
    writer->position = sizeof header;
    XXH3_64bits_reset(&writer->sum);
    header.model_offset = writer->position;
    header.model_size = executable->model->size;
    mica_put_bytes(writer, executable->model->data, executable->model->size);
    mica_put_padding(writer);
    header.plan_offset = writer->position;
    write_plan(writer, executable);
    header.plan_size = writer->position - header.plan_offset;
    header.file_size = writer->position;
    write_header(writer, &header);
}

/* A new file beside `path`, with the permissions any new file gets: mkstemp() would give others. */
static int open_temporary(const char *path, char *temporary, size_t size)
{
    int file = -1;
    for (unsigned i = 0; i < 10000 && file < 0; i++) {
        snprintf(temporary, size, "%s.%d-%04u", path, (int)getpid(), i);
        file = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

/* A stream whose writes go on after signals, which those of stdio don't. `cookie` is the descriptor. */
static ssize_t write_through(void *cookie, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(*(const int *)cookie, data + done, size - done);
        if (written < 0 && errno != EINTR)
            return 0;
        done += written > 0 ? (size_t)written : 0;
    }
    return (ssize_t)size;
}

static int seek_through(void *cookie, off64_t *offset, int whence)
{
    *offset = lseek(*(const int *)cookie, *offset, whence);
    return *offset < 0 ? -1 : 0;
}

static int write_stream(const mica_executable *executable, int file)
{
    const cookie_io_functions_t functions = {.write = write_through, .seek = seek_through};
    struct mica_byte_writer writer = {.file = fopencookie(&file, "wb", functions)};
    if (!writer.file)
        return errno ? -errno : -ENOMEM;
    errno = 0;
    write_all(&writer, executable);
    int error = writer.error ? (errno ? -errno : -EIO) : 0;
    if (fclose(writer.file) && !error)
        error = errno ? -errno : -EIO;
    if (!error && fsync(file))
        error = -errno;
    return error;
}

static int write_file(const mica_executable *executable, const char *path, char *temporary, size_t size)
{
    int file = open_temporary(path, temporary, size);
    if (file < 0)
        return -errno;
    int error = write_stream(executable, file);
    if (close(file) && !error)
        error = -errno;
    if (!error && rename(temporary, path))
        error = -errno;
    if (error)
        unlink(temporary);
    return error;
}

int mica_executable_save(const mica_executable *executable, const char *path)
{
    MICA_CHECK_ARG(NULL, executable);
    struct mica_log *log = &executable->context->log;
    MICA_CHECK_ARG(log, path);
    MICA_CHECK_ARG(log, path[0]);
    struct stat status;
    if (!stat(path, &status) && !S_ISREG(status.st_mode)) /* renaming over it would take it away */
        return mica_fail(log, -EINVAL, "%s is no regular file: an executable can't replace it", path);
    size_t size = strlen(path) + sizeof ".-2147483648-9999";
    char *temporary = malloc(size);
    if (!temporary)
        return mica_fail_nomem(log);
    int error = write_file(executable, path, temporary, size);
    free(temporary);
    return error ? mica_fail(log, error, "%s can't be written: %s", path, strerror(-error)) : 0;
}

/* ---- reading ---------------------------------------------------------- */

static int check_header(const struct mica_mapping *file, const char *path, struct mica_log *log, struct header *header)
{
    if (file->size < sizeof magic || memcmp(file->data, magic, sizeof magic))
        return mica_fail(log, -EINVAL, "%s is no executable of Mica", path);
    if (file->size < sizeof *header)
        return mica_fail(log, -EINVAL, "%s is damaged: it ends inside its header", path);
    memcpy(header, file->data, sizeof *header);
    if (header->version != VERSION || header->header_size != sizeof *header)
        return mica_fail(log, -EINVAL, "%s has format version %u and this library reads %d: compile the model again",
                         path, header->version, VERSION);
    if (header->file_size != file->size)
        return mica_fail(log, -EINVAL, "%s is damaged: it should have %llu bytes and has %zu", path,
                         (unsigned long long)header->file_size, file->size);
    XXH3_state_t sum;
    XXH3_64bits_reset(&sum);
    XXH3_64bits_update(&sum, (const uint8_t *)file->data + sizeof *header, file->size - sizeof *header);
    XXH3_64bits_update(&sum, header, offsetof(struct header, sum));
    if (XXH3_64bits_digest(&sum) != header->sum)
        return mica_fail(log, -EINVAL, "%s is damaged: its checksum is wrong", path);
    return 0;
}

/* The checksum keeps accidents out and nobody who means harm: from here on nothing is trusted. */
static int check_contents(const struct header *header, const char *path, const mica_device *device,
                          struct mica_log *log)
{
    if (header->model_offset % MICA_MODEL_ALIGNMENT || header->model_offset < sizeof *header ||
        !mica_range_inside(header->model_offset, header->model_size, header->file_size) || header->plan_offset % 8 ||
        header->plan_offset < sizeof *header ||
        !mica_range_inside(header->plan_offset, header->plan_size, header->file_size) ||
        !memchr(header->chip, 0, sizeof header->chip))
        return mica_fail(log, -EINVAL, "%s is damaged: its header is out of bounds", path);
    if (strcmp(header->chip, chip_name(device)))
        return mica_fail(log, -EINVAL,
                         "%s was compiled for %s and the device is %s: open a device of that chip, or compile the "
                         "model for this one",
                         path, header->chip, chip_name(device));
    return 0;
}

static int read_failed(const struct mica_byte_reader *reader, struct mica_log *log)
{
    if (reader->no_memory)
        return mica_fail_nomem(log);
    return mica_fail(log, -EINVAL, "the executable is damaged: its plan or a program does not fit the file");
}

/* `layout` has two words per step: on the NPU, number of operations. */
static int read_steps(mica_executable *executable, struct mica_byte_reader *reader, struct mica_plan_layout *layout)
{
    struct mica_log *log = &executable->context->log;
    for (uint32_t i = 0; i < layout->step_count; i++) {
        layout->npu[i] = mica_get32(reader);
        layout->op_counts[i] = mica_get32(reader);
    }
    const struct mica_graph *graph = executable->model->graph;
    const uint8_t *ops = mica_get_bytes(reader, graph->op_count * UINT64_C(4));
    mica_get_padding(reader);
    if (reader->error)
        return read_failed(reader, log);
    layout->ops = (const uint32_t *)(const void *)ops; /* 4-byte aligned: the plan is, and all of it so far */
    return mica_plan_restore(graph, layout, log, &executable->plan);
}

static int read_plan(mica_executable *executable, struct mica_byte_reader *reader)
{
    uint32_t step_count = mica_get32(reader);
    struct mica_plan_layout layout = {
        .step_count = step_count,
        .npu = mica_get_array(reader, step_count, 8, sizeof *layout.npu),
        .op_counts = mica_get_array(reader, step_count, 8, sizeof *layout.op_counts),
    };
    int error = layout.npu && layout.op_counts ? read_steps(executable, reader, &layout)
                                               : read_failed(reader, &executable->context->log);
    free(layout.npu);
    free(layout.op_counts);
    return error;
}

static int read_programs(mica_executable *executable, struct mica_byte_reader *reader)
{
    struct mica_log *log = &executable->context->log;
    executable->programs = mica_new_array(executable->plan.step_count, sizeof(struct mica_program *));
    if (!executable->programs)
        return mica_fail_nomem(log);
    for (uint32_t i = 0; i < executable->plan.step_count; i++) {
        if (!executable->plan.steps[i].npu)
            continue;
        executable->programs[i] = mica_program_read(reader);
        if (!executable->programs[i])
            return read_failed(reader, log);
    }
    return 0;
}

static int read_executable(mica_executable *executable, const char *path)
{
    struct mica_log *log = &executable->context->log;
    struct header header;
    int error = mica_mapping_open(path, log, &executable->mapping);
    if (!error)
        error = check_header(&executable->mapping, path, log, &header);
    if (!error)
        error = check_contents(&header, path, executable->device, log);
    if (error)
        return error;
    const uint8_t *file = executable->mapping.data;
    error = mica_model_load_memory(executable->context, file + header.model_offset, (size_t)header.model_size,
                                   &executable->owned_model);
    if (error)
        return error;
    mica_model_set_name(executable->owned_model, path);
    executable->model = executable->owned_model;
    struct mica_byte_reader reader = {.data = file + header.plan_offset, .size = (size_t)header.plan_size};
    error = read_plan(executable, &reader);
    if (!error)
        error = mica_executable_check_plan(executable);
    if (!error)
        error = read_programs(executable, &reader);
    return error ? error : mica_executable_check_programs(executable);
}

int mica_executable_load(mica_device *device, const char *path, mica_executable **result)
{
    MICA_CHECK_ARG(NULL, device);
    MICA_CHECK_ARG(MICA_LOG_OF(device), path);
    MICA_CHECK_ARG(MICA_LOG_OF(device), result);
    mica_executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return mica_fail_nomem(&device->context->log);
    *executable = (mica_executable){.context = device->context, .device = device};
    int error = read_executable(executable, path);
    if (error) {
        mica_executable_destroy(executable);
        return error;
    }
    *result = executable;
    return 0;
}
