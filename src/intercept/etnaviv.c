/* SPDX-License-Identifier: MIT */
/* etnaviv: command streams with the buffers they name (specification of the kernel interfaces, section 1). */
#include "uapi/etnaviv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

/* Beyond what the kernel takes: such a submission is refused, and its raw line is all that is kept. */
#define MOST_STREAM ((size_t)1 << 20)
#define MOST_ENTRIES ((size_t)1 << 22) /* bytes */

/* ---- which chip ------------------------------------------------------------------- */

static uint32_t parameter(const struct ic_file *file, uint32_t pipe, uint32_t number)
{
    struct mica_etnaviv_param call = {.pipe = pipe, .param = number};
    return ic_real()->ioctl(file->fd, MICA_ETNAVIV_GET_PARAM, &call) ? 0 : (uint32_t)call.value;
}

static const char *chip_name(const uint32_t *identity)
{
    static const struct {
        uint32_t product, customer;
        const char *name;
    } chips[] = {{0x45080009, 0x88, "a311d"}, {0x5080009, 0x9f, "imx8mp"}, {0x8000001, 0x99, "s905d3"}};
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (chips[i].product == identity[2] && chips[i].customer == identity[3])
            return chips[i].name;
    return "unknown";
}

static void identify(struct ic_file *file, uint32_t pipe)
{
    static const uint32_t numbers[] = {MICA_ETNAVIV_MODEL, MICA_ETNAVIV_REVISION, MICA_ETNAVIV_PRODUCT,
                                       MICA_ETNAVIV_CUSTOMER, MICA_ETNAVIV_ECO};
    if (file->identified)
        return;
    file->identified = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        file->identity[i] = parameter(file, pipe, numbers[i]);
    strncpy(file->chip, chip_name(file->identity), sizeof file->chip - 1);
}

/* ---- a submission ------------------------------------------------------------------- */

struct arrays {
    struct mica_etnaviv_bo *bos;
    struct mica_etnaviv_reloc *relocs;
    uint32_t *stream;
};

static bool copy_arrays(const struct mica_etnaviv_submit *call, struct arrays *arrays)
{
    arrays->bos = ic_copy_array(call->bos, call->nr_bos, sizeof *arrays->bos, MOST_ENTRIES);
    arrays->relocs = ic_copy_array(call->relocs, call->nr_relocs, sizeof *arrays->relocs, MOST_ENTRIES);
    arrays->stream = ic_copy_array(call->stream, call->stream_size, 1, MOST_STREAM);
    return arrays->bos && arrays->relocs && arrays->stream;
}

static void free_arrays(struct arrays *arrays)
{
    free(arrays->bos);
    free(arrays->relocs);
    free(arrays->stream);
}

static void put_head(struct ic_submit *submit, const struct ic_file *file, const struct mica_etnaviv_submit *call)
{
    const uint32_t *id = file->identity;
    ic_text_put(ic_submit_head(submit),
                "{\n \"driver\":\"etnaviv\",\"chip\":\"%s\",\"index\":%u,\"pipe\":%u,\"exec_state\":%u,\"flags\":%u,"
                "\"softpin\":%s,\n \"version\":%u,\"identity\":{\"model\":%u,\"revision\":%u,\"product\":%u,"
                "\"customer\":%u,\"eco\":%u},\n \"stream\":{\"file\":\"stream.bin\",\"words\":%u},\n \"bos\":[",
                file->chip, ic_submit_index(submit), call->pipe, call->exec_state, call->flags,
                call->flags & MICA_ETNAVIV_SUBMIT_SOFTPIN ? "true" : "false", IC_FORMAT_VERSION, id[0], id[1], id[2],
                id[3], id[4], call->stream_size / 4);
}

static void put_tail(struct ic_text *text, const struct mica_etnaviv_submit *call, const struct arrays *arrays)
{
    ic_text_put(text, "],\n \"relocs\":[");
    for (uint32_t i = 0; i < call->nr_relocs; i++) {
        const struct mica_etnaviv_reloc *reloc = &arrays->relocs[i];
        ic_text_put(text, "%s\n  {\"offset\":%u,\"bo\":%u,\"addend\":\"0x%" PRIx64 "\",\"flags\":%u}", i ? "," : "",
                    reloc->offset, reloc->bo, reloc->addend, reloc->flags);
    }
    ic_text_put(text, "],\n \"pmrs\":%u", call->nr_pmrs);
}

/* The offset to map a buffer at, if the program hasn't asked for it. */
static void find_offset(const struct ic_file *file, struct ic_buffer *buffer)
{
    struct mica_etnaviv_gem_info call = {.handle = buffer->handle};
    if (buffer->offset_known || buffer->user || ic_real()->ioctl(file->fd, MICA_ETNAVIV_GEM_INFO, &call))
        return;
    buffer->offset = call.offset;
    buffer->offset_known = true;
}

