/* SPDX-License-Identifier: MIT */
/* Which descriptors are nodes of NPUs. The table is read without the lock and written with it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intercept/intercept.h"
#include "intercept/real.h"
#include "uapi/drm.h"

#define MOST_DESCRIPTORS 65536 /* of higher numbers nothing is recorded */

static _Atomic(struct ic_file *) table[MOST_DESCRIPTORS];
static struct ic_file no_node; /* looked at, and of no interest */
static unsigned file_count;
static bool given_up;

static bool in_table(int fd)
{
    return fd >= 0 && fd < MOST_DESCRIPTORS;
}

static struct ic_file *peek(int fd)
{
    return in_table(fd) ? atomic_load_explicit(&table[fd], memory_order_relaxed) : &no_node;
}

bool ic_watched(int fd)
{
    struct ic_file *file = peek(fd);
    return file && file != &no_node;
}

bool ic_unknown(int fd)
{
    return !peek(fd);
}

/* ---- what a path names ------------------------------------------------------- */

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

bool ic_node_path(const char *path)
{
    static const char *const nodes[] = {"dri/", "accel/", "galcore", "rknpu", "aipu"};
    if (!path || !starts_with(path, "/dev/"))
        return false;
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        if (starts_with(path + 5, nodes[i]))
            return true;
    return false;
}

/* The name that a DRM driver gives itself, "" where it gives none. */
static void drm_name(int fd, char *name, size_t room)
{
    struct mica_drm_version version = {.name = (uintptr_t)name, .name_length = room - 1};
    memset(name, 0, room);
    if (ic_real()->ioctl(fd, MICA_DRM_VERSION, &version))
        name[0] = 0;
    name[room - 1] = 0;
}

/* Other devices of /dev/dri are displays and graphics: not ours to look at. */
static const struct ic_driver *driver_of(int fd, const char *path)
{
    static const struct ic_driver *const drm[] = {&ic_etnaviv, &ic_rocket, &ic_rknpu};
    char name[32];
    const char *node = path + 5;
    if (starts_with(node, "galcore"))
        return &ic_galcore;
    if (starts_with(node, "rknpu"))
        return &ic_rknpu;
    if (starts_with(node, "aipu"))
        return &ic_aipu;
    drm_name(fd, name, sizeof name);
    for (size_t i = 0; i < sizeof drm / sizeof drm[0]; i++)
        if (!strcmp(name, drm[i]->name))
            return drm[i];
    return starts_with(node, "accel/") ? &ic_other : NULL;
}

/* ---- files -------------------------------------------------------------------- */

static struct ic_file *new_file(int fd, const struct ic_driver *driver)
{
    struct stat status;
    struct ic_file *file = fstat(fd, &status) ? NULL : calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->driver = driver;
    file->fd = fd;
    file->references = 1;
    file->number = file_count++;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->rdevice = status.st_rdev;
    return file;
}

static void log_file(const struct ic_file *file, int fd, const char *call, const char *path)
{
    struct ic_text line = {0};
    ic_text_put(&line, "{\"t\":%llu,\"call\":\"%s\",\"fd\":%d,\"file\":%u", (unsigned long long)ic_now(), call, fd,
                file->number);
    if (path) {
        ic_text_put(&line, ",\"driver\":\"%s\",\"path\":", file->driver->name);
        ic_text_string(&line, path);
    }
    ic_raw_line(&line);
}

static void destroy(struct ic_file *file)
{
    ic_submits_finish(file, false);
    ic_buffers_release(file);
    free(file->buffers);
    free(file);
}

void ic_file_release(struct ic_file *file)
{
    if (!file->references && !file->users)
        destroy(file);
}

/* -1: a closed one's number would soon be another file's. */
static int other_descriptor(const struct ic_file *file)
{
    int fd = MOST_DESCRIPTORS - 1;
    while (fd >= 0 && peek(fd) != file)
        fd--;
    return fd;
}

/* Alive: the descriptor still stands for the file, which can be asked a last time. */
static void drop(int fd, bool alive)
{
    struct ic_file *file = peek(fd);
    if (!in_table(fd))
        return;
    atomic_store(&table[fd], NULL);
    if (!file || file == &no_node)
        return;
    if (file->references == 1)
        ic_submits_finish(file, alive);
    file->references--;
    log_file(file, fd, "close", NULL);
    /* Our mappings would keep the device open. */
    if (!file->references)
        ic_buffers_release(file);
    else if (file->fd == fd)
        file->fd = other_descriptor(file);
    ic_file_release(file);
}

