/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/image.h"

#include <errno.h>
#include <string.h>

#include "util/checked.h"

/* Twice the largest tensor that a graph may have. */
#define MAX_IMAGE_BYTES ((uint64_t)1 << 29)

struct fetch {
    const struct viv_image *image;
    const uint8_t *base; /* device address 0 */
};

/* Pixels [first, end) of a line of `size` that `count` outputs read, the kernel's first tap starting at `offset`. */
static void touched(int32_t offset, uint32_t step, uint32_t count, uint32_t kernel, uint32_t size, uint32_t *first,
                    uint32_t *end)
{
    int64_t from = offset, to = (int64_t)offset + (int64_t)step * (count - 1) + kernel;
    *first = from < 0 ? 0 : (uint32_t)from;
    *end = to < 0 ? 0 : to > size ? size : (uint32_t)to;
}

static int check_source(struct viv_sim *sim, const struct viv_image *image)
{
    const struct viv_nn_job *cost = &image->job->cost;
    if (image->x >= image->x_end || image->y >= image->y_end)
        return 0;
    uint64_t first = (uint64_t)image->y * cost->in_row_bytes + image->x;
    uint64_t end = (uint64_t)(image->y_end - 1) * cost->in_row_bytes + image->x_end;
    for (uint64_t z = 0; z < cost->in_channels; z++) {
        uint64_t plane = image->job->in_address + z * cost->in_plane_bytes;
        if (!viv_sim_at(sim, plane + first, end - first, MICA_ACCESS_READ, "NN input"))
            return -EFAULT;
    }
    return 0;
}

/*
 * One row of one phase: the columns start, start + step, ... of an image row, NULL when the row is outside. All phases
 * have the pitch of the largest; of what no tap reads, nothing is fetched, since it was not checked either.
 */
static void fetch_row(const struct viv_image *image, uint8_t *out, const uint8_t *row, int64_t start)
{
    uint32_t step = image->step, width = image->x_end;
    size_t count = image->pitch, before = 0, inside = 0;
    if (row) {
        before = start < 0 ? (size_t)((-start + step - 1) / step) : 0;
        before = before < count ? before : count;
        int64_t first = start + (int64_t)before * step;
        inside = first < width ? (size_t)((width - first + step - 1) / step) : 0;
        inside = inside < count - before ? inside : count - before;
        if (step == 1 && inside)
            memcpy(out + before, row + first, inside);
        else
            for (size_t i = 0; i < inside; i++)
                out[before + i] = row[first + 2 * (int64_t)i];
    }
    memset(out, image->job->border, before);
    memset(out + before + inside, image->job->border, count - before - inside);
}

static void fetch_channel(void *user, size_t channel)
{
    const struct fetch *fetch = user;
    const struct viv_image *image = fetch->image;
    const struct viv_nn_job *cost = &image->job->cost;
    const uint8_t *plane = fetch->base + image->job->in_address + channel * cost->in_plane_bytes;
    uint8_t *out = image->data + channel * image->plane;
    for (uint32_t phase_y = 0; phase_y < image->phases_y; phase_y++)
        for (uint32_t phase_x = 0; phase_x < image->phases_x; phase_x++)
            for (size_t i = 0; i < image->phase / image->pitch; i++, out += image->pitch) {
                int64_t y = cost->y_offset + (int64_t)(image->step * i) + phase_y;
                bool inside = y >= 0 && y < image->y_end;
                fetch_row(image, out, inside ? plane + y * cost->in_row_bytes : NULL,
                          (int64_t)cost->x_offset + phase_x);
            }
}

static void plan(const struct viv_nn *job, struct viv_image *image)
{
    const struct viv_nn_job *cost = &job->cost;
    bool first_pixel = job->pooling == VIV_POOL_FIRST_PIXEL;
    *image = (struct viv_image){
        .job = job,
        .step = first_pixel ? 2 : 1,
        .columns = first_pixel ? job->stored_w : cost->out_w,
        .rows = first_pixel ? job->stored_h : cost->out_h,
    };
    image->phases_x = cost->kernel_w < image->step ? cost->kernel_w : image->step;
    image->phases_y = cost->kernel_h < image->step ? cost->kernel_h : image->step;
    image->pitch = image->columns + (cost->kernel_w - 1) / image->step;
    image->phase = image->pitch * (image->rows + (cost->kernel_h - 1) / image->step);
    image->plane = image->phase * image->phases_x * image->phases_y;
    image->positions = image->pitch * (image->rows - 1) + image->columns;
    touched(cost->x_offset, image->step, image->columns, cost->kernel_w, cost->in_w, &image->x, &image->x_end);
    touched(cost->y_offset, image->step, image->rows, cost->kernel_h, cost->in_h, &image->y, &image->y_end);
}

int viv_image_fetch(struct viv_sim *sim, const struct viv_nn *job, struct viv_image *image)
{
    plan(job, image);
    uint64_t bytes = (uint64_t)image->plane * job->cost.in_channels;
    if (bytes > MAX_IMAGE_BYTES)
        return mica_fail(sim->log, -EIO, "NN job 0x%08x: an input image of %llu bytes is more than the simulator takes",
                         job->descriptor, (unsigned long long)bytes);
    int result = check_source(sim, image);
    if (result)
        return result;
    if (!viv_buffer_reserve(&sim->image, bytes + VIV_IMAGE_SLACK))
        return mica_fail_nomem(sim->log);
    image->data = sim->image.data;
    memset(image->data + bytes, 0, VIV_IMAGE_SLACK);
    struct fetch fetch = {image, sim->memory->base};
    mica_parallel_for(sim->threads, job->cost.in_channels, fetch_channel, &fetch);
    return 0;
}

void viv_image_tap_offsets(const struct viv_image *image, uint32_t *offsets)
{
    const struct viv_nn_job *cost = &image->job->cost;
    for (size_t z = 0; z < cost->in_channels; z++)
        for (uint32_t r = 0; r < cost->kernel_h; r++)
            for (uint32_t q = 0; q < cost->kernel_w; q++) {
                size_t phase = r % image->step * image->phases_x + q % image->step;
                *offsets++ = (uint32_t)(z * image->plane + phase * image->phase + r / image->step * image->pitch +
                                        q / image->step);
            }
}
