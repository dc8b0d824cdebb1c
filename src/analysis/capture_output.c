/* SPDX-License-Identifier: MIT */
/* What the CPU makes of a captured model, and where the device has it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/capture.h"
#include "npu/program.h"
#include "npu/rockchip/hw/registers.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/hw/states.h"
#include "util/checked.h"

#define MOST_OUTPUTS 256u
#define MOST_WORDS 65536u /* of a register program that are looked at */
#define MOST_OUTPUT_BYTES ((uint64_t)256 << 20)

/* ---- run.json and cpu_N.bin ------------------------------------------------------- */

/* Mainline's user of rocket has everything in cubes of 16 channels without gaps. */
static bool mainline_layout(const json_t *shape, struct mica_recorded_layout *layout)
{
    size_t pixels = 16, channels = 1, rank = json_array_size(shape);
    for (size_t i = 0; i < rank; i++) {
        json_int_t dim = json_integer_value(json_array_get(shape, i));
        if (dim <= 0)
            return false;
        if (i + 1 == rank)
            channels = (size_t)dim;
        else if (!mica_mul_size(pixels, (size_t)dim, &pixels))
            return false;
    }
    *layout = (struct mica_recorded_layout){16, channels, pixels};
    return true;
}

static bool read_layout(const json_t *json, struct mica_recorded_layout *layout)
{
    *layout = (struct mica_recorded_layout){mica_json_number(json, "block"), mica_json_number(json, "channels"),
                                            mica_json_number(json, "surface")};
    return layout->block <= MICA_DEVICE_PAGE;
}

/* Do the bytes that it takes on the device fit into its memory? */
static bool layout_valid(const struct mica_recorded_output *output)
{
    const struct mica_recorded_layout *layout = &output->layout;
    if (!layout->block)
        return true;
    if (!layout->channels || output->size % layout->channels || layout->surface > MICA_DEVICE_SPACE)
        return false;
    size_t pixels = output->size / layout->channels, surfaces = layout->channels / layout->block, most;
    return mica_mul_size(surfaces, layout->surface, &most) && most <= MICA_DEVICE_SPACE &&
           pixels <= MICA_DEVICE_SPACE / layout->block;
}

static bool describe(const struct mica_recording *recording, const json_t *run, const json_t *tensor,
                     struct mica_recorded_output *output)
{
    bool rocket = mica_recording_is_rocket(recording);
    uint64_t address;
    output->flipped = !strcmp(mica_json_text(tensor, "type"), rocket ? "UINT8" : "INT8");
    output->known = mica_json_address(tensor, "va", &address);
    output->not_comparable = !output->known && !strncmp(mica_json_text(run, "delegate"), "Mica ", 5);
    if (!output->known)
        return !rocket || mainline_layout(json_object_get(tensor, "shape"), &output->layout);
    output->address = (uint32_t)(address + mica_json_number(tensor, "offset"));
    output->flipped = json_is_true(json_object_get(tensor, "flip_sign"));
    return read_layout(json_object_get(tensor, "layout"), &output->layout);
}

static int read_output(struct mica_recording *recording, const json_t *run, const json_t *tensor)
{
    char name[32];
    const struct mica_folder_file *file;
    uint64_t index = mica_json_number(tensor, "index");
    if (index >= MOST_OUTPUTS || recording->output_count >= MOST_OUTPUTS)
        return 0;
    snprintf(name, sizeof name, "cpu_%u.bin", (unsigned)index);
    if (!mica_folder_has(&recording->folder, "", name))
        return 0;
    int error = mica_folder_read(&recording->folder, "", name, MOST_OUTPUT_BYTES, &file);
    if (error)
        return error;
    struct mica_recorded_output *output = &recording->outputs[recording->output_count++];
    *output = (struct mica_recorded_output){.index = (uint32_t)index, .expected = file->data, .size = file->size};
    if (describe(recording, run, tensor, output) && layout_valid(output))
        return 0;
    return mica_fail(recording->folder.log, -EINVAL, "%s/run.json: the layout of output %u doesn't go with its size",
                     recording->folder.path, (unsigned)index);
}

int mica_recording_read_outputs(struct mica_recording *recording)
{
    size_t i;
    json_t *tensor;
    int error = 0;
    recording->outputs = mica_new_array(MOST_OUTPUTS, sizeof *recording->outputs);
    if (!recording->outputs)
        return mica_fail_nomem(recording->folder.log);
    if (!mica_folder_has(&recording->folder, "", "cpu_0.bin"))
        return 0;
    json_t *run = mica_recording_json(recording, "", "run.json", &error);
    json_array_foreach(json_object_get(run, "tensors"), i, tensor)
    {
        if (!error && !strcmp(mica_json_text(tensor, "kind"), "output"))
            error = read_output(recording, run, tensor);
    }
    json_decref(run);
    return error;
}

