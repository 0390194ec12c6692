/* Records every change under a directory, in order and with its data, so that what a power cut
 * could leave can be rebuilt (tests/src/powercut.rs).
 *
 *   PROOFKEEP_RECORD_DIR   the directory, which must be there; without it the library does nothing
 *   PROOFKEEP_RECORD_LOG   the log, outside the directory; processes append to it together
 *   PROOFKEEP_RECORD_ROLE  daemon or worker
 *   PROOFKEEP_RECORD_LYING 1: the disk says that it has synced and hasn't: fdatasync answers 0, does
 *                          nothing, and is not recorded
 *   PROOFKEEP_RECORD_ACK   a path outside the directory: what is written to it is logged as an
 *                          acknowledgement (a parent process appends its own: powercut::acknowledge)
 *
 * A change and its record are one step under a lock of the log file, so the log's order is the
 * order of the changes, also between processes. A sync is two records, before and after: it
 * promises only what was there before. Changes are told by inode number; names follow renames.
 * Who kills a recorded process holds that lock, so that no change goes without its record
 * (killat.c does when PROOFKEEP_RECORD_LOG is set; powercut::kill does). */
#include "log.h"

static char directory[PATH_MAX], ack_path[PATH_MAX];
static int on, lying;
static int64_t syncs;

static uint64_t inode_of_fd(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* The inode of a name itself (a link is not followed), 0 if there is none. */
static uint64_t inode_at(int dir, const char *name) {
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

/* A name under the directory: the inode of its parent, and the path relative to the directory. */
struct place {
    char path[PATH_MAX];
    const char *name;
    uint64_t dir;
};

static int place_at(int dirfd, const char *name, struct place *out) {
    if (!on || !shim_at_path(dirfd, name, out->path) || !shim_under(directory, out->path) ||
        strlen(out->path) == strlen(directory))
        return 0;
    char parent[PATH_MAX];
    strcpy(parent, out->path);
    *strrchr(parent, '/') = '\0';
    out->dir = inode_at(AT_FDCWD, parent);
    out->name = out->path + strlen(directory) + 1;
    return 1;
}

static int fd_under(int fd) {
    char path[PATH_MAX];
    return on && shim_fd_path(fd, path) && shim_under(directory, path);
}

__attribute__((constructor)) static void start(void) {
    const char *log = getenv("PROOFKEEP_RECORD_LOG");
    if (!shim_directory("PROOFKEEP_RECORD_DIR", directory) || !shim_role("PROOFKEEP_RECORD_ROLE"))
        return;
    if (!log || !*log)
        shim_die("not set", "PROOFKEEP_RECORD_LOG");
    log_open(log);
    const char *ack = getenv("PROOFKEEP_RECORD_ACK");
    if (ack && *ack && !shim_at_path(AT_FDCWD, ack, ack_path))
        shim_die("no such place", ack);
    lying = shim_number("PROOFKEEP_RECORD_LYING", 0) == 1;
    on = 1;
    enter();
    append(&(struct record){.op = START, .inode = inode_at(AT_FDCWD, directory)});
    leave();
}

/* A child forked from a threaded program has one thread, and a lock that another may hold. */
static void forked(void) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, forked); }

/* --- writing --- */

enum target { ELSEWHERE, UNDER, ACKNOWLEDGES };

static enum target target_of(int fd) {
    char path[PATH_MAX];
    if (!on || !shim_fd_path(fd, path))
        return ELSEWHERE;
    if (shim_under(directory, path))
        return UNDER;
    return *ack_path && strcmp(path, ack_path) == 0 ? ACKNOWLEDGES : ELSEWHERE;
}

