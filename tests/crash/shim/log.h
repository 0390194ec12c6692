/* The log of record.c: its records and its lock.
 *
 * A record is little-endian: u32 length of the rest; u8 operation; u8 flags; u16 0; u32 pid;
 * u64 inode, directory, second directory; i64 a, b; u32 length of name, second name, data; these.
 * tests/src/powercut/log.rs reads it. */
#ifndef PROOFKEEP_SHIM_LOG_H
#define PROOFKEEP_SHIM_LOG_H

#include "common.h"

/* Operations; each has its Change in log.rs. */
enum op {
    START = 'H',      /* a process starts; inode: the directory's */
    CREATE = 'C',     /* a file is made; directory, name (empty: O_TMPFILE) */
    WRITE = 'W',      /* a: offset */
    TRUNCATE = 'T',   /* a: size */
    EXTEND = 'E',     /* a: size that the file has at least */
    RENAME = 'N',     /* inode moves from directory, name to second directory, second name */
    LINK = 'L',       /* inode gets second directory, second name */
    UNLINK = 'U',     /* directory, name */
    MKDIR = 'D',      /* inode: the new one; directory, name */
    SYNC_BEGIN = 's', /* a: a number that the end repeats; flags 1: fdatasync */
    SYNC_END = 'S',
    RANGE = 'R',      /* sync_file_range, which promises nothing; a: offset, b: length */
    ALL_BEGIN = 'y',  /* sync, syncfs */
    ALL_END = 'Y',
    ACK = 'A',        /* data */
    UNKNOWN = 'X'     /* a change that the rebuilder has no model of; name: what */
};

struct record {
    uint8_t op, flags;
    uint64_t inode, dir, dir2;
    int64_t a, b;
    const char *name, *name2;
    const void *data;
    uint32_t size;
};

static int log_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) {
    pthread_mutex_lock(&lock);
    shim_lock(log_fd);
}

static void leave(void) {
    syscall(SYS_flock, log_fd, LOCK_UN);
    pthread_mutex_unlock(&lock);
}

static char *put(char *at, const void *from, size_t n) {
    if (n)
        memcpy(at, from, n);
    return at + n;
}

/* Appends a record; the caller holds the lock. */
static void append(const struct record *r) {
    uint32_t n1 = r->name ? strlen(r->name) : 0, n2 = r->name2 ? strlen(r->name2) : 0;
    uint32_t pid = getpid(), rest = 60 + n1 + n2 + r->size;
    uint16_t zero = 0;
    char *buffer = malloc(4 + rest), *at = buffer;
    if (!buffer)
        shim_die("no memory for", "a record");
    at = put(at, &rest, 4);
    at = put(at, &r->op, 1);
    at = put(at, &r->flags, 1);
    at = put(at, &zero, 2);
    at = put(at, &pid, 4);
    at = put(at, &r->inode, 8);
    at = put(at, &r->dir, 8);
    at = put(at, &r->dir2, 8);
    at = put(at, &r->a, 8);
    at = put(at, &r->b, 8);
    at = put(at, &n1, 4);
    at = put(at, &n2, 4);
    at = put(at, &r->size, 4);
    at = put(at, r->name, n1);
    at = put(at, r->name2, n2);
    at = put(at, r->data, r->size);
    for (char *from = buffer; from < at;) {
        long n = syscall(SYS_write, log_fd, from, at - from);
        if (n <= 0)
            shim_die("cannot write", "the log");
        from += n;
    }
    free(buffer);
}

static void log_open(const char *path) {
    log_fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    /* Out of the way of programs that use low descriptors. */
    long high = log_fd < 0 ? -1 : syscall(SYS_fcntl, log_fd, F_DUPFD_CLOEXEC, 900);
    if (high >= 0) {
        syscall(SYS_close, log_fd);
        log_fd = high;
    }
    if (log_fd < 0)
        shim_die("cannot open", path);
}

#endif
