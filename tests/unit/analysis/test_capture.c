/* SPDX-License-Identifier: MIT */
/* The reader of captures takes what the format says and refuses what a stranger may put into a folder. */
#include "folder.h"

#include <errno.h>

#include "analysis/analysis.h"
#include "npu/program.h"

#define STREAM "\"driver\":\"etnaviv\",\"chip\":\"a311d\",\"stream\":{\"file\":\"stream.bin\",\"words\":4}"
#define BO "\"handle\":1,\"access\":\"rw\",\"size\":4096,\"va\":\"0x10000\""

static char folder[FOLDER_PATH];

static int setup(void **state)
{
    folder_make(folder);
    folder_write(folder, "submit_0000/stream.bin", (const uint32_t[4]){0}, 16);
    return 0;
}

static int teardown(void **state)
{
    folder_remove(folder);
    return 0;
}

/* Loads the folder with this submission; what is refused must say `why`. */
static void expect(const char *json, int result, const char *why)
{
    struct mica_log log = {0};
    struct mica_recording recording;
    folder_text(folder, "submit_0000/submit.json", json);
    int got = mica_recording_load(folder, &log, &recording);
    if (got != result || (why && !strstr(log.last_error, why)))
        fail_msg("%d \"%s\" for %s", got, log.last_error, json);
    mica_recording_release(&recording);
}

static void what_is_right_is_read(void **state)
{
    struct mica_log log = {0};
    struct mica_recording recording;
    folder_text(folder, "submit_0000/bo_1.bin", "abcd");
    folder_text(folder, "submit_0000/submit.json",
                "{" STREAM ",\"version\":9,\"unheard-of\":[{}],\"bos\":[{" BO ",\"file\":\"bo_1.bin\",\"more\":1}]}");
    assert_int_equal(mica_recording_load(folder, &log, &recording), 0);
    assert_string_equal(recording.chip, "a311d");
    assert_int_equal(recording.submit_count, 1);
    assert_int_equal(recording.submits[0].words, 4);
    assert_int_equal(recording.submits[0].bos[0].contents_size, 4);
    assert_int_equal(recording.submits[0].bos[0].access, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    mica_recording_release(&recording);
    char one[FOLDER_PATH + 16];
    snprintf(one, sizeof one, "%s/submit_0000/", folder);
    assert_int_equal(mica_recording_load(one, &log, &recording), 0);
    assert_int_equal(recording.submit_count, 1);
    mica_recording_release(&recording);
}

static void files_outside_are_refused(void **state)
{
    char link[FOLDER_PATH + 32];
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"/etc/hostname\"}]}", -EINVAL, "isn't in the capture's folder");
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"../../x\"}]}", -EINVAL, "isn't in the capture's folder");
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"../submit_0000/../../x\"}]}", -EINVAL, "isn't in the capture's");
    snprintf(link, sizeof link, "%s/submit_0000/link", folder);
    assert_int_equal(symlink("/etc/hostname", link), 0);
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"link\"}]}", -ELOOP, "link");
    snprintf(link, sizeof link, "%s/out", folder);
    assert_int_equal(symlink("/etc", link), 0);
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"../out/hostname\"}]}", -ENOTDIR, "out/hostname");
    snprintf(link, sizeof link, "%s/submit_0000/pipe", folder);
    assert_int_equal(mkfifo(link, 0666), 0);
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"pipe\"}]}", -EINVAL, "no regular file");
}

static void sizes_that_dont_fit_are_refused(void **state)
{
    char path[FOLDER_PATH + 32];
    folder_text(folder, "submit_0000/bo_1.bin", "abcd");
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"bo_1.bin\",\"nonzero_end\":5}]}", -EINVAL, "truncated");
    expect("{\"driver\":\"etnaviv\",\"chip\":\"a311d\",\"stream\":{\"file\":\"stream.bin\",\"words\":5}}", -EINVAL,
           "truncated");
    snprintf(path, sizeof path, "%s/submit_0000/bo_1.bin", folder);
    assert_int_equal(truncate(path, 4097), 0);
    expect("{" STREAM ",\"bos\":[{" BO ",\"file\":\"bo_1.bin\"}]}", -EFBIG, "4097");
    assert_int_equal(truncate(path, 3ll << 30), 0);
    expect("{" STREAM ",\"bos\":[{\"access\":\"r\",\"size\":4000000000,\"va\":0,\"file\":\"bo_1.bin\"}]}", -EFBIG,
           "1 GiB");
    snprintf(path, sizeof path, "%s/submit_0000/stream.bin", folder);
    assert_int_equal(truncate(path, 1 << 25), 0);
    expect("{" STREAM "}", -EFBIG, "stream.bin");
}

