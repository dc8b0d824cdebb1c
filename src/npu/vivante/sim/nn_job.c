/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/nn_job.h"

#include <errno.h>

/* Values that a field must have, because nobody knows what others do or because the chip lacks the feature. */
static const struct {
    enum viv_nn_field field;
    uint32_t value;
    const char *why;
} required[] = {
    {VIV_NN_KERNEL_DATA_TYPE, 0, "only uint8 weights are simulated"},
    {VIV_NN_IN_IMAGE_DATA_TYPE, 0, "only uint8 input is simulated"},
    {VIV_NN_OUT_IMAGE_DATA_TYPE, 0, "only uint8 output is simulated"},
    {VIV_NN_PRELU, 0, "this chip has no parametric ReLU"},
    {VIV_NN_BRICK_MODE, 0, "brick layouts are not simulated"},
    {VIV_NN_IN_IMAGE_BORDER_MODE, 0, "only constant borders are simulated"},
    {VIV_NN_PER_CHANNEL_POST_MUL, 0, "this chip has no per-channel multipliers"},
    {VIV_NN_KERNEL_DIRECT_STREAM, 0, "coefficients in on-chip memory are not simulated"},
};

static int refuse(struct viv_sim *sim, uint32_t address, enum viv_nn_field field, uint32_t value, const char *why)
{
    return mica_fail(sim->log, -EIO, "NN job 0x%08x: field %s = %u: %s", address, viv_nn_fields[field].name, value,
                     why);
}

static int check_required(struct viv_sim *sim, uint32_t address, const uint32_t *words)
{
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        uint32_t value = viv_nn_get(words, required[i].field);
        if (value != required[i].value)
            return refuse(sim, address, required[i].field, value, required[i].why);
    }
    return 0;
}

/* What one chip does and another doesn't (specification, sections 1.4, 3.2 and 12.5). */
static int check_features(struct viv_sim *sim, uint32_t address, const uint32_t *words)
{
    const struct viv_chip *chip = sim->chip;
    uint32_t no_offset = viv_nn_get(words, VIV_NN_NO_Z_OFFSET), type = viv_nn_get(words, VIV_NN_LAYER_TYPE);
    if (no_offset && chip->z_offset_in_stream)
        return refuse(sim, address, VIV_NN_NO_Z_OFFSET, no_offset,
                      "this chip's coefficient streams always carry output offsets");
    if (!no_offset && !chip->z_offset_in_stream)
        return refuse(sim, address, VIV_NN_NO_Z_OFFSET, no_offset,
                      "this chip's coefficient streams were never seen to carry output offsets");
    if (type && chip->thin_kernels)
        return refuse(sim, address, VIV_NN_LAYER_TYPE, type, "nobody knows what it does on this chip");
    if (!viv_nn_get(words, VIV_NN_DEPTHWISE))
        return 0;
    if (!chip->hardware_depthwise)
        return refuse(sim, address, VIV_NN_DEPTHWISE, 1, "this chip has no depthwise mode");
    if (sim->coef_format == VIV_COEF_V7)
        return refuse(sim, address, VIV_NN_DEPTHWISE, 1, "V7 coefficient streams have no depthwise kernels");
    uint32_t channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE);
    if (channels != 1 && channels != viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE))
        return refuse(sim, address, VIV_NN_KERNEL_Z_SIZE, channels,
                      "depthwise kernels see one channel, and have 1 or the number of outputs here");
    return 0;
}

/* Sizes that must lie in a range. */
static int check_sizes(struct viv_sim *sim, uint32_t address, const uint32_t *words)
{
    const struct {
        enum viv_nn_field field;
        uint32_t most;
    } ranges[] = {
        {VIV_NN_KERNEL_X_SIZE, sim->chip->max_kernel}, {VIV_NN_KERNEL_Y_SIZE, sim->chip->max_kernel},
        {VIV_NN_KERNEL_Z_SIZE, VIV_MAX_TAPS},          {VIV_NN_KERNELS_PER_CORE, VIV_MAX_KERNELS_PER_CORE},
        {VIV_NN_IN_IMAGE_X_SIZE, VIV_MAX_IMAGE},       {VIV_NN_IN_IMAGE_Y_SIZE, VIV_MAX_IMAGE},
        {VIV_NN_OUT_IMAGE_X_SIZE, VIV_MAX_IMAGE},      {VIV_NN_OUT_IMAGE_Y_SIZE, VIV_MAX_IMAGE},
        {VIV_NN_OUT_IMAGE_Z_SIZE, VIV_MAX_CHANNELS},   {VIV_NN_OUT_IMAGE_TILE_X_SIZE, sim->chip->max_tile},
        {VIV_NN_OUT_IMAGE_TILE_Y_SIZE, 127},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        uint32_t value = viv_nn_get(words, ranges[i].field);
        if (value == 0 || value > ranges[i].most)
            return refuse(sim, address, ranges[i].field, value, "out of the chip's range");
    }
    return 0;
}

