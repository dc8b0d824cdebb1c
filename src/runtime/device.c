/* SPDX-License-Identifier: MIT */
#include "runtime/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "winsys/kernel.h"

#define SIMULATOR "sim:"
#define DEFAULT_SIMULATOR SIMULATOR "a311d"

typedef int open_node(const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                      struct mica_winsys **winsys);

/* Nodes of a kernel driver: the folder's names with numbers behind. */
struct node_kind {
    const char *prefix; /* of the device's name, "drm:" */
    const char *path;   /* of a node, but for its number */
    unsigned first, last;
    open_node *open;
};

static const struct node_kind etnaviv_nodes = {"drm:", "/dev/dri/renderD", 128, 191, mica_winsys_etnaviv_open};
static const struct node_kind rocket_nodes = {"accel:", "/dev/accel/accel", 0, 15, mica_winsys_rocket_open};

struct known_device {
    struct mica_device_info info;
    const struct mica_chip *chip;  /* behind a simulator */
    const struct node_kind *nodes; /* behind real hardware */
};

static const char no_node[] = "this computer has no such node";
static const char unverified[] = "written from the kernel's interface alone; never yet run on a board";

static const struct known_device known[] = {
    {{DEFAULT_SIMULATOR, "simulated Amlogic A311D (VeriSilicon Vivante V7)", true, "", ""}, &mica_chip_a311d, NULL},
    {{"sim:imx8mp", "simulated NXP i.MX 8M Plus (VeriSilicon Vivante V8)", true, "", ""}, &mica_chip_imx8mp, NULL},
    {{"sim:s905d3", "simulated Amlogic S905D3 (VeriSilicon Vivante V7)", true, "", ""}, &mica_chip_s905d3, NULL},
    {{"sim:rk3588", "simulated Rockchip RK3588 (three cores)", true, "", ""}, &mica_chip_rk3588, NULL},
    {{"sim:rk3566", "simulated Rockchip RK3566 and RK3568", true, "", ""}, &mica_chip_rk3566, NULL},
    {{"drm:PATH", "NPU behind a DRM render node, drm:/dev/dri/renderD128", true, "", unverified}, NULL, &etnaviv_nodes},
    {{"accel:PATH", "NPU behind an accel node, accel:/dev/accel/accel0", true, "", unverified}, NULL, &rocket_nodes},
    {{"cpu", "no NPU: everything runs on the CPU", true, "", ""}, NULL, NULL},
};

static void node_path(const struct node_kind *nodes, unsigned number, char *path, size_t size)
{
    snprintf(path, size, "%s%u", nodes->path, number);
}

static bool any_node(const struct node_kind *nodes)
{
    char path[64];
    bool found = false;
    for (unsigned i = nodes->first; i <= nodes->last && !found; i++) {
        node_path(nodes, i, path, sizeof path);
        found = !access(path, F_OK);
    }
    return found;
}

int mica_known_device(size_t index, struct mica_device_info *info)
{
    if (index >= sizeof known / sizeof known[0])
        return -ENOENT;
    const struct known_device *row = &known[index];
    *info = row->info;
    if (row->chip && row->chip->notes)
        info->notes = row->chip->notes;
    if (row->nodes && !any_node(row->nodes)) {
        info->available = false;
        info->reason = no_node;
    }
    return 0;
}

/* "drm:PATH" stands for every name that starts with "drm:". */
static bool matches(const char *pattern, const char *name)
{
    const char *path = strstr(pattern, ":PATH");
    return path ? !strncmp(pattern, name, (size_t)(path - pattern) + 1) : !strcmp(pattern, name);
}

static const struct known_device *find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (matches(known[i].info.name, name))
            return &known[i];
    }
    return NULL;
}

