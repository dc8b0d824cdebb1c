/* SPDX-License-Identifier: MIT */
/* Jobs, differences and replays of the recorded models; and every allocation of it failing once. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>

#include "analysis/analysis.h"
#include "npu/vivante/hw/states.h"

#define CAPTURES MICA_SHARED_DIR "/captures"
#define SKIP 77

/* ---- allocations that fail -------------------------------------------------------- */

static size_t fail_at, allocations; /* fail_at 0: none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
    return ++allocations == fail_at;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* ---- one capture --------------------------------------------------------------------- */

struct loaded {
    struct mica_recording recording;
    struct mica_jobs jobs;
    const struct mica_chip *chip;
};

static int load(const char *path, struct mica_log *log, struct loaded *loaded)
{
    *loaded = (struct loaded){0};
    int error = mica_recording_load(path, log, &loaded->recording);
    if (!error)
        error = mica_analysis_find_chip(loaded->recording.chip, loaded->recording.driver, log, &loaded->chip);
    return error ? error : mica_jobs_load(&loaded->recording, loaded->chip, false, log, &loaded->jobs);
}

static void release(struct loaded *loaded)
{
    mica_jobs_release(&loaded->jobs);
    mica_recording_release(&loaded->recording);
}

static void need(const char *name, struct loaded *loaded)
{
    char path[FOLDER_PATH];
    struct mica_log log = {0};
    snprintf(path, sizeof path, "%s/%s", CAPTURES, name);
    if (load(path, &log, loaded))
        fail_msg("%s: %s", path, log.last_error);
}

static const struct mica_job_field *find(const struct mica_jobs *jobs, const char *unit, const char *path)
{
    for (size_t i = 0; i < jobs->job_count; i++)
        for (size_t k = 0; !strcmp(jobs->jobs[i].unit, unit) && k < jobs->jobs[i].count; k++)
            if (!strcmp(jobs->fields[jobs->jobs[i].first + k].path, path))
                return &jobs->fields[jobs->jobs[i].first + k];
    fail_msg("no %s of a job of %s", path, unit);
    return NULL;
}

/* ---- every capture --------------------------------------------------------------------- */

static void for_each(void (*check)(const char *name))
{
    static const char *const chips[] = {"a311d", "imx8mp", "s905d3", "rk3588"};
    struct dirent *entry;
    size_t count = 0;
    DIR *directory = opendir(CAPTURES);
    assert_non_null(directory);
    while ((entry = readdir(directory)))
        for (size_t i = 0; entry->d_name[0] != '.' && i < 4; i++) {
            char path[FOLDER_PATH], name[400];
            snprintf(name, sizeof name, "%s/%s", entry->d_name, chips[i]);
            snprintf(path, sizeof path, "%s/%s", CAPTURES, name);
            if (access(path, R_OK))
                continue;
            check(name);
            count++;
        }
    closedir(directory);
    assert_int_equal(count, 71);
}

static void check_known(const char *name)
{
    struct loaded loaded;
    need(name, &loaded);
    if (loaded.jobs.unknown || loaded.jobs.full || !loaded.jobs.job_count)
        fail_msg("%s: %zu unknown", name, loaded.jobs.unknown);
    release(&loaded);
}

static void nothing_is_unknown(void **state)
{
    for_each(check_known);
}

/* The same with every buffer elsewhere says the same: addresses are normalised. */
static void check_same(const char *name)
{
    struct loaded a, b;
    struct mica_diff diff;
    need(name, &a);
    need(name, &b);
    assert_int_equal(mica_diff_make(&a.jobs, &b.jobs, NULL, &diff), 0);
    assert_int_equal(diff.different, 0);
    assert_int_equal(diff.job_count, a.jobs.job_count);
    mica_diff_release(&diff);
    release(&a);
    release(&b);
}

static void a_capture_equals_itself(void **state)
{
    for_each(check_same);
}

static void one_parameter_shows_in_its_fields(void **state)
{
    struct loaded a, b;
    struct mica_diff diff;
    need("conv_u8_i8_k3_ic16_oc16_s1_p0/imx8mp", &a);
    need("conv_u8_i8_k3_ic16_oc16_s1_p1/imx8mp", &b);
    assert_int_equal(mica_diff_make(&a.jobs, &b.jobs, NULL, &diff), 0);
    bool size = false, kernel = false;
    for (size_t i = 0; i < diff.total_count; i++) {
        size |= !strcmp(diff.totals[i].path, "NN.OUT_IMAGE_X_SIZE");
        kernel |= !strcmp(diff.totals[i].path, "NN.KERNEL_X_SIZE");
    }
    assert_true(size && !kernel);
    mica_diff_release(&diff);
    release(&a);
    release(&b);
}

