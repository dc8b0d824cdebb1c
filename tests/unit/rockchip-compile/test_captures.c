/* SPDX-License-Identifier: MIT */
/*
 * Our programs for the recorded models set the same registers to the same values as the open driver's, but for what
 * stands in the table below with its reason. Where sources differ, a vendor program goes before a measurement, and that
 * before the open driver.
 */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rockchip-hw/captures.h"
#include "frontend/tflite/reader.h"
#include "npu/rockchip/hw/registers.h"

/* A register whose value is another, the models where it is (beginnings of their names), and why. */
struct difference {
    uint16_t offset;
    const char *models;
    const char *why;
};

#define FOLDED "ours is better: two columns of the input are one with twice the channels, six taps instead of nine"
#define SIGNED "theirs is wrong: the signed zero point of an int8 tensor, kept while the tensor's sign bits are flipped"
#define CLAMP \
    "theirs is wrong: the convolution saturates before the addition; ours lifts, clamps and takes the lift back"
#define PIXELS \
    "the vendor's packed pixels; the recorded program has a cube, or a pitch that decides nothing (section 11)"
#define CONVERTER "the vendor bypasses the converter: our input is signed already"

static const struct difference differences[] = {
    {0x1010, "", "the vendor's number of rows to fetch before computing starts; it changes no result"},
    {0x4084, "conv", "exactly rounded; the open driver truncates and adds 1"},
    {0x4084, "dw", "likewise"},
    {0x4084, "add", "likewise"},
    {0x4040, "add", CLAMP},
    {0x404c, "add", CLAMP},
    {0x4060, "add", CLAMP},
    {0x4064, "add", CLAMP},
    {0x1184, "conv_s8", SIGNED},
    {0x1184, "dw_s8", SIGNED},
    {0x4054, "conv_s8", SIGNED},
    {0x4054, "dw_s8", SIGNED},
    {0x4080, "conv_s8", SIGNED},
    {0x4080, "dw_s8", SIGNED},
    {0x1020, "add", "theirs is a workaround: columns beyond the fetched eight are never used (section 9)"},
    {0x1044, "add", "likewise: it follows from the columns"},
    {0x1014, "conv_u8_i112_k3", FOLDED},
    {0x1020, "conv_u8_i112_k3", FOLDED},
    {0x1024, "conv_u8_i112_k3", FOLDED},
    {0x1030, "conv_u8_i112_k3", FOLDED},
    {0x1034, "conv_u8_i112_k3", FOLDED},
    {0x1038, "conv_u8_i112_k3", FOLDED},
    {0x1040, "conv_u8_i112_k3", "the vendor gives the rest to the weights when one task has all rows"},
    {0x1044, "conv_u8_i112_k3", FOLDED},
    {0x107c, "conv_u8_i112_k3", FOLDED},
    {0x1080, "conv_u8_i112_k3", FOLDED},
    {0x1084, "conv_u8_i112_k3", FOLDED},
    {0x1014, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1020, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1024, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1030, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1034, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1038, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x107c, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1080, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1084, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x1088, "conv_u8_i8_k3_ic16_oc32_s2", FOLDED},
    {0x100c, "conv_u8_i8_k3_ic3", PIXELS},
    {0x1044, "conv_u8_i8_k3_ic3", PIXELS},
    {0x107c, "conv_u8_i8_k3_ic3", PIXELS},
    {0x1080, "conv_u8_i8_k3_ic3", PIXELS},
    {0x1044, "conv_u8_i8_k1_ic1_", PIXELS},
    {0x107c, "conv_u8_i8_k1_ic1_", PIXELS},
    {0x1080, "conv_u8_i8_k1_ic1_", PIXELS},
    {0x104c, "conv_u8_i8_k1_ic1_", CONVERTER},
    {0x1050, "conv_u8_i8_k1_ic1_", CONVERTER},
    {0x1054, "conv_u8_i8_k1_ic1_", CONVERTER},
    {0x1058, "conv_u8_i8_k1_ic1_", CONVERTER},
    {0x105c, "conv_u8_i8_k1_ic1_", CONVERTER},
    {0x1180, "conv_u8_i8_k1_ic1_", CONVERTER},
};

/* ---- programs ------------------------------------------------------------------------------- */

struct file {
    uint32_t value[RK_REGISTER_WORDS];
    bool set[RK_REGISTER_WORDS];
};

static void run_words(const uint8_t *words, uint32_t count, struct file *file)
{
    for (uint32_t i = 0; i + 4 < count; i++) {
        uint64_t word;
        memcpy(&word, words + 8 * (size_t)i, sizeof(word));
        if (!word)
            continue;
        assert_true(rk_word_offset(word) / 4 < RK_REGISTER_WORDS);
        file->value[rk_word_offset(word) / 4] = rk_word_value(word);
        file->set[rk_word_offset(word) / 4] = true;
    }
}

static const uint8_t *find(const struct rk_submit *submit, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < submit->bo_count; i++) {
        const struct rk_bo *bo = &submit->bos[i];
        if (bo->data && address >= bo->address && address + size <= bo->address + bo->size)
            return bo->data + (address - bo->address);
    }
    fail_msg("%s has no buffer at 0x%llx", submit->name, (unsigned long long)address);
    return NULL;
}

