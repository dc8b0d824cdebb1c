/* SPDX-License-Identifier: MIT */
/*
 * Which descriptors of the process are open files of the node or sync_files.
 * Each has a memfd of its own behind it, known again by its inode: copies made
 * by dup(), fcntl() or fork() need no care.
 */
#ifndef MICA_VNPU_TABLE_H
#define MICA_VNPU_TABLE_H

#include "vnpu/node.h"

enum vnpu_kind {
    VNPU_NOTHING, /* somebody else's descriptor */
    VNPU_NODE,
    VNPU_SYNC,
    VNPU_BUFFER, /* an exported buffer */
};

struct vnpu_object {
    enum vnpu_kind kind;
    struct vnpu_file *file; /* node; held until vnpu_release() */
    int outcome;            /* sync, buffer */
};

/* A new descriptor for an open file, which it takes over. */
int vnpu_node_create(struct vnpu_file *file, bool cloexec);

/* What a descriptor is. Quick while there are no nodes. */
struct vnpu_object vnpu_lookup(int fd);
void vnpu_release(const struct vnpu_object *object);

/* Tells that a descriptor was closed: what has no descriptor left is closed too. */
void vnpu_closed(void);
/* Could any descriptor be one of ours? */
bool vnpu_any(void);

#endif
