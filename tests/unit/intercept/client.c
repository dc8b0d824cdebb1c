/* SPDX-License-Identifier: MIT */
/*
 * The program that is recorded. client SCENARIO: 0 when everything is as it
 * is without an interceptor; what was recorded test_intercept.c looks at.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "uapi/aipu.h"
#include "uapi/etnaviv.h"
#include "uapi/galcore.h"
#include "uapi/rknpu.h"
#include "uapi/rocket.h"

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "client: line %d: " #condition " (errno %d)\n", __LINE__, errno); \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

#define SIZE 8192u

struct buffer {
    uint32_t handle;
    uint64_t address;
    uint8_t *map;
};

/* ---- etnaviv ----------------------------------------------------------------------- */

static struct buffer make(int node, uint64_t address, int seed)
{
    struct mica_etnaviv_gem_new call = {.size = SIZE, .flags = MICA_ETNAVIV_BO_WRITE_COMBINED};
    CHECK(!ioctl(node, MICA_ETNAVIV_GEM_NEW, &call));
    struct mica_etnaviv_gem_info info = {.handle = call.handle};
    CHECK(!ioctl(node, MICA_ETNAVIV_GEM_INFO, &info));
    struct buffer buffer = {.handle = call.handle, .address = address};
    buffer.map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)info.offset);
    CHECK(buffer.map != MAP_FAILED);
    for (unsigned i = 0; seed && i < SIZE / 2; i++)
        buffer.map[i] = (uint8_t)(i * 7 + (unsigned)seed);
    return buffer;
}

static int submit(int node, const struct buffer *in, const struct buffer *out, uint32_t word, uint32_t *fence)
{
    uint32_t stream[4] = {word, 1, 2, 3};
    struct mica_etnaviv_bo bos[2] = {{MICA_ETNAVIV_USE_READ, in->handle, in->address},
                                     {MICA_ETNAVIV_USE_WRITE, out->handle, out->address}};
    struct mica_etnaviv_submit call = {.nr_bos = 2,
                                       .stream_size = sizeof stream,
                                       .bos = (uintptr_t)bos,
                                       .stream = (uintptr_t)stream,
                                       .flags = MICA_ETNAVIV_SUBMIT_SOFTPIN};
    int result = ioctl(node, MICA_ETNAVIV_GEM_SUBMIT, &call);
    *fence = call.fence;
    return result;
}

static void wait_fence(int node, uint32_t fence)
{
    struct mica_etnaviv_wait_fence call = {.fence = fence};
    CHECK(!ioctl(node, MICA_ETNAVIV_WAIT_FENCE, &call));
}

static int open_etnaviv(void)
{
    int node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    CHECK(node >= 0);
    return node;
}

static void submit_and_wait(int node, int times)
{
    struct buffer in = make(node, 0x400000, 1), out = make(node, 0x500000, 2);
    for (int i = 0; i < times; i++) {
        uint32_t fence;
        uint8_t before = out.map[0];
        CHECK(!submit(node, &in, &out, 0x1000 + (uint32_t)i, &fence));
        CHECK(out.map[0] == before); /* nobody waited in our place */
        wait_fence(node, fence);
        CHECK(out.map[0] == (before ^ FAKE_TURN));
    }
}

static int scenario_etnaviv(void)
{
    int node = open_etnaviv();
    submit_and_wait(node, 3);
    return close(node);
}

/* Two submissions and one wait: what the first left behind nobody saw. */
static int scenario_pipelined(void)
{
    int node = open_etnaviv();
    uint32_t first, second;
    struct buffer in = make(node, 0x400000, 1), out = make(node, 0x500000, 2);
    CHECK(!submit(node, &in, &out, 1, &first) && !submit(node, &in, &out, 2, &second));
    wait_fence(node, second);
    return close(node);
}

static int scenario_refused(void)
{
    int node = open_etnaviv();
    struct buffer in = make(node, 0x400000, 1), out = make(node, 0x500000, 2), none = {.handle = 77};
    uint32_t fence;
    errno = 0;
    CHECK(submit(node, &in, &none, 1, &fence) == -1 && errno == EINVAL);
    struct mica_etnaviv_submit call = {.nr_bos = 1, .bos = 8, .stream = 16, .stream_size = 64};
    CHECK(ioctl(node, MICA_ETNAVIV_GEM_SUBMIT, &call) == -1 && errno == EFAULT);
    CHECK(ioctl(node, MICA_ETNAVIV_GEM_SUBMIT, NULL) == -1 && errno == EFAULT);
    CHECK(!submit(node, &in, &out, 2, &fence));
    wait_fence(node, fence);
    errno = 123;
    struct mica_etnaviv_param parameter = {.param = MICA_ETNAVIV_MODEL};
    CHECK(!ioctl(node, MICA_ETNAVIV_GET_PARAM, &parameter) && errno == 123);
    return close(node);
}