static void use_bo(struct ic_submit *submit, struct ic_file *file, const struct mica_etnaviv_bo *bo, uint32_t index)
{
    static const char *const access[] = {"", "r", "w", "rw"};
    char members[64];
    struct ic_buffer *buffer = ic_buffer_find(file, bo->handle);
    if (buffer) {
        buffer->address = bo->address;
        find_offset(file, buffer);
    }
    snprintf(members, sizeof members, "\"index\":%u,\"access\":\"%s\",", index, access[bo->flags & 3]);
    bool written = bo->flags & MICA_ETNAVIV_USE_WRITE;
    ic_submit_use(submit, bo->handle, buffer, written, written, members);
}

static struct ic_submit *record(struct ic_file *file, const struct mica_etnaviv_submit *call,
                                const struct arrays *arrays)
{
    struct ic_submit *submit = ic_submit_new(file);
    if (!submit)
        return NULL;
    put_head(submit, file, call);
    ic_submit_file(submit, "stream.bin", arrays->stream, call->stream_size);
    for (uint32_t i = 0; i < call->nr_bos; i++)
        use_bo(submit, file, &arrays->bos[i], i);
    put_tail(ic_submit_tail(submit), call, arrays);
    return ic_submit_commit(submit);
}

static void before(struct ic_call *call)
{
    struct mica_etnaviv_submit submit;
    struct arrays arrays;
    if (ic_drm_before(call) || !ic_is(call, MICA_ETNAVIV_GEM_SUBMIT))
        return;
    ic_argument(call, &submit, sizeof submit);
    identify(call->file, submit.pipe);
    ic_submits_poll(call->file);
    if (copy_arrays(&submit, &arrays))
        call->submit = record(call->file, &submit, &arrays);
    free_arrays(&arrays);
}

/* ---- what the kernel said -------------------------------------------------------------- */

static void made(struct ic_call *call)
{
    struct mica_etnaviv_gem_new answer;
    struct ic_buffer *buffer =
        ic_answer(call, &answer, sizeof answer) ? ic_buffer_add(call->file, answer.handle, answer.size) : NULL;
    if (buffer)
        buffer->flags = answer.flags;
}

static void told_offset(struct ic_call *call)
{
    struct mica_etnaviv_gem_info answer;
    struct ic_buffer *buffer =
        ic_answer(call, &answer, sizeof answer) ? ic_buffer_find(call->file, answer.handle) : NULL;
    if (!buffer)
        return;
    buffer->offset = answer.offset;
    buffer->offset_known = true;
}

static void made_of_user(struct ic_call *call)
{
    struct mica_etnaviv_gem_userptr answer;
    struct ic_buffer *buffer =
        ic_answer(call, &answer, sizeof answer) ? ic_buffer_add(call->file, answer.handle, answer.size) : NULL;
    if (buffer)
        buffer->user = answer.pointer;
}

static bool is_fence(const struct ic_submit *submit, uint64_t pipe, uint64_t fence)
{
    return ic_submit_queue(submit) == pipe && (int32_t)((uint32_t)fence - ic_submit_fence(submit)) >= 0;
}

static void waited(struct ic_call *call)
{
    if (ic_is(call, MICA_ETNAVIV_WAIT_FENCE)) {
        struct mica_etnaviv_wait_fence wait;
        ic_argument(call, &wait, sizeof wait);
        ic_submits_done(call->file, is_fence, wait.pipe, wait.fence, "waited");
    } else if (ic_is(call, MICA_ETNAVIV_GEM_CPU_PREP)) {
        struct mica_etnaviv_cpu_prep prep;
        ic_argument(call, &prep, sizeof prep);
        ic_submits_done(call->file, ic_submit_uses, prep.handle, !(prep.op & MICA_ETNAVIV_PREP_WRITE), "waited");
    } else if (ic_is(call, MICA_ETNAVIV_GEM_WAIT)) {
        struct mica_etnaviv_gem_wait wait;
        ic_argument(call, &wait, sizeof wait);
        ic_submits_done(call->file, ic_submit_uses, wait.handle, false, "waited");
    }
}

static void after(struct ic_call *call)
{
    struct mica_etnaviv_submit submit;
    if (call->submit) {
        ic_argument(call, &submit, sizeof submit);
        uint32_t pipe = submit.pipe;
        if (!ic_answer(call, &submit, sizeof submit))
            submit.fence = 0;
        ic_submit_result(call, pipe, submit.fence);
    } else if (call->result < 0 || ic_drm_after(call)) {
        return;
    } else if (ic_is(call, MICA_ETNAVIV_GEM_NEW)) {
        made(call);
    } else if (ic_is(call, MICA_ETNAVIV_GEM_INFO)) {
        told_offset(call);
    } else if (ic_is(call, MICA_ETNAVIV_GEM_USERPTR)) {
        made_of_user(call);
    } else {
        waited(call);
    }
}

static bool is_done(struct ic_file *file, const struct ic_submit *submit)
{
    struct mica_etnaviv_wait_fence call = {
        .pipe = ic_submit_queue(submit), .fence = ic_submit_fence(submit), .flags = MICA_ETNAVIV_WAIT_NONBLOCK};
    return ic_real()->ioctl(file->fd, MICA_ETNAVIV_WAIT_FENCE, &call) == 0;
}

const struct ic_driver ic_etnaviv = {.name = "etnaviv", .before = before, .after = after, .is_done = is_done};
