/* SPDX-License-Identifier: MIT */
/* Sliding windows over NHWC images: shapes of convolutions, depthwise convolutions and pools. */
#ifndef MICA_CPU_WINDOW_H
#define MICA_CPU_WINDOW_H

#include "cpu/kernels.h"

struct mica_span {
    int32_t first, end; /* taps [first, end) of one axis lie inside the image */
    int32_t start;      /* position of tap 0, may lie outside */
};

/* Taps of one axis for output position `out`. */
static inline struct mica_span mica_window_span(int32_t out, int32_t stride, int32_t before, int32_t dilation,
                                                int32_t kernel, int32_t size)
{
    int64_t start = (int64_t)out * stride - before;
    int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int64_t end = start < size ? (size - start + dilation - 1) / dilation : 0;
    end = end > kernel ? kernel : end;
    return (struct mica_span){(int32_t)(first < end ? first : end), (int32_t)end, (int32_t)start};
}

/* An image [batches, height, width, channels] and the window over it. */
struct mica_image {
    int32_t height, width, channels;
    int32_t out_height, out_width;
    const struct mica_window *window;
};

static inline struct mica_image mica_image_of(const struct mica_tensor *in, const struct mica_tensor *out,
                                              const struct mica_window *window)
{
    return (struct mica_image){in->dims[1], in->dims[2], in->dims[3], out->dims[1], out->dims[2], window};
}

static inline struct mica_span mica_image_rows(const struct mica_image *image, int32_t y)
{
    const struct mica_window *w = image->window;
    return mica_window_span(y, w->stride_y, w->padding.top, w->dilation_y, w->kernel_y, image->height);
}

static inline struct mica_span mica_image_columns(const struct mica_image *image, int32_t x)
{
    const struct mica_window *w = image->window;
    return mica_window_span(x, w->stride_x, w->padding.left, w->dilation_x, w->kernel_x, image->width);
}

/* Both tensors are images of the same batch, and no number of the window can take arithmetic out of its range. */
int mica_cpu_check_window(const struct mica_tensor *in, const struct mica_tensor *out, const struct mica_window *window,
                          struct mica_cpu_reason *reason);

/* All that a convolution of either kind needs; its output channels are `channel_axis` of the weights. */
int mica_cpu_check_weighted_window(const struct mica_graph *graph, const struct mica_op *op, int32_t channel_axis,
                                   struct mica_cpu_reason *reason);

#endif