static void jobs_that_one_side_lacks_are_said(void **state)
{
    struct loaded a, b;
    struct mica_diff diff;
    size_t only_a = 0, only_b = 0;
    need("conv_u8_i8_k1_ic1_oc1_s1_p1/a311d", &a);
    need("add_8_1_32_32_1_1_0_0_4/a311d", &b);
    assert_int_equal(mica_diff_make(&a.jobs, &b.jobs, NULL, &diff), 0);
    for (size_t i = 0; i < diff.job_count; i++) {
        only_a += !diff.jobs[i].b;
        only_b += !diff.jobs[i].a;
        assert_true(!diff.jobs[i].a || !diff.jobs[i].b || !strcmp(diff.jobs[i].a->unit, diff.jobs[i].b->unit));
    }
    assert_int_equal(b.jobs.job_count - only_b, a.jobs.job_count - only_a);
    assert_true(only_b > 0);
    mica_diff_release(&diff);
    release(&a);
    release(&b);
}

static void addresses_are_buffers_and_offsets(void **state)
{
    struct loaded loaded;
    char text[64];
    need("conv_u8_i8_k3_ic16_oc16_s1_p0/a311d", &loaded);
    const struct mica_job_field *kernel = find(&loaded.jobs, "NN", "NN.KERNEL_ADDRESS");
    mica_job_field_print(kernel, text, sizeof text);
    assert_string_equal(text, "buffer 5 + 0x0");
    assert_int_equal(find(&loaded.jobs, "NN", "NN.KERNEL_X_SIZE")->value, 3);
    release(&loaded);
    need("conv_u8_i8_k3_ic16_oc16_s1_p0/rk3588", &loaded);
    assert_true(find(&loaded.jobs, "task", "DPU.DST_BASE_ADDR.DST_BASE_ADDR")->is_address);
    assert_int_equal(find(&loaded.jobs, "task", "CNA.WEIGHT_SIZE2.WEIGHT_WIDTH")->value, 3);
    release(&loaded);
}

/* Replays: what the captures' README says of each; streams that are wrong as submitted are so here too. */
static void check_replay(const char *name)
{
    struct mica_log log = {0};
    struct loaded loaded;
    struct mica_replay replay;
    need(name, &loaded);
    const struct mica_replay_options options = {.chip = loaded.chip, .read_v7 = strstr(name, "s905d3") != NULL};
    bool rocket = strstr(name, "rk3588"), v8 = strstr(name, "imx8mp");
    bool wrong = !v8 && (strstr(name, "_s8_") || !strncmp(name, "add", 3) || !strncmp(name, "fc", 2));
    int error = mica_replay_run(&loaded.recording, &options, &log, &replay);
    if (!strncmp(name, "fc", 2) && !v8) {
        assert_int_equal(error, -EFAULT); /* its weights are output offsets (specification, section 11) */
    } else {
        assert_int_equal(error, 0);
        assert_int_equal(replay.comparison_count, 1);
        assert_null(replay.comparisons[0].absent);
        assert_int_equal(replay.different && replay.comparisons[0].largest > (rocket || v8 ? 1 : 0), wrong);
        assert_true(replay.job_count > 0);
    }
    mica_replay_release(&replay);
    release(&loaded);
}

static void replays_are_as_recorded(void **state)
{
    for_each(check_replay);
}

/* ---- raw bytes ---------------------------------------------------------------------------- */

