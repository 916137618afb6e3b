#include "utf8.h"

int utf8_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    const int more = *at < 0xc2 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : *at < 0xf5 ? 3 : 0;
    if (*at < 0x80)
        return 1;
    for (int i = 1; i <= more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Longer forms than needed, surrogates, and what lies behind the last character. */
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) ||
        (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
        return 0;
    return more ? more + 1 : 0;
}
