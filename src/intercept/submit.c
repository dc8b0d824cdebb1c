/* SPDX-License-Identifier: MIT */
/*
 * Submissions: complete on disk before the kernel gets them, completed with
 * what the kernel said and with the contents afterwards once the program
 * waited for them. Nothing here waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "intercept/intercept.h"

#define MOST_PENDING 64u

struct use {
    uint32_t handle;
    uint64_t serial;         /* of the buffer; 0: unknown */
    bool written, looked_at; /* afterwards */
    struct ic_text text;     /* its object, without the last brace */
    char after[64];
};

struct ic_submit {
    struct ic_file *file;
    uint32_t index, queue, fence;
    bool broken; /* something could not be written */
    struct ic_text head, tail;
    struct use *uses;
    size_t use_count, use_room;
    uint64_t start, end, seen;
    int result, error;
    const char *how; /* the contents afterwards were seen */
    struct ic_submit *next;
};

static void submit_path(const struct ic_submit *submit, const char *name, char *path, size_t room)
{
    snprintf(path, room, "%s/submit_%04u%s%s", submit->file->folder, submit->index, *name ? "/" : "", name);
}

struct ic_submit *ic_submit_new(struct ic_file *file)
{
    char path[IC_PATH + 32];
    if (!ic_recording() || (!file->folder[0] && !ic_file_folder(file->number, file->folder, sizeof file->folder)))
        return NULL;
    struct ic_submit *submit = calloc(1, sizeof *submit);
    if (!submit)
        return NULL;
    submit->file = file;
    submit->index = file->submit_count++;
    submit_path(submit, "", path, sizeof path);
    submit->broken = mkdir(path, 0777);
    return submit;
}

struct ic_text *ic_submit_head(struct ic_submit *submit)
{
    return &submit->head;
}

struct ic_text *ic_submit_tail(struct ic_submit *submit)
{
    return &submit->tail;
}

uint32_t ic_submit_queue(const struct ic_submit *submit)
{
    return submit->queue;
}

uint32_t ic_submit_fence(const struct ic_submit *submit)
{
    return submit->fence;
}

uint32_t ic_submit_index(const struct ic_submit *submit)
{
    return submit->index;
}

uint32_t ic_submit_written(const struct ic_submit *submit)
{
    for (size_t i = 0; i < submit->use_count; i++)
        if (submit->uses[i].written)
            return submit->uses[i].handle;
    return 0;
}

static void destroy(struct ic_submit *submit)
{
    for (size_t i = 0; i < submit->use_count; i++)
        ic_text_free(&submit->uses[i].text);
    free(submit->uses);
    ic_text_free(&submit->head);
    ic_text_free(&submit->tail);
    free(submit);
}

bool ic_submit_file(struct ic_submit *submit, const char *name, const void *data, size_t size)
{
    char path[IC_PATH + 64];
    submit_path(submit, name, path, sizeof path);
    bool good = ic_write_file(path, data, size);
    submit->broken |= !good;
    return good;
}

static struct use *new_use(struct ic_submit *submit)
{
    if (submit->use_count == submit->use_room) {
        size_t room = submit->use_room ? 2 * submit->use_room : 16;
        struct use *grown = realloc(submit->uses, room * sizeof *grown);
        if (!grown)
            return NULL;
        submit->uses = grown;
        submit->use_room = room;
    }
    struct use *use = &submit->uses[submit->use_count++];
    *use = (struct use){0};
    return use;
}

void ic_submit_use(struct ic_submit *submit, uint32_t handle, struct ic_buffer *buffer, bool written, bool look,
                   const char *members)
{
    char file[64] = "";
    struct use *use = new_use(submit);
    if (!use) {
        submit->broken = true;
        return;
    }
    if (buffer && !ic_buffer_dump(submit->file, buffer, submit->index, false, file, sizeof file))
        submit->broken = true;
    use->handle = handle;
    use->written = written;
    use->looked_at = look;
    use->serial = buffer ? buffer->serial : 0;
    ic_text_put(&use->text, "{%s\"handle\":%u,\"size\":%" PRIu64 ",\"nonzero_end\":%zu,\"alloc_flags\":%u", members,
                handle, buffer ? buffer->size : 0, buffer ? buffer->nonzero_end : 0, buffer ? buffer->flags : 0);
    if (buffer)
        ic_text_put(&use->text, ",\"va\":\"0x%08" PRIx64 "\"", buffer->address);
    if (file[0])
        ic_text_put(&use->text, ",\"file\":\"%s\"", file);
}

/* ---- submit.json ------------------------------------------------------------------- */

static void put_outcome(const struct ic_submit *submit, struct ic_text *text)
{
    if (!submit->start)
        return;
    ic_text_put(text, ",\n \"result\":%d,\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64, submit->result, submit->start,
                submit->end);
    if (submit->result < 0)
        ic_text_put(text, ",\"errno\":%d", submit->error);
    if (submit->result >= 0 && submit->fence)
        ic_text_put(text, ",\"fence\":%u", submit->fence);
    if (submit->how)
        ic_text_put(text, ",\"after\":\"%s\"", submit->how);
    if (submit->seen)
        ic_text_put(text, ",\"after_ns\":%" PRIu64, submit->seen);
}