static void addresses_that_are_none_are_refused(void **state)
{
    expect("{" STREAM ",\"bos\":[{\"size\":1}]}", -EINVAL, "'va'");
    expect("{" STREAM ",\"bos\":[{\"size\":1,\"va\":\"zero\"}]}", -EINVAL, "'va'");
    expect("{" STREAM ",\"bos\":[{\"size\":1,\"va\":\"0x10001\"}]}", -EINVAL, "page aligned");
    expect("{" STREAM ",\"bos\":[{\"size\":4097,\"va\":\"0xfffff000\"}]}", -EINVAL, "4 GiB");
    expect("{" STREAM ",\"bos\":[{\"size\":9223372036854775807,\"va\":\"0x1000\"}]}", -EINVAL, "4 GiB");
    expect("{" STREAM ",\"relocs\":[{}]}", -EINVAL, "relocations");
    expect("{\"driver\":\"rocket\",\"jobs\":[{\"tasks\":[{\"regcmd\":\"0x100000000\"}]}]}", -EINVAL, "regcmd");
    expect("{\"driver\":\"rocket\",\"jobs\":[{\"tasks\":[{\"regcmd\":1,\"regcmd_count\":5000000000}]}]}", -EINVAL,
           "regcmd");
}

static void what_is_no_capture_is_said(void **state)
{
    struct mica_log log = {0};
    struct mica_recording recording;
    expect("", -EINVAL, "no JSON object");
    expect("[]", -EINVAL, "no JSON object");
    expect("{\"driver\":\"teapot\"}", -EINVAL, "etnaviv and rocket");
    expect("{\"driver\":\"etnaviv\"}", -EINVAL, "no stream");
    assert_int_equal(mica_recording_load("/nowhere", &log, &recording), -ENOENT);
    mica_recording_release(&recording);
    assert_int_equal(mica_recording_load("/proc/self/fd", &log, &recording), -ENOENT);
    assert_non_null(strstr(log.last_error, "submit_0000"));
    mica_recording_release(&recording);
    folder_text(folder, "submit_0001/submit.json", "{\"driver\":\"rocket\",\"chip\":\"rk3588\"}");
    expect("{" STREAM "}", -EINVAL, "another driver");
}

static void nesting_is_bounded(void **state)
{
    char *text = malloc(1 << 20);
    assert_non_null(text);
    memset(text, '[', 1 << 20);
    folder_write(folder, "submit_0000/submit.json", text, 1 << 20);
    free(text);
    struct mica_recording recording;
    assert_int_equal(mica_recording_load(folder, NULL, &recording), -EINVAL);
    mica_recording_release(&recording);
}

static void layouts_are_checked(void **state)
{
    static const char *const bad[] = {
        "\"va\":\"0x10000\",\"layout\":{\"block\":16,\"channels\":0,\"surface\":16}",
        "\"va\":\"0x10000\",\"layout\":{\"block\":16,\"channels\":3,\"surface\":16}",
        "\"va\":\"0x10000\",\"layout\":{\"block\":1,\"channels\":4,\"surface\":4611686018427387904}",
        "\"va\":\"0x10000\",\"layout\":{\"block\":99999999,\"channels\":4,\"surface\":16}",
    };
    folder_text(folder, "cpu_0.bin", "abcd");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char run[512];
        snprintf(run, sizeof run, "{\"tensors\":[{\"kind\":\"output\",\"index\":0,%s}]}", bad[i]);
        folder_text(folder, "run.json", run);
        expect("{" STREAM "}", -EINVAL, "layout of output 0");
    }
    folder_text(folder, "run.json", "{\"tensors\":[{\"kind\":\"output\",\"index\":0,\"va\":\"0x10000\"}]}");
    expect("{" STREAM "}", 0, NULL);
}

/* What the device wrote stays, but for what the host changed since. */
static void memory_follows_the_record(void **state)
{
    struct mica_device_memory memory;
    struct mica_recording recording;
    const uint8_t *host;
    folder_text(folder, "submit_0000/bo_1.bin", "aaaa");
    folder_text(folder, "submit_0000/after.bin", "abba");
    folder_text(folder, "submit_0000/submit.json",
                "{" STREAM ",\"bos\":[{" BO ",\"file\":\"bo_1.bin\",\"file_after\":\"after.bin\"}]}");
    folder_write(folder, "submit_0001/stream.bin", (const uint32_t[4]){0}, 16);
    folder_text(folder, "submit_0001/bo_1.bin", "abbz");
    folder_text(folder, "submit_0001/submit.json", "{" STREAM ",\"bos\":[{" BO ",\"file\":\"bo_1.bin\"}]}");
    assert_int_equal(mica_recording_load(folder, NULL, &recording), 0);
    assert_int_equal(mica_device_memory_create(&memory), 0);
    host = memory.base + 0x10000;
    assert_int_equal(mica_recording_map(&recording, 0, &memory), 0);
    assert_memory_equal(host, "aaaa", 4);
    memcpy(memory.base + 0x10000, "accd", 4); /* another answer than the recorded */
    assert_int_equal(recording.submits[1].bos[0].state, MICA_RECORDED_MERGED);
    assert_int_equal(mica_recording_map(&recording, 1, &memory), 0);
    assert_memory_equal(host, "accz", 4);
    mica_device_memory_destroy(&memory);
    mica_recording_release(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_right_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(files_outside_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_that_dont_fit_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(addresses_that_are_none_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_capture_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(layouts_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_follows_the_record, setup, teardown),
    };
    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
