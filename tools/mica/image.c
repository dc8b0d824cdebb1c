/* SPDX-License-Identifier: MIT */
#include "image.h"

#include "cli.h"
#include "file.h"
#include "resize.h"
#include "samples.h"
#include "tensor.h"

#include <gdk-pixbuf/gdk-pixbuf.h>
#include <stdlib.h>
#include <string.h>

/* A few compressed bytes may claim any size; these bounds keep a picture under a gigabyte, all stages together. */
#define PIXELS_MAX (64u << 20)
#define SIDE_MAX 65535

/* Also the largest file: no sane picture within PIXELS_MAX has more bytes. */
#define FILE_MAX ((size_t)512 << 20)

/* Only these: gdk-pixbuf may have loaders for many more formats, which nobody here asked for. */
static const char *format_of(const unsigned char *bytes, size_t size)
{
    if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "png";
    if (size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        return "jpeg";
    if (size >= 2 && memcmp(bytes, "BM", 2) == 0)
        return "bmp";
    return NULL;
}

/* Is the end of the data there? gdk-pixbuf takes what it has got of a PNG or JPEG for the whole. */
static bool has_end(const char *format, const unsigned char *bytes, size_t size)
{
    if (strcmp(format, "png") == 0)
        return memmem(bytes, size, "IEND", 4) != NULL;
    if (strcmp(format, "jpeg") != 0)
        return true;
    /* An end-of-image marker after the last scan; one before may be a thumbnail's. */
    size_t at = size;
    while (at >= 2 && memcmp(bytes + at - 2, "\xff\xda", 2) != 0)
        at--;
    return at >= 2 && memmem(bytes + at, size - at, "\xff\xd9", 2) != NULL;
}

/* What the loader's signals told. */
struct watch {
    int width, height;
    int top, bottom; /* rows that got pixels: [top, bottom) */
    bool refused;
};

static void on_size(GdkPixbufLoader *loader, int width, int height, void *user)
{
    struct watch *watch = user;
    *watch = (struct watch){.width = width, .height = height, .top = height};
    if (width > 0 && height > 0 && width <= SIDE_MAX && height <= SIDE_MAX &&
        (uint64_t)width * (uint64_t)height <= PIXELS_MAX)
        return;
    watch->refused = true;
    gdk_pixbuf_loader_set_size(loader, 0, 0); /* makes the loader give up before it allocates */
}

/* Holes that a damaged file leaves are black, not what the memory held before. */
static void on_prepared(GdkPixbufLoader *loader, void *user)
{
    gdk_pixbuf_fill(gdk_pixbuf_loader_get_pixbuf(loader), 0);
}

static void on_updated(GdkPixbufLoader *loader, int x, int y, int width, int height, void *user)
{
    struct watch *watch = user;
    watch->top = MIN(watch->top, y);
    watch->bottom = MAX(watch->bottom, y + height);
}

static int fail_picture(struct cli *cli, const char *path, const struct watch *watch, const GError *error)
{
    if (watch->refused)
        return cli_fail(cli, "'%s' has %d x %d pixels, more than the limit of %u million", path, watch->width,
                        watch->height, PIXELS_MAX >> 20);
    return cli_fail(cli, "cannot read picture '%s': %s", path, error ? error->message : "it is incomplete");
}

/* In pieces, so that a refused size stops it early. */
static bool feed(GdkPixbufLoader *loader, const unsigned char *bytes, size_t size, const struct watch *watch,
                 GError **error)
{
    const size_t piece = 64 * 1024;
    for (size_t at = 0; at < size; at += piece)
        if (watch->refused || !gdk_pixbuf_loader_write(loader, bytes + at, MIN(size - at, piece), error))
            return false;
    return !watch->refused;
}

/* The picture, to be released by the caller, or NULL. The loader must be closed in any case. */
static GdkPixbuf *load(GdkPixbufLoader *loader, const unsigned char *bytes, size_t size, struct watch *watch,
                       GError **error)
{
    g_signal_connect(loader, "size-prepared", G_CALLBACK(on_size), watch);
    g_signal_connect(loader, "area-prepared", G_CALLBACK(on_prepared), NULL);
    g_signal_connect(loader, "area-updated", G_CALLBACK(on_updated), watch);
    bool fed = feed(loader, bytes, size, watch, error);
    bool closed = gdk_pixbuf_loader_close(loader, fed ? error : NULL);
    bool whole = watch->top == 0 && watch->bottom == watch->height && !watch->refused;
    GdkPixbuf *pixbuf = fed && closed && whole ? gdk_pixbuf_loader_get_pixbuf(loader) : NULL;
    return pixbuf ? g_object_ref(pixbuf) : NULL;
}

static int decode(struct cli *cli, const char *path, const unsigned char *bytes, size_t size, GdkPixbuf **pixbuf)
{
    struct watch watch = {0};
    GError *error = NULL;
    const char *format = format_of(bytes, size);
    if (!format)
        return cli_fail(cli, "'%s' is no PNG, JPEG or BMP picture; for raw tensor bytes use --input", path);
    if (!has_end(format, bytes, size))
        return fail_picture(cli, path, &watch, NULL);
    GdkPixbufLoader *loader = gdk_pixbuf_loader_new_with_type(format, &error);
    *pixbuf = loader ? load(loader, bytes, size, &watch, &error) : NULL;
    int failed = *pixbuf ? 0 : fail_picture(cli, path, &watch, error);
    g_clear_error(&error);
    g_clear_object(&loader);
    return failed;
}

/* Brightness as ITU-R BT.601 weighs it, in 16 fractional bits. */
static uint8_t gray(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* Red, green and blue without the alpha, or gray. */
static void take_channels(const GdkPixbuf *pixbuf, struct cli_pixels *pixels)
{
    const uint8_t *rows = gdk_pixbuf_read_pixels(pixbuf);
    size_t stride = (size_t)gdk_pixbuf_get_rowstride(pixbuf), step = (size_t)gdk_pixbuf_get_n_channels(pixbuf);
    uint8_t *out = pixels->data;
    for (uint32_t y = 0; y < pixels->height; y++) {
        for (uint32_t x = 0; x < pixels->width; x++) {
            const uint8_t *rgb = rows + y * stride + x * step;
            if (pixels->channels == 1)
                *out++ = gray(rgb);
            else
                for (unsigned c = 0; c < 3; c++)
                    *out++ = rgb[c];
        }
    }
}

static int resize_picture(struct cli *cli, const GdkPixbuf *pixbuf, const struct cli_pixels *to)
{
    struct cli_pixels from = {
        .width = (uint32_t)gdk_pixbuf_get_width(pixbuf),
        .height = (uint32_t)gdk_pixbuf_get_height(pixbuf),
        .channels = to->channels,
    };
    from.data = malloc((size_t)from.width * from.height * from.channels);
    if (!from.data)
        return cli_fail_nomem(cli);
    take_channels(pixbuf, &from);
    int error = cli_resize(&from, to);
    free(from.data);
    return error ? cli_fail_nomem(cli) : 0;
}

/* *pixbuf is to be released. */
static int load_file(struct cli *cli, const char *path, GdkPixbuf **pixbuf)
{
    void *bytes;
    size_t size;
    int failed = cli_file_read(cli, path, FILE_MAX, &bytes, &size);
    *pixbuf = NULL;
    if (failed)
        return failed;
    if (size > FILE_MAX)
        failed = cli_fail(cli, "'%s' is larger than %zu MiB", path, FILE_MAX >> 20);
    else
        failed = decode(cli, path, bytes, size, pixbuf);
    free(bytes);
    return failed;
}

static int load_pixels(struct cli *cli, const char *path, const struct cli_pixels *to)
{
    GdkPixbuf *pixbuf;
    int failed = load_file(cli, path, &pixbuf);
    if (failed)
        return failed;
    failed = resize_picture(cli, pixbuf, to);
    g_object_unref(pixbuf);
    return failed;
}

int cli_image_pixels(struct cli *cli, const char *path, struct cli_pixels *pixels)
{
    GdkPixbuf *pixbuf;
    int failed = load_file(cli, path, &pixbuf);
    if (failed)
        return failed;
    uint32_t width = (uint32_t)gdk_pixbuf_get_width(pixbuf), height = (uint32_t)gdk_pixbuf_get_height(pixbuf);
    *pixels = (struct cli_pixels){width, height, 3, malloc((size_t)width * height * 3)};
    if (pixels->data)
        take_channels(pixbuf, pixels);
    g_object_unref(pixbuf);
    return pixels->data ? 0 : cli_fail_nomem(cli);
}

int cli_image_save(struct cli *cli, const char *path, const struct cli_pixels *pixels)
{
    GError *error = NULL;
    GdkPixbuf *pixbuf = gdk_pixbuf_new_from_data(pixels->data, GDK_COLORSPACE_RGB, FALSE, 8, (int)pixels->width,
                                                 (int)pixels->height, (int)pixels->width * 3, NULL, NULL);
    if (!pixbuf)
        return cli_fail_nomem(cli);
    gboolean saved = gdk_pixbuf_save(pixbuf, path, "png", &error, "compression", "9", NULL);
    int failed = saved ? 0 : cli_fail(cli, "cannot write picture '%s': %s", path, error ? error->message : "no memory");
    g_clear_error(&error);
    g_object_unref(pixbuf);
    return failed;
}

/* What the tensor takes: a batch of one, 1 or 3 channels, a type that pictures have a convention for. */
static int picture_shape(struct cli *cli, const struct mica_tensor_info *tensor, struct cli_map *map)
{
    bool typed = tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8 || tensor->type == MICA_TYPE_FLOAT32;
    if (typed && cli_map_of(cli, tensor, map) && (map->channels == 1 || map->channels == 3) &&
        cli_map_pixels(map) * map->channels == cli_element_count(tensor))
        return 0;
    char shape[CLI_SHAPE_SIZE];
    cli_shape_text(tensor, shape);
    return cli_fail(cli,
                    "the model's input '%s' (%s) takes no picture, which needs %s of uint8, int8 or float32%s; use "
                    "--input",
                    tensor->name, shape,
                    cli->channels_first ? "1 x 1 or 3 x height x width" : "1 x height x width x 1 or 3",
                    cli->options.layout ? " as --layout says" : "");
}

static int put_pixels(struct cli *cli, const char *path, const struct mica_tensor_info *tensor,
                      const struct cli_map *map, void *data)
{
    struct cli_samples samples;
    struct cli_pixels pixels = {map->width, map->height, map->channels, malloc(cli_element_count(tensor))};
    int failed = pixels.data ? cli_samples_choose(cli, tensor, map, true, &samples) : cli_fail_nomem(cli);
    if (!failed)
        failed = load_pixels(cli, path, &pixels);
    if (!failed) {
        cli_samples_put(&samples, tensor, map, pixels.data, data);
        cli->normalization = samples.name;
    }
    free(pixels.data);
    return failed;
}

int cli_image_load(struct cli *cli, const char *path, const struct mica_tensor_info *tensor, void **data)
{
    struct cli_map map;
    int failed = picture_shape(cli, tensor, &map);
    if (failed)
        return failed;
    *data = malloc(tensor->bytes);
    failed = *data ? put_pixels(cli, path, tensor, &map, *data) : cli_fail_nomem(cli);
    if (failed) {
        free(*data);
        *data = NULL;
    }
    return failed;
}
