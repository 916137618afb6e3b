/* put_model PATH [KEY BODY]...: a calibration of these sections. A body's lines end in newlines. */
#include <stdio.h>

#include "dispatch/cost/calibration.h"

int main(int argc, char **argv)
{
    const char *keys[8], *bodies[8];
    int count = 0;
    if (argc < 2 || argc > 18 || argc % 2 != 0)
        return 2;
    for (int i = 2; i < argc; i += 2, count++) {
        keys[count] = argv[i];
        bodies[count] = argv[i + 1];
    }
    const char *wrong = calibration_put(argv[1], keys, bodies, count, true);
    if (wrong)
        fprintf(stderr, "put_model: %s\n", wrong);
    return wrong != NULL;
}
