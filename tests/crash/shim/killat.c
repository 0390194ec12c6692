/* Kills the process at its k-th durable operation under a directory.
 *
 *   PROOFKEEP_KILL_DIR         the directory; without it the library does nothing
 *   PROOFKEEP_KILL_AT          k, from 1; 0 or unset: only count
 *   PROOFKEEP_KILL_WHEN        before (default): the operation does not happen; after: it does
 *   PROOFKEEP_KILL_ROLE        daemon or worker: only in such a process (argv[1] is "worker" or not)
 *   PROOFKEEP_KILL_OPS         which operations count, of: fsync,fdatasync,sync_file_range,rename,
 *                              link,unlink,mkdir (default: all)
 *   PROOFKEEP_KILL_MATCH       only paths that hold this text
 *   PROOFKEEP_KILL_COUNT_FILE  gets a line "number pid operation path" for each
 *   PROOFKEEP_KILL_ONCE_FILE   made when the kill comes; where it exists, none comes. So that a
 *                              worker that is started again is not killed again
 *
 * Each process counts for itself. */
#include "common.h"
#include <signal.h>

#define ALL "fsync,fdatasync,sync_file_range,rename,link,unlink,mkdir"

static char directory[PATH_MAX];
static int on, after;
static long at;
static long count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void) {
    if (!shim_directory("PROOFKEEP_KILL_DIR", directory))
        return;
    at = shim_number("PROOFKEEP_KILL_AT", 0);
    const char *when = getenv("PROOFKEEP_KILL_WHEN");
    after = when && strcmp(when, "after") == 0;
    if (when && *when && !after && strcmp(when, "before") != 0)
        shim_die("PROOFKEEP_KILL_WHEN must be before or after, not", when);
    on = shim_role("PROOFKEEP_KILL_ROLE");
}

static void die(void) {
    const char *once = getenv("PROOFKEEP_KILL_ONCE_FILE");
    if (once && *once) {
        long mark = syscall(SYS_openat, AT_FDCWD, once, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (mark < 0)
            return;
        syscall(SYS_close, mark);
    }
    /* record.c holds this lock from a change to its record: none is left without. */
    const char *log = getenv("PROOFKEEP_RECORD_LOG");
    long fd = log && *log ? syscall(SYS_openat, AT_FDCWD, log, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0)
        shim_lock(fd);
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Counts an operation on a path; answers whether the kill comes after it. */
static int counted(const char *operation, const char *path) {
    const char *match = getenv("PROOFKEEP_KILL_MATCH");
    if (!shim_under(directory, path) || (match && *match && !strstr(path, match)) ||
        !shim_listed("PROOFKEEP_KILL_OPS", ALL, operation))
        return 0;
    pthread_mutex_lock(&lock);
    long mine = ++count;
    shim_count(getenv("PROOFKEEP_KILL_COUNT_FILE"), mine, operation, path);
    if (mine == at && !after)
        die();
    pthread_mutex_unlock(&lock);
    return mine == at && after;
}

static int counted_fd(const char *operation, int fd) {
    char path[PATH_MAX];
    return on && shim_fd_path(fd, path) && counted(operation, path);
}

static int counted_at(const char *operation, int dirfd, const char *name) {
    char path[PATH_MAX];
    return on && shim_at_path(dirfd, name, path) && counted(operation, path);
}

/* Runs a call between the two moments at which a kill may come. */
#define AROUND(counting, call)                                                                     \
    int saved = errno;                                                                             \
    int last = (counting);                                                                         \
    errno = saved;                                                                                 \
    int result = (call);                                                                           \
    if (last)                                                                                      \
        die();                                                                                     \
    return result

int fsync(int fd) {
    NEXT(int, "fsync", int);
    AROUND(counted_fd("fsync", fd), next(fd));
}

int fdatasync(int fd) {
    NEXT(int, "fdatasync", int);
    AROUND(counted_fd("fdatasync", fd), next(fd));
}

int sync_file_range(int fd, off64_t from, off64_t length, unsigned flags) {
    NEXT(int, "sync_file_range", int, off64_t, off64_t, unsigned);
    AROUND(counted_fd("sync_file_range", fd), next(fd, from, length, flags));
}

/* A rename is counted by its new name. */
int rename(const char *from, const char *to) {
    NEXT(int, "rename", const char *, const char *);
    AROUND(counted_at("rename", AT_FDCWD, to), next(from, to));
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    NEXT(int, "renameat", int, const char *, int, const char *);
    AROUND(counted_at("rename", to_dir, to), next(from_dir, from, to_dir, to));
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    NEXT(int, "renameat2", int, const char *, int, const char *, unsigned);
    AROUND(counted_at("rename", to_dir, to), next(from_dir, from, to_dir, to, flags));
}

int link(const char *from, const char *to) {
    NEXT(int, "link", const char *, const char *);
    AROUND(counted_at("link", AT_FDCWD, to), next(from, to));
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    NEXT(int, "linkat", int, const char *, int, const char *, int);
    AROUND(counted_at("link", to_dir, to), next(from_dir, from, to_dir, to, flags));
}

int unlink(const char *name) {
    NEXT(int, "unlink", const char *);
    AROUND(counted_at("unlink", AT_FDCWD, name), next(name));
}

int unlinkat(int dir, const char *name, int flags) {
    NEXT(int, "unlinkat", int, const char *, int);
    AROUND(counted_at("unlink", dir, name), next(dir, name, flags));
}

int rmdir(const char *name) {
    NEXT(int, "rmdir", const char *);
    AROUND(counted_at("unlink", AT_FDCWD, name), next(name));
}

int mkdir(const char *name, mode_t mode) {
    NEXT(int, "mkdir", const char *, mode_t);
    AROUND(counted_at("mkdir", AT_FDCWD, name), next(name, mode));
}

int mkdirat(int dir, const char *name, mode_t mode) {
    NEXT(int, "mkdirat", int, const char *, mode_t);
    AROUND(counted_at("mkdir", dir, name), next(dir, name, mode));
}
