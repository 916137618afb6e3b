/*
 * The version, from the file VERSION.
 */
#ifndef ACCEL_VERSION_H
#define ACCEL_VERSION_H

/* Returns, for example, "0.1.0". Exported: a program finds it by dlsym() if libaccel is preloaded. */
const char *accel_version(void);

#endif
