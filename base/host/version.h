/*
 * The version, from the file VERSION, and the commit.
 */
#ifndef ACCEL_VERSION_H
#define ACCEL_VERSION_H

/* Returns, for example, "0.1.0". Exported: a program finds it by dlsym() if libaccel is
 * preloaded. */
const char *accel_version(void);

/* Returns, for example, "fe55b5f3ab12"; empty: its sources did not know it. Constant. */
const char *accel_commit(void);

#endif
