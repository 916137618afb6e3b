#include "message.h"

#include <stdarg.h>

#include "base/text/text.h"
#include "output.h"

static bool (*other)(const char *message); /* constant after the start */

void message_to(bool (*takes)(const char *message))
{
    other = takes;
}

void accel_message(const char *format, ...)
{
    static const char start[] = "accel: ";
    char buffer[1024];
    struct accel_text text;
    va_list args;
    text_start(&text, buffer, sizeof buffer - 1);
    text_string(&text, start);
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
    if (!text_end(&text))
        text.length = text.size - 1;
    if (other && other(buffer + sizeof start - 1))
        return;
    text.size++;
    text_char(&text, '\n');
    output_stderr(text.at, text.length);
}
