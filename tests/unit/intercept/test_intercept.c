/* SPDX-License-Identifier: MIT */
/* What the interceptor wrote down of programs (client.c) whose kernel is a fake (fake.c), or the virtual NPU. */
/* cmocka.h wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/capture.h"
#include "fake.h"

static char folder[256]; /* of the test that runs */

/* ---- running --------------------------------------------------------------------- */

static int setup(void **state)
{
    snprintf(folder, sizeof folder, "%s/mica-intercept-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Exit status of a program with the interceptor before `kernel`; its capture goes to folder/c. */
static int run_with(const char *kernel, const char *limit, const char *const *arguments)
{
    char preload[1024], capture[300];
    int status = 0;
    snprintf(preload, sizeof preload, "%s %s", INTERCEPTOR, kernel);
    snprintf(capture, sizeof capture, "%s/c", folder);
    pid_t child = fork();
    if (!child) {
        setenv("LD_PRELOAD", preload, 1);
        setenv("MICA_CAPTURE", capture, 1);
        if (limit)
            setenv("MICA_CAPTURE_LIMIT", limit, 1);
        execvp(arguments[0], (char *const *)arguments); /* which changes nothing */
        _exit(127);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static int run_client(const char *scenario)
{
    return run_with(FAKE, NULL, (const char *const[]){CLIENT, scenario, NULL});
}

/* ---- reading ------------------------------------------------------------------------ */

static void path_of(char *path, size_t room, const char *name)
{
    snprintf(path, room, "%s/c/%s", folder, name);
}

static bool exists(const char *name)
{
    char path[512];
    path_of(path, sizeof path, name);
    return access(path, F_OK) == 0;
}

static uint8_t *read_whole(const char *name, size_t *size)
{
    char path[512];
    path_of(path, sizeof path, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t *bytes = calloc(1, (size_t)1 << 21);
    assert_non_null(bytes);
    *size = fread(bytes, 1, ((size_t)1 << 21) - 1, file);
    fclose(file);
    return bytes;
}

static json_t *read_json(const char *name)
{
    char path[512];
    json_error_t error;
    path_of(path, sizeof path, name);
    json_t *json = json_load_file(path, 0, &error);
    if (!json)
        fail_msg("%s: %s", path, error.text);
    return json;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static json_t *bo_of(const json_t *submit, size_t index)
{
    return json_array_get(json_object_get(submit, "bos"), index);
}

static size_t count_submits(const char *name)
{
    char path[512];
    struct mica_log log = {0};
    struct mica_recording capture;
    path_of(path, sizeof path, name);
    if (mica_recording_load(path, &log, &capture))
        fail_msg("%s", log.last_error);
    size_t count = capture.submit_count;
    mica_recording_release(&capture);
    return count;
}

static void assert_outcome(const char *name, const char *after)
{
    json_t *json = read_json(name);
    assert_int_equal(json_integer_value(json_object_get(json, "result")), 0);
    assert_string_equal(text(json, "after"), after);
    assert_true(json_integer_value(json_object_get(json, "end_ns")) >=
                json_integer_value(json_object_get(json, "start_ns")));
    json_decref(json);
}

/* ---- etnaviv -------------------------------------------------------------------------- */

static void check_turned(const char *before, const char *after)
{
    size_t size, size_after;
    uint8_t *a = read_whole(before, &size), *b = read_whole(after, &size_after);
    assert_int_equal(size, 8192);
    assert_int_equal(size_after, 8192);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(b[i], a[i] ^ (i < FAKE_TURNED ? FAKE_TURN : 0));
    free(a);
    free(b);
}

static void submissions_are_recorded_with_contents_before_and_after(void **state)
{
    size_t size;
    assert_int_equal(run_client("etnaviv"), 0);
    assert_int_equal(count_submits("."), 3);
    json_t *json = read_json("submit_0000/submit.json");
    assert_string_equal(text(json, "driver"), "etnaviv");
    assert_string_equal(text(json, "chip"), "a311d");
    assert_int_equal(json_integer_value(json_object_get(json, "version")), 2);
    assert_string_equal(text(bo_of(json, 0), "access"), "r");
    assert_string_equal(text(bo_of(json, 1), "access"), "w");
    assert_string_equal(text(bo_of(json, 0), "va"), "0x00400000");
    assert_null(json_object_get(bo_of(json, 0), "file_after")); /* only read */
    assert_int_equal(json_integer_value(json_object_get(bo_of(json, 0), "nonzero_end")), 4096);
    json_decref(json);
    assert_outcome("submit_0000/submit.json", "waited");
    check_turned("submit_0000/bo_2.bin", "submit_0000/bo_2_after.bin");
    check_turned("submit_0000/bo_2_after.bin", "submit_0001/bo_2_after.bin");
    uint32_t *stream = (uint32_t *)(void *)read_whole("submit_0002/stream.bin", &size);
    assert_int_equal(size, 16);
    assert_int_equal(stream[0], 0x1002);
    free(stream);
}

static void unchanged_contents_are_those_of_an_earlier_file(void **state)
{
    assert_int_equal(run_client("etnaviv"), 0);
    json_t *json = read_json("submit_0001/submit.json");
    assert_string_equal(text(bo_of(json, 0), "file"), "../submit_0000/bo_1.bin");
    assert_string_equal(text(bo_of(json, 1), "file"), "../submit_0000/bo_2_after.bin");
    json_decref(json);
    assert_false(exists("submit_0001/bo_1.bin"));
}

static void what_nobody_waited_for_is_not_claimed_to_be_seen(void **state)
{
    assert_int_equal(run_client("pipelined"), 0);
    assert_outcome("submit_0000/submit.json", "not seen");
    assert_outcome("submit_0001/submit.json", "waited");
    json_t *json = read_json("submit_0000/submit.json");
    assert_null(json_object_get(bo_of(json, 1), "file_after"));
    json_decref(json);
}

static void refused_submissions_leave_the_sequence(void **state)
{
    assert_int_equal(run_client("refused"), 0);
    assert_int_equal(count_submits("."), 1);
    json_t *json = read_json("refused_0000/submit.json");
    assert_int_equal(json_integer_value(json_object_get(json, "result")), -1);
    assert_int_equal(json_integer_value(json_object_get(json, "errno")), EINVAL);
    json_decref(json);
}

static void a_crash_leaves_a_readable_capture(void **state)
{
    assert_true(WIFSIGNALED(run_client("crash")));
    assert_int_equal(count_submits("."), 1);
    json_t *json = read_json("submit_0000/submit.json");
    assert_null(json_object_get(json, "result"));
    assert_string_equal(text(bo_of(json, 1), "file"), "bo_2.bin");
    json_decref(json);
}

static void copies_of_a_descriptor_are_one_file(void **state)
{
    assert_int_equal(run_client("dup"), 0);
    assert_int_equal(count_submits("."), 4);
    assert_outcome("submit_0003/submit.json", "not waited for");
}

static void handles_that_end_are_not_mistaken(void **state)
{
    assert_int_equal(run_client("handles"), 0);
    assert_outcome("submit_0000/submit.json", "waited");
}

/* ---- processes and threads --------------------------------------------------------------- */

static void a_forked_child_writes_into_a_folder_of_its_own(void **state)
{
    assert_int_equal(run_client("fork"), 0);
    assert_int_equal(count_submits("."), 2);
    assert_int_equal(count_submits("process_0001"), 2);
    json_t *parent = read_json("capture.json"), *child = read_json("process_0001/capture.json");
    assert_int_equal(json_integer_value(json_object_get(child, "parent")),
                     json_integer_value(json_object_get(parent, "pid")));
    json_decref(parent);
    json_decref(child);
}

static void a_vforked_child_changes_nothing(void **state)
{
    assert_int_equal(run_client("vfork"), 0);
    assert_int_equal(count_submits("."), 2);
    assert_outcome("submit_0001/submit.json", "waited");
}

static void an_executed_program_writes_into_a_folder_of_its_own(void **state)
{
    assert_int_equal(run_client("exec"), 0);
    assert_int_equal(count_submits("."), 1);
    assert_int_equal(count_submits("process_0001"), 3);
}

static void threads_and_files_are_kept_apart(void **state)
{
    size_t whole = 0;
    assert_int_equal(run_client("threads"), 0);
    whole += count_submits(".");
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "file_%04d", i);
        if (exists(name))
            whole += count_submits(name);
    }
    assert_int_equal(whole, 100);
}

/* ---- other drivers ------------------------------------------------------------------------- */

static void jobs_of_rocket_are_recorded(void **state)
{
    assert_int_equal(run_client("rocket"), 0);
    assert_int_equal(count_submits("."), 1);
    assert_outcome("submit_0000/submit.json", "waited");
    json_t *json = read_json("submit_0000/submit.json"), *jobs = json_object_get(json, "jobs");
    assert_int_equal(json_array_size(jobs), 2);
    json_t *task = json_array_get(json_object_get(json_array_get(jobs, 1), "tasks"), 0);
    assert_string_equal(text(task, "regcmd"), "0x00000080");
    assert_int_equal(json_integer_value(json_object_get(task, "regcmd_count")), 12);
    assert_int_equal(json_integer_value(json_object_get(task, "bo")), 1);
    assert_int_equal(json_integer_value(json_object_get(task, "offset")), 128);
    assert_string_equal(text(bo_of(json, 0), "file_after"), "bo_1.bin");
    json_decref(json);
    check_turned("submit_0000/bo_2.bin", "submit_0000/bo_2_after.bin");
}

static void check_rknpu(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/submit_0000/submit.json", name);
    assert_outcome(path, "waited");
    json_t *json = read_json(path);
    json_t *tasks = json_object_get(json_array_get(json_object_get(json, "jobs"), 0), "tasks");
    assert_int_equal(json_array_size(tasks), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(tasks, 0), "regcmd_count")), 104);
    assert_string_equal(text(json_array_get(tasks, 0), "regcmd"), "0x00000040");
    assert_true(strcmp(text(bo_of(json, 1), "file"), text(bo_of(json, 1), "file_after")) != 0);
    assert_string_equal(text(bo_of(json, 0), "file"), text(bo_of(json, 0), "file_after"));
    json_decref(json);
}

static void the_vendors_rknpu_is_recorded_through_both_nodes(void **state)
{
    assert_int_equal(run_client("rknpu"), 0);
    check_rknpu(".");
    check_rknpu("file_0001");
}

static void aipu_jobs_are_recorded_through_the_programs_mappings(void **state)
{
    assert_int_equal(run_client("aipu"), 0);
    assert_outcome("submit_0000/submit.json", "status");
    json_t *json = read_json("submit_0000/submit.json");
    assert_int_equal(strlen(text(json, "job")), 240);
    assert_int_equal(strncmp(text(json, "job"), "0900", 4), 0);
    json_decref(json);
    check_turned("submit_0000/bo_1.bin", "submit_0000/bo_1_after.bin");
    json = read_json("submit_0001/submit.json"); /* unmapped by then */
    assert_null(json_object_get(bo_of(json, 0), "file"));
    json_decref(json);
}

static void other_calls_are_recorded_byte_by_byte(void **state)
{
    size_t size;
    assert_int_equal(run_client("galcore"), 0);
    char *raw = (char *)read_whole("raw.jsonl", &size);
    assert_non_null(strstr(raw, "\"request\":\"0x7530\""));
    assert_non_null(strstr(raw, "\"interface\":\"120000000000000005000000"));
    assert_non_null(strstr(raw, "\"interface_out\":\"120000000d60000005000000"));
    free(raw);
}

static void displays_are_not_recorded(void **state)
{
    assert_int_equal(run_client("display"), 0);
    assert_false(exists("."));
}

/* ---- bounds ------------------------------------------------------------------------------- */

static void the_limit_ends_recording_and_nothing_else(void **state)
{
    size_t size;
    assert_int_equal(run_with(FAKE, "6000", (const char *const[]){CLIENT, "etnaviv", NULL}), 0);
    char *raw = (char *)read_whole("raw.jsonl", &size);
    assert_true(size < 6000 + 300);
    assert_non_null(strstr(raw, "\"call\":\"stop\""));
    free(raw);
    assert_false(exists("submit_0001"));
}

/* Every submission that is in the sequence must be one that a reader takes. */
static void check_all(const char *path, unsigned depth)
{
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        char below[1024];
        json_error_t error;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && depth < 4 && entry->d_type == DT_DIR)
            check_all(below, depth + 1);
        if (strcmp(entry->d_name, "submit.json") != 0)
            continue;
        json_t *json = json_load_file(below, 0, &error);
        if (!json)
            fail_msg("%s:%d: %s", below, error.line, error.text);
        json_decref(json);
    }
    closedir(directory);
}

