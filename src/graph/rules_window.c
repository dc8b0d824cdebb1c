/* SPDX-License-Identifier: MIT */
/* Windows over images, and pools. */
#include "graph/check.h"

/* ---- windows ---------------------------------------------------------- */

static bool in_window_range(int32_t value)
{
    return value >= 1 && value <= MICA_MAX_WINDOW;
}

/* Padding as wide as the window would make outputs that see no input at all. */
static bool padding_fits(int32_t padding, int64_t extent)
{
    return padding >= 0 && padding < extent;
}

static bool check_window_values(struct mica_check *check, const struct mica_window *window)
{
    if (!in_window_range(window->kernel_x) || !in_window_range(window->kernel_y))
        return mica_reject(check, "a window of %dx%d is out of range (1 to %d)", window->kernel_x, window->kernel_y,
                           MICA_MAX_WINDOW);
    if (!in_window_range(window->stride_x) || !in_window_range(window->stride_y))
        return mica_reject(check, "a stride of %dx%d is out of range (1 to %d)", window->stride_x, window->stride_y,
                           MICA_MAX_WINDOW);
    if (!in_window_range(window->dilation_x) || !in_window_range(window->dilation_y))
        return mica_reject(check, "a dilation of %dx%d is out of range (1 to %d)", window->dilation_x,
                           window->dilation_y, MICA_MAX_WINDOW);
    return mica_check_activation(check, window->activation);
}

static bool check_padding(struct mica_check *check, const struct mica_window *window)
{
    int64_t extent_x = mica_window_extent(window->kernel_x, window->dilation_x);
    int64_t extent_y = mica_window_extent(window->kernel_y, window->dilation_y);
    const struct mica_padding *padding = &window->padding;
    if (extent_x > MICA_MAX_WINDOW || extent_y > MICA_MAX_WINDOW)
        return mica_reject(check, "a dilated window of %lldx%lld is larger than %d", (long long)extent_x,
                           (long long)extent_y, MICA_MAX_WINDOW);
    if (padding_fits(padding->left, extent_x) && padding_fits(padding->right, extent_x) &&
        padding_fits(padding->top, extent_y) && padding_fits(padding->bottom, extent_y))
        return true;
    return mica_reject(check, "padding %d, %d, %d, %d (left, top, right, bottom) should be smaller than the window",
                       padding->left, padding->top, padding->right, padding->bottom);
}

bool mica_check_window(struct mica_check *check, const struct mica_tensor *input, const struct mica_tensor *output)
{
    const struct mica_window *window = &check->op->window;
    if (!check_window_values(check, window) || !check_padding(check, window))
        return false;
    const struct mica_padding *padding = &window->padding;
    int64_t rows = mica_window_output(input->dims[1], mica_window_extent(window->kernel_y, window->dilation_y),
                                      window->stride_y, (int64_t)padding->top + padding->bottom);
    int64_t columns = mica_window_output(input->dims[2], mica_window_extent(window->kernel_x, window->dilation_x),
                                         window->stride_x, (int64_t)padding->left + padding->right);
    if (rows == output->dims[1] && columns == output->dims[2] && input->dims[0] == output->dims[0])
        return true;
    return mica_reject(check, "%s does not fit: the window makes %dx%lldx%lld of %s", mica_shape_text(output).text,
                       input->dims[0], (long long)rows, (long long)columns, mica_shape_text(input).text);
}

bool mica_rule_pool(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 1, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    struct mica_window *window = &check->op->window;
    if (window->dilation_x == 0)
        window->dilation_x = 1;
    if (window->dilation_y == 0)
        window->dilation_y = 1;
    if (!mica_check_rank(check, input, "input", 4) || !mica_check_rank(check, output, "output", 4) ||
        !mica_check_window(check, input, output))
        return false;
    if (window->dilation_x != 1 || window->dilation_y != 1)
        return mica_reject(check, "dilated pooling is not supported");
    if (input->dims[3] != output->dims[3])
        return mica_reject(check, "output %s should have the %d channels of the input", mica_shape_text(output).text,
                           input->dims[3]);
    return mica_check_same_quantization(check, input, output);
}
