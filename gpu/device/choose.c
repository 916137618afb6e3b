#include "choose.h"

void choose_devices(struct device_choice *choice, const struct gpu_config *config, int there,
                    bool (*can_serve)(int device))
{
    int all = config->device_count > 0 ? config->device_count : there;
    int list[CHOICE_MAX], size = config->local_size > 0 ? config->local_size : 1;
    choice->count = choice->outs = 0;
    for (int i = 0; i < all && i < CHOICE_MAX; i++) {
        int device = config->device_count > 0 ? config->devices[i] : i;
        if (device < there && can_serve(device))
            list[choice->count++] = device;
        else
            choice->out[choice->outs++] = device;
    }
    choice->sharers = choice->count > 0 ? (size + choice->count - 1) / choice->count : 1;
    choice->share = config->several && choice->count > size ? choice->count / size : 1;
    for (int i = 0; i < choice->count; i++)
        choice->device[i] = list[(config->local_rank * choice->share + i) % choice->count];
}
