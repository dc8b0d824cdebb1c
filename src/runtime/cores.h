/* SPDX-License-Identifier: MIT */
/*
 * The cores of an opened device that inferences are spread over. Each is a connection of its own, with its own
 * address space, as mainline's interface demands (one device file a core), made when someone first uses it.
 * A connection of a simulator has the whole chip behind it: an inference that is split uses all its cores.
 */
#ifndef MICA_RUNTIME_CORES_H
#define MICA_RUNTIME_CORES_H

#include <pthread.h>

#include "runtime/device.h"

#define MICA_MAX_CORES 8u

struct mica_core {
    /*
     * A winsys takes one caller at a time: everything that reaches it runs between mica_core_lock()
     * and unlock. Its messages go to the log of whoever holds the lock.
     */
    struct mica_winsys *winsys; /* NULL: not used yet */
    pthread_mutex_t lock;
    struct mica_log log;
    struct mica_log *client;
    uint32_t users;   /* sessions, or what the delegate has instead */
    double clock_mhz; /* what its cycles are counted at */
};

struct mica_cores {
    struct mica_opened_device *device; /* whose winsys is that of core 0 */
    struct mica_threads *threads;
    pthread_mutex_t lock; /* over what follows but what a core's own lock is for */
    uint32_t limit;       /* what the user asked for, 0: as many as there are */
    double clock_mhz;     /* likewise, 0: the chip's */
    struct mica_core cores[MICA_MAX_CORES];
};

/* For a device that is still to be opened, with the log of core 0. `threads` are borrowed. */
void mica_cores_init(struct mica_cores *cores, struct mica_opened_device *device, struct mica_threads *threads);
/* Leaves the device's own winsys to mica_close_device(). */
void mica_cores_finish(struct mica_cores *cores);

/* Cores that an inference can be sent to. */
uint32_t mica_cores_count(const struct mica_cores *cores);

/*
 * The core with the fewest users, and one user more on it. `width`: cores that one inference is split over;
 * there is room for fewer of such inferences at a time.
 */
int mica_cores_take(struct mica_cores *cores, uint32_t width, struct mica_log *log, struct mica_core **core);
/* One more user on a core that has some. */
void mica_cores_join(struct mica_cores *cores, struct mica_core *core);
void mica_cores_give(struct mica_cores *cores, struct mica_core *core); /* accepts a NULL core */

void mica_core_lock(struct mica_core *core, struct mica_log *client);
void mica_core_unlock(struct mica_core *core);

/* Options by number, see mica_device_configure() in mica.h. A clock of 0 is the chip's own. */
int mica_cores_set_limit(struct mica_cores *cores, uint32_t limit, struct mica_log *log);
int mica_cores_set_clock(struct mica_cores *cores, double mhz, struct mica_log *log);
int mica_cores_check_split(const struct mica_cores *cores, uint32_t split, struct mica_log *log);
double mica_cores_clock(const struct mica_cores *cores); /* in MHz, 0 without a chip */

#endif
