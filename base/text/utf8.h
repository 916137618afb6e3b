/*
 * Bytes that may be no UTF-8: names of files and programs may have any. Source: RFC 3629, section
 * 4. Pure, thread-safe.
 */
#ifndef ACCEL_UTF8_H
#define ACCEL_UTF8_H

/* Returns the bytes of the UTF-8 character that begins here, at most 4; 0 if none does. Reads
 * nothing behind the text's end. */
int utf8_length(const char *text);

#endif