static int scenario_crash(void)
{
    int node = open_etnaviv();
    struct buffer in = make(node, 0x400000, 1), out = make(node, 0x500000, 2);
    uint32_t fence;
    CHECK(!submit(node, &in, &out, 1, &fence));
    raise(SIGKILL);
    return 1;
}

/* A descriptor and its copies: the file lives until the last of them is closed. */
static int scenario_dup(void)
{
    int node = open_etnaviv(), copies[4];
    struct buffer in = make(node, 0x400000, 1), out = make(node, 0x500000, 2);
    uint32_t fence;
    copies[0] = dup(node);
    copies[1] = fcntl(node, F_DUPFD_CLOEXEC, 100);
    copies[2] = dup2(node, 200);
    copies[3] = dup3(node, 201, O_CLOEXEC);
    CHECK(copies[1] >= 100 && copies[2] == 200 && copies[3] == 201);
    close(node);
    for (int i = 0; i < 4; i++) {
        CHECK(!submit(copies[i], &in, &out, (uint32_t)i, &fence));
        if (i < 3)
            wait_fence(copies[i], fence);
        CHECK(!close(copies[i]));
    }
    CHECK(ioctl(node, MICA_ETNAVIV_GEM_SUBMIT, NULL) == -1 && errno == EBADF);
    return 0;
}

static int scenario_fork(void)
{
    int node = open_etnaviv(), status;
    submit_and_wait(node, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        submit_and_wait(node, 2);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    submit_and_wait(node, 1);
    return close(node);
}

/* The child shares our memory and closes everything, as a library's way to start programs does. */
static int scenario_vfork(void)
{
    int node = open_etnaviv(), status;
    submit_and_wait(node, 1);
    pid_t child = vfork();
    if (!child) {
        close(node);
        close_range(3, 1000, 0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    submit_and_wait(node, 1);
    return close(node);
}

static int scenario_exec(const char *self)
{
    int node = open_etnaviv();
    submit_and_wait(node, 1);
    execl(self, self, "etnaviv", (char *)NULL);
    return 1;
}

static void *thread_main(void *unused)
{
    int node = open_etnaviv();
    submit_and_wait(node, 25);
    close(node);
    return unused;
}

static int scenario_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, thread_main, NULL));
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_join(threads[i], NULL));
    return 0;
}

/* A handle that ends and comes again is another buffer. */
static int scenario_handles(void)
{
    int node = open_etnaviv();
    struct buffer in = make(node, 0x400000, 1), out = make(node, 0x500000, 2);
    uint32_t fence;
    CHECK(!submit(node, &in, &out, 1, &fence));
    struct mica_drm_gem_close call = {.handle = in.handle};
    CHECK(!ioctl(node, MICA_DRM_GEM_CLOSE, &call));
    wait_fence(node, fence);
    return close(node);
}

/* ---- the others ---------------------------------------------------------------------- */

static struct buffer make_rocket(int node, int seed)
{
    struct mica_rocket_create_bo call = {.size = SIZE};
    CHECK(!ioctl(node, MICA_ROCKET_CREATE_BO, &call));
    struct buffer buffer = {.handle = call.handle, .address = call.dma_address};
    buffer.map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)call.offset);
    CHECK(buffer.map != MAP_FAILED);
    memset(buffer.map, seed, SIZE / 2);
    return buffer;
}

static int scenario_rocket(void)
{
    int node = open("/dev/accel/accel0", O_RDWR);
    struct buffer in = make_rocket(node, 1), out = make_rocket(node, 2);
    struct mica_rocket_task tasks[2] = {{(uint32_t)in.address, 10}, {(uint32_t)in.address + 128, 12}};
    struct mica_rocket_job jobs[2] = {{.tasks = (uintptr_t)tasks,
                                       .in_handles = (uintptr_t)&in.handle,
                                       .out_handles = (uintptr_t)&out.handle,
                                       .task_count = 1,
                                       .task_struct_size = 8,
                                       .in_count = 1,
                                       .out_count = 1}};
    jobs[1] = jobs[0];
    jobs[1].tasks = (uintptr_t)&tasks[1];
    struct mica_rocket_submit call = {(uintptr_t)jobs, 2, sizeof jobs[0], 0};
    struct mica_rocket_prep_bo prep = {.handle = in.handle, .timeout_ns = INT64_MAX};
    CHECK(!ioctl(node, MICA_ROCKET_SUBMIT, &call));
    CHECK(!ioctl(node, MICA_ROCKET_PREP_BO, &prep)); /* an input: says nothing of the job */
    CHECK(out.map[0] == 2);
    prep.handle = out.handle;
    CHECK(!ioctl(node, MICA_ROCKET_PREP_BO, &prep));
    CHECK(out.map[0] == (2 ^ FAKE_TURN));
    return close(node);
}

