/*
 * The calibration as a file: its version, its sections by their keys, its checksum. calibration.h
 * describes the format, and reads what the sections say. Not thread-safe, except for different
 * files.
 */
#ifndef ACCEL_CALIBRATION_FILE_H
#define ACCEL_CALIBRATION_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: no file. */
struct calibration {
    char *text; /* allocated by calibration_open() */
    size_t length;
    int64_t time; /* of its last change: seconds since 1970 */
};

/* A section's lines, within the file's memory. */
struct calibration_section {
    const char *text;
    size_t length;
};

/* A line within the file's memory, without its newline. */
struct calibration_line {
    const char *at;
    size_t length;
};

/* Reads a file. Returns NULL, or what is wrong with it, as constant text: calibration_missing if
 * there is no such file, calibration_closed if this user may not read it. A file is read as a whole
 * or not at all: calibration_close() frees it. */
const char *calibration_open(struct calibration *file, const char *path);
extern const char calibration_missing[], calibration_closed[];
void calibration_close(struct calibration *file);

/* Finds the section with this key; with `prefix`, the first whose key begins with it. False if
 * there is none. */
bool calibration_find(const struct calibration *file, const char *key, bool prefix,
                      struct calibration_section *section);

/* Whether there is any section. A file without one says nothing about any machine. */
bool calibration_has_sections(const struct calibration *file);

/* Finds the next section whose key begins with `prefix`, and its header. `rest` starts as a copy of
 * the file; each call leaves in it the part behind the section. */
bool calibration_next_section(struct calibration *rest, const char *prefix,
                              struct calibration_line *header, struct calibration_section *section);

/* The name of the value that says when `accel calibrate` measured a section, in seconds since
 * 1970. */
extern const char calibration_when[];

/* Takes the next line of [*at, end). */
bool calibration_next_line(const char **at, const char *end, struct calibration_line *line);

/* Whether the line begins with a text. */
bool calibration_begins(const struct calibration_line *line, const char *with);

/* Finds the section's line that begins with name and `mark`, and sets `rest` to the part behind
 * them. */
bool calibration_find_line(const struct calibration_section *section, const char *name, char mark,
                           struct calibration_line *rest);

/* Replaces or adds `count` sections (keys and bodies; the lines of a body end in a newline), and
 * keeps the others. A damaged file is replaced; one of another version, one that cannot be read,
 * and what is no file are not. seen: NULL, or for each key the section that this process has read
 * (NULL: none): where the file has one by now that was calibrated at another time, that stays.
 * Writes a new file beside the old one and renames it; a symbolic link stays and leads to it; makes
 * missing folders. Returns NULL, or what failed, as constant text, with errno (0: the text says
 * all); the old file then stays. With count = 0 it only tries whether the file could be written,
 * and changes nothing except for folders. If another process writes the file, it waits up to 5
 * seconds if `patient`, else 20 ms. */
const char *calibration_put(const char *path, const char *const keys[], const char *const bodies[],
                            const struct calibration_section *const seen[], int count,
                            bool patient);

#endif
