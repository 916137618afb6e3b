/*
 * The calibration in use: the file that the settings name, opened at the first call that wants it,
 * and what is said of it on stderr. Called under curves_lock (curves.h), except where it says
 * otherwise.
 */
#ifndef ACCEL_LOADED_CALIBRATION_H
#define ACCEL_LOADED_CALIBRATION_H

#include "calibration_file.h"
#include "dispatch/settings/settings.h"

/* Call it once, before anything else. quiet: nothing is said. The settings stay. Needs no lock. */
void loaded_calibration_start(const struct accel_settings *settings, bool quiet);

/* Opens the file at the first call, and says what is wrong with it. Returns it; its text is NULL if
 * there is none. It stays open. */
const struct calibration *loaded_calibration_open(void);

/* Returns the same without opening it: text is NULL before that. */
const struct calibration *loaded_calibration(void);

/* Whether the calibration that the user has named is missed: it is not there, and ACCEL_LEARN=1
 * will not make it. Needs no start, no lock. */
bool loaded_calibration_is_missed(const struct accel_settings *settings);
/* Says that it is; the same. */
void loaded_calibration_say_missed(const struct accel_settings *settings);

/* Says once that the calibration lacks the section of this key: the file of another machine lacks
 * all of them. */
void loaded_calibration_lacks(const char *key);

#endif
