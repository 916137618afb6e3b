#include "say.h"

#include <stdarg.h>

#include "text.h"
#include "output.h"

void accel_say(const char *format, ...)
{
    char buffer[1024];
    struct accel_text text;
    va_list args;
    text_start(&text, buffer, sizeof buffer - 1);
    text_string(&text, "accel: ");
    va_start(args, format);
    for (; *format; format++) {
        if (format[0] == '%' && format[1] == 's') {
            text_string(&text, va_arg(args, const char *));
            format++;
        } else if (format[0] == '%' && format[1] == 'd') {
            text_integer(&text, va_arg(args, int));
            format++;
        } else {
            text_char(&text, *format);
        }
    }
    va_end(args);
    text.size++;
    text_char(&text, '\n');
    output_stderr(text.at, text.length);
}
