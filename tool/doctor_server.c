#include "doctor_server.h"

#include <stdio.h>
#include <unistd.h>

#include "gpu/remote/lane.h"
#include "gpu/remote/remote.h"

static const char what[] = "server";

/* given: the path that the user has set, or NULL. */
static void tell_absence(struct checks *checks, const char *given)
{
    char fix[REMOTE_PATH_BYTES + 100], user[REMOTE_PATH_BYTES], machine[REMOTE_PATH_BYTES];
    if (given) {
        snprintf(fix, sizeof fix, "accel serve --socket=%s, or take ACCEL_SERVER out", given);
        checks_add(checks, CHECK_WARN, what, fix,
                   "ACCEL_SERVER names %s, which is not there: processes start CUDA themselves",
                   given);
        return;
    }
    remote_path(user, true);
    remote_path(machine, false);
    checks_add(checks, CHECK_OK, what, "", "none at %s%s%s: each process starts CUDA itself", user,
               user[0] ? " or " : "", machine);
}

/* ---- What it says ---- */

static void tell_refusal(struct checks *checks, const char *path,
                         const struct wire_welcome *welcome, const char *why)
{
    struct wire_hello own;
    wire_hello(&own);
    if (welcome->server.magic && wire_is_other(&welcome->server))
        checks_add(checks, CHECK_WARN, what,
                   "end that server, and start it again with this build: accel serve",
                   "%s: %s: %.*s, and this is %s; processes start CUDA themselves", path, why,
                   (int)sizeof welcome->server.build, welcome->server.build, own.build);
    else
        checks_add(checks, CHECK_WARN, what,
                   "start one there (accel serve), or have programs use none: ACCEL_SERVER=off",
                   "%s: %s; processes start CUDA themselves", path, why);
}

static struct gpu_device *try_socket(struct checks *checks, const char *path)
{
    char why[GPU_FAILURE_BYTES] = "";
    struct wire_welcome welcome = {.area_bytes = 0};
    struct lane lane;
    if (!lane_open(&lane, path, &welcome, why)) {
        if (welcome.starting)
            checks_add(checks, CHECK_OK, what, "",
                       "%s: its GPU is starting; calls run on the CPU until it has", path);
        else
            tell_refusal(checks, path, &welcome, why);
        return NULL;
    }
    lane_close(&lane);
    char asked[REMOTE_PATH_BYTES];
    remote_prepare(path);
    bool starting;
    struct gpu_device *device = remote_start(asked, why, &starting);
    if (device)
        checks_add(checks, CHECK_OK, what, "",
                   "%s: %s, %s%d%s; it is of this build, and takes operands of %.1f GB in all",
                   path, gpu_info(device)->name, gpu_info(device)->share > 1 ? "" : "gpu",
                   gpu_info(device)->share > 1 ? gpu_info(device)->share : gpu_info(device)->index,
                   gpu_info(device)->share > 1 ? " of them" : "",
                   (double)welcome.area_bytes * 1e-9);
    else
        tell_refusal(checks, path, &welcome, why);
    return device;
}

struct gpu_device *doctor_server(struct checks *checks, const struct effective_config *config)
{
    const struct accel_settings *settings = &config->settings;
    char path[REMOTE_PATH_BYTES];
    if (!settings->server) {
        checks_add(checks, CHECK_OK, what, "", "switched off by ACCEL_SERVER");
        return NULL;
    }
    if (remote_hidden_by()) {
        checks_add(checks, CHECK_OK, what, "", "programs do not use one: %s hides all devices",
                   remote_hidden_by());
        return NULL;
    }
    const char *given = settings->server[0] ? settings->server : NULL;
    if (!remote_find(path, given))
        tell_absence(checks, given);
    else if (settings->devices.kind != ACCEL_DEVICES_AUTO)
        checks_add(checks, CHECK_OK, what, "",
                   "%s: programs do not use it, as ACCEL_DEVICES is set", path);
    else
        return try_socket(checks, path);
    return NULL;
}