static int run_rknpu(const char *path, unsigned type, unsigned base)
{
    int node = open(path, O_RDWR);
    struct mica_rknpu_task task = {.regcfg_amount = 100, .regcmd = {64, 0}};
    struct mica_rknpu_mem_create make[2] = {{.size = SIZE}, {.size = SIZE}};
    for (int i = 0; i < 2; i++) {
        CHECK(!ioctl(node, _IOWR(type, base + MICA_RKNPU_MEM_CREATE, struct mica_rknpu_mem_create), &make[i]));
        struct mica_rknpu_mem_map map = {.handle = make[i].handle};
        int fd = type == MICA_RKNPU_TYPE ? (int)make[i].handle : node;
        if (fd == node)
            CHECK(!ioctl(node, _IOWR(type, base + MICA_RKNPU_MEM_MAP, struct mica_rknpu_mem_map), &map));
        uint8_t *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)map.offset);
        CHECK(bytes != MAP_FAILED);
        memset(bytes, 3, SIZE);
        memcpy(bytes + sizeof task, &task, sizeof task);
    }
    struct mica_rknpu_submit submit = {.task_object = make[0].object, .task_start = 1, .task_number = 1, .flags = 1};
    CHECK(!ioctl(node, _IOWR(type, base + MICA_RKNPU_SUBMIT, struct mica_rknpu_submit), &submit));
    return close(node);
}

static int scenario_aipu(void)
{
    int node = open("/dev/aipu", O_RDWR);
    uint8_t request[MICA_AIPU_REQ_BUF_SIZE] = {0}, job[120] = {9};
    const uint64_t size = SIZE;
    struct mica_aipu_buffer buffer;
    struct mica_aipu_query_status query = {.most = 1};
    memcpy(request, &size, sizeof size);
    CHECK(!ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'A', MICA_AIPU_REQ_BUF, sizeof request), request));
    memcpy(&buffer, request + MICA_AIPU_BUFFER_AT, sizeof buffer);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)buffer.offset);
    CHECK(map != MAP_FAILED);
    memset(map, 5, SIZE);
    CHECK(!ioctl(node, _IOC(_IOC_WRITE, 'A', MICA_AIPU_SCHEDULE_JOB, sizeof job), job));
    CHECK(!ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'A', MICA_AIPU_QUERY_STATUS, sizeof query), &query));
    CHECK(!munmap(map, SIZE));
    CHECK(!ioctl(node, _IOC(_IOC_WRITE, 'A', MICA_AIPU_SCHEDULE_JOB, sizeof job), job)); /* can't be seen any more */
    return close(node);
}

static int scenario_galcore(void)
{
    int node = open("/dev/galcore", O_RDWR);
    uint32_t structure[8] = {18, 0, 5};
    struct mica_galcore_arguments arguments = {(uintptr_t)structure, sizeof structure, (uintptr_t)structure,
                                               sizeof structure};
    CHECK(!ioctl(node, MICA_GALCORE_INTERFACE, &arguments) && structure[1] == 0x600d);
    return close(node);
}

/* Somebody's display: nothing of it is written down. */
static int scenario_display(void)
{
    int node = open("/dev/dri/renderD129", O_RDWR);
    struct mica_etnaviv_gem_new call = {.size = SIZE};
    CHECK(ioctl(node, MICA_ETNAVIV_GEM_NEW, &call) == -1 && errno == ENOTTY);
    return close(node);
}

/* ---- nonsense ---------------------------------------------------------------------------- */

static uint64_t state;

