/*
 * The version, which the file VERSION has.
 */
#ifndef ACCEL_VERSION_H
#define ACCEL_VERSION_H

/* Such as "0.1.0". Exported: a program finds it by dlsym(), to see whether libaccel is preloaded and which one. */
const char *accel_version(void);

#endif