size_t mica_recorded_offset(const struct mica_recorded_output *output, size_t index)
{
    const struct mica_recorded_layout *layout = &output->layout;
    if (!layout->block)
        return index;
    size_t channel = index % layout->channels, pixel = index / layout->channels;
    return channel / layout->block * layout->surface + pixel * layout->block + channel % layout->block;
}

size_t mica_recorded_extent(const struct mica_recorded_output *output)
{
    size_t last = 0;
    for (size_t i = 0; output->layout.block && output->size && i < output->layout.channels; i++) {
        size_t offset = mica_recorded_offset(output, output->size - 1 - i);
        last = offset > last ? offset : last;
    }
    return output->layout.block ? last + (output->size > 0) : output->size;
}

/* ---- where the last job writes ------------------------------------------------------ */

static bool job_output(const struct mica_device_memory *memory, bool nn, uint32_t descriptor, uint32_t *address)
{
    uint32_t words[VIV_TP_WORDS];
    uint64_t fault;
    const void *host = mica_device_at(memory, descriptor, sizeof words, MICA_ACCESS_READ, &fault);
    if (!host)
        return false;
    memcpy(words, host, sizeof words);
    *address = nn ? viv_nn_get(words, VIV_NN_OUT_IMAGE_ADDRESS) : viv_tp_get(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS);
    return true;
}

/* One operation is split into several jobs. */
static bool last_jobs_output(const struct mica_recorded_submit *submit, const struct mica_device_memory *memory,
                             uint32_t *address)
{
    bool found = false, found_nn = false;
    for (size_t i = submit->words & ~(size_t)1; i >= 2; i -= 2) {
        bool nn = submit->stream[i - 2] == VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR);
        if (!nn && submit->stream[i - 2] != VIV_LOAD_STATE(VIV_PS_TP_INST_ADDR))
            continue;
        uint32_t output;
        if (found && (nn || nn != found_nn))
            break;
        if (!job_output(memory, nn, submit->stream[i - 1] & ~63u, &output))
            return false;
        *address = found && *address < output ? *address : output;
        found = true;
        found_nn = nn;
    }
    return found;
}

/* Where a register program has DPU write, false when it doesn't say. */
static bool destination(const struct mica_recording *recording, const struct mica_device_memory *memory,
                        const uint32_t *task, uint32_t *address)
{
    uint64_t fault, bytes = (uint64_t)(task[1] < MOST_WORDS ? task[1] : MOST_WORDS) * sizeof(uint64_t);
    const uint8_t *program = mica_device_at(memory, task[0], bytes, MICA_ACCESS_READ, &fault);
    const struct rk_field *field = &rk_fields[RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR];
    enum rk_generation generation = strncmp(recording->chip, "rk356", 5) ? RK_GENERATION_RK3588 : RK_GENERATION_RK356X;
    bool found = false;
    for (uint64_t at = 0; program && at < bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, program + at, sizeof word);
        if (rk_word_target(word) != rk_blocks[RK_DPU].target || rk_word_offset(word) != field->at[generation].offset)
            continue;
        *address = rk_word_value(word);
        found = true;
    }
    return found;
}

/* A layer may be several tasks, one a stripe of rows: the lowest address is its first row. */
static bool last_tasks_output(const struct mica_recording *recording, const struct mica_recorded_submit *submit,
                              const struct mica_device_memory *memory, uint32_t *address)
{
    size_t words;
    bool found = false;
    if (!submit->job_count)
        return false;
    const uint32_t *tasks = mica_recording_job(submit, submit->job_count - 1, &words);
    for (size_t i = 0; i + 2 <= words; i += 2) {
        uint32_t output;
        if (!destination(recording, memory, tasks + i, &output))
            continue;
        *address = found && *address < output ? *address : output;
        found = true;
    }
    return found;
}

bool mica_recording_locate(const struct mica_recording *recording, const struct mica_recorded_output *output,
                           const struct mica_device_memory *memory, uint32_t *address)
{
    const struct mica_recorded_submit *last = &recording->submits[recording->submit_count - 1];
    *address = output->address;
    if (output->known)
        return true;
    if (output->index)
        return false;
    return mica_recording_is_rocket(recording) ? last_tasks_output(recording, last, memory, address)
                                               : last_jobs_output(last, memory, address);
}
