/* SPDX-License-Identifier: MIT */
/* Graphs of few operations on a board, whose results are compared with exact real numbers. */
#ifndef TESTS_ROCKCHIP_COMPILE_RIG_H
#define TESTS_ROCKCHIP_COMPILE_RIG_H

#include "support.h"

#define RIG_TENSORS 64

struct rig {
    const struct mica_chip *chip;
    struct random random;
    struct net net;
    enum mica_type type;
    int32_t inputs[RIG_TENSORS], outputs[RIG_TENSORS];
    uint32_t input_count, output_count;
    uint8_t *data[RIG_TENSORS]; /* the host's bytes of each tensor */
    char reason[256];           /* why an operation was refused */
    bool fuse;                  /* the compiler may */
    uint32_t tasks;             /* of the program that ran */
    bool fused;                 /* none of them is the last operation's own */
};

void rig_open(struct rig *rig, const struct mica_chip *chip, uint64_t seed);
void rig_close(struct rig *rig);

/* A new image or other shape with a scale around `scale` and any zero point. */
struct spec rig_spec(struct rig *rig, double scale, uint32_t rank, int32_t a, int32_t b, int32_t c, int32_t d);
/* An image [1, h, w, c]. */
struct spec rig_image(struct rig *rig, double scale, int32_t h, int32_t w, int32_t c);

int32_t rig_input(struct rig *rig, const struct spec *spec);
int32_t rig_constant(struct rig *rig, const struct spec *spec);
/* A constant of given int32 values, one dimension. */
int32_t rig_numbers(struct rig *rig, const int32_t *values, int32_t count);
int32_t rig_output(struct rig *rig, const struct spec *spec);

/* One operation with its outputs. */
void rig_op(struct rig *rig, struct mica_op op, const char *type, const int32_t *inputs, uint32_t input_count,
            const int32_t *outputs, uint32_t output_count);

/* Compiles all operations as one partition and runs it on random inputs; false, with `reason`: one was refused. */
bool rig_run(struct rig *rig);

/* Element `i` as the number that its byte stands for in the tensor's type; of an image by place. */
int32_t rig_value(const struct rig *rig, int32_t tensor, size_t i);
int32_t rig_pixel(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c);
/* The real number that it stands for. */
double rig_real(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c);

/* The exact real result, as steps of the tensor, clamped to its type and [low, high] (real), isn't further away. */
void rig_check(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c, double real, double distance);
/* The very same number. */
void rig_equal(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c, int32_t value);

/* The output of the only operation is, byte for byte, what the CPU's model of the chip's arithmetic computes, which
 * knows nothing of programs. */
void rig_check_cpu(struct rig *rig, int32_t output);

int32_t rig_between(struct rig *rig, int32_t low, int32_t high);
/* Channels that meet surfaces of both chips in all ways. */
int32_t rig_channels(struct rig *rig);

#endif
