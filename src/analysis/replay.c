/* SPDX-License-Identifier: MIT */
#include "analysis/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/sim/sim.h"
#include "npu/vivante/hw/states.h"
#include "npu/vivante/sim/sim.h"
#include "util/checked.h"

#define MOST_REPORTS 65536u /* of one kernel job */

struct player {
    const struct mica_recording *recording;
    const struct mica_replay_options *options;
    struct mica_log *log;
    struct mica_replay *out;
    struct mica_device_memory memory;
    void *sim;
    struct mica_job_report *reports;
};

/* ---- running -------------------------------------------------------------------------- */

static bool starts(const uint32_t *stream, size_t i, uint32_t state)
{
    return stream[i] == VIV_LOAD_STATE(state);
}

/* Which unit the next job of a stream runs on; *position moves behind its start. */
static const char *next_unit(bool rocket, const uint32_t *stream, size_t words, size_t *position)
{
    if (rocket)
        return "task";
    for (; *position + 1 < words; *position += 2) {
        bool nn = starts(stream, *position, VIV_PS_NN_INST_ADDR);
        if (!nn && !starts(stream, *position, VIV_PS_TP_INST_ADDR))
            continue;
        *position += 2;
        return nn ? "NN" : "TP";
    }
    return "";
}

static int keep_reports(struct player *player, size_t submit, const uint32_t *stream, size_t words, size_t count)
{
    struct mica_replay *out = player->out;
    bool rocket = mica_recording_is_rocket(player->recording);
    size_t position = 0;
    if (out->job_count + count > out->job_capacity) {
        size_t capacity = 2 * (out->job_count + count);
        struct mica_replayed_job *grown = realloc(out->jobs, capacity * sizeof *grown);
        if (!grown)
            return mica_fail_nomem(player->log);
        out->jobs = grown;
        out->job_capacity = capacity;
    }
    for (size_t i = 0; i < count; i++)
        out->jobs[out->job_count++] = (struct mica_replayed_job){
            .submit = submit,
            .unit = next_unit(rocket, stream, words, &position),
            .report = player->reports[i],
        };
    return 0;
}

static int run_job(struct player *player, size_t submit, size_t job)
{
    size_t words, count = 0;
    const uint32_t *stream = mica_recording_job(&player->recording->submits[submit], job, &words);
    const struct mica_npu_family *family = player->options->chip->family;
    int error = family->sim_run(player->sim, stream, words, player->reports, MOST_REPORTS, &count);
    return error ? error : keep_reports(player, submit, stream, words, count < MOST_REPORTS ? count : MOST_REPORTS);
}

/* ---- comparing --------------------------------------------------------------------------- */