/* Records the first n bytes of a vector, written at an offset; -1: where the descriptor stood. */
static void wrote(int fd, enum target target, const struct iovec *parts, ssize_t n, off64_t offset) {
    char *data = malloc(n), *at = data;
    if (!data)
        shim_die("no memory for", "a write");
    for (ssize_t left = n; left > 0; parts++) {
        size_t part = parts->iov_len < (size_t)left ? parts->iov_len : (size_t)left;
        at = put(at, parts->iov_base, part);
        left -= part;
    }
    /* Linux appends even a pwrite to a file opened for appending. */
    if (target == UNDER && offset >= 0 && (fcntl(fd, F_GETFL) & O_APPEND)) {
        struct stat st;
        offset = fstat(fd, &st) == 0 ? st.st_size - n : offset;
    } else if (target == UNDER && offset < 0) {
        offset = lseek(fd, 0, SEEK_CUR) - n;
    }
    struct record r = {.op = target == UNDER ? WRITE : ACK, .a = offset, .data = data, .size = n};
    if (target == UNDER)
        r.inode = inode_of_fd(fd);
    append(&r);
    free(data);
}

#define RECORD_WRITE(fd, parts, offset, call)                                                      \
    int saved = errno;                                                                             \
    enum target target = target_of(fd);                                                            \
    errno = saved;                                                                                 \
    if (target == ELSEWHERE)                                                                       \
        return call;                                                                               \
    enter();                                                                                       \
    ssize_t result = call;                                                                         \
    saved = errno;                                                                                 \
    if (result > 0)                                                                                \
        wrote(fd, target, parts, result, offset);                                                  \
    leave();                                                                                       \
    errno = saved;                                                                                 \
    return result

ssize_t write(int fd, const void *data, size_t n) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    struct iovec part = {(void *)data, n};
    RECORD_WRITE(fd, &part, -1, next(fd, data, n));
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    struct iovec part = {(void *)data, n};
    RECORD_WRITE(fd, &part, offset, next(fd, data, n, offset));
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) {
    return pwrite64(fd, data, n, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int);
    RECORD_WRITE(fd, parts, -1, next(fd, parts, n));
}

ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t offset) {
    NEXT(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t);
    RECORD_WRITE(fd, parts, offset, next(fd, parts, n, offset));
}

ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset) {
    return pwritev64(fd, parts, n, offset);
}

/* Writes through a mapping go by unseen, so that there may be none. */
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
    NEXT(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    int saved = errno;
    if (fd >= 0 && (protection & PROT_WRITE) && (flags & MAP_TYPE) != MAP_PRIVATE && fd_under(fd)) {
        enter();
        append(&(struct record){.op = UNKNOWN, .name = "a mapping that can be written to"});
        leave();
    }
    errno = saved;
    return next(at, length, protection, flags, fd, offset);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap64(at, length, protection, flags, fd, offset);
}