/* Rows of a tile that can ever share a vector: the most that any driver or tool was seen to use (section 9.1). */
#define MOST_INTERLEAVE 4u

/* Nothing is refused here: how large a tile may be is known from what drivers write, not from the hardware. */
static void check_tile(struct viv_sim *sim, const struct viv_nn *job)
{
    const struct viv_nn_job *cost = &job->cost;
    uint32_t vectors = (cost->tile_y + MOST_INTERLEAVE - 1) / MOST_INTERLEAVE;
    if (!sim->chip->z_offset_in_stream) /* V8 counts vectors of pixels (timing.md, section 2) */
        vectors = (cost->tile_x * cost->tile_y + 63) / 64;
    if (cost->tile_y + cost->kernel_h - 1 > sim->chip->input_depth * MOST_INTERLEAVE)
        mica_log(sim->log, MICA_LOG_WARNING, "NN job 0x%08x: tiles of %u rows don't fit the input buffer",
                 job->descriptor, cost->tile_y);
    if (cost->kernels_per_core * vectors > sim->chip->accumulator_depth)
        mica_log(sim->log, MICA_LOG_WARNING,
                 "NN job 0x%08x: %u kernels per core with tiles of %u rows don't fit the "
                 "accumulators",
                 job->descriptor, cost->kernels_per_core, cost->tile_y);
}

/*
 * Bits by which a product is shifted to the right. Multipliers of 23 bits come with a signed field to which 23 is added
 * (inferred; specification, section 6.1). Less than no shift is as good as none: every product but zero is out of the
 * result's range already.
 */
static uint32_t parse_shift(const struct viv_chip *chip, const uint32_t *words)
{
    if (chip->multiplier_bits == 15)
        return viv_nn_get(words, VIV_NN_POST_SHIFT);
    int32_t shift = viv_field_get_signed(words, &viv_nn_fields[VIV_NN_POST_SHIFT], 7) + (int32_t)chip->multiplier_bits;
    return shift < 0 ? 0 : (uint32_t)shift;
}

static void parse_post(const struct viv_chip *chip, const uint32_t *words, struct viv_post *post)
{
    int32_t zero_point = (int32_t)viv_nn_get(words, VIV_NN_OUT_ZERO_POINT);
    uint32_t one = UINT32_C(1) << chip->multiplier_bits;
    *post = (struct viv_post){
        .multiplier = (int32_t)(one | (viv_nn_get(words, VIV_NN_POST_MULTIPLIER) & (one - 1))),
        .shift = parse_shift(chip, words),
        .rounding = (enum viv_rounding)viv_nn_get(words, VIV_NN_ROUNDING_MODE),
        .zero_point = zero_point,
        .lowest = viv_nn_get(words, VIV_NN_RELU) ? zero_point : 0,
    };
    /* Code 0 is the one whose meaning differs between the generations. */
    if (post->rounding == VIV_ROUND_HALF_UP && chip->multiplier_bits != 15)
        post->rounding = VIV_ROUND_HALF_AWAY;
}

static int parse_pooling(struct viv_sim *sim, const uint32_t *words, struct viv_nn *job)
{
    uint32_t w = job->cost.out_w, h = job->cost.out_h;
    job->pooling = (enum viv_pooling)viv_nn_get(words, VIV_NN_POOLING);
    job->pool_size = 2 + viv_nn_get(words, VIV_NN_POOLING_XY_SIZE);
    switch (job->pooling) {
    case VIV_POOL_NONE:
        job->stored_w = w;
        job->stored_h = h;
        return 0;
    case VIV_POOL_FIRST_PIXEL: /* pixels of even columns and rows */
        job->stored_w = (w + 1) / 2;
        job->stored_h = (h + 1) / 2;
        return 0;
    case VIV_POOL_MAX: /* windows inside the image, step 2; what an odd rest does is not known */
        if (w < job->pool_size || h < job->pool_size)
            return refuse(sim, job->descriptor, VIV_NN_POOLING, job->pooling, "the output is smaller than a window");
        job->stored_w = (w - job->pool_size) / 2 + 1;
        job->stored_h = (h - job->pool_size) / 2 + 1;
        return 0;
    default:
        return refuse(sim, job->descriptor, VIV_NN_POOLING, job->pooling, "average pooling is not simulated");
    }
}

/* Output planes follow each other at a pitch of their own only where the chip has a field for it (section 1.2). */
static uint32_t parse_plane(const struct viv_chip *chip, const uint32_t *words, const struct viv_nn *job)
{
    uint32_t rows = chip->z_offset_in_stream ? job->stored_h : viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_STRIDE);
    return job->out_row_bytes * rows;
}

