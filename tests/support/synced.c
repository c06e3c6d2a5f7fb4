/* Logs, below SYNCED_ROOT and of the file SYNCED_TOLD, which system calls change the disk (write,
   rename, unlink, sync), and what each fsync and fdatasync makes durable: of a file its content, of a
   folder its names. tests/support/power.py reads the log. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(FILE *log, char kind, const struct statx *at, const char *name, const char *data,
                size_t size) {
    fprintf(log, "%c %llu.%llu.%u %zu %zu\n", kind, (unsigned long long)at->stx_ino,
            (unsigned long long)at->stx_btime.tv_sec, at->stx_btime.tv_nsec, strlen(name), size);
    fwrite(name, 1, strlen(name), log);
    fwrite(data, 1, size, log);
}

static void put_file(FILE *log, int fd, const struct statx *at, const char *path) {
    char self[64], *data = malloc(at->stx_size + 1);
    size_t done = 0;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int copy = open(self, O_RDONLY | O_CLOEXEC);
    while (copy >= 0 && done < at->stx_size) {
        ssize_t got = pread(copy, data + done, at->stx_size - done, done);
        if (got <= 0) break;
        done += got;
    }
    if (copy >= 0) close(copy);
    put(log, 'f', at, path, data, done);
    free(data);
}

static void put_folder(FILE *log, int fd, const struct statx *at, const char *path) {
    DIR *folder = opendir(path);
    struct dirent *entry;
    put(log, 'd', at, path, "", 0);
    while (folder && (entry = readdir(folder))) {
        struct statx own;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (!statx(dirfd(folder), entry->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                   &own))
            put(log, S_ISDIR(own.stx_mode) ? 'D' : 'F', &own, entry->d_name, "", 0);
    }
    if (folder) closedir(folder);
    put(log, 'e', at, "", "", 0);
}

static int is_watched(const char *path) {
    const char *root = getenv("SYNCED_ROOT"), *told = getenv("SYNCED_TOLD");
    return root && told && (!strncmp(path, root, strlen(root)) || !strcmp(path, told));
}

static int path_of(int fd, char *path) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, path, MOST - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static int complete(int folder, const char *path, char *whole) {
    if (*path == '/') return snprintf(whole, 2 * MOST, "%s", path) < MOST;
    if (folder == AT_FDCWD ? !getcwd(whole, MOST) : !path_of(folder, whole)) return 0;
    size_t length = strlen(whole);
    return snprintf(whole + length, 2 * MOST - length, "/%s", path) < MOST;
}

static FILE *opened_log(void) {
    const char *path = getenv("SYNCED_LOG");
    pthread_mutex_lock(&lock);
    return path ? fopen(path, "ab") : NULL;
}

static void close_log(FILE *log) {
    if (log) fclose(log);
    pthread_mutex_unlock(&lock);
}

static void note_sync(int fd) {
    char path[MOST];
    struct statx at;
    if (!path_of(fd, path) || !is_watched(path)) return;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &at)) return;
    FILE *log = opened_log();
    if (log) (S_ISDIR(at.stx_mode) ? put_folder : put_file)(log, fd, &at, path);
    close_log(log);
}

static void note_call(char kind, const char *path, const char *data) {
    struct statx none = {0};
    FILE *log = opened_log();
    if (log) put(log, kind, &none, path, data, strlen(data));
    close_log(log);
}

static void note_write(int fd) {
    char path[MOST];
    if (fd > 2 && path_of(fd, path) && is_watched(path)) note_call('w', path, "");
}

static void note_names(char kind, int folder, const char *path, int to, const char *target) {
    char from_path[2 * MOST], to_path[2 * MOST];
    if (complete(folder, path, from_path) && complete(to, target, to_path) && is_watched(from_path))
        note_call(kind, from_path, kind == 'r' ? to_path : "");
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd) {
    note_sync(fd);
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    note_sync(fd);
    return REAL(fdatasync)(fd);
}

void sync(void) {
    note_call('s', getenv("SYNCED_ROOT"), "");
    REAL(sync)();
}

ssize_t write(int fd, const void *data, size_t size) {
    note_write(fd);
    return REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    note_write(fd);
    return REAL(pwrite)(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    note_write(fd);
    return REAL(pwrite64)(fd, data, size, offset);
}

int rename(const char *path, const char *target) {
    note_names('r', AT_FDCWD, path, AT_FDCWD, target);
    return REAL(rename)(path, target);
}

int renameat(int folder, const char *path, int to, const char *target) {
    note_names('r', folder, path, to, target);
    return REAL(renameat)(folder, path, to, target);
}

int unlink(const char *path) {
    note_names('u', AT_FDCWD, path, AT_FDCWD, path);
    return REAL(unlink)(path);
}

int unlinkat(int folder, const char *path, int flags) {
    note_names('u', folder, path, folder, path);
    return REAL(unlinkat)(folder, path, flags);
}
