/* SPDX-License-Identifier: MIT */
/*
 * The interceptor: preloaded into a program, it writes down what the program
 * tells the kernel's NPU drivers. Recording happens in two hooks around the
 * real call, under one lock that is never held during the call itself; errno,
 * results and timing order are the program's own. See docs/reverse-engineering.md.
 */
#ifndef MICA_INTERCEPT_H
#define MICA_INTERCEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "intercept/text.h"

#define IC_FORMAT_VERSION 2u /* of what is written; captures without a version are of the first */
#define IC_PATH 1024u
#define IC_MOST_ARGUMENT 4096u /* a page: no driver has more; larger ones are recorded without their bytes */

/* ---- the process (process.c) ------------------------------------------- */

enum ic_state { IC_UNKNOWN, IC_OFF, IC_ON };
extern atomic_int ic_state;

/* Decides at the first call, whoever makes it: constructors of other libraries may come before ours. */
enum ic_state ic_start(void);

static inline bool ic_on(void)
{
    int state = atomic_load_explicit(&ic_state, memory_order_relaxed);
    return state != IC_OFF && (state == IC_ON || ic_start() == IC_ON);
}

/* What a hook must put back. */
struct ic_guard {
    int error, cancel;
};

/*
 * Takes the lock. False where nothing may be recorded: in our own calls, in a
 * signal handler that interrupted them, and in a child that shares our memory (vfork).
 */
bool ic_enter(struct ic_guard *guard);
void ic_leave(const struct ic_guard *guard);

/* ---- what is written (output.c), the lock held -------------------------- */

/* False: nothing is recorded any more (limit, a full disk). */
bool ic_recording(void);
bool ic_stopped(void);
/* Folder of this process, made at the first call; NULL when there is none. */
const char *ic_folder(void);
/* A new process after fork(): another folder. */
void ic_output_reset(void);
void ic_output_start(const char *root, uint64_t limit);
/* Stops recording for good and says why. */
void ic_stop(const char *why);

bool ic_write_file(const char *path, const void *data, size_t size);
/* The same in steps: a descriptor or -1; then data; then whether all went well. Files end with a hole up to `size`. */
int ic_create(const char *path);
bool ic_append(int file, const void *data, size_t size);
bool ic_finish(int file, bool good, uint64_t size);
/* A folder for the submissions of an open file. */
bool ic_file_folder(unsigned number, char *path, size_t room);
/* Puts a text in place of a file as a whole: a crash leaves the old one or the new one. */
bool ic_replace_file(const char *path, const struct ic_text *text);
/* Counts bytes about to be written against the limit. */
bool ic_account(uint64_t bytes);
/* A line of raw.jsonl: what stands between the braces. Ends with the time and the thread. */
void ic_raw_line(struct ic_text *line);

uint64_t ic_now(void); /* ns, CLOCK_MONOTONIC */

/* ---- memory of the program (user.c) ------------------------------------- */

/* False where the program has no such memory. */
bool ic_copy(void *to, uint64_t from, size_t size);
/* A copy to be freed; NULL also when there is more than `most` bytes. */
void *ic_copy_array(uint64_t from, size_t count, size_t size, size_t most);

/* ---- open files and buffers --------------------------------------------- */

struct ic_buffer {
    uint32_t handle, flags;
    uint64_t serial; /* handles come again */
    uint64_t size, address;
    uint64_t object; /* rknpu: by which submissions name it */
    uint64_t user;   /* memory of the program: its address; 0: the kernel's */
    uint64_t offset; /* for mmap() of `map_fd`, or of the node itself where that is -1 */
    bool offset_known;
    int map_fd;
    const uint8_t *view; /* mapped here */
    size_t view_size;
    bool view_ours; /* else the program's own mapping */
    bool dumped;    /* a file has its contents: */
    bool dump_after;
    uint32_t dump_submit;
    uint64_t sum[2];
    size_t nonzero_end;
};

struct ic_file {
    const struct ic_driver *driver;
    int fd; /* of the last call; several may stand for the file */
    unsigned references, users, number;
    dev_t device, rdevice;
    ino_t inode;
    struct ic_buffer *buffers; /* by rising handle */
    size_t buffer_count, buffer_room, view_count;
    struct ic_submit *pending; /* accepted by the kernel, contents afterwards not yet seen */
    uint32_t submit_count, failed_count;
    char folder[IC_PATH]; /* of its submissions; empty: none yet */
    char chip[32];
    uint32_t identity[5]; /* model, revision, product, customer, eco */
    bool identified;
};

struct ic_call {
    struct ic_file *file;
    int fd;
    unsigned long request;
    uint64_t pointer;
    size_t size;              /* bytes of the argument */
    bool copied;              /* they are in `argument` */
    uint8_t *argument;        /* before the call: IC_MOST_ARGUMENT bytes of room */
    uint64_t start, end;      /* ns */
    int result, error;        /* error: errno where the result is negative */
    struct ic_submit *submit; /* recorded by before() */
    struct ic_text note;      /* more members for the raw line */
};