static int fail_unknown(const char *name, struct mica_log *log)
{
    char names[256] = "";
    for (size_t i = 0, used = 0; i < sizeof known / sizeof known[0] && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", known[i].info.name);
    return mica_fail(log, -ENODEV, "there is no device \"%.64s\"; the names are auto, %s", name, names);
}

static bool is_auto(const char *name)
{
    return !name || !name[0] || !strcmp(name, "auto");
}

static int connect_simulator(const struct mica_opened_device *device, struct mica_threads *threads,
                             struct mica_log *log, struct mica_winsys **winsys)
{
    return mica_winsys_sim_create(device->chip, threads, log, winsys);
}

/* ---- real hardware -------------------------------------------------------- */

/* Another open file of the same node: another core, as the kernel has it. */
static int connect_node(const struct mica_opened_device *device, struct mica_threads *threads, struct mica_log *log,
                        struct mica_winsys **winsys)
{
    const struct node_kind *nodes = find(device->name)->nodes;
    return nodes->open(device->name + strlen(nodes->prefix), mica_chips, mica_chip_count, log, winsys);
}

static int open_path(const struct node_kind *nodes, const char *path, struct mica_log *log,
                     struct mica_opened_device *device)
{
    if (strlen(nodes->prefix) + strlen(path) >= sizeof device->name)
        return mica_fail(log, -ENAMETOOLONG, "the path \"%.64s...\" is too long for a device node", path);
    int error = nodes->open(path, mica_chips, mica_chip_count, log, &device->winsys);
    if (error)
        return error;
    device->chip = device->winsys->chip;
    device->connect = connect_node;
    snprintf(device->name, sizeof device->name, "%s%s", nodes->prefix, path);
    return 0;
}

/* The first node with an NPU, of that chip if a name is given. What isn't one says nothing. */
static bool find_hardware(const char *chip, struct mica_log *log, struct mica_opened_device *device)
{
    const struct node_kind *const kinds[] = {&rocket_nodes, &etnaviv_nodes};
    for (size_t k = 0; k < 2; k++) {
        for (unsigned i = kinds[k]->first; i <= kinds[k]->last; i++) {
            char path[64];
            node_path(kinds[k], i, path, sizeof path);
            if (access(path, F_OK) || open_path(kinds[k], path, NULL, device))
                continue;
            bool wanted = !chip || !strcmp(device->chip->name, chip);
            mica_close_device(device);
            /* Once more, with the log that the device keeps for good. */
            if (wanted && !open_path(kinds[k], path, log, device))
                return true;
        }
    }
    return false;
}

/* ---- by name ---------------------------------------------------------------- */

static int open_known(const char *name, struct mica_threads *threads, struct mica_log *log,
                      struct mica_opened_device *device)
{
    const struct known_device *entry = find(name);
    if (!entry)
        return fail_unknown(name, log);
    if (entry->nodes)
        return open_path(entry->nodes, name + strlen(entry->nodes->prefix), log, device);
    if (entry->chip) {
        int error = mica_winsys_sim_create(entry->chip, threads, log, &device->winsys);
        if (error)
            return error;
        device->connect = connect_simulator;
    }
    device->chip = entry->chip;
    snprintf(device->name, sizeof device->name, "%s", name);
    return 0;
}

/* The simulator of a chip that is called by its bare name; NULL: `name` is none. */
static const char *simulator_of(const char *name)
{
    if (!strcmp(name, "rk3568")) /* the same NPU */
        name = "rk3566";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *full = known[i].info.name;
        if (!strncmp(full, SIMULATOR, strlen(SIMULATOR)) && !strcmp(full + strlen(SIMULATOR), name))
            return full;
    }
    return NULL;
}

int mica_open_device(const char *name, struct mica_threads *threads, struct mica_log *log,
                     struct mica_opened_device *device)
{
    *device = (struct mica_opened_device){0};
    const char *simulator = is_auto(name) ? DEFAULT_SIMULATOR : simulator_of(name);
    if (!simulator)
        return open_known(name, threads, log, device);
    const char *chip = is_auto(name) ? NULL : name;
    if (find_hardware(chip, log, device)) {
        mica_log(log, MICA_LOG_INFO, "device %s: %s, %s", chip ? chip : "auto", device->name,
                 device->chip->description);
        return 0;
    }
    mica_log(log, MICA_LOG_INFO, "device %s: %s, a simulator, because no node of this computer has %s",
             chip ? chip : "auto", simulator, chip ? "that NPU" : "an NPU that Mica knows");
    return open_known(simulator, threads, log, device);
}

void mica_close_device(struct mica_opened_device *device)
{
    if (device->winsys)
        device->winsys->destroy(device->winsys);
    *device = (struct mica_opened_device){0};
}
