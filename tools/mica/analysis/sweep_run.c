/* SPDX-License-Identifier: MIT */
/* One point of a sweep: its folder, its model, its command. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "file.h"
#include "grid.h"

#define PATH_BYTES 1024u

extern char **environ;

/* ---- the model's parameters ------------------------------------------------------------ */

static bool set_number(const char *text, uint32_t *number)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return *text >= '0' && *text <= '9' && !*end && !errno && value <= UINT32_MAX;
}

static bool set_choice(const char *text, const char *no, const char *yes, bool *choice)
{
    *choice = strcmp(text, yes) == 0;
    return *choice || strcmp(text, no) == 0;
}

/* False: not such a value. *known: is it a parameter of the model at all? */
static bool set_parameter(struct mica_model_shape *shape, const char *name, const char *value, bool *known)
{
    const struct {
        const char *name;
        uint32_t *first, *second;
    } numbers[] = {
        {"size", &shape->height, &shape->width},
        {"height", &shape->height, NULL},
        {"width", &shape->width, NULL},
        {"kernel", &shape->kernel, NULL},
        {"stride", &shape->stride, NULL},
        {"in", &shape->in, NULL},
        {"out", &shape->out, NULL},
        {"channels", &shape->in, &shape->out},
        {"seed", &shape->seed, NULL},
    };
    *known = true;
    if (strcmp(name, "operation") == 0)
        return set_choice(value, "conv2d", "depthwise", &shape->depthwise);
    if (strcmp(name, "type") == 0)
        return set_choice(value, "uint8", "int8", &shape->is_signed);
    if (strcmp(name, "padding") == 0)
        return set_choice(value, "same", "valid", &shape->valid);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) != 0)
            continue;
        bool good = set_number(value, numbers[i].first);
        if (numbers[i].second)
            *numbers[i].second = *numbers[i].first;
        return good;
    }
    *known = false;
    return true;
}

/* Does a word of the command have {name}? */
static bool command_uses(const struct cli *cli, const char *name)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "{%s}", name);
    for (size_t i = 0; i < cli->options.operands.count; i++)
        if (strstr(cli->options.operands.items[i], wanted))
            return true;
    return false;
}

static int make_shape(struct cli_sweep *sweep, size_t point, struct mica_model_shape *shape)
{
    *shape =
        (struct mica_model_shape){.height = 8, .width = 8, .kernel = 3, .stride = 1, .in = 16, .out = 16, .seed = 1};
    for (size_t i = 0; i < sweep->sweep.axis_count; i++) {
        const char *name = sweep->sweep.axes[i].name, *value = mica_sweep_value(&sweep->sweep, i, point);
        bool known;
        if (!set_parameter(shape, name, value, &known))
            return cli_usage(sweep->cli, "%s can't be '%s'", name, value);
        if (!known && !command_uses(sweep->cli, name))
            return cli_usage(sweep->cli, "'%s' is no parameter of the model, and COMMAND has no {%s}", name, name);
    }
    return 0;
}

/* ---- folders ------------------------------------------------------------------------------ */

/* Files of an older sweep among new ones would be taken for this one's. */
int cli_sweep_folder(struct cli_sweep *sweep)
{
    if (mkdir(sweep->folder, 0777) == 0)
        return 0;
    DIR *directory = errno == EEXIST ? opendir(sweep->folder) : NULL;
    if (!directory)
        return cli_fail(sweep->cli, "the folder %s can't be made: %s", sweep->folder, strerror(errno));
    bool empty = true;
    for (const struct dirent *entry; (entry = readdir(directory));)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(directory);
    return empty ? 0 : cli_fail(sweep->cli, "%s is not empty: name another folder with --output", sweep->folder);
}

void cli_sweep_name(const struct mica_sweep *sweep, size_t point, char *text, size_t size)
{
    *text = 0;
    for (size_t i = 0, used = 0; i < sweep->axis_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s=%s", i ? " " : "", sweep->axes[i].name,
                                 mica_sweep_value(sweep, i, point));
}