static struct mica_replay_comparison *new_comparison(struct player *player)
{
    struct mica_replay *out = player->out;
    struct mica_replay_comparison *grown = realloc(out->comparisons, (out->comparison_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    out->comparisons = grown;
    grown[out->comparison_count] = (struct mica_replay_comparison){0};
    return &grown[out->comparison_count++];
}

static void count_difference(struct mica_replay_comparison *comparison, size_t index, int ours, int recorded)
{
    int difference = ours - recorded;
    comparison->histogram[difference + 255]++;
    if (!difference)
        return;
    if (!comparison->different++)
        comparison->first = index;
    if ((unsigned)abs(difference) > comparison->largest)
        comparison->largest = (unsigned)abs(difference);
}

/* Bytes past the file's end are zeros. Addresses and tables have no sign: bytes are as they are. */
static int compare_buffer(struct player *player, size_t submit, const struct mica_recorded_bo *bo)
{
    struct mica_replay_comparison *comparison = new_comparison(player);
    if (!comparison)
        return mica_fail_nomem(player->log);
    comparison->what = MICA_REPLAY_BUFFER;
    comparison->index = bo->handle;
    comparison->submit = player->recording->first_submit + submit;
    comparison->address = bo->address;
    comparison->bytes = bo->after_size;
    for (size_t i = 0; i < bo->after_size; i++)
        count_difference(comparison, i, player->memory.base[bo->address + i], bo->after[i]);
    player->out->different |= comparison->different != 0;
    return 0;
}

/* The submission whose end the recorded contents show: of those begun by then, the last. */
static size_t seen_after(const struct mica_recording *recording, size_t submit)
{
    uint64_t seen = recording->submits[submit].after_ns;
    size_t last = submit;
    while (seen && last + 1 < recording->submit_count && recording->submits[last + 1].start_ns &&
           recording->submits[last + 1].start_ns < seen)
        last++;
    return last;
}

/* A buffer that a later submission of the same look has too is compared there. */
static bool compared_later(const struct mica_recording *recording, size_t submit, size_t last,
                           const struct mica_recorded_bo *bo)
{
    for (size_t i = submit + 1; i <= last; i++)
        for (size_t k = 0; k < recording->submits[i].bo_count; k++) {
            const struct mica_recorded_bo *other = &recording->submits[i].bos[k];
            if (other->address < bo->address + bo->size && bo->address < other->address + other->size)
                return true;
        }
    return false;
}

static int compare_buffers(struct player *player, size_t submit)
{
    const struct mica_recorded_submit *recorded = &player->recording->submits[submit];
    size_t last = seen_after(player->recording, submit);
    int error = 0;
    for (size_t i = 0; !error && i < recorded->bo_count; i++) {
        const struct mica_recorded_bo *bo = &recorded->bos[i];
        if (bo->after && bo->access & MICA_ACCESS_WRITE && !compared_later(player->recording, submit, last, bo))
            error = compare_buffer(player, submit, bo);
    }
    return error;
}

static const uint8_t *find_output(struct player *player, const struct mica_recorded_output *output,
                                  struct mica_replay_comparison *comparison)
{
    uint64_t fault;
    uint32_t address = 0;
    if (output->not_comparable) {
        comparison->absent = "not comparable: the model's output is not made by the device";
        return NULL;
    }
    if (!mica_recording_locate(player->recording, output, &player->memory, &address)) {
        comparison->absent = output->index ? "where the device has it isn't recorded" : "no job writes it";
        comparison->failed = !output->index;
        return NULL;
    }
    comparison->address = address;
    const uint8_t *bytes =
        mica_device_at(&player->memory, address, mica_recorded_extent(output), MICA_ACCESS_WRITE, &fault);
    if (!bytes) {
        comparison->absent = "it isn't in a buffer that the last submission writes";
        comparison->failed = true;
    }
    return bytes;
}

static int compare_output(struct player *player, const struct mica_recorded_output *output)
{
    struct mica_replay_comparison *comparison = new_comparison(player);
    if (!comparison)
        return mica_fail_nomem(player->log);
    comparison->what = MICA_REPLAY_OUTPUT;
    comparison->index = output->index;
    const uint8_t *bytes = find_output(player, output, comparison);
    /* Where bytes are signed, they are made as large as they are meant. */
    int flip = output->flipped ? 0x80 : 0, sign = mica_recording_is_rocket(player->recording) ? 0x80 : 0;
    for (size_t i = 0; bytes && i < output->size; i++)
        count_difference(comparison, i, bytes[mica_recorded_offset(output, i)] ^ sign,
                         output->expected[i] ^ flip ^ sign);
    comparison->bytes = bytes ? output->size : 0;
    player->out->different |= comparison->different != 0;
    player->out->failed |= comparison->failed;
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int run_submit(struct player *player, size_t submit)
{
    const struct mica_replay_options *options = player->options;
    size_t count = player->recording->submit_count;
    if (options->progress && !options->progress(options->user, submit, count))
        return mica_fail(player->log, -ECANCELED, "the replay was interrupted");
    int error = mica_recording_map(player->recording, submit, &player->memory);
    for (size_t i = 0; !error && i < player->recording->submits[submit].job_count; i++)
        error = run_job(player, submit, i);
    return error ? error : compare_buffers(player, submit);
}

static int open_sim(struct player *player)
{
    const struct mica_replay_options *options = player->options;
    const struct mica_npu_family *family = options->chip->family;
    bool vivante = family == &mica_vivante;
    int error = family->sim_create(options->chip, &player->memory, options->threads, player->log, &player->sim);
    if (error)
        return error;
    if (options->read_v7 && vivante)
        viv_sim_read_v7(player->sim);
    if (options->cycle_limit)
        (vivante ? viv_sim_set_cycle_limit : rk_sim_set_cycle_limit)(player->sim, options->cycle_limit);
    return 0;
}

int mica_replay_run(const struct mica_recording *recording, const struct mica_replay_options *options,
                    struct mica_log *log, struct mica_replay *replay)
{
    struct player player = {.recording = recording, .options = options, .log = log, .out = replay};
    *replay = (struct mica_replay){0};
    player.reports = mica_new_array(MOST_REPORTS, sizeof *player.reports);
    if (!player.reports || mica_device_memory_create(&player.memory)) {
        free(player.reports);
        return mica_fail_nomem(log);
    }
    int error = open_sim(&player);
    for (size_t i = 0; !error && i < recording->submit_count; i++)
        error = run_submit(&player, i);
    for (size_t i = 0; !error && i < recording->output_count; i++)
        error = compare_output(&player, &recording->outputs[i]);
    options->chip->family->sim_destroy(player.sim);
    mica_device_memory_destroy(&player.memory);
    free(player.reports);
    return error;
}

void mica_replay_release(struct mica_replay *replay)
{
    free(replay->jobs);
    free(replay->comparisons);
    *replay = (struct mica_replay){0};
}
