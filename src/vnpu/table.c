/* SPDX-License-Identifier: MIT */
#include "vnpu/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vnpu/real.h"

struct entry {
    enum vnpu_kind kind;
    dev_t device;
    ino_t inode;
    struct vnpu_file *file;
    int outcome;
    unsigned users; /* calls under way */
    bool closed;    /* no descriptor is left: goes when the last user does */
    struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static atomic_uint count;

/*
 * The process that this memory belongs to. A child of vfork() runs in its parent's memory with descriptors of its own:
 * what it closes before it becomes another program is still open in the parent.
 */
static atomic_int owner;

static void own(void)
{
    atomic_store(&owner, getpid());
}

/* A child must not find a lock that a thread held which it doesn't have. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    vnpu_buffers_lock();
}

static void after_fork(void)
{
    vnpu_buffers_unlock();
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    own();
    for (struct entry *entry = entries; entry; entry = entry->next) {
        entry->users = 0;
        if (entry->kind == VNPU_NODE)
            vnpu_file_forked(entry->file);
    }
    after_fork();
}

static void begin(void)
{
    own();
    pthread_atfork(before_fork, after_fork, in_child);
}

bool vnpu_any(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed) != 0 && atomic_load(&owner) == getpid();
}

/* The real descriptor's, not what the program is shown. */
static bool identify(int fd, struct stat *status)
{
    return vnpu_real_fstat(fd, status) == 0 && S_ISREG(status->st_mode);
}

static int add(struct entry *made, const char *name, bool cloexec)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat status;
    pthread_once(&once, begin);
    int fd = memfd_create(name, cloexec ? MFD_CLOEXEC : 0);
    if (fd < 0)
        return -errno;
    if (!identify(fd, &status)) {
        vnpu_real_close(fd);
        return -EIO;
    }
    made->device = status.st_dev;
    made->inode = status.st_ino;
    pthread_mutex_lock(&lock);
    made->next = entries;
    entries = made;
    atomic_fetch_add(&count, 1);
    pthread_mutex_unlock(&lock);
    return fd;
}

int vnpu_node_create(struct vnpu_file *file, bool cloexec)
{
    struct entry *made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    *made = (struct entry){.kind = VNPU_NODE, .file = file};
    int fd = add(made, file->driver->node, cloexec);
    if (fd < 0)
        free(made);
    return fd;
}

int vnpu_sync_create(int outcome)
{
    struct entry *made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    *made = (struct entry){.kind = VNPU_SYNC, .outcome = outcome};
    int fd = add(made, "sync_file", true);
    if (fd < 0)
        free(made);
    return fd;
}

void vnpu_sync_drop(int sync)
{
    vnpu_real_close(sync);
    vnpu_closed();
}

/* ---- what a descriptor is ---------------------------------------------------------- */

static struct entry *find(const struct stat *status)
{
    struct entry *entry = entries;
    while (entry && (entry->device != status->st_dev || entry->inode != status->st_ino))
        entry = entry->next;
    return entry;
}

struct vnpu_object vnpu_lookup(int fd)
{
    struct vnpu_object object = {.kind = VNPU_NOTHING};
    struct stat status;
    if (!vnpu_any() || !identify(fd, &status))
        return object;
    pthread_mutex_lock(&lock);
    struct entry *entry = find(&status);
    if (entry) {
        object = (struct vnpu_object){entry->kind, entry->file, entry->outcome};
        entry->users += entry->kind == VNPU_NODE;
    }
    pthread_mutex_unlock(&lock);
    if (!entry && vnpu_buffer_outcome(&status, &object.outcome))
        object.kind = VNPU_BUFFER;
    return object;
}

/* Takes entries nobody can reach any more out of the table. */
static struct entry *take_finished(void)
{
    struct entry *finished = NULL;
    for (struct entry **link = &entries; *link;) {
        struct entry *entry = *link;
        if (!entry->closed || entry->users) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        entry->next = finished;
        finished = entry;
        atomic_fetch_sub(&count, 1);
    }
    return finished;
}

static void finish(struct entry *entry)
{
    for (struct entry *next; entry; entry = next) {
        next = entry->next;
        if (entry->kind == VNPU_NODE)
            vnpu_file_close(entry->file);
        free(entry);
    }
}

void vnpu_release(const struct vnpu_object *object)
{
    if (object->kind != VNPU_NODE)
        return;
    pthread_mutex_lock(&lock);
    for (struct entry *entry = entries; entry; entry = entry->next)
        if (entry->file == object->file)
            entry->users--;
    struct entry *finished = take_finished();
    pthread_mutex_unlock(&lock);
    finish(finished);
}

/* Which entries still have a descriptor: the process's list of them says it. */
void vnpu_closed(void)
{
    DIR *list = opendir("/proc/self/fd");
    if (!list)
        return;
    pthread_mutex_lock(&lock);
    for (struct entry *entry = entries; entry; entry = entry->next)
        entry->closed = true;
    for (struct dirent *item; (item = readdir(list));) {
        struct stat status;
        struct entry *entry;
        if (identify(atoi(item->d_name), &status) && (entry = find(&status)))
            entry->closed = false;
    }
    struct entry *finished = take_finished();
    pthread_mutex_unlock(&lock);
    closedir(list);
    finish(finished);
}
