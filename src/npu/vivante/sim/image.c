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

/* Pixels [first, end) that the job reads of a line of `size`, the kernel's reach starting at `offset`. */
static void touched(int32_t offset, uint32_t reach, uint32_t size, uint32_t *first, uint32_t *end)
{
    int64_t from = offset, to = (int64_t)offset + reach;
    *first = from < 0 ? 0 : (uint32_t)from;
    *end = to < 0 ? 0 : to > size ? size : (uint32_t)to;
}

static int check_source(struct viv_sim *sim, const struct viv_image *image)
{
    const struct viv_nn_job *cost = &image->job->cost;
    uint32_t x, x_end, y, y_end;
    touched(cost->x_offset, image->step * (image->columns - 1) + cost->kernel_w, cost->in_w, &x, &x_end);
    touched(cost->y_offset, image->step * (image->rows - 1) + cost->kernel_h, cost->in_h, &y, &y_end);
    if (x >= x_end || y >= y_end)
        return 0;
    uint64_t first = (uint64_t)y * cost->in_row_bytes + x, end = (uint64_t)(y_end - 1) * cost->in_row_bytes + x_end;
    for (uint64_t z = 0; z < cost->in_channels; z++) {
        uint64_t plane = image->job->in_address + z * cost->in_plane_bytes;
        if (!viv_sim_at(sim, plane + first, end - first, MICA_ACCESS_READ, "NN input"))
            return -EFAULT;
    }
    return 0;
}

/* One row of one phase: the columns start, start + step, ... of an image row, NULL when the row is outside. */
static void fetch_row(const struct viv_image *image, uint8_t *out, const uint8_t *row, int64_t start)
{
    uint32_t step = image->step, width = image->job->cost.in_w;
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
                bool inside = y >= 0 && y < cost->in_h;
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