static void nonsense_crashes_nothing(void **state)
{
    for (int seed = 1; seed <= FUZZ_SEEDS; seed++) {
        char number[16];
        snprintf(number, sizeof number, "%d", seed);
        assert_int_equal(run_with(FAKE, "20M", (const char *const[]){CLIENT, "fuzz", "400", number, NULL}), 0);
    }
    check_all(folder, 0);
}

/* ---- Python, and the virtual NPU -------------------------------------------------------------- */

static void python_programs_are_recorded(void **state)
{
    static const char script[] = "import ctypes, fcntl, os, struct, subprocess\n"
                                 "fd = os.open('/dev/dri/renderD128', os.O_RDWR)\n"
                                 "new = fcntl.ioctl(fd, 0xc0106442, struct.pack('<QII', 4096, 0x20000, 0))\n"
                                 "handle = struct.unpack('<QII', new)[2]\n"
                                 "subprocess.run(['true'], check=True)\n"
                                 "info = fcntl.ioctl(fd, 0xc0106443, struct.pack('<IIQ', handle, 0, 0))\n"
                                 "libc = ctypes.CDLL(None)\n"
                                 "libc.mmap.restype = ctypes.POINTER(ctypes.c_ubyte)\n"
                                 "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,\n"
                                 "                      ctypes.c_int, ctypes.c_long]\n"
                                 "memory = libc.mmap(None, 4096, 3, 1, fd, struct.unpack('<IIQ', info)[2])\n"
                                 "memory[0] = 109\n"
                                 "bos = ctypes.create_string_buffer(struct.pack('<IIQ', 3, handle, 0x400000))\n"
                                 "words = ctypes.create_string_buffer(struct.pack('<II', 1, 2))\n"
                                 "call = struct.pack('<6I3QIiQII', 0, 0, 0, 1, 0, 8, ctypes.addressof(bos), 0,\n"
                                 "                   ctypes.addressof(words), 8, 0, 0, 0, 0)\n"
                                 "fence = struct.unpack('<I', fcntl.ioctl(fd, 0xc0486446, call)[:4])[0]\n"
                                 "fcntl.ioctl(fd, 0x40206447, struct.pack('<4Iqq', 0, fence, 0, 0, 0, 0))\n"
                                 "assert memory[0] == 109 ^ 0x5a\n";
    int status = run_with(FAKE, NULL, (const char *const[]){"python3", "-c", script, NULL});
    if (WEXITSTATUS(status) == 127)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(count_submits("."), 1);
    assert_outcome("submit_0000/submit.json", "waited");
}

