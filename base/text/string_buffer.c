#include "string_buffer.h"

#include <stdlib.h>
#include <string.h>

void string_buffer_add(struct string_buffer *buffer, const char *bytes, size_t length)
{
    if (buffer->length + length + 1 > buffer->size) {
        size_t size = 2 * (buffer->length + length) + 4096;
        char *text = realloc(buffer->text, size);
        if (!text) {
            buffer->failed = true;
            return;
        }
        buffer->text = text;
        buffer->size = size;
    }
    memcpy(buffer->text + buffer->length, bytes, length);
    buffer->length += length;
    buffer->text[buffer->length] = 0;
}

void string_buffer_add_string(struct string_buffer *buffer, const char *string)
{
    string_buffer_add(buffer, string, strlen(string));
}
