/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEC MICA_SHARED_DIR "/spec/rockchip/"

static const char *const vectors[] = {
    "add2",
    "avgpool-3x5",
    "avgpool2",
    "conv-rowsplit",
    "conv-rowsplit-delta",
    "convpc",
    "dw3x3",
    "lut-hardswish-slope",
    "lut-tanh",
    "maxpool3s2",
    "mul2",
    "pixel-rgb",
    "sub2",
    "tconv3x3s2",
    "rk3566-conv1x1",
    "rk3566-conv3x3",
    "rk3566-dw3x3",
    "rk3566-maxpool3s2",
};

static void add_word(struct program *program, uint64_t word)
{
    program->words = realloc(program->words, (program->count + 1) * sizeof(*program->words));
    if (program->words == NULL)
        abort();
    program->words[program->count++] = word;
}

static struct program *add_program(struct programs *programs, const char *name, enum rk_generation generation)
{
    programs->list = realloc(programs->list, (programs->count + 1) * sizeof(*programs->list));
    if (programs->list == NULL)
        abort();
    struct program *program = &programs->list[programs->count++];
    *program = (struct program){.generation = generation};
    snprintf(program->name, sizeof(program->name), "%s", name);
    return program;
}

static FILE *open_table(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "%s isn't there\n", path);
        exit(77);
    }
    return file;
}

/* index,target,offset,value,register */
static void load_table(struct programs *programs, const char *path, const char *name, enum rk_generation generation)
{
    struct program *program = add_program(programs, name, generation);
    FILE *file = open_table(path);
    char line[256];
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned target, offset, value;
        if (sscanf(line, "%*[^,],%x,%x,%x", &target, &offset, &value) == 3)
            add_word(program, rk_word(target, (uint16_t)offset, value));
    }
    fclose(file);
}

#define SIDE_BY_SIDE 6

/* index,target,offset,register and a column a program, "-" where it lacks the word: RK3566 and RK3588 in turn. */
static void load_side_by_side(struct programs *programs, const char *path)
{
    static const char *const names[SIDE_BY_SIDE] = {"rk3566 conv1x1 of the table", "rk3588 conv1x1 of the table",
                                                    "rk3566 conv3x3 of the table", "rk3588 conv3x3 of the table",
                                                    "rk3566 dw3x3 of the table",   "rk3588 dw3x3 of the table"};
    size_t first = programs->count;
    for (unsigned i = 0; i < SIDE_BY_SIDE; i++)
        add_program(programs, names[i], i % 2 == 0 ? RK_GENERATION_RK356X : RK_GENERATION_RK3588);
    FILE *file = open_table(path);
    char line[256], cell[SIDE_BY_SIDE][16];
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned target, offset;
        if (sscanf(line, "%*[^,],%x,%x,%*[^,],%15[^,],%15[^,],%15[^,],%15[^,],%15[^,],%15[^,\n]", &target, &offset,
                   cell[0], cell[1], cell[2], cell[3], cell[4], cell[5]) != 2 + SIDE_BY_SIDE)
            continue;
        for (unsigned i = 0; i < SIDE_BY_SIDE; i++)
            if (cell[i][0] != '-')
                add_word(&programs->list[first + i],
                         rk_word(target, (uint16_t)offset, (uint32_t)strtoul(cell[i], NULL, 16)));
    }
    fclose(file);
}

struct programs programs_load(void)
{
    struct programs programs = {0};
    char path[512];
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const char *name = vectors[i];
        if (!name) /* gcc's undefined-behaviour sanitizer makes it think of that, and warn */
            abort();
        bool is_rk356x = strncmp(name, "rk3566", 6) == 0;
        snprintf(path, sizeof(path), SPEC "vectors/%s/program.csv", name);
        load_table(&programs, path, name, is_rk356x ? RK_GENERATION_RK356X : RK_GENERATION_RK3588);
    }
    load_table(&programs, SPEC "conv1x1-program.csv", "conv1x1-program", RK_GENERATION_RK3588);
    load_side_by_side(&programs, SPEC "rk3566-programs.csv");
    return programs;
}

void programs_release(struct programs *programs)
{
    for (size_t i = 0; i < programs->count; i++)
        free(programs->list[i].words);
    free(programs->list);
}
