/* SPDX-License-Identifier: MIT */
/*
 * A device node that is not there: what the kernel's driver would answer, and
 * a simulator that runs the jobs. One struct vnpu_file is one open file: its
 * own buffers, its own address space, its own simulator. Jobs run inside the
 * submission, so that every fence is signalled when its caller sees it.
 */
#ifndef MICA_VNPU_NODE_H
#define MICA_VNPU_NODE_H

#include <pthread.h>
#include <sys/stat.h>

#include "npu/npu.h"

/* A buffer object. Its memory is a memfd, which the process maps and the device's address space maps too. */
struct vnpu_buffer {
    uint32_t handle;
    int memory;    /* memfd; -1: of the process, `user` */
    uint64_t size; /* multiple of the page */
    dev_t device;  /* of the memfd, with its inode: how an export is known again */
    ino_t inode;
    bool mapped; /* in the device's address space, at `address` */
    uint64_t address;
    bool listed; /* in the submission that runs */
    int outcome; /* of the last job that wrote it: 0 or -ECANCELED */
    void *user;  /* memory of the process, copied in and out around jobs */
    bool user_read_only;
    uint64_t offset; /* what mmap() takes: a fake, as the kernel's is */
    struct vnpu_buffer *next, *next_of_all;
};

struct vnpu_file {
    const struct vnpu_driver *driver;
    const struct mica_chip *chip;
    struct mica_device_memory memory;
    struct mica_log log;
    struct mica_threads *threads;
    void *sim;
    pthread_mutex_t lock;
    struct vnpu_buffer *buffers;
    bool dead; /* a copy made by fork() while a job ran: nothing of it can be used */
    uint32_t last_handle, last_fence;
    uint64_t next_offset;
};

/* What one kernel driver answers. Calls return 0 or a negative errno, the file's lock held. */
struct vnpu_driver {
    const char *name, *date, *description;
    int32_t version[3];
    bool can_import;
    const char *folder, *node; /* "/dev/dri", "renderD128" */
    uint32_t major, minor;     /* of the device number */
    /* -ENOTTY: no such request. */
    int (*call)(struct vnpu_file *file, unsigned long request, void *argument);
};

extern const struct vnpu_driver vnpu_etnaviv, vnpu_rocket;

/* The driver of a chip; NULL: none is known. */
const struct vnpu_driver *vnpu_driver_of(const struct mica_chip *chip);

int vnpu_file_open(const struct mica_chip *chip, struct vnpu_file **file);
void vnpu_file_close(struct vnpu_file *file);

/* Any request on the node: the DRM core's, then the driver's. Takes the lock. */
int vnpu_file_call(struct vnpu_file *file, unsigned long request, void *argument);

/* In a child of fork(): no thread is there that had the lock. */
void vnpu_file_forked(struct vnpu_file *file);

/* A buffer as mmap() means it: what stands at `offset`. A descriptor for the caller to close; -1: nothing. */
int vnpu_file_map(struct vnpu_file *file, uint64_t offset, uint64_t size, uint64_t *inside);

/* Outcome of the last job into the buffer with that inode, of whatever file; false: there is none. */
bool vnpu_buffer_outcome(const struct stat *status, int *outcome);

/* Around fork(). */
void vnpu_buffers_lock(void);
void vnpu_buffers_unlock(void);

/* ---- for the drivers (buffer.c), the file's lock held ------------------------------ */

/* A new buffer of `size` bytes, 0 among them; *handle is new. */
int vnpu_buffer_create(struct vnpu_file *file, uint64_t size, struct vnpu_buffer **buffer);
struct vnpu_buffer *vnpu_buffer_find(const struct vnpu_file *file, uint32_t handle);
int vnpu_buffer_close(struct vnpu_file *file, uint32_t handle);
void vnpu_buffer_set_outcome(struct vnpu_buffer *buffer, int outcome);
/* Another memory (of a descriptor that it takes over), or none but the process's. */
void vnpu_buffer_replace(struct vnpu_buffer *buffer, int memory, const struct stat *status);
/* Puts a buffer into the device's address space (it was nowhere), or takes it out. */
int vnpu_buffer_place(struct vnpu_file *file, struct vnpu_buffer *buffer, uint64_t address);
void vnpu_buffer_unplace(struct vnpu_file *file, struct vnpu_buffer *buffer);
/* Lowest free range of `size` bytes from `first` on; false: none. */
bool vnpu_find_range(const struct vnpu_file *file, uint64_t first, uint64_t size, uint64_t *address);

/*
 * Runs a stream; reads and writes reach the listed buffers only. What the kernel would tell of the job: 0, or
 * -ECANCELED for a job that it killed.
 */
int vnpu_run(struct vnpu_file *file, const uint32_t *stream, size_t words);

/* A descriptor that is a sync_file of finished work with such an outcome, or a negative errno. (table.c) */
int vnpu_sync_create(int outcome);
/* Closes one that nobody was told of. */
void vnpu_sync_drop(int sync);

#endif
