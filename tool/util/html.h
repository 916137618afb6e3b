/*
 * Writes HTML, XML, and the JSON of a page's script. A log may hold any bytes: its words go through
 * html_text(), html_xml() or html_json().
 */
#ifndef ACCEL_TOOL_HTML_H
#define ACCEL_TOOL_HTML_H

#include <stdbool.h>
#include <stdio.h>

/* Writes text, in an element or within the quotes of an attribute: as UTF-8, with `?` for what is
 * none and for control characters. */
void html_text(FILE *to, const char *text);

/* The same in XML, which may have tabs and newlines. */
void html_xml(FILE *to, const char *text);

/* Writes a string of JSON, of the same characters, in a script element. */
void html_json(FILE *to, const char *text);

/* A place "@NAME@" of a template, and what is written there. */
struct html_part {
    const char *name;
    void (*write)(FILE *to, const void *context);
};

/* Writes a template, a string, with all of its parts; a place that has none stays as it is. */
void html_template(FILE *to, const char *text, const struct html_part *parts, int count,
                   const void *context);

/* Print a time, and a quantity, as people read them: "12.3 ms", "4.1 s", "2 h 5 min"; "1.2 M",
 * "640". */
enum { HTML_NUMBER_BYTES = 32 };
const char *html_ms(char text[HTML_NUMBER_BYTES], double ms);
const char *html_count(char text[HTML_NUMBER_BYTES], double count);

#endif
