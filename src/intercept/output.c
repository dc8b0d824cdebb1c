/* SPDX-License-Identifier: MIT */
/*
 * Folders and files. No descriptor is kept open: programs close descriptors
 * they don't know, and rely on the numbers of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

#define MOST_PROCESSES 10000u

static char root[IC_PATH / 2], folder[IC_PATH / 2 + 32];
static uint64_t limit, written;
static bool stopped, claimed;

uint64_t ic_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* As an absolute path: the program may go elsewhere. */
void ic_output_start(const char *path, uint64_t most)
{
    char here[IC_PATH / 4] = "";
    limit = most;
    if (path[0] != '/' && !getcwd(here, sizeof here))
        stopped = true;
    if (snprintf(root, sizeof root, "%s%s%s", here, path[0] == '/' ? "" : "/", path) >= (int)sizeof root)
        stopped = true;
}

void ic_output_reset(void)
{
    folder[0] = 0;
    stopped = claimed = false;
    written = 0;
}

bool ic_recording(void)
{
    return !stopped && ic_folder();
}

bool ic_stopped(void)
{
    return stopped;
}

bool ic_account(uint64_t bytes)
{
    if (stopped)
        return false;
    if (bytes > limit - written) {
        ic_stop("the limit of MICA_CAPTURE_LIMIT is reached");
        return false;
    }
    written += bytes;
    return true;
}

static bool write_all(int file, const void *data, size_t size)
{
    const char *bytes = data;
    while (size) {
        ssize_t done = write(file, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        size -= (size_t)done;
    }
    return true;
}

int ic_create(const char *path)
{
    return stopped ? -1 : ic_real()->open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

bool ic_append(int file, const void *data, size_t size)
{
    return ic_account(size) && write_all(file, data, size);
}

bool ic_finish(int file, bool good, uint64_t size)
{
    good = good && !ftruncate(file, (off_t)size);
    return !ic_real()->close(file) && good;
}

bool ic_write_file(const char *path, const void *data, size_t size)
{
    int file = ic_create(path);
    return file >= 0 && ic_finish(file, ic_append(file, data, size), size);
}

bool ic_replace_file(const char *path, const struct ic_text *text)
{
    char beside[IC_PATH + 64];
    if (text->failed || snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return false;
    unlink(beside);
    if (ic_write_file(beside, text->data, text->size) && !rename(beside, path))
        return true;
    unlink(beside);
    return false;
}

/* ---- the folder of the process ------------------------------------------- */

static void put_command(struct ic_text *text)
{
    char line[4096];
    int file = ic_real()->open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0)
        ic_real()->close(file);
    line[size > 0 ? size : 0] = 0;
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(line + at) + 1) {
        ic_text_put(text, at ? "," : "");
        ic_text_string(text, line + at);
    }
}

static void describe(struct ic_text *text)
{
    char machine[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(machine, sizeof machine, "%Y-%m-%dT%H:%M:%SZ", &utc);
    ic_text_put(text,
                "{\n \"format\":\"mica-capture\",\"version\":%u,\n \"pid\":%d,\"parent\":%d,\"time\":\"%s\","
                "\"clock\":\"CLOCK_MONOTONIC\",\"clock_ns\":%" PRIu64 ",\n \"command\":[",
                IC_FORMAT_VERSION, (int)getpid(), (int)getppid(), machine, ic_now());
    put_command(text);
    ic_text_put(text, "]\n}\n");
}

/* Whoever makes capture.json has the folder. */
static bool claim(const char *path, const struct ic_text *text)
{
    char name[IC_PATH];
    if (mkdir(path, 0777) && errno != EEXIST)
        return false;
    snprintf(name, sizeof name, "%s/capture.json", path);
    return ic_write_file(name, text->data, text->size);
}

/* The first process has the folder that was asked for, others a numbered one in it. */
static bool find_folder(const struct ic_text *text)
{
    snprintf(folder, sizeof folder, "%s", root);
    bool found = claim(folder, text);
    for (unsigned i = 1; !found && !stopped && i < MOST_PROCESSES && errno == EEXIST; i++) {
        snprintf(folder, sizeof folder, "%s/process_%04u", root, i);
        errno = 0;
        found = claim(folder, text);
    }
    return found;
}

const char *ic_folder(void)
{
    if (folder[0] || stopped)
        return folder[0] ? folder : NULL;
    struct ic_text text = {0};
    describe(&text);
    errno = 0;
    if (text.failed || !find_folder(&text)) {
        folder[0] = 0;
        stopped = true;
        fprintf(stderr, "mica capture: %s can't be written: %s\n", root, strerror(errno));
    }
    ic_text_free(&text);
    return folder[0] ? folder : NULL;
}

/* The first file of a process that submits has the folder itself: addresses of other files mean something else. */
bool ic_file_folder(unsigned number, char *path, size_t room)
{
    const char *own = ic_folder();
    if (!own)
        return false;
    if (claimed) {
        snprintf(path, room, "%s/file_%04u", own, number);
        return !mkdir(path, 0777);
    }
    snprintf(path, room, "%s", own);
    claimed = true;
    return true;
}

/* ---- raw.jsonl -------------------------------------------------------------- */

/* Written at once: what is there when the program crashes stays. */
static void append(const struct ic_text *line)
{
    char path[IC_PATH];
    snprintf(path, sizeof path, "%s/raw.jsonl", folder);
    int file = ic_real()->open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || !write_all(file, line->data, line->size))
        stopped = true;
    if (file >= 0)
        ic_real()->close(file);
}

void ic_raw_line(struct ic_text *line)
{
    ic_text_put(line, ",\"tid\":%ld}\n", (long)syscall(SYS_gettid));
    if (!line->failed && ic_recording() && ic_account(line->size))
        append(line);
    ic_text_free(line);
}

void ic_stop(const char *why)
{
    if (stopped)
        return;
    stopped = true;
    fprintf(stderr, "mica capture: recording stops: %s\n", why);
    if (!folder[0])
        return;
    struct ic_text line = {0};
    ic_text_put(&line, "{\"t\":%" PRIu64 ",\"call\":\"stop\",\"why\":", ic_now());
    ic_text_string(&line, why);
    ic_text_put(&line, "}\n");
    if (!line.failed)
        append(&line);
    ic_text_free(&line);
}
