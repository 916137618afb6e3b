/*
 * Which devices a process may use, in the order in which it tries them. Pure.
 */
#ifndef ACCEL_CHOOSE_H
#define ACCEL_CHOOSE_H

#include "gpu.h"

enum { CHOICE_MAX = 64 };

struct device_choice {
    int device[CHOICE_MAX];
    int count;
    int out[CHOICE_MAX]; /* devices of the configuration's list that cannot serve */
    int outs;
    int sharers; /* processes of this program for each device, at least 1 */
    int share;   /* devices for each process, at least 1; the first of device[] are this one's */
};

/* Chooses among the `there` devices of the machine. The processes of a program each start at
 * another device, with config->several behind the shares of those before, and go on in the order of
 * the list. can_serve must say the same in each of them. A device that cannot serve, or does not
 * exist, takes no turn. */
void choose_devices(struct device_choice *choice, const struct gpu_config *config, int there,
                    bool (*can_serve)(int device));

#endif
