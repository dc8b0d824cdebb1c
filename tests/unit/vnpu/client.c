/* SPDX-License-Identifier: MIT */
/*
 * A program of its own that knows the kernel's interfaces and nothing of Mica's library: submits what is recorded in
 * a capture through a device node, and compares what the device leaves with what the CPU computed. Its declarations
 * are written out again here, from the numbers alone, so that a mistake in src/uapi shows.
 *
 *   client CAPTURE NODE     exit code 0: as the CPU (rocket: within 1 of it), 77: there is no such capture
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/capture.h"
#include "npu/program.h"

#define MOST_BOS 256

struct buffer {
    uint32_t handle;
    uint64_t address, size;
    uint8_t *map;
};

static struct buffer buffers[MOST_BOS];
static size_t buffer_count;

static int complain(const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    return 1;
}

static int map(int node, struct buffer *buffer, uint64_t offset)
{
    void *at = mmap(NULL, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)offset);
    if (at == MAP_FAILED)
        return complain("mmap");
    buffer->map = at;
    return 0;
}

static struct buffer *find(uint64_t address)
{
    for (size_t i = 0; i < buffer_count; i++)
        if (buffers[i].address == address)
            return &buffers[i];
    return NULL;
}

/* ---- etnaviv ---------------------------------------------------------------------------- */

static int etnaviv_create(int node, struct buffer *buffer)
{
    struct {
        uint64_t size;
        uint32_t flags, handle;
    } make = {buffer->size, 0x20000, 0};
    struct {
        uint32_t handle, pad;
        uint64_t offset;
    } info = {0};
    if (ioctl(node, 0xc0106442, &make))
        return complain("GEM_NEW");
    info.handle = buffer->handle = make.handle;
    return ioctl(node, 0xc0106443, &info) ? complain("GEM_INFO") : map(node, buffer, info.offset);
}

static int etnaviv_submit(int node, const struct mica_recorded_submit *submit)
{
    struct {
        uint32_t flags, handle;
        uint64_t address;
    } list[MOST_BOS] = {0};
    struct {
        uint32_t fence, pipe, exec_state, nr_bos, nr_relocs, stream_size;
        uint64_t bos, relocs, stream;
        uint32_t flags;
        int32_t fence_fd;
        uint64_t pmrs;
        uint32_t nr_pmrs, pad;
    } call = {.nr_bos = (uint32_t)submit->bo_count,
              .stream_size = (uint32_t)(4 * submit->words),
              .bos = (uintptr_t)list,
              .stream = (uintptr_t)submit->stream,
              .flags = 8 | 4};
    struct {
        uint32_t pipe, fence, flags, pad;
        int64_t seconds, nanoseconds;
    } wait = {0};
    struct {
        char name[32];
        int32_t status;
        uint32_t flags, num_fences, pad;
        uint64_t fences;
    } sync = {0};
    for (size_t i = 0; i < submit->bo_count; i++) {
        list[i].flags = submit->bos[i].access;
        list[i].handle = find(submit->bos[i].address)->handle;
        list[i].address = submit->bos[i].address;
    }
    if (ioctl(node, 0xc0486446, &call))
        return complain("GEM_SUBMIT");
    wait.fence = call.fence;
    if (ioctl(node, 0x40206447, &wait))
        return complain("WAIT_FENCE");
    if (ioctl(call.fence_fd, 0xc0383e04, &sync))
        return complain("SYNC_IOC_FILE_INFO");
    close(call.fence_fd);
    if (sync.status == 1)
        return 0;
    fprintf(stderr, "client: the job ended with %d\n", sync.status);
    return 1;
}

/* ---- rocket ------------------------------------------------------------------------------- */

static uint64_t rocket_end; /* of what was allocated */

static int rocket_allocate(int node, uint64_t size, uint64_t *address, uint64_t *offset, uint32_t *handle)
{
    struct {
        uint32_t size, handle;
        uint64_t address, offset;
    } make = {.size = (uint32_t)size};
    if (ioctl(node, 0xc0186440, &make))
        return complain("CREATE_BO");
    *address = make.address;
    *offset = make.offset;
    *handle = make.handle;
    rocket_end = make.address + size;
    return 0;
}

/* Addresses are the kernel's to choose, the lowest first; what lies between the recorded buffers is filled up. */
static int rocket_create(int node, struct buffer *buffer)
{
    uint64_t address = 0, offset = 0;
    uint32_t handle = 0;
    if (buffer->address > rocket_end && rocket_allocate(node, buffer->address - rocket_end, &address, &offset, &handle))
        return 1;
    if (rocket_allocate(node, buffer->size, &address, &offset, &buffer->handle))
        return 1;
    if (address != buffer->address) {
        fprintf(stderr, "client: a buffer is at 0x%llx, recorded at 0x%llx\n", (unsigned long long)address,
                (unsigned long long)buffer->address);
        return 1;
    }
    return map(node, buffer, offset);
}

