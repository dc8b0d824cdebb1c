/* SPDX-License-Identifier: MIT */
#include "analysis/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NAME 512u

int mica_folder_open(struct mica_folder *folder, const char *path, struct mica_log *log)
{
    *folder = (struct mica_folder){.path = path, .log = log, .fd = -1, .left = MICA_FOLDER_MOST_BYTES};
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0)
        return 0;
    int error = errno;
    return mica_fail(log, -error, "the folder %s can't be opened: %s", path, strerror(error));
}

void mica_folder_close(struct mica_folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    for (size_t i = 0; i < folder->count; i++) {
        free(folder->files[i].name);
        free(folder->files[i].data);
    }
    free(folder->files);
    *folder = (struct mica_folder){.fd = -1};
}

/* Adds the parts of `path` to `name`, "a/b"; false when it leaves the folder or is too long. */
static bool add_parts(char *name, const char *path)
{
    if (*path == '/')
        return false;
    while (*path) {
        size_t length = strcspn(path, "/"), used = strlen(name);
        if (length == 2 && !strncmp(path, "..", 2)) {
            char *last = strrchr(name, '/');
            if (!used)
                return false;
            *(last ? last : name) = 0;
        } else if (length && !(length == 1 && *path == '.')) {
            if (used + length + 2 > MOST_NAME)
                return false;
            snprintf(name + used, MOST_NAME - used, "%s%.*s", used ? "/" : "", (int)length, path);
        }
        path += length + (path[length] == '/');
    }
    return true;
}

/* Part by part, so that no link on the way leads out of the folder. Devices and pipes are not waited for. */
static int open_inside(const struct mica_folder *folder, const char *name)
{
    int at = dup(folder->fd);
    while (at >= 0) {
        size_t length = strcspn(name, "/");
        char part[MOST_NAME];
        snprintf(part, sizeof part, "%.*s", (int)length, name);
        int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (name[length] ? O_DIRECTORY : 0);
        int next = openat(at, part, flags), error = errno;
        close(at);
        errno = error;
        if (!name[length])
            return next;
        at = next;
        name += length + 1;
    }
    return -1;
}

bool mica_folder_has(const struct mica_folder *folder, const char *directory, const char *name)
{
    char whole[MOST_NAME] = "";
    struct stat status;
    if (!add_parts(whole, directory) || !add_parts(whole, name) || !*whole)
        return false;
    int file = open_inside(folder, whole);
    bool found = file >= 0 && !fstat(file, &status) && S_ISREG(status.st_mode);
    if (file >= 0)
        close(file);
    return found;
}

static int fail(const struct mica_folder *folder, const char *name, int code, const char *why)
{
    return mica_fail(folder->log, code, "%s/%s %s", folder->path, name, why);
}

static int check_size(const struct mica_folder *folder, const char *name, const struct stat *status, uint64_t most)
{
    char why[96];
    uint64_t size = (uint64_t)status->st_size;
    if (!S_ISREG(status->st_mode))
        return fail(folder, name, -EINVAL, "is no regular file");
    if (size > most) {
        snprintf(why, sizeof why, "is too large: %" PRIu64 " bytes where at most %" PRIu64 " fit", size, most);
        return fail(folder, name, -EFBIG, why);
    }
    if (size > folder->left)
        return fail(folder, name, -EFBIG, "makes the capture larger than 1 GiB, which is not read");
    return 0;
}

/* Exactly the bytes that there are, so that sanitizers see one too many being read. */
static int read_all(const struct mica_folder *folder, const char *name, int file, struct mica_folder_file *out)
{
    size_t done = 0;
    out->data = malloc(out->size ? out->size : 1);
    if (!out->data)
        return mica_fail_nomem(folder->log);
    while (done < out->size) {
        ssize_t got = read(file, out->data + done, out->size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fail(folder, name, -EIO, "can't be read to its end");
        done += (size_t)got;
    }
    return 0;
}

static struct mica_folder_file *new_file(struct mica_folder *folder, const char *name)
{
    struct mica_folder_file *grown = realloc(folder->files, (folder->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    folder->files = grown;
    grown[folder->count] = (struct mica_folder_file){.name = strdup(name)};
    return grown[folder->count].name ? &grown[folder->count++] : NULL;
}

static int load(struct mica_folder *folder, const char *name, int descriptor, uint64_t most,
                struct mica_folder_file **file)
{
    struct stat status;
    if (fstat(descriptor, &status))
        return fail(folder, name, -errno, "can't be read");
    int error = check_size(folder, name, &status, most);
    if (error)
        return error;
    *file = new_file(folder, name);
    if (!*file)
        return mica_fail_nomem(folder->log);
    (*file)->size = (size_t)status.st_size;
    folder->left -= (uint64_t)status.st_size;
    return read_all(folder, name, descriptor, *file);
}

int mica_folder_read(struct mica_folder *folder, const char *directory, const char *name, uint64_t most,
                     const struct mica_folder_file **file)
{
    char whole[MOST_NAME] = "";
    if (!add_parts(whole, directory) || !add_parts(whole, name) || !*whole)
        return fail(folder, directory, -EINVAL, "names a file that isn't in the capture's folder");
    for (size_t i = folder->count; i-- > 0;) {
        if (strcmp(folder->files[i].name, whole))
            continue;
        *file = &folder->files[i];
        return folder->files[i].size <= most ? 0 : fail(folder, whole, -EFBIG, "is larger than its buffer");
    }
    int descriptor = open_inside(folder, whole);
    if (descriptor < 0) {
        int error = errno;
        return fail(folder, whole, -error, error == ELOOP ? "is a link, which is not followed" : strerror(error));
    }
    struct mica_folder_file *loaded = NULL;
    int error = load(folder, whole, descriptor, most, &loaded);
    close(descriptor);
    *file = loaded;
    return error;
}