static const struct mica_recorded_bo *bo_at(const struct mica_recorded_submit *submit, uint64_t address)
{
    for (size_t i = 0; i < submit->bo_count; i++)
        if (submit->bos[i].address == address)
            return &submit->bos[i];
    return NULL;
}

/* Zeros behind the end of either's file. */
static void assert_same_contents(const struct mica_recorded_bo *a, const struct mica_recorded_bo *b)
{
    size_t most = a->contents_size > b->contents_size ? a->contents_size : b->contents_size;
    for (size_t i = 0; i < most; i++)
        assert_int_equal(a->contents && i < a->contents_size ? a->contents[i] : 0,
                         b->contents && i < b->contents_size ? b->contents[i] : 0);
}

static void assert_same_capture(const char *original)
{
    char path[512];
    struct mica_recording one, other;
    path_of(path, sizeof path, ".");
    assert_int_equal(mica_recording_load(original, NULL, &one), 0);
    assert_int_equal(mica_recording_load(path, NULL, &other), 0);
    assert_string_equal(one.driver, other.driver);
    assert_string_equal(one.chip, other.chip);
    assert_int_equal(one.submit_count, other.submit_count);
    for (size_t i = 0; i < one.submit_count; i++) {
        const struct mica_recorded_submit *a = &one.submits[i], *b = &other.submits[i];
        assert_int_equal(a->words, b->words);
        assert_memory_equal(a->stream, b->stream, a->words * sizeof *a->stream);
        for (size_t k = 0; k < a->bo_count; k++) {
            const struct mica_recorded_bo *bo = bo_at(b, a->bos[k].address);
            assert_non_null(bo);
            assert_same_contents(&a->bos[k], bo);
        }
    }
    mica_recording_release(&one);
    mica_recording_release(&other);
}

