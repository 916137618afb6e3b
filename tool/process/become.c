#define _GNU_SOURCE
#include "become.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_file.h"
#include "tool/util/find_program.h"
#include "tool/util/terminal.h"

/* What runs a script, by the end of its name. */
static const struct {
    const char *end, *reader;
} languages[] = {{".py", "python3"}, {".R", "Rscript"}, {".r", "Rscript"}, {".m", "octave"},
                 {".jl", "julia"},   {".pl", "perl"},   {".sh", "sh"},     {".bash", "bash"}};

static const char *reader_by_name(const char *name)
{
    const char *const end = strrchr(name, '.');
    for (size_t i = 0; end && i < sizeof languages / sizeof *languages; i++)
        if (strcmp(end, languages[i].end) == 0)
            return languages[i].reader;
    return NULL;
}

/* The same by its first line, which is cut: what env finds of `#!/usr/bin/env NAME', else the
 * program's name, without its folder and the release of a Python. NULL if there is none. */
static const char *reader_by_line(char *line)
{
    char *word = strtok(line, " \t\r"), *next = strtok(NULL, " \t\r");
    char *base = word ? strrchr(word, '/') : NULL;
    if (base && strcmp(base, "/env") == 0 && next && *next != '-')
        return next;
    const char *const name = base ? base + 1 : word;
    return name && strncmp(name, "python", 6) == 0 ? "python3" : name;
}

/* Whether a shell, to which execvp(3) gives a file that the kernel does not know, could not read
 * it. */
static bool is_foreign(const char *path)
{
    struct elf_file file;
    const char *const reader = reader_by_name(path);
    if (!elf_file_read_kind(&file, path) || file.kind == ELF_SCRIPT)
        return false;
    return file.kind != ELF_UNKNOWN ||
           (reader && strcmp(reader, "sh") != 0 && strcmp(reader, "bash") != 0);
}

int become_program(char **program)
{
    char path[PATH_MAX];
    if (find_program(path, program[0]) && is_foreign(path)) {
        execv(path, program);
        if (errno == ENOEXEC)
            return ENOEXEC;
    }
    execvp(program[0], program);
    return errno;
}

/* ---- What is wrong ---- */

/* What has been found of a program that could not be started. */
struct suspect {
    const char *program; /* as it was named */
    char path[PATH_MAX];
    struct stat st;
    bool hidden; /* it is here, but not on PATH */
    bool executable;
    struct elf_file file;
};

/* False if there is nothing of this name. */
static bool look(struct suspect *suspect, const char *program)
{
    suspect->program = program;
    suspect->executable = find_program(suspect->path, program);
    suspect->hidden = !suspect->executable && !strchr(program, '/');
    if (suspect->hidden && snprintf(suspect->path, PATH_MAX, "./%s", program) >= PATH_MAX)
        return false;
    if (!suspect->executable && !suspect->hidden)
        snprintf(suspect->path, PATH_MAX, "%s", program);
    if (stat(suspect->path, &suspect->st) != 0)
        return false;
    suspect->executable = suspect->executable || access(suspect->path, X_OK) == 0;
    if (!S_ISREG(suspect->st.st_mode) || !elf_file_read_kind(&suspect->file, suspect->path))
        suspect->file.kind = ELF_UNKNOWN;
    return true;
}

enum { REASON_BYTES = 400 };

static const char *why(char text[REASON_BYTES], const struct suspect *suspect, int error)
{
    const struct elf_file *const file = &suspect->file;
    if (suspect->hidden)
        return "it is in this folder, which is not on PATH";
    if (!suspect->executable && !(suspect->st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return "it is not executable";
    if (error == ENOEXEC && file->kind == ELF_UNKNOWN)
        return "its first line does not say what runs it (#!)";
    if (error == ENOEXEC && file->kind == ELF_OTHER && file->other == ELF_32_BITS)
        return "it has 32 bits";
    if (error == ENOEXEC && file->kind == ELF_OTHER)
        return "it is for another machine";
    if (error != ENOENT || !*file->interpreter)
        return strerror(error);
    if (file->kind == ELF_SCRIPT && strchr(file->interpreter, '\r'))
        return "its first line ends with a carriage return, as on Windows";
    snprintf(text, REASON_BYTES, "its %s is not there: %.*s",
             file->kind == ELF_SCRIPT ? "interpreter" : "dynamic linker",
             (int)strcspn(file->interpreter, " \t"), file->interpreter);
    return text;
}

const char *become_fault(char text[BECOME_FAULT_BYTES], const char *command, const char *program,
                         int error)
{
    struct suspect suspect;
    char reason[REASON_BYTES], found[PATH_MAX];
    if (!look(&suspect, program) || !(S_ISREG(suspect.st.st_mode) || S_ISDIR(suspect.st.st_mode)))
        return strerror(error);
    if (S_ISDIR(suspect.st.st_mode))
        return "it is a folder; allowed: a program";
    const char *const wrong = why(reason, &suspect, error);
    const char *reader = reader_by_name(program);
    if (!reader && suspect.file.kind == ELF_SCRIPT)
        reader = reader_by_line(suspect.file.interpreter);
    if (reader && find_program(found, reader))
        snprintf(text, BECOME_FAULT_BYTES, "%s: %s -- %s %s", wrong, command, reader, program);
    else if (!suspect.executable && suspect.file.kind > ELF_SCRIPT)
        snprintf(text, BECOME_FAULT_BYTES, "%s: chmod +x %s; %s -- %s", wrong, suspect.path,
                 command, suspect.path);
    else if (suspect.hidden && suspect.executable)
        snprintf(text, BECOME_FAULT_BYTES, "%s: %s -- %s", wrong, command, suspect.path);
    else if (reader)
        snprintf(text, BECOME_FAULT_BYTES, "%s, and %s, which reads it, is not installed", wrong,
                 reader);
    else
        snprintf(text, BECOME_FAULT_BYTES, "%s", wrong);
    return terminal_plain(text);
}
