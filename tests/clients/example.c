/* SPDX-License-Identifier: MIT */
/*
 * The smallest program that runs a model with libmica: raw input bytes from a
 * file (zeros without one), the strongest entry of the first output on stdout.
 *
 *     example MODEL.tflite [INPUT.bin [DEVICE]]
 */
#include <mica/mica.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const mica_context *context, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, mica_last_error(context));
    return 1;
}

static void *read_input(const char *path, size_t size)
{
    void *data = calloc(1, size);
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (path && (!file || !data || fread(data, 1, size, file) != size)) {
        fprintf(stderr, "%s: not %zu bytes\n", path, size);
        free(data);
        data = NULL;
    }
    if (file)
        fclose(file);
    return data;
}

/* Works for one-byte types; the order of quantized values is that of the real ones. */
static void print_top1(const struct mica_tensor_info *info, const uint8_t *data)
{
    int best_value = -256;
    size_t best = 0;
    for (size_t i = 0; i < info->bytes; i++) {
        int value = info->type == MICA_TYPE_INT8 ? (int8_t)data[i] : data[i];
        if (value > best_value) {
            best = i;
            best_value = value;
        }
    }
    printf("%zu %.4f\n", best, (double)info->scale * (best_value - info->zero_point));
}

static int run(mica_context *context, const char *path, const char *input_path, const char *device_name)
{
    mica_device *device = NULL;
    mica_model *model = NULL;
    mica_executable *executable = NULL;
    mica_session *session = NULL;
    struct mica_tensor_info input = {0}, output = {0};
    int error = 1;
    if (mica_device_open(context, device_name, &device))
        fail(context, "device");
    else if (mica_model_load(context, path, &model) || mica_model_input(model, 0, &input) ||
             mica_model_output(model, 0, &output))
        fail(context, "model");
    else if (mica_executable_compile(model, device, &executable) || mica_session_create(executable, &session))
        fail(context, "executable");
    else {
        void *input_data = read_input(input_path, input.bytes), *output_data = malloc(output.bytes);
        if (!input_data || !output_data)
            fprintf(stderr, "no input or no memory\n");
        else if (mica_session_set_input(session, 0, input_data, input.bytes) || mica_session_invoke(session) ||
                 mica_session_get_output(session, 0, output_data, output.bytes))
            fail(context, "session");
        else {
            print_top1(&output, output_data);
            error = 0;
        }
        free(input_data);
        free(output_data);
    }
    mica_session_destroy(session);
    mica_executable_destroy(executable);
    mica_model_destroy(model);
    mica_device_close(device);
    return error;
}

int main(int argc, char **argv)
{
    mica_context *context;
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL.tflite [INPUT.bin [DEVICE]]\n", argv[0]);
        return 2;
    }
    if (mica_context_create(&context))
        return 1;
    int error = run(context, argv[1], argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : "auto");
    mica_context_destroy(context);
    return error;
}
