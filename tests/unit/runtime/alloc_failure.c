/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out anywhere: load, compile, save, load again, session, run,
 * capture and comparison, again and again, where the nth allocation fails, for n = 1, 2, 3,
 * ... until a run needs no nth. Each failing run must end in -ENOMEM (or get
 * along without) and leave neither allocations nor temporary files behind.
 *
 * The allocators of this executable are its own: they forward to glibc's.
 * Models of the collection are left out where it is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mica/mica.h"

/* ---- allocators ------------------------------------------------------- */

#pragma GCC visibility push(default) /* for the C library and other shared ones to use them too */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

static atomic_long outstanding; /* allocations that live */
static atomic_long countdown;   /* the allocation that takes it from 1 to 0 fails; 0 and below: none */

static bool fails(void)
{
    return atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
}

static void *counted(void *pointer)
{
    if (pointer)
        atomic_fetch_add(&outstanding, 1);
    else
        errno = ENOMEM;
    return pointer;
}

void *malloc(size_t size)
{
    return counted(fails() ? NULL : __libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return counted(fails() ? NULL : __libc_calloc(count, size));
}

void *realloc(void *pointer, size_t size)
{
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    void *moved = __libc_realloc(pointer, size);
    if (!pointer)
        return counted(moved);
    if (!moved && !size)
        atomic_fetch_sub(&outstanding, 1);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(fails() ? NULL : __libc_memalign(alignment, size));
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **pointer, size_t alignment, size_t size)
{
    void *memory = aligned_alloc(alignment, size);
    if (!memory)
        return ENOMEM;
    *pointer = memory;
    return 0;
}

void free(void *pointer)
{
    if (pointer)
        atomic_fetch_sub(&outstanding, 1);
    __libc_free(pointer);
}

#pragma GCC visibility pop

/* ---- the run ---------------------------------------------------------- */

struct sweep {
    const char *device, *model;
    bool capture;
    bool on_chip;
    bool bind;  /* the tensors to a memfd; for small ones */
    bool split; /* over three cores, at another clock */
};

static const struct sweep sweeps[] = {
    {"sim:a311d", MICA_SHARE_DIR "/mobilenet_v1_1.0_224_quant.tflite", false, false, false},
    {"cpu", MICA_SHARED_DIR "/models/tiny_kws_dscnn_int8.tflite", false, false, false},
    {"sim:a311d", MICA_SHARED_DIR "/captures/conv_u8_i8_k3_ic3_oc16_s1_p1/model.tflite", true, false, true},
    {"sim:s905d3", MICA_SHARED_DIR "/captures/conv_u8_i8_k5_ic32_oc32_s1_p1/model.tflite", false, false, true},
    {"sim:imx8mp", MICA_SHARED_DIR "/models/mobilenet_v1_0.25_128_quant.tflite", false, true, false},
    {"sim:a311d", MICA_SHARED_DIR "/models/tflm_micro_speech_int8.tflite"}, /* scales per channel */
    {"sim:rk3588", MICA_SHARED_DIR "/captures/conv_u8_i8_k3_ic3_oc16_s1_p1/model.tflite", true, false, false, true},
    {"rk3566", MICA_SHARED_DIR "/captures/conv_u8_i8_k5_ic32_oc32_s1_p1/model.tflite", false, false, false},
    {"sim:rk3588", MICA_SHARED_DIR "/models/split_concat.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/ops_int8/maxpool2.tflite"},
    {"sim:rk3566", MICA_SHARED_DIR "/models/ops_int8/avgpool3s1.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/ops_int8/resize_bilinear_2x.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/ops_int8/mul_bcast.tflite"},
    {"sim:rk3566", MICA_SHARED_DIR "/models/ops_int8/leaky.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/ops_int8/transpose_conv_s2.tflite"},
    {"sim:rk3566", MICA_SHARED_DIR "/models/ops_int8/concat.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/ops_int8/pad.tflite"},
    {"sim:rk3566", MICA_SHARED_DIR "/models/ops_int8/slice.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/ops_int8/mean.tflite"},
    {"sim:rk3588", MICA_SHARED_DIR "/models/tiny_resnet8_cifar_int8.tflite"},
};

/* How far a run came. */
enum stage { CONTEXT, DEVICE, LOAD, COMPILE, SAVE, RELOAD, SESSION, BIND, INVOKE, CAPTURE, COMPARE, DONE };
static const char *const stage_names[] = {"context", "device", "load",   "compile", "save",    "reload",
                                          "session", "bind",   "invoke", "capture", "compare", "done"};

static char parent[32], directory[64], file[64]; /* for the capture and the executable, in a folder of their own */
static uint8_t output[4096];
static size_t output_size;

struct objects {
    mica_context *context;
    mica_device *device;
    mica_model *model;
    mica_executable *executable, *reloaded;
    mica_session *session;
};

static int prepare(const struct sweep *sweep, struct objects *o, enum stage *stage)
{
    *stage = CONTEXT;
    int error = mica_context_create(&o->context);
    if (!error)
        error = mica_context_set_threads(o->context, 1);
    if (!error && (*stage = DEVICE))
        error = mica_device_open(o->context, sweep->device, &o->device);
    if (!error && sweep->on_chip)
        error = mica_device_configure(o->device, "on-chip", "1");
    if (!error && sweep->split)
        error = mica_device_configure(o->device, "split", "3");
    if (!error && sweep->split)
        error = mica_device_configure(o->device, "clock", "800");
    if (!error && sweep->split)
        error = mica_device_configure(o->device, "partition", "cost:100"); /* a CPU so slow that it gets nothing */
    if (!error && (*stage = LOAD))
        error = mica_model_load(o->context, sweep->model, &o->model);
    struct mica_way way;
    if (!error && (error = mica_model_way(o->model, o->device, 0, &way)) == -ENOTSUP)
        error = 0;
    if (!error && (*stage = COMPILE))
        error = mica_executable_compile(o->model, o->device, &o->executable);
    if (!error && (*stage = SAVE))
        error = mica_executable_save(o->executable, file);
    if (!error && (*stage = RELOAD))
        error = mica_executable_load(o->device, file, &o->reloaded);
    return error;
}

/* Both ends in one memfd of 4 pages; small tensors only. */
static int bind_tensors(mica_session *session)
{
    int fd = memfd_create("tensors", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 4 * 4096) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        if (fd >= 0)
            close(fd);
        return -errno;
    }
    void *map;
    int error = mica_session_bind_input_dmabuf(session, 0, fd, 0);
    if (!error)
        error = mica_session_bind_output_dmabuf(session, 0, fd, 2 * 4096);
    if (!error)
        error = mica_session_map_input(session, 0, &map);
    close(fd);
    return error;
}