/* ---- models ----------------------------------------------------------------------------------- */

static struct mica_program *compile_model(const struct mica_graph *graph)
{
    struct mica_log log = {0};
    struct mica_program *program = NULL;
    struct mica_compile_options options = {.fuse = true}; /* as the open driver does */
    uint32_t *ops = calloc(graph->op_count, sizeof(*ops)), in[8], out[8];
    assert_non_null(ops);
    for (uint32_t i = 0; i < graph->op_count; i++)
        ops[i] = i;
    assert_true(graph->input_count <= 8 && graph->output_count <= 8);
    for (uint32_t i = 0; i < graph->input_count; i++)
        in[i] = (uint32_t)graph->inputs[i];
    for (uint32_t i = 0; i < graph->output_count; i++)
        out[i] = (uint32_t)graph->outputs[i];
    struct mica_partition partition = {
        .graph = graph, .op_count = graph->op_count, .ops = ops, .inputs = in, .outputs = out};
    partition.input_count = graph->input_count;
    partition.output_count = graph->output_count;
    if (test_rk3588.family->compile(&test_rk3588, &partition, &options, NULL, &log, &program))
        fail_msg("%s", log.last_error);
    free(ops);
    return program;
}

/* A task's words: the buffer that its first word of the stream points into. */
static void our_file(const struct mica_program *program, uint32_t task, struct file *file)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        if (reloc->in_stream && reloc->where == 0 && reloc->offset == 8 * task) {
            run_words(program->buffers[reloc->target].data + reloc->addend, program->submits[0].stream[2 * task + 1],
                      file);
            return;
        }
    }
    fail_msg("the stream has no address");
}

/* ---- comparison --------------------------------------------------------------------------------- */

static bool is_address(uint16_t offset)
{
    return offset == 0x1070 || offset == 0x1110 || offset == 0x4020 || offset == 0x5018 || offset == 0x5020 ||
           offset == 0x5038;
}

static bool explained(const char *model, uint16_t offset, bool *used)
{
    bool found = false;
    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
        if (differences[i].offset == offset && !strncmp(model, differences[i].models, strlen(differences[i].models)))
            found = used[i] = true;
    return found;
}

static unsigned compare(const char *model, const struct file *ours, const struct file *theirs, bool *used)
{
    unsigned unexplained = 0;
    for (uint32_t i = 0; i < RK_REGISTER_WORDS; i++) {
        uint16_t offset = (uint16_t)(4 * i);
        if (ours->set[i] == theirs->set[i] && (ours->value[i] == theirs->value[i] || is_address(offset)))
            continue;
        /* What the open driver adds to a scale is all that may differ there. */
        bool scale = offset == 0x4084;
        if ((!scale || theirs->value[i] - ours->value[i] == 1) && explained(model, offset, used))
            continue;
        const struct rk_register *name = rk_register_at(offset);
        printf("%s: %04x %s is %08x%s, recorded %08x%s\n", model, offset, name ? name->name : "?", ours->value[i],
               ours->set[i] ? "" : " (not set)", theirs->value[i], theirs->set[i] ? "" : " (not set)");
        unexplained++;
    }
    return unexplained;
}

static unsigned check_model(const struct rk_submit *submit, bool *used)
{
    char path[512], model[128];
    snprintf(model, sizeof(model), "%s", submit->name);
    model[strcspn(model, "/")] = 0;
    snprintf(path, sizeof(path), "%s/captures/%s/model.tflite", MICA_SHARED_DIR, model);
    size_t size;
    void *data = file_contents(path, &size);
    if (!data)
        fail_msg("%s: %s", path, strerror(errno));
    struct mica_graph *graph;
    assert_int_equal(mica_tflite_read(data, size, NULL, &graph), 0);
    struct mica_program *program = compile_model(graph);
    struct file *files = calloc(2, sizeof(*files));
    assert_non_null(files);
    unsigned unexplained = 0;
    assert_int_equal(program->job_count, submit->task_count);
    for (uint32_t i = 0; i < submit->task_count; i++) {
        const uint32_t *task = &submit->tasks[2 * i];
        memset(files, 0, 2 * sizeof(*files));
        our_file(program, i, &files[0]);
        run_words(find(submit, task[0], 8ull * task[1]), task[1], &files[1]);
        unexplained += compare(model, &files[0], &files[1], used);
    }
    free(files);
    mica_program_destroy(program);
    mica_graph_destroy(graph);
    free(data);
    return unexplained;
}

static void registers_are_as_recorded(void **state)
{
    struct rk_captures *captures = *state;
    bool used[sizeof(differences) / sizeof(differences[0])] = {false};
    unsigned unexplained = 0;
    assert_true(captures->count > 10);
    for (size_t i = 0; i < captures->count; i++)
        unexplained += check_model(&captures->list[i], used);
    assert_int_equal(unexplained, 0);
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
        if (!used[i])
            fail_msg("nothing differs at %04x any more (%s)", differences[i].offset, differences[i].why);
}

int main(void)
{
    struct rk_captures captures = rk_captures_load();
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(registers_are_as_recorded, &captures)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rk_captures_release(&captures);
    return failed;
}
