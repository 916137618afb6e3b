#include "string_buffer.h"

#include <stdlib.h>
#include <string.h>

void string_buffer_add(struct string_buffer *grown, const char *bytes, size_t length)
{
    if (grown->length + length + 1 > grown->size) {
        size_t size = 2 * (grown->length + length) + 4096;
        char *text = realloc(grown->text, size);
        if (!text) {
            grown->failed = true;
            return;
        }
        grown->text = text;
        grown->size = size;
    }
    memcpy(grown->text + grown->length, bytes, length);
    grown->length += length;
    grown->text[grown->length] = 0;
}

void string_buffer_add_string(struct string_buffer *grown, const char *string)
{
    string_buffer_add(grown, string, strlen(string));
}
