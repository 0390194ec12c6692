/* Clocks that jump while the process runs.
 *
 *   PROOFKEEP_CLOCK_FILE  two 64-bit numbers of seconds, written in place by the test at any time: by
 *                         how much the time of day is off, and by how much the clock that also counts
 *                         while the machine sleeps (CLOCK_BOOTTIME). Without it nothing is changed.
 *
 * The monotonic clock is the kernel's: no jump of the time of day and no sleep moves it. */
#include "common.h"
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *offsets;

__attribute__((constructor)) static void start(void) {
    const char *file = getenv("PROOFKEEP_CLOCK_FILE");
    if (!file || !*file)
        return;
    long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        shim_die("cannot open", file);
    void *map = mmap(NULL, 2 * sizeof *offsets, PROT_READ, MAP_SHARED, (int)fd, 0);
    if (map == MAP_FAILED)
        shim_die("cannot map", file);
    syscall(SYS_close, fd);
    offsets = map;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    NEXT(int, "clock_gettime", clockid_t, struct timespec *);
    int result = next(clock, out);
    if (result == 0 && offsets) {
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)
            out->tv_sec += offsets[0];
        else if (clock == CLOCK_BOOTTIME)
            out->tv_sec += offsets[1];
    }
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