static int rocket_job(int node, const struct mica_recorded_submit *submit, const uint32_t *tasks, size_t words)
{
    uint32_t in[MOST_BOS], out[MOST_BOS];
    struct {
        uint64_t tasks, in, out;
        uint32_t task_count, task_size, in_count, out_count;
    } job = {.tasks = (uintptr_t)tasks, .in = (uintptr_t)in, .out = (uintptr_t)out, .task_size = 8};
    struct {
        uint64_t jobs;
        uint32_t job_count, job_size;
        uint64_t reserved;
    } call = {(uintptr_t)&job, 1, sizeof job, 0};
    struct {
        uint32_t handle, reserved;
        int64_t timeout;
    } prep = {.timeout = INT64_MAX};
    job.task_count = (uint32_t)(words / 2);
    for (size_t i = 0; i < submit->bo_count; i++) {
        uint32_t handle = find(submit->bos[i].address)->handle;
        if (submit->bos[i].access & MICA_ACCESS_WRITE)
            prep.handle = out[job.out_count++] = handle;
        else
            in[job.in_count++] = handle;
    }
    if (ioctl(node, 0x40186441, &call))
        return complain("SUBMIT");
    return ioctl(node, 0x40106442, &prep) ? complain("PREP_BO") : 0;
}

static int rocket_submit(int node, const struct mica_recorded_submit *submit)
{
    int failed = 0;
    for (size_t job = 0; !failed && job < submit->job_count; job++) {
        size_t words;
        const uint32_t *tasks = mica_recording_job(submit, job, &words);
        failed = rocket_job(node, submit, tasks, words);
    }
    return failed;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int compare_addresses(const void *a, const void *b)
{
    const struct buffer *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int create_buffers(int node, bool rocket, const struct mica_recording *capture)
{
    for (size_t i = 0; i < capture->submit_count; i++)
        for (size_t k = 0; k < capture->submits[i].bo_count; k++) {
            const struct mica_recorded_bo *bo = &capture->submits[i].bos[k];
            if (find(bo->address) || buffer_count == MOST_BOS)
                continue;
            buffers[buffer_count++] = (struct buffer){.address = bo->address, .size = bo->size};
        }
    qsort(buffers, buffer_count, sizeof *buffers, compare_addresses);
    for (size_t i = 0; i < buffer_count; i++)
        if (rocket ? rocket_create(node, &buffers[i]) : etnaviv_create(node, &buffers[i]))
            return 1;
    return 0;
}

static int run(int node, bool rocket, const struct mica_recording *capture)
{
    for (size_t i = 0; i < capture->submit_count; i++) {
        const struct mica_recorded_submit *submit = &capture->submits[i];
        for (size_t k = 0; k < submit->bo_count; k++)
            if (submit->bos[k].contents)
                memcpy(find(submit->bos[k].address)->map, submit->bos[k].contents, submit->bos[k].contents_size);
        if (rocket ? rocket_submit(node, submit) : etnaviv_submit(node, submit))
            return 1;
    }
    return 0;
}

/* Where output 0 is, the descriptors or registers in memory say. */
static bool locate(const struct mica_recording *capture, uint32_t *address)
{
    struct mica_device_memory memory;
    bool found = !mica_device_memory_create(&memory);
    for (size_t i = 0; found && i < capture->submit_count; i++)
        found = !mica_recording_map(capture, i, &memory);
    found = found && mica_recording_locate(capture, &capture->outputs[0], &memory, address);
    mica_device_memory_destroy(&memory);
    return found;
}

static int judge(bool rocket, const struct mica_recording *capture)
{
    uint32_t address = 0;
    size_t wrong = 0;
    if (!locate(capture, &address)) {
        fprintf(stderr, "client: no output found\n");
        return 1;
    }
    const struct buffer *buffer = NULL;
    for (size_t i = 0; i < buffer_count; i++)
        if (address >= buffers[i].address && address - buffers[i].address < buffers[i].size)
            buffer = &buffers[i];
    for (size_t i = 0; i < capture->outputs[0].size; i++) {
        size_t at = address - buffer->address + mica_recorded_offset(&capture->outputs[0], i);
        int got = buffer->map[at] ^ (capture->outputs[0].flipped ? 0x80 : 0);
        wrong += abs(got - capture->outputs[0].expected[i]) > (rocket ? 1 : 0);
    }
    printf("%zu of %zu bytes are not the CPU's\n", wrong, capture->outputs[0].size);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    struct mica_recording capture;
    struct mica_log log = {0};
    if (argc != 3)
        return 2;
    if (access(argv[1], R_OK))
        return 77;
    if (mica_recording_load(argv[1], &log, &capture)) {
        fprintf(stderr, "client: %s\n", log.last_error);
        return 1;
    }
    bool rocket = !strcmp(capture.driver, "rocket");
    int node = open(argv[2], O_RDWR | O_CLOEXEC);
    if (node < 0)
        return complain(argv[2]);
    int failed = create_buffers(node, rocket, &capture) || run(node, rocket, &capture) || judge(rocket, &capture);
    for (size_t i = 0; i < buffer_count; i++)
        if (buffers[i].map)
            munmap(buffers[i].map, buffers[i].size);
    close(node);
    mica_recording_release(&capture);
    return failed;
}
