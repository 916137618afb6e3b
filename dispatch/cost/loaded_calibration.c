#define _GNU_SOURCE
#include "loaded_calibration.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/output/message.h"
#include "calibration.h"
#include "cost.h"

static const struct accel_settings *settings;
static bool quiet;
static bool opened;
static struct calibration file;

void loaded_calibration_start(const struct accel_settings *with, bool be_quiet)
{
    settings = with;
    quiet = be_quiet;
}

void loaded_calibration_lacks(const char *key)
{
    static bool said;
    if (said || quiet)
        return;
    said = true;
    accel_message(
        "the calibration %s has nothing for %s: built-in figures are used; `accel calibrate` "
        "measures this machine",
        settings->model, key);
}

bool loaded_calibration_is_missed(const struct accel_settings *of)
{
    return of->model_given && !of->learn && access(of->model, F_OK) != 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

void loaded_calibration_say_missed(const struct accel_settings *of)
{
    accel_message("no calibration at %s (ACCEL_MODEL); built-in figures are used (run `accel "
                  "calibrate`)",
                  of->model);
}

/* Without a GPU the file is not opened, but the user's wrong path is still worth a message,
 * once. */
void cost_complain(void)
{
    static atomic_bool said;
    if (!quiet && loaded_calibration_is_missed(settings) && !atomic_exchange(&said, true))
        loaded_calibration_say_missed(settings);
}

static void open_file(void)
{
    char key[CALIBRATION_KEY_BYTES];
    struct calibration_section section;
    if (!settings->model)
        return;
    const char *wrong = calibration_open(&file, settings->model);
    /* HOME stays another user's in programs that change the user: no complaint. */
    bool expected = wrong == calibration_closed && !settings->model_given;
    if (wrong == calibration_missing)
        cost_complain();
    else if (wrong && !quiet && !expected)
        accel_message("the calibration %s is not used: %s", settings->model, wrong);
    if (!file.text)
        return;
    if (!calibration_has_sections(&file)) { /* nothing that was measured is lost */
        calibration_close(&file);
        if (!quiet && settings->log != ACCEL_LOG_OFF)
            accel_message("the calibration %s is empty; built-in figures are used (run `accel "
                          "calibrate`)",
                          settings->model);
        return;
    }
    calibration_cpu_prefix(key);
    if (!calibration_find(&file, key, true, &section))
        loaded_calibration_lacks(key + 1);
}

const struct calibration *loaded_calibration_open(void)
{
    if (!opened) {
        opened = true;
        open_file();
    }
    return &file;
}

const struct calibration *loaded_calibration(void)
{
    return &file;
}
