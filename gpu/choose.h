/*
 * Which devices a process may use, in the order in which it tries them. Pure.
 */
#ifndef ACCEL_CHOOSE_H
#define ACCEL_CHOOSE_H

#include "gpu.h"

enum { CHOICE_MAX = 64 };

struct choice {
    int device[CHOICE_MAX];
    int count;
    int out[CHOICE_MAX]; /* of the list, those that cannot serve */
    int outs;
    int sharers; /* processes of this program for each device, at least 1 */
};

/* Of `there` devices. The processes of a program on this machine start at one device after the other, and then go on in the
 * order of the list. can_serve: what each process finds alike without trying; a device that cannot, or is not there, is
 * nobody's turn. */
void choose_devices(struct choice *choice, const struct gpu_config *config, int there,
                    bool (*can_serve)(int device));

#endif