static bool write_json(struct ic_submit *submit)
{
    char path[IC_PATH + 64];
    struct ic_text text = {0};
    bool failed = submit->head.failed || submit->tail.failed;
    ic_text_bytes(&text, submit->head.data, submit->head.size);
    for (size_t i = 0; i < submit->use_count; i++) {
        const struct use *use = &submit->uses[i];
        failed |= use->text.failed;
        ic_text_put(&text, i ? ",\n  " : "\n  ");
        ic_text_bytes(&text, use->text.data, use->text.size);
        if (use->after[0])
            ic_text_put(&text, ",\"file_after\":\"%s\"", use->after);
        ic_text_put(&text, "}");
    }
    ic_text_bytes(&text, submit->tail.data, submit->tail.size);
    put_outcome(submit, &text);
    ic_text_put(&text, "\n}\n");
    submit_path(submit, "submit.json", path, sizeof path);
    bool good = !failed && ic_replace_file(path, &text);
    ic_text_free(&text);
    return good;
}

/*
 * Its folder leaves the sequence, and nothing may refer to it any more. Where another thread submitted meanwhile it
 * stays, with its result: readers stop at holes.
 */
static void move_away(const struct ic_submit *submit, const char *why)
{
    struct ic_file *file = submit->file;
    if (file->submit_count != submit->index + 1)
        return;
    file->submit_count--;
    char from[IC_PATH + 32], to[IC_PATH + 32];
    submit_path(submit, "", from, sizeof from);
    snprintf(to, sizeof to, "%s/%s_%04u", file->folder, why, file->failed_count++);
    rename(from, to);
    for (size_t i = 0; i < file->buffer_count; i++)
        if (file->buffers[i].dump_submit == submit->index)
            file->buffers[i].dumped = false;
}

void ic_submit_discard(struct ic_submit *submit)
{
    move_away(submit, "incomplete");
    destroy(submit);
}

struct ic_submit *ic_submit_commit(struct ic_submit *submit)
{
    if (!submit->broken && write_json(submit))
        return submit;
    ic_stop("a submission could not be written as a whole");
    ic_submit_discard(submit);
    return NULL;
}

/* ---- afterwards ---------------------------------------------------------------------- */

static void see_contents(struct ic_submit *submit)
{
    for (size_t i = 0; i < submit->use_count; i++) {
        struct use *use = &submit->uses[i];
        struct ic_buffer *buffer = use->looked_at ? ic_buffer_find(submit->file, use->handle) : NULL;
        if (buffer && buffer->serial == use->serial &&
            !ic_buffer_dump(submit->file, buffer, submit->index, true, use->after, sizeof use->after))
            break;
    }
    submit->seen = ic_now();
}

static void complete(struct ic_submit *submit, const char *how, bool look)
{
    if (look && ic_recording())
        see_contents(submit);
    submit->how = how;
    write_json(submit);
    destroy(submit);
}

/* All up to the last are done; only its contents are still there to be seen. */
static void complete_until(struct ic_file *file, const struct ic_submit *last, const char *how)
{
    for (bool more = true; more && file->pending;) {
        struct ic_submit *submit = file->pending;
        more = submit != last;
        file->pending = submit->next;
        complete(submit, more ? "not seen" : how, !more);
    }
}

void ic_submits_done(struct ic_file *file, ic_submit_test is, uint64_t a, uint64_t b, const char *how)
{
    const struct ic_submit *last = NULL;
    for (const struct ic_submit *submit = file->pending; submit; submit = submit->next)
        if (is(submit, a, b))
            last = submit;
    if (last)
        complete_until(file, last, how);
}

bool ic_submit_uses(const struct ic_submit *submit, uint64_t handle, uint64_t written_only)
{
    for (size_t i = 0; i < submit->use_count; i++)
        if (submit->uses[i].handle == handle && (submit->uses[i].written || !written_only))
            return true;
    return false;
}

bool ic_submit_any(const struct ic_submit *submit, uint64_t a, uint64_t b)
{
    return true;
}

static struct ic_submit *newest(const struct ic_file *file)
{
    struct ic_submit *submit = file->pending;
    while (submit && submit->next)
        submit = submit->next;
    return submit;
}

void ic_submits_poll(struct ic_file *file)
{
    struct ic_submit *last = newest(file);
    if (last && file->driver->is_done && file->driver->is_done(file, last))
        complete_until(file, last, "done");
}

void ic_submits_forget(struct ic_file *file)
{
    while (file->pending) {
        struct ic_submit *submit = file->pending;
        file->pending = submit->next;
        destroy(submit);
    }
}

void ic_submits_finish(struct ic_file *file, bool look)
{
    if (look)
        ic_submits_poll(file);
    struct ic_submit *last = newest(file);
    if (last && look)
        complete_until(file, last, "not waited for");
    while (file->pending) {
        struct ic_submit *submit = file->pending;
        file->pending = submit->next;
        complete(submit, "not seen", false);
    }
}

static void append(struct ic_file *file, struct ic_submit *submit)
{
    unsigned count = 0;
    struct ic_submit **end = &file->pending;
    for (; *end; end = &(*end)->next)
        count++;
    *end = submit;
    if (count < MOST_PENDING)
        return;
    struct ic_submit *oldest = file->pending;
    file->pending = oldest->next;
    complete(oldest, "not seen", false);
}

void ic_submit_result(struct ic_call *call, uint32_t queue, uint32_t fence)
{
    struct ic_submit *submit = call->submit;
    call->submit = NULL;
    submit->queue = queue;
    submit->fence = fence;
    submit->start = call->start;
    submit->end = call->end;
    submit->result = call->result;
    submit->error = call->error;
    if (call->result < 0) {
        write_json(submit);
        ic_text_put(&call->note, ",\"refused\":%u", submit->file->failed_count);
        move_away(submit, "refused");
        destroy(submit);
        return;
    }
    ic_text_put(&call->note, ",\"submit\":%u", submit->index);
    append(submit->file, submit);
}