static void shapes_are_parsed(void **state)
{
    struct mica_coefficient_shape shape;
    struct mica_log log = {0};
    assert_int_equal(
        mica_coefficient_shape_parse("3x5,in=16,out=32,per-core=4,zero=128,plane=64,depthwise", &log, &shape), 0);
    assert_true(shape.kernel_w == 3 && shape.kernel_h == 5 && shape.channels == 16 && shape.kernels == 32);
    assert_true(shape.kernels_per_core == 4 && shape.zero_point == 128 && shape.plane == 64 && shape.depthwise);
    static const char *const bad[] = {
        "", "3", "3x", "x3", "in=3", "3x3,zero=256", "3x3,fish=1", "3x3,in=", "3x3,in=99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(mica_coefficient_shape_parse(bad[i], &log, &shape), -EINVAL);
}

/* A stream whose every word starts the same job: bounded, and said. */
static void a_bomb_is_bounded(void **state)
{
    char folder[FOLDER_PATH];
    uint32_t *words = malloc(1 << 22);
    struct mica_log log = {0};
    struct loaded loaded;
    assert_non_null(words);
    folder_make(folder);
    for (size_t i = 0; i < 1 << 20; i += 2) {
        words[i] = VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR);
        words[i + 1] = 0x10000;
    }
    folder_write(folder, "submit_0000/stream.bin", words, 1 << 22);
    free(words);
    folder_text(folder, "submit_0000/submit.json",
                "{\"driver\":\"etnaviv\",\"chip\":\"a311d\",\"stream\":{\"file\":\"stream.bin\"},"
                "\"bos\":[{\"handle\":1,\"access\":\"rw\",\"size\":4096,\"va\":\"0x10000\"}]}");
    assert_int_equal(load(folder, &log, &loaded), 0);
    assert_true(loaded.jobs.full);
    release(&loaded);
    folder_remove(folder);
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

static void fields_follow_their_parameter(void **state)
{
    static const char *const names[] = {"conv_u8_i8_k1_ic16_oc16_s1_p1/a311d", "conv_u8_i8_k3_ic16_oc16_s1_p1/a311d"};
    struct mica_sweep sweep = {0};
    struct mica_log log = {0};
    char *text = NULL;
    size_t size;
    assert_int_equal(mica_sweep_add_axis(&sweep, "kernel", &log), -EINVAL);
    assert_int_equal(mica_sweep_add_axis(&sweep, "kernel=1,3", &log), 0);
    for (size_t i = 0; i < 2; i++) {
        struct loaded loaded;
        need(names[i], &loaded);
        assert_int_equal(mica_sweep_add(&sweep, i, &loaded.jobs, &log), 0);
        release(&loaded);
    }
    mica_sweep_analyse(&sweep);
    bool found = false;
    for (size_t i = 0; i < sweep.column_count; i++)
        if (!strcmp(sweep.columns[i].name, "NN 0: NN.KERNEL_Y_SIZE")) {
            found = sweep.columns[i].varies && sweep.columns[i].follows == 1 && sweep.columns[i].cells[1].number == 3;
            assert_string_equal(sweep.columns[i].rule, ""); /* two points make no rule */
        }
    assert_true(found);
    FILE *stream = open_memstream(&text, &size);
    mica_sweep_write_csv(&sweep, stream);
    mica_sweep_write_svg(&sweep, stream);
    fclose(stream);
    assert_memory_equal(text, "kernel,", 7);
    assert_non_null(strstr(text, "</svg>"));
    free(text);
    mica_sweep_release(&sweep);
}

static void grids_are_bounded(void **state)
{
    struct mica_sweep sweep = {0};
    struct mica_log log = {0};
    assert_int_equal(mica_sweep_add_axis(&sweep, "a=1,2,3", &log), 0);
    assert_int_equal(mica_sweep_add_axis(&sweep, "b=x,y", &log), 0);
    assert_int_equal(sweep.point_count, 6);
    assert_string_equal(mica_sweep_value(&sweep, 0, 3), "2");
    assert_string_equal(mica_sweep_value(&sweep, 1, 3), "y");
    assert_int_equal(mica_sweep_add_axis(&sweep, "c=1,,2", &log), -EINVAL);
    mica_sweep_release(&sweep);
    int error = 0;
    for (char name[] = "a=1,2,3,4,5,6,7,8,9"; !error; name[0]++)
        error = mica_sweep_add_axis(&sweep, name, &log);
    assert_int_equal(error, -EINVAL);
    mica_sweep_release(&sweep);
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* Everything once over. */
static int use_all(const char *path)
{
    struct mica_log log = {0};
    struct loaded a, b = {0};
    struct mica_diff diff = {0};
    struct mica_replay replay = {0};
    struct mica_sweep sweep = {0};
    uint8_t *model = NULL;
    size_t size;
    int error = load(path, &log, &a);
    b.recording.folder.fd = -1;
    if (!error)
        error = load(path, &log, &b);
    if (!error)
        error = mica_diff_make(&a.jobs, &b.jobs, &log, &diff);
    if (!error)
        error = mica_replay_run(&a.recording, &(struct mica_replay_options){.chip = a.chip}, &log, &replay);
    if (!error)
        error = mica_sweep_add_axis(&sweep, "a=1", &log);
    if (!error)
        error = mica_sweep_add(&sweep, 0, &a.jobs, &log);
    if (!error)
        error = mica_model_write(
            &(struct mica_model_shape){.height = 8, .width = 8, .kernel = 3, .stride = 1, .in = 8, .out = 8}, &log,
            &model, &size);
    assert_true(!error || log.last_error[0]);
    free(model);
    mica_sweep_release(&sweep);
    mica_replay_release(&replay);
    mica_diff_release(&diff);
    release(&b);
    release(&a);
    return error;
}

static void memory_runs_out(void **state)
{
    const char *path = CAPTURES "/conv_u8_i8_k1_ic1_oc1_s1_p1/rk3588";
    fail_at = allocations = 0;
    assert_int_equal(use_all(path), 0);
    size_t count = allocations;
    for (size_t i = 1; i <= count; i++) {
        allocations = 0;
        fail_at = i;
        int error = use_all(path);
        fail_at = 0;
        if (error != -ENOMEM)
            fail_msg("allocation %zu of %zu: %d", i, count, error);
    }
    print_message("%zu allocations\n", count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_parsed),
        cmocka_unit_test(grids_are_bounded),
        cmocka_unit_test(a_bomb_is_bounded),
        cmocka_unit_test(nothing_is_unknown),
        cmocka_unit_test(a_capture_equals_itself),
        cmocka_unit_test(one_parameter_shows_in_its_fields),
        cmocka_unit_test(jobs_that_one_side_lacks_are_said),
        cmocka_unit_test(addresses_are_buffers_and_offsets),
        cmocka_unit_test(replays_are_as_recorded),
        cmocka_unit_test(fields_follow_their_parameter),
        cmocka_unit_test(memory_runs_out),
    };
    if (access(CAPTURES, R_OK))
        return SKIP;
    return cmocka_run_group_tests_name("analysis", tests, NULL, NULL);
}