static uint64_t any(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Pointers that end at the edge of memory, small numbers, and anything at all. */
static uint64_t any_value(const uint8_t *page)
{
    switch (any() % 6) {
    case 0:
        return any();
    case 1:
        return (uintptr_t)page + 4096 - any() % 64;
    case 2:
        return (uintptr_t)page + any() % 4096;
    case 3:
        return 0;
    default:
        return any() % 9;
    }
}

static void fuzz_node(const char *path, const unsigned long *requests, size_t count, uint8_t *page, int rounds)
{
    int node = open(path, O_RDWR);
    CHECK(node >= 0);
    for (int i = 0; i < rounds; i++) {
        uint64_t words[32];
        for (size_t k = 0; k < 32; k++)
            words[k] = any() % 4 ? any_value(page) : any_value(page) | any_value(page) << 32;
        unsigned long request = any() % 16 ? requests[any() % count] : any();
        bool edge = any() % 8 == 0; /* the argument reaches beyond what is mapped */
        uint8_t *argument = edge ? page + 4096 - any() % 32 : (uint8_t *)words;
        if (edge)
            memcpy(argument, words, (size_t)(page + 4096 - argument));
        else if (_IOC_SIZE(request) > sizeof words)
            argument = (uint8_t *)(uintptr_t)any();
        ioctl(node, request, argument);
    }
    close(node);
}

static int scenario_fuzz(int rounds)
{
    static const unsigned long etnaviv[] = {
        MICA_ETNAVIV_GEM_NEW,    MICA_ETNAVIV_GEM_INFO,       MICA_ETNAVIV_GEM_SUBMIT,
        MICA_ETNAVIV_GEM_SUBMIT, MICA_ETNAVIV_GEM_CPU_PREP,   MICA_DRM_GEM_CLOSE,
        MICA_ETNAVIV_WAIT_FENCE, MICA_DRM_PRIME_FD_TO_HANDLE, MICA_ETNAVIV_GEM_USERPTR};
    static const unsigned long rocket[] = {MICA_ROCKET_CREATE_BO, MICA_ROCKET_SUBMIT, MICA_ROCKET_SUBMIT,
                                           MICA_ROCKET_PREP_BO, MICA_DRM_GEM_CLOSE};
    static const unsigned long rknpu[] = {
        _IOWR('d', 0x41, struct mica_rknpu_submit), _IOWR('d', 0x42, struct mica_rknpu_mem_create),
        _IOWR('d', 0x43, struct mica_rknpu_mem_map), _IOWR('d', 0x44, struct mica_rknpu_mem_destroy),
        _IOWR('d', 0x45, struct mica_rknpu_mem_sync)};
    static const unsigned long aipu[] = {_IOC(3u, 'A', 2, 64), _IOC(3u, 'A', 2, 40), _IOC(1u, 'A', 3, 40),
                                         _IOC(1u, 'A', 6, 120), _IOC(3u, 'A', 7, 24)};
    static const unsigned long galcore[] = {MICA_GALCORE_INTERFACE, MICA_GALCORE_PROFILER};
    uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_NONE));
    for (size_t i = 0; i < 4096; i++)
        page[i] = (uint8_t)any();
    fuzz_node("/dev/dri/renderD128", etnaviv, 9, page, rounds);
    fuzz_node("/dev/accel/accel0", rocket, 5, page, rounds);
    fuzz_node("/dev/dri/card1", rknpu, 5, page, rounds);
    fuzz_node("/dev/aipu", aipu, 5, page, rounds);
    fuzz_node("/dev/galcore", galcore, 2, page, rounds);
    return 0;
}

/* What a call costs: on a node, and on something that is none. */
static int scenario_price(void)
{
    struct mica_etnaviv_param parameter = {.param = MICA_ETNAVIV_MODEL};
    int node = open_etnaviv(), none = open("/dev/null", O_RDWR), rounds = 300000;
    for (int i = 0; i < 2; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int k = 0; k < (i ? rounds : rounds / 10); k++)
            ioctl(i ? none : node, MICA_ETNAVIV_GET_PARAM, &parameter);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec));
        printf("%s %.1f ns\n", i ? "other" : "node", ns / (i ? rounds : rounds / 10));
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        int (*run)(void);
    } scenarios[] = {{"etnaviv", scenario_etnaviv}, {"pipelined", scenario_pipelined},
                     {"refused", scenario_refused}, {"crash", scenario_crash},
                     {"dup", scenario_dup},         {"fork", scenario_fork},
                     {"vfork", scenario_vfork},     {"threads", scenario_threads},
                     {"handles", scenario_handles}, {"rocket", scenario_rocket},
                     {"aipu", scenario_aipu},       {"galcore", scenario_galcore},
                     {"display", scenario_display}, {"price", scenario_price}};
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (!strcmp(name, scenarios[i].name))
            return scenarios[i].run();
    if (!strcmp(name, "exec"))
        return scenario_exec(argv[0]);
    if (!strcmp(name, "rknpu"))
        return run_rknpu("/dev/rknpu", MICA_RKNPU_TYPE, 0) || run_rknpu("/dev/dri/card1", 'd', MICA_DRM_COMMAND_BASE);
    if (!strcmp(name, "fuzz") && argc == 4) {
        state = strtoull(argv[3], NULL, 0) * 0x9e3779b97f4a7c15 + 1;
        return scenario_fuzz(atoi(argv[2]));
    }
    return 2;
}
