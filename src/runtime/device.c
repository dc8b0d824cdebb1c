/* SPDX-License-Identifier: MIT */
#include "runtime/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SIMULATOR "sim:a311d"

struct known_device {
    struct mica_device_info info;
    const struct mica_chip *chip; /* behind an available simulator */
};

static const char no_chip[] = "support for this chip is not written yet";
static const char no_kernel[] = "the kernel interfaces for real hardware are not written yet";

static const struct known_device known[] = {
    {{DEFAULT_SIMULATOR, "simulated Amlogic A311D (VeriSilicon Vivante V7)", true, "", ""}, &mica_chip_a311d},
    {{"sim:imx8mp", "simulated NXP i.MX 8M Plus (VeriSilicon Vivante V8)", true, "", ""}, &mica_chip_imx8mp},
    {{"sim:s905d3", "simulated Amlogic S905D3 (VeriSilicon Vivante V7)", true, "", ""}, &mica_chip_s905d3},
    {{"sim:rk3588", "simulated Rockchip RK3588", false, no_chip, ""}, NULL},
    {{"sim:rk3566", "simulated Rockchip RK3566", false, no_chip, ""}, NULL},
    {{"drm:PATH", "NPU behind a DRM render node, drm:/dev/dri/renderD128", false, no_kernel, ""}, NULL},
    {{"accel:PATH", "NPU behind an accel node, accel:/dev/accel/accel0", false, no_kernel, ""}, NULL},
    {{"cpu", "no NPU: everything runs on the CPU", true, "", ""}, NULL},
};

int mica_known_device(size_t index, struct mica_device_info *info)
{
    if (index >= sizeof known / sizeof known[0])
        return -ENOENT;
    *info = known[index].info;
    info->notes = known[index].chip && known[index].chip->notes ? known[index].chip->notes : "";
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

int mica_open_device(const char *name, struct mica_threads *threads, struct mica_log *log,
                     struct mica_opened_device *device)
{
    *device = (struct mica_opened_device){0};
    if (is_auto(name)) {
        name = DEFAULT_SIMULATOR;
        mica_log(log, MICA_LOG_INFO, "device auto: %s, a simulator, because %s", name, no_kernel);
    }
    const struct known_device *entry = find(name);
    if (!entry)
        return fail_unknown(name, log);
    if (!entry->info.available)
        return mica_fail(log, -ENOTSUP, "device %.64s can't be opened: %s", name, entry->info.reason);
    if (entry->chip) {
        int error = mica_winsys_sim_create(entry->chip, threads, log, &device->winsys);
        if (error)
            return error;
    }
    device->chip = entry->chip;
    snprintf(device->name, sizeof device->name, "%s", name);
    return 0;
}

void mica_close_device(struct mica_opened_device *device)
{
    if (device->winsys)
        device->winsys->destroy(device->winsys);
    *device = (struct mica_opened_device){0};
}
