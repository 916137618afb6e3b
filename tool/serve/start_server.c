#define _GNU_SOURCE
#include "start_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatch/settings/settings.h"
#include "gpu/remote/lane.h"
#include "gpu/remote/remote.h"
#include "tool/process/preload.h"
#include "tool/util/complain.h"

/* Becomes the server's starter, whose stdout is nobody's: the program's begins empty. */
static _Noreturn void become_starter(const char *command, const char *path)
{
    char self[PATH_MAX] = "";
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    preload_remove();
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        execl(self, "accel", "serve", "--detach", "--socket", path, (char *)NULL);
    _exit(complain(126, "%s: --serve: %s: %s\n", command, self, strerror(errno)));
}

static void start_at(const char *command, const char *path)
{
    const pid_t child = fork();
    int status;
    if (child == 0)
        become_starter(command, path);
    if (child < 0)
        complain(0, "%s: --serve: %s\n", command, strerror(errno));
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
}

void start_server(const char *command)
{
    struct accel_settings settings;
    char path[REMOTE_PATH_BYTES], why[GPU_FAILURE_BYTES];
    settings_read_whole(&settings, NULL);
    if (!settings.server || settings.devices.kind != ACCEL_DEVICES_AUTO) {
        complain(0, "%s: --serve: %s: programs use no server\n", command,
                 settings.server ? "ACCEL_DEVICES is set" : "ACCEL_SERVER=off");
        return;
    }
    const char *given = settings.server[0] ? settings.server : NULL;
    if (remote_find(path, given) && lane_answers(path, why))
        return;
    remote_path(path, true);
    if (!path[0] && geteuid() == 0)
        remote_path(path, false);
    if (given || path[0])
        start_at(command, given ? given : path);
    else
        complain(0,
                 "%s: --serve: XDG_RUNTIME_DIR is not set; ACCEL_SERVER=PATH says where a server "
                 "has its socket\n",
                 command);
}
