/* A small program for the tests of the preload libraries: does what the lines of its standard
 * input say, in its working directory, and prints a line for each: "ok N" with the call's result
 * or "error E" with errno. */
#include "common.h"

static char *word(char **rest) {
    char *w = strsep(rest, " ");
    return w ? w : (char *)"";
}

static long at_file(const char *name, int flags, long (*call)(int fd, char *arguments), char *arguments) {
    int fd = open64(name, flags, 0644);
    if (fd < 0)
        return -1;
    long result = call(fd, arguments);
    int saved = errno;
    close(fd);
    errno = saved;
    return result;
}

static long do_nothing(int fd, char *arguments) {
    (void)fd, (void)arguments;
    return 0;
}

static long do_write(int fd, char *arguments) {
    off64_t offset = atoll(word(&arguments));
    return pwrite64(fd, arguments, strlen(arguments), offset);
}

/* Writes a number of zero bytes at an offset. */
static long do_fill(int fd, char *arguments) {
    off64_t offset = atoll(word(&arguments));
    size_t n = atoll(word(&arguments));
    char *zeros = malloc(n);
    memset(zeros, *arguments, n);
    long result = pwrite64(fd, zeros, n, offset);
    free(zeros);
    return result;
}

static long do_append(int fd, char *arguments) { return write(fd, arguments, strlen(arguments)); }

static long do_writev(int fd, char *arguments) {
    char *first = word(&arguments);
    struct iovec parts[2] = {{first, strlen(first)}, {arguments, strlen(arguments)}};
    lseek(fd, 0, SEEK_END);
    return writev(fd, parts, 2);
}

static long do_truncate(int fd, char *arguments) { return ftruncate64(fd, atoll(arguments)); }

static long do_extend(int fd, char *arguments) {
    errno = posix_fallocate64(fd, 0, atoll(arguments));
    return errno ? -1 : 0;
}

static long do_fsync(int fd, char *arguments) {
    (void)arguments;
    return fsync(fd);
}

static long do_fdatasync(int fd, char *arguments) {
    (void)arguments;
    return fdatasync(fd);
}

static long do_range(int fd, char *arguments) {
    (void)arguments;
    return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* Writes through a mapping. */
static long do_map(int fd, char *arguments) {
    char *mapped = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -1;
    *mapped = *arguments;
    return munmap(mapped, 1);
}

/* A file without a name that then gets one. */
static long do_unnamed(int fd, char *arguments) {
    char link[64], *name = word(&arguments);
    long result = write(fd, arguments, strlen(arguments));
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return result < 0 ? result : linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static long run(const char *command, char *rest) {
#define IS(text) (strcmp(command, text) == 0)
    if (IS("unnamed"))
        return at_file(".", O_TMPFILE | O_RDWR, do_unnamed, rest);
    if (IS("renameat2")) {
        char *from = word(&rest);
        return renameat2(AT_FDCWD, from, AT_FDCWD, rest, RENAME_NOREPLACE);
    }
    char *name = word(&rest);
    if (IS("create"))
        return at_file(name, O_CREAT | O_RDWR, do_nothing, rest);
    if (IS("empty"))
        return at_file(name, O_TRUNC | O_RDWR, do_nothing, rest);
    if (IS("write"))
        return at_file(name, O_RDWR, do_write, rest);
    if (IS("fill"))
        return at_file(name, O_RDWR, do_fill, rest);
    if (IS("append"))
        return at_file(name, O_WRONLY | O_APPEND, do_append, rest);
    if (IS("writev"))
        return at_file(name, O_RDWR, do_writev, rest);
    if (IS("truncate"))
        return at_file(name, O_RDWR, do_truncate, rest);
    if (IS("extend"))
        return at_file(name, O_RDWR, do_extend, rest);
    if (IS("fsync"))
        return at_file(name, O_RDONLY, do_fsync, rest);
    if (IS("fdatasync"))
        return at_file(name, O_RDONLY, do_fdatasync, rest);
    if (IS("range"))
        return at_file(name, O_RDWR, do_range, rest);
    if (IS("map"))
        return at_file(name, O_RDWR, do_map, rest);
    if (IS("rename"))
        return rename(name, rest);
    if (IS("link"))
        return link(name, rest);
    if (IS("unlink"))
        return unlink(name);
    if (IS("mkdir"))
        return mkdir(name, 0755);
    if (IS("rmdir"))
        return rmdir(name);
    if (IS("ack"))
        return at_file(getenv("PROOFKEEP_RECORD_ACK"), O_CREAT | O_WRONLY | O_APPEND, do_append, name);
    shim_die("no such command", command);
    return -1;
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, stdin)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = '\0';
        char *rest = line, *command = word(&rest);
        long result = run(command, rest ? rest : (char *)"");
        printf(result < 0 ? "error %ld\n" : "ok %ld\n", result < 0 ? (long)errno : result);
        fflush(stdout);
    }
    return 0;
}
