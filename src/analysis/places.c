/* SPDX-License-Identifier: MIT */
/* Names that two recordings share: fields' paths, buffers' numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/jobs.h"

#define JOB_BITS 63u /* below the address of a descriptor */

static uint32_t number_of(struct mica_places *places, const struct mica_recorded_bo *bo)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct mica_place *place = &places->list[i];
        if (place->address == bo->address && place->size == bo->size && place->handle == bo->handle)
            return (uint32_t)i + 1;
    }
    struct mica_place *grown = realloc(places->list, (places->count + 1) * sizeof *grown);
    if (!grown) {
        places->failed = true;
        return 0;
    }
    places->list = grown;
    grown[places->count++] = (struct mica_place){bo->address, bo->size, bo->handle};
    return (uint32_t)places->count;
}

uint32_t mica_place_find(struct mica_places *places, const struct mica_recorded_submit *submit, uint64_t address,
                         uint64_t *offset)
{
    for (size_t i = 0; i < submit->bo_count; i++) {
        const struct mica_recorded_bo *bo = &submit->bos[i];
        if (address < bo->address || address - bo->address >= bo->size)
            continue;
        *offset = address - bo->address;
        return number_of(places, bo);
    }
    return 0;
}

void mica_places_release(struct mica_places *places)
{
    free(places->list);
    *places = (struct mica_places){0};
}

bool mica_field_address(const char *path, uint64_t value, const struct mica_chip *chip, uint64_t *address,
                        uint32_t *extra)
{
    static const struct {
        const char *path;
        unsigned shift, shift_rk356x;
        uint32_t extra;
    } fields[] = {
        {"PS.NN_INST_ADDR", 0, 0, JOB_BITS},
        {"PS.TP_INST_ADDR", 0, 0, JOB_BITS},
        {"NN.KERNEL_ADDRESS", 6, 0, 0},
        {"NN.IN_IMAGE_ADDRESS", 0, 0, 0},
        {"NN.OUT_IMAGE_ADDRESS", 0, 0, 0},
        {"TP.IN_TILE_LIST_ADDRESS", 0, 0, 0},
        {"TP.IN_IMAGE_BASE_ADDRESS", 0, 0, 0},
        {"TP.ALU_LOAD_PWL_LUT_ADDRESS", 0, 0, 0},
        {"TP.OUT_IMAGE_BASE_ADDRESS", 0, 0, 0},
        {"PC.BASE_ADDRESS.PC_SOURCE_ADDR", 4, 4, 0},
        {"CNA.FEATURE_DATA_ADDR.FEATURE_BASE_ADDR", 0, 0, 0},
        {"CNA.DCOMP_ADDR0.DECOMPRESS_ADDR0", 0, 0, 0},
        {"DPU.DST_BASE_ADDR.DST_BASE_ADDR", 0, 0, 0},
        {"DPU_RDMA.RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR", 0, 0, 0},
        {"DPU_RDMA.RDMA_BS_BASE_ADDR.BS_BASE_ADDR", 0, 0, 0},
        {"DPU_RDMA.RDMA_BN_BASE_ADDR.BN_BASE_ADDR", 0, 0, 0},
        {"DPU_RDMA.RDMA_EW_BASE_ADDR.EW_BASE_ADDR", 0, 0, 0},
        {"PPU.DST_BASE_ADDR.DST_BASE_ADDR", 4, 3, 0},
        {"PPU_RDMA.RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR", 0, 0, 0},
    };
    bool rk356x = !strncmp(chip->name, "rk356", 5);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(fields[i].path, path))
            continue;
        *extra = (uint32_t)value & fields[i].extra;
        *address = (value & ~(uint64_t)fields[i].extra) << (rk356x ? fields[i].shift_rk356x : fields[i].shift);
        return true;
    }
    return false;
}

void mica_field_path(const char *kind, const char *title, const char *field, char *path, size_t size)
{
    if (!strcmp(kind, "register"))
        snprintf(path, size, "%.*s.%s", (int)strcspn(title, " "), title, field);
    else if (!strcmp(kind, "NN descriptor") || !strcmp(kind, "TP descriptor"))
        snprintf(path, size, "%.2s.%s", kind, field);
    else if (!strcmp(kind, "coefficients"))
        snprintf(path, size, "coefficients.%s", field);
    else if (!strcmp(kind, "histogram"))
        snprintf(path, size, "coefficients.weights of %s", field);
    else if (!strcmp(kind, "kernel"))
        snprintf(path, size, "coefficients.%s.%s", title, field);
    else
        snprintf(path, size, "%s", field);
}
