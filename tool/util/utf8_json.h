/*
 * JSON of bytes that may be no UTF-8: a log and an argument may have any.
 */
#ifndef ACCEL_TOOL_UTF8_JSON_H
#define ACCEL_TOOL_UTF8_JSON_H

#include <json-c/json.h>

/* Returns a string of JSON, the caller's, with `?` for each byte that is no UTF-8; NULL if there is
 * no memory. */
struct json_object *utf8_json(const char *text);

#endif
