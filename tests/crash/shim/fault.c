/* Makes the k-th operation under a directory fail, as a broken or full disk would.
 *
 *   PROOFKEEP_FAULT_DIR         the directory; without it the library does nothing
 *   PROOFKEEP_FAULT_OPS         which operations, of: write,sync,rename,open,access,truncate,unlink,
 *                               mkdir,link (default: write). write is write, pwrite, writev,
 *                               pwritev, fallocate; sync is fsync, fdatasync, sync_file_range; open
 *                               is an open that makes a file, access one that makes none
 *   PROOFKEEP_FAULT_AT          k, from 1; 0 or unset: only count
 *   PROOFKEEP_FAULT_TIMES       how many fail from then on (default 1; 0: all)
 *   PROOFKEEP_FAULT_ERRNO       EIO (default), ENOSPC, EDQUOT, EROFS, EMFILE or a number
 *   PROOFKEEP_FAULT_SHORT       1: the first failing write writes half and says so, as a disk does
 *                               that fills up; the ones after it fail (so TIMES should be 0 or > 1)
 *   PROOFKEEP_FAULT_LATE_MS     each failure comes so much later, as from a disk that tries for long
 *   PROOFKEEP_FAULT_ARM_FILE    operations are counted and fail only while this file exists
 *   PROOFKEEP_FAULT_HANG        1: nothing fails; an operation waits until the arm file is gone,
 *                               as on a disk that hangs, and is done then
 *   PROOFKEEP_FAULT_MATCH       only paths that hold this text
 *   PROOFKEEP_FAULT_ROLE        daemon or worker
 *   PROOFKEEP_FAULT_COUNT_FILE  gets a line "number pid operation path" for each
 *   PROOFKEEP_FAULT_ONCE_FILE   made by the first failure; where it is there, nothing more fails
 *   PROOFKEEP_FAULT_HIT_FILE    gets the same line for each that fails, or does half of its work
 *
 * An operation that fails has not been done at all. Each process counts for itself. */
#include "common.h"
#include <time.h>

static char directory[PATH_MAX];
static int on, error, hang;
static long at, times;
static long count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum verdict { PASS, FAIL, HALF };

__attribute__((constructor)) static void start(void) {
    if (!shim_directory("PROOFKEEP_FAULT_DIR", directory))
        return;
    at = shim_number("PROOFKEEP_FAULT_AT", 0);
    times = shim_number("PROOFKEEP_FAULT_TIMES", 1);
    const char *name = getenv("PROOFKEEP_FAULT_ERRNO");
    if (!name || !*name || strcmp(name, "EIO") == 0)
        error = EIO;
    else if (strcmp(name, "ENOSPC") == 0)
        error = ENOSPC;
    else if (strcmp(name, "EDQUOT") == 0)
        error = EDQUOT;
    else if (strcmp(name, "EROFS") == 0)
        error = EROFS;
    else if (strcmp(name, "EMFILE") == 0)
        error = EMFILE;
    else
        error = (int)shim_number("PROOFKEEP_FAULT_ERRNO", EIO);
    hang = shim_number("PROOFKEEP_FAULT_HANG", 0) != 0;
    on = shim_role("PROOFKEEP_FAULT_ROLE");
}

