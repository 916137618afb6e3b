#define _GNU_SOURCE
#include "utf8_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"

struct json_object *utf8_json(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    for (char *c = copy; *c;) {
        const int length = utf8_length(c);
        if (length == 0)
            *c = '?';
        c += length ? length : 1;
    }
    struct json_object *string = json_object_new_string(copy);
    free(copy);
    return string;
}
