#define _GNU_SOURCE
#include "account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/util/complain.h"

/* Returns a number that is written as digits alone; -1: it is not one. The highest one is nobody's:
 * chown(2) takes it for none. */
static int64_t number_of(const char *text)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && number < UINT32_MAX ? number : -1;
}

int64_t account_user(const char *name)
{
    const struct passwd *user = getpwnam(name);
    return user ? (int64_t)user->pw_uid : number_of(name);
}

int64_t account_group(const char *name)
{
    const struct group *group = getgrnam(name);
    return group ? (int64_t)group->gr_gid : number_of(name);
}

/* Root's folders are no place for its settings and caches. */
static void take_home(const struct passwd *user)
{
    static const char *const of_root[] = {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
                                          "XDG_DATA_HOME", "XDG_STATE_HOME"};
    setenv("HOME", user->pw_dir, 1);
    setenv("USER", user->pw_name, 1);
    setenv("LOGNAME", user->pw_name, 1);
    for (size_t i = 0; i < sizeof of_root / sizeof *of_root; i++)
        unsetenv(of_root[i]);
}

bool account_become(const char *name)
{
    const struct passwd *user = getpwnam(name);
    if (!user)
        return complain(false, "accel serve: --account=%s: there is no such user\n", name);
    if (initgroups(user->pw_name, user->pw_gid) != 0 ||
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
        return complain(false, "accel serve: --account=%s: %s\n", name, strerror(errno));
    take_home(user);
    return true;
}
