#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

int complain(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    return status;
}
