/*
 * A report in JUnit's XML, as Ant writes it and CI servers read it: one test suite, a test case for
 * each thing that was looked at. Not thread-safe.
 */
#ifndef ACCEL_TOOL_JUNIT_H
#define ACCEL_TOOL_JUNIT_H

#include <stdbool.h>
#include <stdio.h>

/* A failure: it was looked at, and is wrong. An error: it could not be looked at. */
enum junit_outcome { JUNIT_PASSED, JUNIT_FAILURE, JUNIT_ERROR, JUNIT_OUTCOMES };

struct junit {
    FILE *file; /* NULL: nobody asked for a report; then the other functions do nothing */
    const char *path, *group; /* the user's; what the cases are grouped by ("classname") */
    FILE *cases;              /* what is written to `text` */
    char *text;
    size_t length;
    int count[JUNIT_OUTCOMES];
    double began_ms;
};

/* Opens the file anew, so that no former report stays; path NULL: no report. False with a message
 * on stderr. */
bool junit_open(struct junit *junit, const char *path, const char *group);

/* Adds a case. The message is one line, and the details are what a person reads below it; both
 * count if it has not passed. They may have any bytes: what XML does not allow becomes a question
 * mark. */
void junit_case(struct junit *junit, const char *name, double seconds, enum junit_outcome outcome,
                const char *message, const char *details);

/* Writes the report. False with a message on stderr if it could not be written. */
bool junit_close(struct junit *junit);

#endif