/* Copies inside the kernel are refused, so that callers write instead. */
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags) {
    NEXT(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    if (fd_under(out)) {
        errno = ENOSYS;
        return -1;
    }
    return next(in, in_at, out, out_at, n, flags);
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t n) {
    NEXT(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    if (fd_under(out)) {
        errno = ENOSYS;
        return -1;
    }
    return next(out, in, offset, n);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t n) {
    return sendfile64(out, in, offset, n);
}

/* --- sizes --- */

#define RECORD_FD(fd, good, call, ...)                                                             \
    if (!fd_under(fd))                                                                             \
        return call;                                                                               \
    enter();                                                                                       \
    int result = call;                                                                             \
    int saved = errno;                                                                             \
    if (good)                                                                                      \
        append(&(struct record){.inode = inode_of_fd(fd), __VA_ARGS__});                           \
    leave();                                                                                       \
    errno = saved;                                                                                 \
    return result

int ftruncate64(int fd, off64_t size) {
    NEXT(int, "ftruncate64", int, off64_t);
    RECORD_FD(fd, result == 0, next(fd, size), .op = TRUNCATE, .a = size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    NEXT(int, "fallocate64", int, int, off64_t, off64_t);
    /* Mode 1 keeps the size and changes nothing that can be read. */
    if (mode == 1)
        return next(fd, mode, offset, length);
    RECORD_FD(fd, result == 0, next(fd, mode, offset, length), .op = mode == 0 ? EXTEND : UNKNOWN,
              .a = offset + length, .name = mode == 0 ? NULL : "fallocate with a mode");
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    return fallocate64(fd, mode, offset, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    NEXT(int, "posix_fallocate64", int, off64_t, off64_t);
    RECORD_FD(fd, result == 0, next(fd, offset, length), .op = EXTEND, .a = offset + length);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
    return posix_fallocate64(fd, offset, length);
}

/* --- syncing --- */

/* The promise covers what was there at the call, so the real call runs outside the lock. */
static int synced(int fd, uint8_t data_only, int (*next)(int)) {
    if (!fd_under(fd))
        return next(fd);
    struct record r = {.op = SYNC_BEGIN, .flags = data_only, .inode = inode_of_fd(fd)};
    enter();
    r.a = ++syncs;
    append(&r);
    leave();
    int result = next(fd), saved = errno;
    if (result == 0) {
        r.op = SYNC_END;
        enter();
        append(&r);
        leave();
    }
    errno = saved;
    return result;
}

int fsync(int fd) {
    NEXT(int, "fsync", int);
    return synced(fd, 0, next);
}

int fdatasync(int fd) {
    NEXT(int, "fdatasync", int);
    if (lying && fd_under(fd))
        return 0;
    return synced(fd, 1, next);
}

int sync_file_range(int fd, off64_t from, off64_t length, unsigned flags) {
    NEXT(int, "sync_file_range", int, off64_t, off64_t, unsigned);
    RECORD_FD(fd, result == 0, next(fd, from, length, flags), .op = RANGE, .a = from, .b = length);
}

static int64_t all_begins(void) {
    enter();
    int64_t number = ++syncs;
    append(&(struct record){.op = ALL_BEGIN, .a = number});
    leave();
    return number;
}

static void all_ends(int64_t number) {
    enter();
    append(&(struct record){.op = ALL_END, .a = number});
    leave();
}

int syncfs(int fd) {
    NEXT(int, "syncfs", int);
    if (!fd_under(fd))
        return next(fd);
    int64_t number = all_begins();
    int result = next(fd), saved = errno;
    if (result == 0)
        all_ends(number);
    errno = saved;
    return result;
}

void sync(void) {
    NEXT(void, "sync", void);
    if (!on) {
        next();
        return;
    }
    int64_t number = all_begins();
    next();
    all_ends(number);
}

/* --- names --- */

static int opened(int (*next)(int, const char *, int, ...), int dir, const char *name, int flags,
                  mode_t mode) {
    int unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    int changes = (flags & (O_CREAT | O_TRUNC)) || unnamed;
    struct place place;
    int saved = errno;
    /* An unnamed file is given the directory that it is made in. */
    int in = changes && on &&
             (unnamed ? shim_at_path(dir, name, place.path) && shim_under(directory, place.path)
                      : place_at(dir, name, &place));
    errno = saved;
    if (!in)
        return next(dir, name, flags, mode);
    enter();
    uint64_t before = unnamed ? 0 : inode_at(dir, name);
    errno = saved;
    int fd = next(dir, name, flags, mode);
    saved = errno;
    /* Something made through a link to elsewhere is not under the directory. */
    if (fd >= 0 && fd_under(fd)) {
        uint64_t inode = inode_of_fd(fd);
        if (unnamed)
            append(&(struct record){.op = CREATE, .inode = inode});
        else if (!before)
            append(&(struct record){.op = CREATE, .inode = inode, .dir = place.dir, .name = place.name});
        else if (flags & O_TRUNC)
            append(&(struct record){.op = TRUNCATE, .inode = inode});
    }
    leave();
    errno = saved;
    return fd;
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if (TAKES_MODE(flags)) {                                                                       \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }

static int open_next(int dir, const char *name, int flags, mode_t mode) {
    NEXT(int, "openat64", int, const char *, int, ...);
    return opened(next, dir, name, flags, mode);
}

int openat64(int dir, const char *name, int flags, ...) {
    MODE_OF(flags);
    return open_next(dir, name, flags, mode);
}

int openat(int dir, const char *name, int flags, ...) {
    MODE_OF(flags);
    return open_next(dir, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    MODE_OF(flags);
    return open_next(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) {
    MODE_OF(flags);
    return open_next(AT_FDCWD, name, flags, mode);
}

int creat64(const char *name, mode_t mode) {
    return open_next(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat(const char *name, mode_t mode) { return creat64(name, mode); }

static int renamed(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    NEXT(int, "renameat2", int, const char *, int, const char *, unsigned);
    struct place a, b;
    int saved = errno, out = place_at(from_dir, from, &a), in = place_at(to_dir, to, &b);
    errno = saved;
    if (!out && !in)
        return next(from_dir, from, to_dir, to, flags);
    enter();
    uint64_t inode = inode_at(from_dir, from), target = inode_at(to_dir, to);
    errno = saved;
    int result = next(from_dir, from, to_dir, to, flags);
    saved = errno;
    /* Two names of one file: rename does nothing. */
    if (result == 0 && inode != target) {
        struct record r = {.op = RENAME, .inode = inode, .dir = a.dir, .dir2 = b.dir,
                           .name = a.name, .name2 = b.name};
        if (!out || !in || (flags & ~RENAME_NOREPLACE))
            r = (struct record){.op = UNKNOWN, .name = "a rename across the directory's border or an exchange"};
        append(&r);
    }
    leave();
    errno = saved;
    return result;
}

int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return renamed(from_dir, from, to_dir, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    return renamed(from_dir, from, to_dir, to, flags);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    NEXT(int, "linkat", int, const char *, int, const char *, int);
    struct place place;
    int saved = errno, in = place_at(to_dir, to, &place);
    errno = saved;
    if (!in)
        return next(from_dir, from, to_dir, to, flags);
    enter();
    int result = next(from_dir, from, to_dir, to, flags);
    saved = errno;
    if (result == 0)
        append(&(struct record){.op = LINK, .inode = inode_at(to_dir, to), .dir2 = place.dir, .name2 = place.name});
    leave();
    errno = saved;
    return result;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* A call that changes the name of one place. */
#define RECORD_AT(dirfd, path, call, ...)                                                          \
    struct place place;                                                                            \
    int saved = errno, in = place_at(dirfd, path, &place);                                         \
    errno = saved;                                                                                 \
    if (!in)                                                                                       \
        return call;                                                                               \
    enter();                                                                                       \
    uint64_t before = inode_at(dirfd, path);                                                       \
    (void)before;                                                                                  \
    errno = saved;                                                                                 \
    int result = call;                                                                             \
    saved = errno;                                                                                 \
    if (result == 0)                                                                               \
        append(&(struct record){.dir = place.dir, .name = place.name, __VA_ARGS__});               \
    leave();                                                                                       \
    errno = saved;                                                                                 \
    return result

int unlinkat(int dir, const char *name, int flags) {
    NEXT(int, "unlinkat", int, const char *, int);
    RECORD_AT(dir, name, next(dir, name, flags), .op = UNLINK, .inode = before);
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int dir, const char *name, mode_t mode) {
    NEXT(int, "mkdirat", int, const char *, mode_t);
    RECORD_AT(dir, name, next(dir, name, mode), .op = MKDIR, .inode = inode_at(dir, name));
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int symlinkat(const char *to, int dir, const char *name) {
    NEXT(int, "symlinkat", const char *, int, const char *);
    RECORD_AT(dir, name, next(to, dir, name), .op = UNKNOWN);
}

int symlink(const char *to, const char *name) { return symlinkat(to, AT_FDCWD, name); }

int truncate64(const char *name, off64_t size) {
    NEXT(int, "truncate64", const char *, off64_t);
    RECORD_AT(AT_FDCWD, name, next(name, size), .op = TRUNCATE, .inode = before, .a = size);
}

int truncate(const char *name, off_t size) { return truncate64(name, size); }