static int compare(const mica_executable *executable)
{
    mica_comparison *comparison;
    int error = mica_comparison_create(executable, &comparison);
    if (error)
        return error;
    error = mica_comparison_run_reference(comparison);
    if (!error)
        error = mica_comparison_run_alone(comparison, 0);
    if (!error)
        error = mica_comparison_run_chained(comparison, true);
    mica_comparison_destroy(comparison);
    return error;
}

static int run_session(const struct sweep *sweep, struct objects *o, enum stage *stage)
{
    struct mica_tensor_info info;
    *stage = SESSION;
    int error = mica_session_create(o->reloaded, &o->session);
    if (!error && sweep->bind && (*stage = BIND))
        error = bind_tensors(o->session);
    if (!error && (*stage = INVOKE))
        error = mica_session_invoke(o->session);
    double us;
    if (!error && sweep->split)
        error = mica_session_stream_us(o->session, 1000, 3, 3, &us);
    if (!error && sweep->capture && (*stage = CAPTURE))
        error = mica_session_capture(o->session, directory);
    if (!error && sweep->capture && (*stage = COMPARE))
        error = compare(o->reloaded);
    if (!error)
        error = mica_model_output(o->model, 0, &info);
    if (!error && info.bytes <= sizeof output)
        error = mica_session_get_output(o->session, 0, output, output_size = info.bytes);
    if (!error)
        *stage = DONE;
    return error;
}

static int run(const struct sweep *sweep, enum stage *stage)
{
    struct objects o = {0};
    int error = prepare(sweep, &o, stage);
    if (!error)
        error = run_session(sweep, &o, stage);
    mica_session_destroy(o.session);
    mica_executable_destroy(o.reloaded);
    mica_executable_destroy(o.executable);
    mica_model_destroy(o.model);
    mica_device_close(o.device);
    mica_context_destroy(o.context);
    return error;
}

