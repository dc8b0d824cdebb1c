/* SPDX-License-Identifier: MIT */
#include "runtime/cores.h"

#include <errno.h>

/* Sink of a core's log. The level was checked nowhere yet: the client's decides. */
static void to_client(void *user, enum mica_log_level level, const char *message)
{
    struct mica_core *core = user;
    mica_log(core->client, level, "%s", message);
}

void mica_core_lock(struct mica_core *core, struct mica_log *client)
{
    pthread_mutex_lock(&core->lock);
    core->client = client;
}

void mica_core_unlock(struct mica_core *core)
{
    core->client = NULL;
    pthread_mutex_unlock(&core->lock);
}

void mica_cores_init(struct mica_cores *cores, struct mica_opened_device *device, struct mica_threads *threads)
{
    *cores = (struct mica_cores){.device = device, .threads = threads};
    pthread_mutex_init(&cores->lock, NULL);
    for (uint32_t i = 0; i < MICA_MAX_CORES; i++) {
        struct mica_core *core = &cores->cores[i];
        pthread_mutex_init(&core->lock, NULL);
        core->log = (struct mica_log){.sink = to_client, .user = core, .level = MICA_LOG_DEBUG};
    }
}

void mica_cores_finish(struct mica_cores *cores)
{
    for (uint32_t i = 0; i < MICA_MAX_CORES; i++) {
        struct mica_core *core = &cores->cores[i];
        if (i && core->winsys)
            core->winsys->destroy(core->winsys);
        core->winsys = NULL;
        pthread_mutex_destroy(&core->lock);
    }
    pthread_mutex_destroy(&cores->lock);
}

static uint32_t chip_cores(const struct mica_cores *cores)
{
    const struct mica_chip *chip = cores->device->chip;
    uint32_t count = chip && chip->cores ? chip->cores : 1;
    return count < MICA_MAX_CORES ? count : MICA_MAX_CORES;
}

uint32_t mica_cores_count(const struct mica_cores *cores)
{
    uint32_t count = cores->device->connect ? chip_cores(cores) : 1;
    return cores->limit && cores->limit < count ? cores->limit : count;
}

double mica_cores_clock(const struct mica_cores *cores)
{
    const struct mica_chip *chip = cores->device->chip;
    return cores->clock_mhz > 0 ? cores->clock_mhz : chip ? chip->clock_mhz : 0;
}

static int set_core_clock(struct mica_core *core, double mhz, const struct mica_chip *chip, struct mica_log *log)
{
    mica_core_lock(core, log);
    int error = core->winsys->set_clock(core->winsys, mhz);
    if (!error)
        core->clock_mhz = mhz;
    mica_core_unlock(core);
    return error ? mica_fail(log, error, "the timing model of %s doesn't count at %.0f MHz", chip->name, mhz) : 0;
}

/* Makes the connection; the device has that of core 0. */
static int open_core(struct mica_cores *cores, struct mica_core *core, struct mica_log *log)
{
    const struct mica_opened_device *device = cores->device;
    if (core == &cores->cores[0]) {
        core->winsys = device->winsys;
    } else {
        mica_core_lock(core, log);
        int error = device->connect(device, cores->threads, &core->log, &core->winsys);
        mica_core_unlock(core);
        if (error)
            return error;
    }
    core->clock_mhz = device->chip->clock_mhz;
    if (cores->clock_mhz <= 0)
        return 0;
    int error = set_core_clock(core, cores->clock_mhz, device->chip, log);
    if (error && core != &cores->cores[0]) {
        core->winsys->destroy(core->winsys);
        core->winsys = NULL;
    }
    return error;
}

int mica_cores_take(struct mica_cores *cores, uint32_t width, struct mica_log *log, struct mica_core **result)
{
    int error = 0;
    pthread_mutex_lock(&cores->lock);
    uint32_t count = mica_cores_count(cores) / (width ? width : 1);
    struct mica_core *least = &cores->cores[0];
    for (uint32_t i = 1; i < count; i++) {
        if (cores->cores[i].users < least->users)
            least = &cores->cores[i];
    }
    if (!least->winsys)
        error = open_core(cores, least, log);
    if (!error) {
        least->users++;
        *result = least;
    }
    pthread_mutex_unlock(&cores->lock);
    return error;
}

void mica_cores_join(struct mica_cores *cores, struct mica_core *core)
{
    pthread_mutex_lock(&cores->lock);
    core->users++;
    pthread_mutex_unlock(&cores->lock);
}

void mica_cores_give(struct mica_cores *cores, struct mica_core *core)
{
    if (!core)
        return;
    pthread_mutex_lock(&cores->lock);
    core->users--;
    pthread_mutex_unlock(&cores->lock);
}

/* ---- options ---------------------------------------------------------- */

int mica_cores_set_limit(struct mica_cores *cores, uint32_t limit, struct mica_log *log)
{
    const struct mica_opened_device *device = cores->device;
    uint32_t most = device->connect ? chip_cores(cores) : 1;
    if (!limit || limit > most)
        return mica_fail(log, -EINVAL, "%s has %u core%s to spread inferences over, so cores can't be %u", device->name,
                         most, most == 1 ? "" : "s", limit);
    pthread_mutex_lock(&cores->lock);
    cores->limit = limit;
    pthread_mutex_unlock(&cores->lock);
    return 0;
}

static int check_clock(const struct mica_opened_device *device, double mhz, struct mica_log *log)
{
    const struct mica_chip *chip = device->chip;
    if (!chip)
        return mica_fail(log, -ENOTSUP, "device %s has no NPU whose clock could be set", device->name);
    if (!device->winsys->set_clock)
        return mica_fail(log, -ENOTSUP, "the clock of %s can't be set: %s", device->name,
                         device->winsys->simulated ? "its timing model counts at one only" : "the kernel sets it");
    if (chip->clock_most_mhz > 0 && (mhz < chip->clock_least_mhz || mhz > chip->clock_most_mhz))
        return mica_fail(log, -EINVAL, "clock must be from %.0f to %.0f for %s, not %.0f", chip->clock_least_mhz,
                         chip->clock_most_mhz, device->name, mhz);
    return 0;
}

int mica_cores_set_clock(struct mica_cores *cores, double mhz, struct mica_log *log)
{
    const struct mica_opened_device *device = cores->device;
    int error = check_clock(device, mhz, log);
    if (error)
        return error;
    pthread_mutex_lock(&cores->lock);
    if (!cores->cores[0].winsys)
        error = open_core(cores, &cores->cores[0], log);
    for (uint32_t i = 0; !error && i < MICA_MAX_CORES; i++) {
        if (cores->cores[i].winsys)
            error = set_core_clock(&cores->cores[i], mhz, device->chip, log);
    }
    if (!error)
        cores->clock_mhz = mhz;
    pthread_mutex_unlock(&cores->lock);
    return error;
}

int mica_cores_check_split(const struct mica_cores *cores, uint32_t split, struct mica_log *log)
{
    const struct mica_opened_device *device = cores->device;
    if (split > 1 && device->winsys && !device->winsys->simulated)
        return mica_fail(log, -ENOTSUP,
                         "split is for simulators: the kernel gives %s one core a file and no shared buffers",
                         device->name);
    if (!split || split > chip_cores(cores))
        return mica_fail(log, -EINVAL, "%s has %u core%s, so an inference can't be split over %u", device->name,
                         chip_cores(cores), chip_cores(cores) == 1 ? "" : "s", split);
    return 0;
}
