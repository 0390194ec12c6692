/* What the preload libraries share: the real functions, paths of descriptors, a process's role.
 *
 * The libraries see calls of libc's functions, as Rust's std and the libc crate make them. Raw
 * system calls (rustix without its feature "use-libc", io_uring, mmap) pass them by.
 * Nothing here goes through the functions that are replaced: own input and output is syscall(). */
#ifndef PROOFKEEP_SHIM_COMMON_H
#define PROOFKEEP_SHIM_COMMON_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* The next definition of a function after this library's. */
#define NEXT(ret, name, ...)                                                                       \
    static ret (*next)(__VA_ARGS__);                                                               \
    if (!next)                                                                                     \
        next = (ret(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* Flags with which open() reads a mode. */
#define TAKES_MODE(flags) (((flags) & O_CREAT) || (((flags) & O_TMPFILE) == O_TMPFILE))

static inline void shim_die(const char *what, const char *detail) {
    char text[512];
    int n = snprintf(text, sizeof text, "proofkeep preload library: %s: %s\n", what, detail);
    if (n > 0)
        syscall(SYS_write, 2, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    syscall(SYS_exit_group, 97);
}

/* Takes the lock of an open file; it ends with the process at the latest. */
static inline void shim_lock(int fd) {
    while (syscall(SYS_flock, fd, LOCK_EX) != 0)
        if (errno != EINTR)
            shim_die("cannot lock", "the log");
}

/* The canonical form of the directory named by a variable; 0 if the variable is not set. */
static inline int shim_directory(const char *variable, char out[PATH_MAX]) {
    const char *given = getenv(variable);
    if (!given || !*given)
        return 0;
    if (!realpath(given, out))
        shim_die("no such directory", given);
    return 1;
}

static inline int shim_under(const char *directory, const char *path) {
    size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The path behind a descriptor, as the kernel knows it now. */
static inline int shim_fd_path(int fd, char out[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    if (n < 0 || out[0] != '/')
        return 0;
    out[n] = '\0';
    return 1;
}

/* The absolute path of a name relative to dirfd, with its directory made canonical; the last
 * component stays as it is, whether or not it exists. */
static inline int shim_at_path(int dirfd, const char *path, char out[PATH_MAX]) {
    char whole[2 * PATH_MAX], parent[PATH_MAX];
    if (!path || !*path)
        return 0;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        if (dirfd == AT_FDCWD) {
            if (syscall(SYS_getcwd, parent, sizeof parent) <= 0)
                return 0;
        } else if (!shim_fd_path(dirfd, parent)) {
            return 0;
        }
        snprintf(whole, sizeof whole, "%s/%s", parent, path);
    }
    size_t n = strlen(whole);
    while (n > 1 && whole[n - 1] == '/')
        whole[--n] = '\0';
    char *slash = strrchr(whole, '/');
    const char *base = slash + 1;
    if (strcmp(base, ".") == 0 || strcmp(base, "..") == 0 || !*base)
        return realpath(whole, out) != NULL;
    *slash = '\0';
    if (!realpath(*whole ? whole : "/", parent))
        return 0;
    int length = snprintf(out, PATH_MAX, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, base);
    return length > 0 && length < PATH_MAX;
}

/* Whether this process plays the role that a variable asks for: "worker" if its first argument
 * is worker, else "daemon". An unset variable takes both. */
static inline int shim_role(const char *variable) {
    const char *wanted = getenv(variable);
    if (!wanted || !*wanted)
        return 1;
    if (strcmp(wanted, "daemon") != 0 && strcmp(wanted, "worker") != 0)
        shim_die("the role must be daemon or worker, not", wanted);
    char line[4096];
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long n = syscall(SYS_read, fd, line, sizeof line - 1);
    syscall(SYS_close, fd);
    if (n < 0)
        n = 0;
    line[n] = '\0';
    size_t program = strlen(line) + 1;
    const char *first = (long)program < n ? line + program : "";
    return (strcmp(first, "worker") == 0) == (strcmp(wanted, "worker") == 0);
}

/* Whether a comma-separated list holds a word; an unset list holds `fallback`'s. */
static inline int shim_listed(const char *variable, const char *fallback, const char *word) {
    const char *list = getenv(variable);
    if (!list || !*list)
        list = fallback;
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return 1;
    return 0;
}

static inline long shim_number(const char *variable, long fallback) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return fallback;
    char *end;
    long n = strtol(text, &end, 10);
    if (*end)
        shim_die(variable, "must be a number");
    return n;
}

/* Appends a line "number pid operation path" to a file. */
static inline void shim_count(const char *file, long number, const char *operation,
                              const char *path) {
    if (!file || !*file)
        return;
    char line[PATH_MAX + 128];
    int n = snprintf(line, sizeof line, "%ld %d %s %s\n", number, (int)getpid(), operation, path);
    long fd =
        syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        shim_die("cannot write", file);
    syscall(SYS_write, fd, line, n);
    syscall(SYS_close, fd);
}

#endif
