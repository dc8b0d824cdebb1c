/* SPDX-License-Identifier: MIT */
/* Compared layers as a plot: a bar a layer, as long as the layer's error, on a scale of powers of ten. */
#include "layers.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Pixels. */
#define ROW 18
#define TOP 64
#define LABELS 340
#define BARS 520
#define RIGHT 120

/* The scale: powers of ten of the error in percent. */
#define LEAST (-3)
#define MOST 2

/* What a stranger's file calls things: as XML, printable ASCII. */
static void put_text(FILE *out, const char *text, size_t limit)
{
    for (size_t i = 0; text[i] && i < limit; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (c == '"')
            fputs("&quot;", out);
        else
            fputc(c < ' ' || c >= 0x7f ? '?' : c, out);
    }
}

/* Of 0 nothing; of anything else at least a stub, at most the scale. */
static double length_of(double error)
{
    if (!(error > 0))
        return 0;
    double place = (log10(fmin(error, 1e9) * 100) - LEAST) / (MOST - LEAST);
    return BARS * fmin(fmax(place, 0.008), 1);
}

static void put_bar(FILE *out, double y, double height, const char *color, const struct cli_difference *difference,
                    const char *what)
{
    double length = length_of(cli_difference_error(difference));
    if (length > 0)
        fprintf(
            out,
            "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s: error %.4g %%, largest "
            "difference %.6g, %.3f %% differ, cosine %.6f</title></rect>\n",
            LABELS, y, length, height, color, what, 100 * cli_difference_error(difference), difference->largest,
            100 * cli_difference_share(difference), cli_difference_cosine(difference));
}

static void put_error(FILE *out, double error)
{
    if (error > 0)
        fprintf(out, "%.2g %%", 100 * error);
    else
        fputs("exact", out);
}

static void put_layer(FILE *out, const struct cli_layer *layer, size_t row)
{
    double y = TOP + (double)row * ROW;
    bool npu = layer->partition >= 0;
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\"%s>%zu ", LABELS - 8, y + 12.5,
            npu ? "" : " fill=\"#888\"", layer->operation);
    put_text(out, layer->info.type, 28);
    fputs(npu ? "</text>\n" : " (CPU)</text>\n", out);
    put_bar(out, y + 3, 12, "#b9cfe4", &layer->chained, "chained");
    if (npu)
        put_bar(out, y + 6, 6, "#1f5f99", &layer->alone, "alone");
    double alone = npu ? cli_difference_error(&layer->alone) : 0, chained = cli_difference_error(&layer->chained);
    double end = LABELS + fmax(length_of(alone), length_of(chained)) + 6;
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#555\">", end, y + 12.5);
    if (npu)
        put_error(out, alone);
    if (npu && chained > 0)
        fputs(" / ", out);
    if (!npu || chained > 0)
        put_error(out, chained);
    fputs("</text>\n", out);
}

static void put_scale(FILE *out, double bottom)
{
    for (int power = LEAST; power <= MOST; power++) {
        double x = LABELS + (double)BARS * (power - LEAST) / (MOST - LEAST);
        fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", x, TOP - 4, x, bottom);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g %%</text>\n", x, TOP - 9,
                pow(10, power));
    }
}

static void put_plot(struct cli *cli, const struct cli_layers *layers, FILE *out)
{
    double bottom = TOP + (double)layers->count * ROW, width = LABELS + BARS + RIGHT;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"12\" y=\"20\" "
            "font-size=\"14\">",
            width, bottom + 12);
    const char *path = cli->options.operands.items[0], *slash = strrchr(path, '/');
    put_text(out, slash ? slash + 1 : path, 80);
    fprintf(out, " on %s: RMS of the difference to TFLite's reference, of the RMS of the values</text>\n",
            mica_device_name(cli->device));
    fputs("<rect x=\"12\" y=\"31\" width=\"12\" height=\"6\" fill=\"#1f5f99\"/><text x=\"28\" y=\"38\">alone (exact "
          "inputs)</text><rect x=\"160\" y=\"28\" width=\"12\" height=\"12\" fill=\"#b9cfe4\"/><text x=\"176\" "
          "y=\"38\">chained</text>\n",
          out);
    put_scale(out, bottom);
    for (size_t i = 0; i < layers->count; i++)
        put_layer(out, &layers->items[i], i);
    fputs("</svg>\n", out);
}

int cli_layers_plot(struct cli *cli, const struct cli_layers *layers, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return cli_fail(cli, "cannot write '%s': %s", path, strerror(errno));
    put_plot(cli, layers, out);
    bool failed = ferror(out) != 0;
    errno = 0;
    failed |= fclose(out) != 0;
    return failed ? cli_fail(cli, "cannot write '%s': %s", path, errno ? strerror(errno) : "write error") : 0;
}