struct ic_driver {
    const char *name;
    bool program_views; /* contents are read through the program's own mappings */
    /* Of requests without a size in their number; may be NULL. */
    size_t (*argument_size)(unsigned long request);
    void (*before)(struct ic_call *call);
    void (*after)(struct ic_call *call);
    /* Is the last submission done? Asks without waiting; NULL: there is no way to know. */
    bool (*is_done)(struct ic_file *file, const struct ic_submit *submit);
};

extern const struct ic_driver ic_etnaviv, ic_rocket, ic_rknpu, ic_aipu, ic_galcore, ic_other;

/* table.c: descriptors */
bool ic_node_path(const char *path);
bool ic_watched(int fd); /* quick, without the lock */
bool ic_unknown(int fd); /* never seen: may have come through exec() */
void ic_opened(int fd, const char *path);
void ic_forget(int fd); /* the number means something else now */
void ic_closing(int fd);
void ic_closing_range(unsigned first, unsigned last);
void ic_duplicated(int from, int to);
bool ic_adopt(int fd);
struct ic_file *ic_file_of(int fd); /* the lock held */
void ic_file_release(struct ic_file *file);
/* Mappings of the program in this range are read no more. */
void ic_forget_views(const void *address, size_t size);
void ic_give_up(void);          /* nothing is recorded any more */
void ic_flush_all(bool forget); /* at the end of the process, or in a child */

/* Is it this request, whatever the size of its argument? The kernel's DRM core takes shorter and longer ones. */
bool ic_is(const struct ic_call *call, unsigned long request);
/* The argument as it was, as far as it went, then zeros; and as it is now. */
void ic_argument(const struct ic_call *call, void *argument, size_t size);
bool ic_answer(const struct ic_call *call, void *argument, size_t size);

/* drm.c: what all DRM drivers share; true when the request was one of these. */
bool ic_drm_before(struct ic_call *call);
bool ic_drm_after(struct ic_call *call);

/* call.c */
int ic_ioctl(int fd, unsigned long request, void *argument);
void ic_mapped(int fd, void *address, size_t size, int protection, uint64_t offset);
void ic_unmapping(void *address, size_t size);
extern atomic_uint ic_program_views; /* how many mappings of the program we read */

/* buffer.c */
struct ic_buffer *ic_buffer_add(struct ic_file *file, uint32_t handle, uint64_t size);
struct ic_buffer *ic_buffer_find(const struct ic_file *file, uint32_t handle);
/* The buffer behind a device address; NULL: none. */
struct ic_buffer *ic_buffer_at(const struct ic_file *file, uint64_t address);
void ic_buffer_remove(struct ic_file *file, uint32_t handle);
/* Our mapping would keep the memory of a buffer that the program gives back. */
void ic_buffer_hide(struct ic_file *file, struct ic_buffer *buffer);
void ic_buffers_release(struct ic_file *file);
/*
 * Has the buffer's contents in a file of the submission, or finds that an earlier file has them. `name` gets its path
 * relative to the submission, "" where the contents can't be seen. False: writing failed.
 */
bool ic_buffer_dump(struct ic_file *file, struct ic_buffer *buffer, uint32_t submit, bool after, char *name,
                    size_t room);

/* submit.c */
struct ic_submit *ic_submit_new(struct ic_file *file);
struct ic_text *ic_submit_head(struct ic_submit *submit); /* up to the list of buffers */
struct ic_text *ic_submit_tail(struct ic_submit *submit); /* behind it, without the last brace */
bool ic_submit_file(struct ic_submit *submit, const char *name, const void *data, size_t size);
/*
 * Lists a buffer; `members` is what its object begins with. An unknown handle has buffer NULL. Written: by what the
 * program says; look: at its contents afterwards, too.
 */
void ic_submit_use(struct ic_submit *submit, uint32_t handle, struct ic_buffer *buffer, bool written, bool look,
                   const char *members);
/* Completes the folder before the kernel gets the submission; NULL when that failed. */
struct ic_submit *ic_submit_commit(struct ic_submit *submit);
void ic_submit_discard(struct ic_submit *submit);
/* What the kernel said. A refused one moves out of the sequence. */
void ic_submit_result(struct ic_call *call, uint32_t queue, uint32_t fence);
/* The program knows that all up to the newest one that `is` says is done. */
typedef bool (*ic_submit_test)(const struct ic_submit *submit, uint64_t a, uint64_t b);
void ic_submits_done(struct ic_file *file, ic_submit_test is, uint64_t a, uint64_t b, const char *how);
bool ic_submit_uses(const struct ic_submit *submit, uint64_t handle, uint64_t written_only);
bool ic_submit_any(const struct ic_submit *submit, uint64_t a, uint64_t b);
uint32_t ic_submit_queue(const struct ic_submit *submit);
uint32_t ic_submit_fence(const struct ic_submit *submit);
uint32_t ic_submit_index(const struct ic_submit *submit);
/* Handle of some buffer that it writes, 0 if none. */
uint32_t ic_submit_written(const struct ic_submit *submit);
/* Before the next submission: what is done by now. */
void ic_submits_poll(struct ic_file *file);
/* The file goes away: the last chance to see contents. */
void ic_submits_finish(struct ic_file *file, bool look);
/* They are another process's, or nothing can be written any more. */
void ic_submits_forget(struct ic_file *file);

#endif