static void parse_geometry(const struct viv_chip *chip, const uint32_t *words, struct viv_nn *job)
{
    struct viv_nn_job *cost = &job->cost;
    cost->in_w = viv_nn_get(words, VIV_NN_IN_IMAGE_X_SIZE);
    cost->in_h = viv_nn_get(words, VIV_NN_IN_IMAGE_Y_SIZE);
    cost->in_channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE);
    cost->in_row_bytes = viv_nn_get(words, VIV_NN_IN_IMAGE_X_STRIDE);
    cost->in_plane_bytes = cost->in_row_bytes * viv_nn_get(words, VIV_NN_IN_IMAGE_Y_STRIDE);
    cost->in_address = job->in_address;
    cost->x_offset = viv_field_get_signed(words, &viv_nn_fields[VIV_NN_IN_IMAGE_X_OFFSET], chip->offset_bits);
    cost->y_offset = viv_field_get_signed(words, &viv_nn_fields[VIV_NN_IN_IMAGE_Y_OFFSET], chip->offset_bits);
    /* One-column kernels have their height in both fields (specification, section 3.2). */
    cost->kernel_w = viv_nn_get(words, VIV_NN_LAYER_TYPE) ? 1 : viv_nn_get(words, VIV_NN_KERNEL_X_SIZE);
    cost->kernel_h = viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE);
    cost->out_w = viv_nn_get(words, VIV_NN_OUT_IMAGE_X_SIZE);
    cost->out_h = viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_SIZE);
    cost->out_channels = viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE);
    cost->depthwise = viv_nn_get(words, VIV_NN_DEPTHWISE);
    if (cost->depthwise)
        cost->in_channels = cost->out_channels;
    cost->tile_x = viv_nn_get(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE);
    cost->tile_y = viv_nn_get(words, VIV_NN_OUT_IMAGE_TILE_Y_SIZE);
    cost->kernels_per_core = viv_nn_get(words, VIV_NN_KERNELS_PER_CORE);
    cost->image_cached = viv_nn_get(words, VIV_NN_IMAGE_CACHING_MODE) != 0;
    cost->kernel_cached = viv_nn_get(words, VIV_NN_KERNEL_CACHING_MODE) == 1;
}

static void parse_addresses(const uint32_t *words, struct viv_nn *job)
{
    job->in_address = viv_nn_get(words, VIV_NN_IN_IMAGE_ADDRESS);
    job->out_address = viv_nn_get(words, VIV_NN_OUT_IMAGE_ADDRESS);
    job->coefficients = viv_nn_get(words, VIV_NN_KERNEL_ADDRESS) << 6;
    job->out_row_bytes = viv_nn_get(words, VIV_NN_OUT_IMAGE_X_STRIDE);
    job->in_circular = (uint64_t)viv_nn_get(words, VIV_NN_IN_CIRC_SIZE) << 6;
    job->in_end = (uint64_t)viv_nn_get(words, VIV_NN_IN_CIRC_END_P1) << 6;
    job->out_circular = (uint64_t)viv_nn_get(words, VIV_NN_OUT_CIRC_SIZE) << 6;
    job->out_end = (uint64_t)viv_nn_get(words, VIV_NN_OUT_CIRC_END_P1) << 6;
}

int viv_nn_parse(struct viv_sim *sim, uint32_t address, const uint32_t *words, struct viv_nn *job)
{
    *job = (struct viv_nn){.descriptor = address};
    viv_sim_note_unknown(sim, "NN", address, words, viv_nn_fields, VIV_NN_FIELD_COUNT);
    int result = check_required(sim, address, words);
    if (!result)
        result = check_features(sim, address, words);
    if (!result)
        result = check_sizes(sim, address, words);
    if (result)
        return result;
    parse_addresses(words, job);
    parse_geometry(sim->chip, words, job);
    parse_post(sim->chip, words, &job->post);
    result = parse_pooling(sim, words, job);
    if (result)
        return result;
    job->out_plane_bytes = parse_plane(sim->chip, words, job);
    job->cost.out_row_bytes = job->out_row_bytes;
    job->cost.out_plane_bytes = job->out_row_bytes * viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_STRIDE);
    job->cost.first_pixel_pooling = job->pooling == VIV_POOL_FIRST_PIXEL;
    job->border = (uint8_t)viv_nn_get(words, VIV_NN_IN_IMAGE_BORDER_CONST);
    job->weight_zero_point = (uint8_t)viv_nn_get(words, VIV_NN_COEF_ZERO_POINT);
    check_tile(sim, job);
    return 0;
}