/* ---- the sweep -------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
    return remove(path);
}

static uint64_t files_sum;

/* Adds path and contents of a file: the order of a directory does not matter. */
static int sum_file(const char *path, const struct stat *status, int type, struct FTW *at)
{
    uint64_t sum = 14695981039346656037u;
    FILE *stream = type == FTW_F ? fopen(path, "rb") : NULL;
    for (; *path; path++)
        sum = (sum ^ (uint8_t)*path) * 1099511628211u;
    for (int byte; stream && (byte = getc(stream)) != EOF;)
        sum = (sum ^ (unsigned)byte) * 1099511628211u;
    if (stream)
        fclose(stream);
    files_sum += sum;
    return 0;
}

static void sum_files(void)
{
    files_sum = 0;
    nftw(directory, sum_file, 8, FTW_PHYS);
}

static void clean_up(void)
{
    unlink(file);
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Is a temporary file of a save that failed still there? */
static bool left_a_file(void)
{
    char pattern[80];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s.*", file);
    bool left = !glob(pattern, 0, NULL, &found);
    for (size_t i = 0; left && i < found.gl_pathc; i++)
        unlink(found.gl_pathv[i]);
    if (left)
        globfree(&found);
    return left;
}

/* One failing run; false: it did something wrong. *more: there was an nth allocation. */
static bool run_failing(const struct sweep *sweep, long n, const uint8_t *expected, uint64_t expected_files,
                        unsigned *stages, bool *more)
{
    enum stage stage;
    long before = atomic_load(&outstanding);
    atomic_store(&countdown, n);
    int error = run(sweep, &stage);
    *more = atomic_load(&countdown) <= 0;
    atomic_store(&countdown, 0);
    long left = atomic_load(&outstanding) - before;
    stages[stage]++;
    sum_files();
    clean_up();
    bool file_left = left_a_file();
    bool same = error || (!memcmp(output, expected, output_size) && files_sum == expected_files);
    if (!left && !file_left && same && (!error || error == -ENOMEM))
        return true;
    fprintf(stderr, "%s: allocation %ld failed in %s: result %d, %ld allocations left%s%s\n", sweep->device, n,
            stage_names[stage], error, left, file_left ? ", a temporary file left" : "", same ? "" : ", wrong results");
    return false;
}

static bool run_sweep(const struct sweep *sweep)
{
    static uint8_t expected[sizeof output];
    enum stage stage;
    unsigned stages[DONE + 1] = {0}, wrong = 0;
    bool more = true;
    double start = seconds();
    long n = 0;
    /* The first run is there for what libraries allocate once and keep. */
    for (int i = 0; i < 2; i++) {
        int error = run(sweep, &stage);
        sum_files();
        clean_up();
        if (error) {
            fprintf(stderr, "%s: the run fails by itself, in %s: %d\n", sweep->device, stage_names[stage], error);
            return false;
        }
    }
    memcpy(expected, output, sizeof output);
    uint64_t expected_files = files_sum;
    while (more && wrong < 20)
        wrong += !run_failing(sweep, ++n, expected, expected_files, stages, &more);
    printf("%s, %s:", sweep->device, strrchr(sweep->model, '/') + 1);
    for (int i = 0; i < DONE; i++)
        printf(" %s %u", stage_names[i], stages[i]);
    printf("\n%ld allocations failed one after the other: %u runs got along, %u were wrong, %.1f s\n", n - 1,
           stages[DONE] ? stages[DONE] - 1 : 0, wrong, seconds() - start);
    return !wrong && stages[COMPILE];
}

int main(void)
{
    bool good = true;
    unsigned skipped = 0;
    strcpy(parent, "/tmp/mica-alloc-XXXXXX");
    if (!mkdtemp(parent)) {
        perror(parent);
        return 1;
    }
    snprintf(directory, sizeof directory, "%s/capture", parent);
    snprintf(file, sizeof file, "%s/file", parent);
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        if (access(sweeps[i].model, R_OK)) {
            printf("left out: there is no %s\n", sweeps[i].model);
            skipped++;
        } else
            good = run_sweep(&sweeps[i]) && good;
    }
    if (rmdir(parent)) {
        perror(parent);
        good = false;
    }
    return skipped == sizeof sweeps / sizeof sweeps[0] ? 77 : !good;
}
