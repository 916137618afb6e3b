#include "model_file.h"

#include <stddef.h>

#include "complain.h"

bool model_file_open(struct calibration *file, const char *command, const char *path, bool named)
{
    const char *wrong = path ? calibration_open(file, path) : NULL;
    if (!path || wrong)
        *file = (struct calibration){.text = NULL};
    if (!wrong || !named)
        return true;
    return complain(false, "%s: --model %s: %s; allowed: a file of `accel calibrate`\n", command,
                    path, wrong);
}
