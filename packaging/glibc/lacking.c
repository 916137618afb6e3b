/*
 * What glibc 2.28 lacks of the functions that libaccel calls, for OLD_GLIBC=1. They take the place
 * of glibc's own in what they are linked into, and are seen nowhere else.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCAL __attribute__((visibility("hidden")))

/* Linux's structure is glibc's on x86-64. */
LOCAL int fstatat(int folder, const char *path, struct stat *status, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, status, flags);
}

LOCAL int stat(const char *path, struct stat *status)
{
    return fstatat(AT_FDCWD, path, status, 0);
}

LOCAL int lstat(const char *path, struct stat *status)
{
    return fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

LOCAL int fstat(int file, struct stat *status)
{
    return (int)syscall(SYS_fstat, file, status);
}

LOCAL pid_t gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* glibc's table of descriptions, which it does not declare any more. */
extern const char *const old_descriptions[];
extern const int old_description_count;
__asm__(".symver old_descriptions, _sys_errlist@GLIBC_2.12");
__asm__(".symver old_description_count, _sys_nerr@GLIBC_2.12");

LOCAL const char *strerrordesc_np(int error)
{
    return error >= 0 && error < old_description_count ? old_descriptions[error] : NULL;
}

/* Since 2.38, glibc's headers replace these functions by C23's, which read 0b1010, too. */
#define BEFORE_C23(type, function)                                                                 \
    extern type old_##function(const char *text, char **end, int base) __asm__(#function);         \
    LOCAL type __isoc23_##function(const char *text, char **end, int base)                         \
    {                                                                                              \
        return old_##function(text, end, base);                                                    \
    }
BEFORE_C23(long, strtol)
BEFORE_C23(unsigned long, strtoul)
BEFORE_C23(long long, strtoll)
BEFORE_C23(unsigned long long, strtoull)

extern int old_vsscanf(const char *text, const char *format,
                       va_list arguments) __asm__("__isoc99_vsscanf");

LOCAL int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = old_vsscanf(text, format, arguments);
    va_end(arguments);
    return count;
}