static void watch(int fd, const char *path)
{
    const struct ic_driver *driver = driver_of(fd, path);
    struct ic_file *file = driver && ic_recording() ? new_file(fd, driver) : NULL;
    drop(fd, false);
    atomic_store(&table[fd], file ? file : &no_node);
    if (file)
        log_file(file, fd, "open", path);
}

void ic_opened(int fd, const char *path)
{
    struct ic_guard guard;
    if (!in_table(fd) || !ic_enter(&guard))
        return;
    watch(fd, path);
    ic_leave(&guard);
}

/* A descriptor that came through exec(): what does it stand for? The lock held. */
bool ic_adopt(int fd)
{
    char name[64], path[256];
    if (!in_table(fd) || peek(fd))
        return ic_watched(fd);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(name, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    if (ic_node_path(path))
        watch(fd, path);
    else
        atomic_store(&table[fd], &no_node);
    return ic_watched(fd);
}

static void forget(int fd, bool alive)
{
    struct ic_guard guard;
    if (!in_table(fd) || !peek(fd) || !ic_enter(&guard))
        return;
    drop(fd, alive);
    ic_leave(&guard);
}

void ic_forget(int fd)
{
    forget(fd, false);
}

void ic_closing(int fd)
{
    forget(fd, true);
}

void ic_closing_range(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < MOST_DESCRIPTORS; fd++)
        ic_closing((int)fd);
}

void ic_duplicated(int from, int to)
{
    struct ic_guard guard;
    if (from == to || !in_table(to) || (!ic_watched(from) && !peek(to)) || !ic_enter(&guard))
        return;
    drop(to, false);
    struct ic_file *file = ic_file_of(from);
    if (file) {
        file->references++;
        atomic_store(&table[to], file);
        log_file(file, to, "dup", NULL);
    }
    ic_leave(&guard);
}

/* Closed behind our back and opened as something else? */
static bool is_same(int fd, const struct ic_file *file)
{
    struct stat status;
    return !fstat(fd, &status) && status.st_dev == file->device && status.st_ino == file->inode &&
           status.st_rdev == file->rdevice;
}

struct ic_file *ic_file_of(int fd)
{
    struct ic_file *file = ic_watched(fd) ? peek(fd) : NULL;
    if (!file)
        return NULL;
    if (is_same(fd, file)) {
        file->fd = fd;
        return file;
    }
    drop(fd, false);
    return NULL;
}

static bool seen_before(int fd, const struct ic_file *file)
{
    for (int i = 0; i < fd; i++)
        if (peek(i) == file)
            return true;
    return false;
}

/* In a child of fork() the files are the parent's too: what they wrote down is not this process's. */
static void restart(struct ic_file *file)
{
    ic_submits_forget(file);
    file->folder[0] = 0;
    file->submit_count = file->failed_count = 0;
    file->users = 0;
    for (size_t i = 0; i < file->buffer_count; i++) {
        file->buffers[i].dumped = false;
        ic_buffer_hide(file, &file->buffers[i]); /* drivers may keep mappings from children */
    }
}

void ic_flush_all(bool forget)
{
    given_up = false;
    for (int fd = 0; fd < MOST_DESCRIPTORS; fd++) {
        if (!ic_watched(fd) || seen_before(fd, peek(fd)))
            continue;
        if (forget)
            restart(peek(fd));
        else
            ic_submits_finish(peek(fd), true);
    }
}

/* Our mappings would keep what the program gives back, of which we don't hear any more. */
void ic_give_up(void)
{
    for (int fd = 0; !given_up && fd < MOST_DESCRIPTORS; fd++) {
        if (!ic_watched(fd))
            continue;
        ic_submits_forget(peek(fd));
        ic_buffers_release(peek(fd));
    }
    given_up = true;
}

void ic_forget_views(const void *address, size_t size)
{
    uintptr_t from = (uintptr_t)address;
    for (int fd = 0; fd < MOST_DESCRIPTORS; fd++) {
        struct ic_file *file = ic_watched(fd) ? peek(fd) : NULL;
        for (size_t i = 0; file && i < file->buffer_count; i++) {
            struct ic_buffer *buffer = &file->buffers[i];
            uintptr_t view = (uintptr_t)buffer->view;
            if (!view || buffer->view_ours || view >= from + size || from >= view + buffer->view_size)
                continue;
            buffer->view = NULL;
            atomic_fetch_sub(&ic_program_views, 1);
        }
    }
}