static enum verdict judge(const char *group, const char *operation, const char *path) {
    const char *match = getenv("PROOFKEEP_FAULT_MATCH");
    const char *arm = getenv("PROOFKEEP_FAULT_ARM_FILE");
    if (!shim_under(directory, path) || (match && *match && !strstr(path, match)) ||
        !shim_listed("PROOFKEEP_FAULT_OPS", "write", group))
        return PASS;
    if (arm && *arm && syscall(SYS_faccessat, AT_FDCWD, arm, F_OK) != 0)
        return PASS;
    pthread_mutex_lock(&lock);
    long mine = ++count;
    int hit = at > 0 && mine >= at && (times <= 0 || mine < at + times);
    const char *once = getenv("PROOFKEEP_FAULT_ONCE_FILE");
    if (hit && once && *once) {
        long fd = syscall(SYS_openat, AT_FDCWD, once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        hit = fd >= 0;
        if (hit)
            syscall(SYS_close, fd);
    }
    shim_count(getenv("PROOFKEEP_FAULT_COUNT_FILE"), mine, operation, path);
    if (hit)
        shim_count(getenv("PROOFKEEP_FAULT_HIT_FILE"), mine, operation, path);
    pthread_mutex_unlock(&lock);
    if (hang) {
        const struct timespec pause = {0, 5000000};
        while (arm && *arm && syscall(SYS_faccessat, AT_FDCWD, arm, F_OK) == 0)
            nanosleep(&pause, NULL);
        return PASS;
    }
    if (!hit)
        return PASS;
    long late = shim_number("PROOFKEEP_FAULT_LATE_MS", 0);
    const struct timespec tried = {late / 1000, late % 1000 * 1000000};
    nanosleep(&tried, NULL);
    return mine == at && shim_number("PROOFKEEP_FAULT_SHORT", 0) ? HALF : FAIL;
}

static enum verdict judge_fd(const char *group, const char *operation, int fd) {
    char path[PATH_MAX];
    int saved = errno;
    enum verdict v = on && shim_fd_path(fd, path) ? judge(group, operation, path) : PASS;
    errno = saved;
    return v;
}

static enum verdict judge_at(const char *group, int dirfd, const char *name) {
    char path[PATH_MAX];
    int saved = errno;
    enum verdict v = on && shim_at_path(dirfd, name, path) ? judge(group, group, path) : PASS;
    errno = saved;
    return v;
}

#define REFUSE_IF(verdict)                                                                         \
    if ((verdict) != PASS) {                                                                       \
        errno = error;                                                                             \
        return -1;                                                                                 \
    }

ssize_t write(int fd, const void *data, size_t n) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    enum verdict v = judge_fd("write", "write", fd);
    if (v == HALF && n > 1)
        return next(fd, data, n / 2);
    REFUSE_IF(v);
    return next(fd, data, n);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    enum verdict v = judge_fd("write", "pwrite", fd);
    if (v == HALF && n > 1)
        return next(fd, data, n / 2, offset);
    REFUSE_IF(v);
    return next(fd, data, n, offset);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) {
    return pwrite64(fd, data, n, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int);
    enum verdict v = judge_fd("write", "writev", fd);
    if (v == HALF && n > 1)
        return next(fd, parts, 1);
    REFUSE_IF(v);
    return next(fd, parts, n);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t offset) {
    NEXT(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t);
    enum verdict v = judge_fd("write", "pwritev", fd);
    if (v == HALF && n > 1)
        return next(fd, parts, 1, offset);
    REFUSE_IF(v);
    return next(fd, parts, n, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset) {
    return pwritev64(fd, parts, n, offset);
}

/* The kernel's copies would pass the writes by; std falls back to writing. */
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags) {
    NEXT(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    char path[PATH_MAX];
    if (on && shim_fd_path(out, path) && shim_under(directory, path)) {
        errno = ENOSYS;
        return -1;
    }
    return next(in, in_at, out, out_at, n, flags);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    NEXT(int, "fallocate64", int, int, off64_t, off64_t);
    REFUSE_IF(judge_fd("write", "fallocate", fd));
    return next(fd, mode, offset, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    return fallocate64(fd, mode, offset, length);
}

/* This one answers the error instead of setting errno. */
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    NEXT(int, "posix_fallocate64", int, off64_t, off64_t);
    if (judge_fd("write", "posix_fallocate", fd) != PASS)
        return error;
    return next(fd, offset, length);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
    return posix_fallocate64(fd, offset, length);
}

int ftruncate64(int fd, off64_t size) {
    NEXT(int, "ftruncate64", int, off64_t);
    REFUSE_IF(judge_fd("truncate", "ftruncate", fd));
    return next(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int fsync(int fd) {
    NEXT(int, "fsync", int);
    REFUSE_IF(judge_fd("sync", "fsync", fd));
    return next(fd);
}

int fdatasync(int fd) {
    NEXT(int, "fdatasync", int);
    REFUSE_IF(judge_fd("sync", "fdatasync", fd));
    return next(fd);
}

int sync_file_range(int fd, off64_t from, off64_t length, unsigned flags) {
    NEXT(int, "sync_file_range", int, off64_t, off64_t, unsigned);
    REFUSE_IF(judge_fd("sync", "sync_file_range", fd));
    return next(fd, from, length, flags);
}

int rename(const char *from, const char *to) {
    NEXT(int, "rename", const char *, const char *);
    REFUSE_IF(judge_at("rename", AT_FDCWD, to));
    return next(from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    NEXT(int, "renameat", int, const char *, int, const char *);
    REFUSE_IF(judge_at("rename", to_dir, to));
    return next(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    NEXT(int, "renameat2", int, const char *, int, const char *, unsigned);
    REFUSE_IF(judge_at("rename", to_dir, to));
    return next(from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to) {
    NEXT(int, "link", const char *, const char *);
    REFUSE_IF(judge_at("link", AT_FDCWD, to));
    return next(from, to);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    NEXT(int, "linkat", int, const char *, int, const char *, int);
    REFUSE_IF(judge_at("link", to_dir, to));
    return next(from_dir, from, to_dir, to, flags);
}

int unlink(const char *name) {
    NEXT(int, "unlink", const char *);
    REFUSE_IF(judge_at("unlink", AT_FDCWD, name));
    return next(name);
}

int unlinkat(int dir, const char *name, int flags) {
    NEXT(int, "unlinkat", int, const char *, int);
    REFUSE_IF(judge_at("unlink", dir, name));
    return next(dir, name, flags);
}

int mkdir(const char *name, mode_t mode) {
    NEXT(int, "mkdir", const char *, mode_t);
    REFUSE_IF(judge_at("mkdir", AT_FDCWD, name));
    return next(name, mode);
}

int mkdirat(int dir, const char *name, mode_t mode) {
    NEXT(int, "mkdirat", int, const char *, mode_t);
    REFUSE_IF(judge_at("mkdir", dir, name));
    return next(dir, name, mode);
}

int openat64(int dir, const char *name, int flags, ...) {
    NEXT(int, "openat64", int, const char *, int, ...);
    mode_t mode = 0;
    if (TAKES_MODE(flags)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    REFUSE_IF(judge_at(TAKES_MODE(flags) ? "open" : "access", dir, name));
    return next(dir, name, flags, mode);
}

int openat(int dir, const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = TAKES_MODE(flags) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return openat64(dir, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = TAKES_MODE(flags) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return openat64(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = TAKES_MODE(flags) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return openat64(AT_FDCWD, name, flags, mode);
}