/* The interceptor writes down what the captures say that was submitted, and what TFLite says comes out. */
static void check_original(const char *chip, const char *node)
{
    char original[512];
    snprintf(original, sizeof original, "%s/captures/conv_u8_i8_k1_ic16_oc16_s1_p1/%s", MICA_SHARED, chip);
    if (access(original, R_OK))
        skip();
    setenv("MICA_VNPU_CHIP", chip, 1);
    assert_int_equal(run_with(VNPU, NULL, (const char *const[]){VNPU_CLIENT, original, node, NULL}), 0);
    assert_same_capture(original);
}

static void captures_of_etnaviv_come_back_as_they_were(void **state)
{
    check_original("a311d", "/dev/dri/renderD128");
    assert_outcome("submit_0001/submit.json", "waited");
}

static void captures_of_rocket_come_back_as_they_were(void **state)
{
    check_original("rk3588", "/dev/accel/accel0");
    assert_outcome("submit_0000/submit.json", "waited");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(submissions_are_recorded_with_contents_before_and_after),
        TEST(unchanged_contents_are_those_of_an_earlier_file),
        TEST(what_nobody_waited_for_is_not_claimed_to_be_seen),
        TEST(refused_submissions_leave_the_sequence),
        TEST(a_crash_leaves_a_readable_capture),
        TEST(copies_of_a_descriptor_are_one_file),
        TEST(handles_that_end_are_not_mistaken),
        TEST(a_forked_child_writes_into_a_folder_of_its_own),
        TEST(a_vforked_child_changes_nothing),
        TEST(an_executed_program_writes_into_a_folder_of_its_own),
        TEST(threads_and_files_are_kept_apart),
        TEST(jobs_of_rocket_are_recorded),
        TEST(the_vendors_rknpu_is_recorded_through_both_nodes),
        TEST(aipu_jobs_are_recorded_through_the_programs_mappings),
        TEST(other_calls_are_recorded_byte_by_byte),
        TEST(displays_are_not_recorded),
        TEST(the_limit_ends_recording_and_nothing_else),
        TEST(nonsense_crashes_nothing),
        TEST(python_programs_are_recorded),
        TEST(captures_of_etnaviv_come_back_as_they_were),
        TEST(captures_of_rocket_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
