#include "packer.h"

bool packer_has_done(struct packer *packer, int64_t number)
{
    if (number >= packer->done)
        packer->look(packer, 0);
    return number < packer->done;
}

void packer_await(struct packer *packer, int64_t number)
{
    if (number >= packer->done)
        packer->look(packer, number + 1);
}

void packer_finish(struct packer *packer)
{
    while (packer && packer->done < packer->posted)
        packer->look(packer, packer->posted);
}
