#include "slow_library.h"

static double lower(struct slow_library *library, double times)
{
    const double before = library->times > 0 ? library->times : 1;
    const double after = before * times > 1 ? before * times : 1;
    *library = (struct slow_library){.times = after};
    return after / before;
}

double slow_library_add(struct slow_library *library, double times)
{
    if (!(times > 0))
        return 1;
    if (times < SLOW_LIBRARY_FROM) {
        library->calls = 0;
        /* The machine can do it. */
        return times * SLOW_LIBRARY_FROM < 1 ? lower(library, times) : 1;
    }
    if (library->calls == 0 || times < library->least)
        library->least = times;
    if (++library->calls < SLOW_LIBRARY_CALLS)
        return 1;
    return lower(library, library->least);
}
