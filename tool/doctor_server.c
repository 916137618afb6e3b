#include "doctor_server.h"

#include <stdio.h>
#include <unistd.h>

#include "gpu/remote/lane.h"
#include "gpu/remote/remote.h"

static const char what[] = "server";

/* ---- Where it is ---- */

struct server_places {
    char path[2][REMOTE_PATH_BYTES]; /* in the order in which programs look */
    bool named;                      /* the user has named the first, and there is no other one */
};

static void places_of(struct server_places *places, const struct accel_settings *settings)
{
    *places = (struct server_places){.named = settings->server[0] != '\0'};
    if (places->named)
        snprintf(places->path[0], sizeof places->path[0], "%s", settings->server);
    else
        for (int i = 0; i < 2; i++)
            remote_path(places->path[i], i == 0);
}

/* The first that is there, as programs take it. */
static const char *socket_at(const struct server_places *places)
{
    for (int i = 0; i < 2; i++)
        if (places->path[i][0] && access(places->path[i], F_OK) == 0)
            return places->path[i];
    return NULL;
}

static void tell_absence(struct checks *checks, const struct server_places *places)
{
    char fix[REMOTE_PATH_BYTES + 100];
    if (places->named) {
        snprintf(fix, sizeof fix, "accel serve --socket=%s, or take ACCEL_SERVER out",
                 places->path[0]);
        checks_add(checks, CHECK_WARN, what, fix,
                   "ACCEL_SERVER names %s, which is not there: processes start CUDA themselves",
                   places->path[0]);
    } else {
        checks_add(checks, CHECK_OK, what, "", "none at %s%s%s: each process starts CUDA itself",
                   places->path[0], places->path[0][0] ? " or " : "", places->path[1]);
    }
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
        tell_refusal(checks, path, &welcome, why);
        return NULL;
    }
    lane_close(&lane);
    char asked[REMOTE_PATH_BYTES];
    remote_prepare(path);
    struct gpu_device *device = remote_start(asked, why);
    if (device)
        checks_add(checks, CHECK_OK, what, "",
                   "%s: %s, gpu%d; it is of this build, and takes operands of %.1f GB in all", path,
                   gpu_info(device)->name, gpu_info(device)->index,
                   (double)welcome.area_bytes * 1e-9);
    else
        tell_refusal(checks, path, &welcome, why);
    return device;
}

struct gpu_device *doctor_server(struct checks *checks, const struct effective_config *config)
{
    const struct accel_settings *settings = &config->settings;
    struct server_places places;
    if (!settings->server) {
        checks_add(checks, CHECK_OK, what, "", "switched off by ACCEL_SERVER");
        return NULL;
    }
    if (remote_hidden_by()) {
        checks_add(checks, CHECK_OK, what, "", "programs do not use one: %s hides all devices",
                   remote_hidden_by());
        return NULL;
    }
    places_of(&places, settings);
    const char *path = socket_at(&places);
    if (!path)
        tell_absence(checks, &places);
    else if (settings->devices.kind != ACCEL_DEVICES_AUTO)
        checks_add(checks, CHECK_OK, what, "",
                   "%s: programs do not use it, as ACCEL_DEVICES is set", path);
    else
        return try_socket(checks, path);
    return NULL;
}