/* ---- the command ----------------------------------------------------------------------------- */

struct command {
    struct cli_sweep *sweep;
    size_t point;
    char model[PATH_BYTES], capture[PATH_BYTES], output[PATH_BYTES];
};

/* What stands for {name}; NULL: nothing does. */
static const char *value_of(const struct command *command, const char *name, size_t length)
{
    const struct mica_sweep *sweep = &command->sweep->sweep;
    if (length == 5 && strncmp(name, "model", length) == 0)
        return command->model;
    if (length == 7 && strncmp(name, "capture", length) == 0)
        return command->capture;
    for (size_t i = 0; i < sweep->axis_count; i++)
        if (strlen(sweep->axes[i].name) == length && strncmp(name, sweep->axes[i].name, length) == 0)
            return mica_sweep_value(sweep, i, command->point);
    return NULL;
}

/* A word with its placeholders filled in; other braces stay. NULL: memory ran out. */
static char *fill_in(const struct command *command, const char *word)
{
    char *made = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&made, &size);
    if (!stream)
        return NULL;
    while (*word) {
        const char *end = *word == '{' ? strchr(word, '}') : NULL;
        const char *value = end ? value_of(command, word + 1, (size_t)(end - word) - 1) : NULL;
        if (value)
            fputs(value, stream);
        else
            fputc(*word, stream);
        word = value ? end + 1 : word + 1;
    }
    bool failed = ferror(stream);
    failed |= fclose(stream) != 0;
    if (failed) {
        free(made);
        made = NULL;
    }
    return made;
}

static void free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static char **make_words(const struct command *command)
{
    const struct cli_list *operands = &command->sweep->cli->options.operands;
    char **words = calloc(operands->count + 1, sizeof *words);
    for (size_t i = 0; words && i < operands->count; i++) {
        words[i] = fill_in(command, operands->items[i]);
        if (words[i])
            continue;
        free_words(words);
        return NULL;
    }
    return words;
}

/* Its output goes to a file, its input is empty. 0, its exit code, or a negative errno. */
static int spawn(const char *output, char **words)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0, error = posix_spawn_file_actions_init(&actions);
    if (error)
        return -error;
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!error)
        error = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return -error;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(struct command *command, bool *done)
{
    struct cli *cli = command->sweep->cli;
    char name[256];
    char **words = make_words(command);
    if (!words)
        return cli_fail_nomem(cli);
    int result = spawn(command->output, words), failed = 0;
    cli_sweep_name(&command->sweep->sweep, command->point, name, sizeof name);
    if (result < 0)
        failed = cli_fail(cli, "%s can't be started: %s", words[0], strerror(-result));
    else if (result > 0)
        cli_note(cli, "%s: the command ended with code %d; see %s", name, result, command->output);
    *done = result == 0;
    free_words(words);
    return failed;
}

int cli_sweep_point(struct cli_sweep *sweep, size_t point, bool *done)
{
    struct command command = {.sweep = sweep, .point = point};
    struct mica_model_shape shape;
    uint8_t *data;
    size_t size;
    char folder[PATH_BYTES - 32];
    if (snprintf(folder, sizeof folder, "%s/%04zu", sweep->folder, point) >= (int)sizeof folder)
        return cli_fail(sweep->cli, "%s: the path is too long", sweep->folder);
    snprintf(command.model, sizeof command.model, "%s/model.tflite", folder);
    snprintf(command.capture, sizeof command.capture, "%s/capture", folder);
    snprintf(command.output, sizeof command.output, "%s/output.txt", folder);
    int failed = make_shape(sweep, point, &shape);
    if (!failed && mica_model_write(&shape, &sweep->log, &data, &size))
        failed = cli_analysis_fail(sweep->cli, &sweep->log);
    if (failed)
        return failed;
    if (mkdir(folder, 0777))
        failed = cli_fail(sweep->cli, "the folder %s can't be made: %s", folder, strerror(errno));
    if (!failed)
        failed = cli_file_write(sweep->cli, command.model, data, size);
    free(data);
    return failed ? failed : run(&command, done);
}
