/* SPDX-License-Identifier: MIT */
/* A request on a watched node: its argument before and after, the hooks of its driver, a line of raw.jsonl. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

atomic_uint ic_program_views;

/* The argument's size is in the request's number, unless its driver does without. */
static size_t argument_size(const struct ic_driver *driver, unsigned long request)
{
    size_t size = driver->argument_size ? driver->argument_size(request) : 0;
    return size ? size : _IOC_SIZE(request);
}

static bool begin(struct ic_call *call)
{
    struct ic_guard guard;
    if (!ic_enter(&guard))
        return false;
    if (ic_stopped())
        ic_give_up();
    else if (ic_adopt(call->fd) && ic_recording())
        call->file = ic_file_of(call->fd);
    if (call->file) {
        call->file->users++;
        call->size = argument_size(call->file->driver, call->request);
        call->copied = call->size <= IC_MOST_ARGUMENT && ic_copy(call->argument, call->pointer, call->size);
        if (call->file->driver->before && call->copied)
            call->file->driver->before(call);
        call->start = ic_now();
    }
    ic_leave(&guard);
    return call->file != NULL;
}

static void put_argument(const struct ic_call *call, struct ic_text *line)
{
    static uint8_t after[IC_MOST_ARGUMENT];
    ic_text_put(line, ",\"arg\":\"");
    ic_text_hex(line, call->argument, call->size);
    ic_text_put(line, "\"");
    if (!call->size || !ic_copy(after, call->pointer, call->size) || !memcmp(after, call->argument, call->size))
        return;
    ic_text_put(line, ",\"out\":\"");
    ic_text_hex(line, after, call->size);
    ic_text_put(line, "\"");
}

static void log_call(struct ic_call *call)
{
    struct ic_text line = {0};
    ic_text_put(&line,
                "{\"t\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"call\":\"ioctl\",\"fd\":%d,\"file\":%u,\"request\":\"0x%lx\","
                "\"result\":%d",
                call->start, call->end - call->start, call->fd, call->file->number, call->request, call->result);
    if (call->result < 0)
        ic_text_put(&line, ",\"errno\":%d", call->error);
    if (call->copied)
        put_argument(call, &line);
    if (call->note.size)
        ic_text_bytes(&line, call->note.data, call->note.size);
    ic_raw_line(&line);
}

static void end(struct ic_call *call)
{
    struct ic_guard guard;
    if (!ic_enter(&guard))
        return;
    call->end = ic_now();
    if (call->file->driver->after && call->copied)
        call->file->driver->after(call);
    log_call(call);
    ic_text_free(&call->note);
    call->file->users--;
    ic_file_release(call->file);
    ic_leave(&guard);
}

__attribute__((noinline)) int ic_ioctl(int fd, unsigned long request, void *argument)
{
    uint8_t bytes[IC_MOST_ARGUMENT];
    struct ic_call call = {
        .fd = fd, .request = request & UINT32_MAX, .pointer = (uintptr_t)argument, .argument = bytes};
    if (!begin(&call))
        return ic_real()->ioctl(fd, request, argument);
    call.result = ic_real()->ioctl(fd, request, argument);
    call.error = errno;
    end(&call);
    errno = call.error;
    return call.result;
}

bool ic_is(const struct ic_call *call, unsigned long request)
{
    return _IOC_TYPE(call->request) == _IOC_TYPE(request) && _IOC_NR(call->request) == _IOC_NR(request);
}

void ic_argument(const struct ic_call *call, void *argument, size_t size)
{
    memset(argument, 0, size);
    memcpy(argument, call->argument, call->size < size ? call->size : size);
}

bool ic_answer(const struct ic_call *call, void *argument, size_t size)
{
    memset(argument, 0, size);
    return call->result >= 0 && ic_copy(argument, call->pointer, call->size < size ? call->size : size);
}

/* ---- mappings ------------------------------------------------------------------- */

static void take_view(struct ic_file *file, const uint8_t *address, size_t size, uint64_t offset)
{
    for (size_t i = 0; i < file->buffer_count; i++) {
        struct ic_buffer *buffer = &file->buffers[i];
        if (!buffer->offset_known || buffer->offset != offset || buffer->view || size < buffer->size)
            continue;
        buffer->view = address;
        buffer->view_size = size;
        atomic_fetch_add(&ic_program_views, 1);
        return;
    }
}

void ic_mapped(int fd, void *address, size_t size, int protection, uint64_t offset)
{
    struct ic_guard guard;
    if (!ic_enter(&guard))
        return;
    struct ic_file *file = ic_recording() ? ic_file_of(fd) : NULL;
    if (file) {
        struct ic_text line = {0};
        ic_text_put(&line,
                    "{\"t\":%" PRIu64 ",\"call\":\"mmap\",\"fd\":%d,\"file\":%u,\"size\":%zu,\"offset\":\"0x%" PRIx64
                    "\",\"protection\":%d,\"result\":",
                    ic_now(), fd, file->number, size, offset, protection);
        if (address == MAP_FAILED)
            ic_text_put(&line, "-1,\"errno\":%d", guard.error);
        else
            ic_text_put(&line, "\"0x%" PRIxPTR "\"", (uintptr_t)address);
        ic_raw_line(&line);
        if (file->driver->program_views && address != MAP_FAILED && protection & PROT_READ)
            take_view(file, address, size, offset);
    }
    ic_leave(&guard);
}

/* Before the mapping goes: nobody reads it any more, and whoever does now is waited for. */
void ic_unmapping(void *address, size_t size)
{
    struct ic_guard guard;
    if (!ic_enter(&guard))
        return;
    ic_forget_views(address, size);
    ic_leave(&guard);
}
