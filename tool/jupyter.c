#define _GNU_SOURCE
#include "commands.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/file.h"
#include "tool/util/complain.h"
#include "tool/util/stream.h"
#include "tool/util/utf8_json.h"

struct jupyter_options {
    const char *python, *name, *display, *prefix;
};

static const struct option_row rows[] = {
    {"name", 0, "NAME", "the kernel's name: letters, digits, '.', '_', '-' (default: accel)",
     SETS(jupyter_options, option_text, name)},
    {"display-name", 0, "TEXT", "what Jupyter shows (default: Python (accel))",
     SETS(jupyter_options, option_text, display)},
    {"user", 0, NULL,
     "for this user: in JUPYTER_DATA_DIR, or jupyter in XDG_DATA_HOME or ~/.local/share (default)",
     SETS(jupyter_options, option_text, prefix)}, /* no argument: NULL */
    {"prefix", 0, "FOLDER",
     "in FOLDER/share/jupyter, such as the folder of an environment of conda or venv",
     SETS(jupyter_options, option_text, prefix)},
    {0}};

/* ---- Paths ---- */

static bool name_is_allowed(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isascii(*c) || (!isalnum((unsigned char)*c) && !strchr("._-", *c)))
            return false;
    return *name && *name != '.';
}

/* Jupyter's own order (jupyter_core.paths). False if there is no home, or the path is too long. */
static bool kernel_folder(char folder[PATH_MAX], const struct jupyter_options *options)
{
    const char *own = getenv("JUPYTER_DATA_DIR"), *data = getenv("XDG_DATA_HOME"),
               *home = getenv("HOME");
    const char *start = options->prefix ? options->prefix
                        : own && *own   ? own
                        : data && *data ? data
                                        : home;
    const char *below = options->prefix ? "/share/jupyter"
                        : start == own  ? ""
                        : start == data ? "/jupyter"
                                        : "/.local/share/jupyter";
    return start && *start &&
           snprintf(folder, PATH_MAX, "%s%s/kernels/%s", start, below, options->name) < PATH_MAX;
}

/* Finds the program as a shell does. The path stays as it is: a venv's python is a link, which must
 * not be followed. */
static bool find_program(char path[PATH_MAX], const char *name)
{
    char working[PATH_MAX] = "";
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) {
        const bool absolute = *name == '/';
        if (!absolute && !getcwd(working, sizeof working))
            return false;
        return snprintf(path, PATH_MAX, "%s%s%s", working, absolute ? "" : "/", name) < PATH_MAX &&
               access(path, X_OK) == 0;
    }
    for (const char *folder = folders ? folders : "/usr/bin:/bin"; *folder;) {
        const size_t length = strcspn(folder, ":");
        struct stat st;
        if (*folder == '/' &&
            snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name) < PATH_MAX &&
            access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
        folder += length + (folder[length] == ':');
    }
    return false;
}

/* Makes the folders that lead to `path`, which is changed meanwhile. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return true;
}

/* ---- What is there ---- */

/* What tells a Python from another program, which may end with 0 or 1 whatever it is given. */
enum python {
    NO_PYTHON,
    KERNEL_PYTHON = 43,
    /* Without ipykernel. */
    MANAGED_PYTHON, /* its packages are the system's: EXTERNALLY-MANAGED (PEP 668), or no pip */
    PIP_PYTHON,
    ENSUREPIP_PYTHON, /* can get pip */
    BARE_PYTHON
};

/* Asks the program whether it is a Python, and can start as a kernel. */
static enum python ask_python(const char *python)
{
    char script[] = "import sys\n"
                    "try: import ipykernel; sys.exit(43)\n"
                    "except Exception: pass\n"
                    "import os, sysconfig\n"
                    "from importlib.util import find_spec\n"
                    "mark = os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED')\n"
                    "pip, own = find_spec('pip'), sys.prefix == sys.base_prefix\n"
                    "system = os.path.exists(mark) or not pip and sys.prefix == '/usr'\n"
                    "sys.exit(44 if own and system else 45 if pip else\n"
                    "         46 if find_spec('ensurepip') else 47)",
         option[] = "-c", *argv[] = {(char *)python, option, script, NULL};
    posix_spawn_file_actions_t quiet;
    pid_t child;
    int status = -1;
    if (posix_spawn_file_actions_init(&quiet) != 0)
        return NO_PYTHON;
    bool good = posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawn(&child, python, &quiet, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&quiet);
    while (good && waitpid(child, &status, 0) < 0)
        good = errno == EINTR;
    const int answer = good && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return answer >= KERNEL_PYTHON && answer <= BARE_PYTHON ? (enum python)answer : NO_PYTHON;
}

/* Whether the Python is Debian's own, whose packages are apt's. */
static bool is_debian_s(const char *python)
{
    char path[PATH_MAX];
    return realpath(python, path) && strncmp(path, "/usr/bin/", 9) == 0 &&
           access("/usr/bin/apt-get", X_OK) == 0;
}

/* Says how a Python gets ipykernel. */
static int advise(const char *python, enum python kind)
{
    if (kind == MANAGED_PYTHON && is_debian_s(python))
        return complain(1, "accel jupyter: %s has no ipykernel: apt install python3-ipykernel\n",
                        python);
    if (kind == MANAGED_PYTHON)
        return complain(
            1,
            "accel jupyter: %s has no ipykernel, and its packages are the system's: %s -m "
            "venv ENV && ENV/bin/pip install ipykernel && accel jupyter install "
            "ENV/bin/python\n",
            python, python);
    if (kind == PIP_PYTHON)
        return complain(1, "accel jupyter: %s has no ipykernel: %s -m pip install ipykernel\n",
                        python, python);
    if (kind == ENSUREPIP_PYTHON)
        return complain(1,
                        "accel jupyter: %s has neither ipykernel nor pip: %s -m ensurepip && %s -m "
                        "pip install ipykernel\n",
                        python, python, python);
    return complain(1,
                    "accel jupyter: %s has neither ipykernel nor pip: install ipykernel with what "
                    "has made this Python: uv pip install --python %s ipykernel, or conda install "
                    "ipykernel\n",
                    python, python);
}

/* Whether kernel.json starts a program by `accel run'. */
static bool is_ours(const char *file)
{
    struct json_object *kernel = json_object_from_file(file), *argv = NULL;
    json_object_object_get_ex(kernel, "argv", &argv);
    bool ours = json_object_is_type(argv, json_type_array) && json_object_array_length(argv) > 2;
    if (ours) {
        const char *tool = json_object_get_string(json_object_array_get_idx(argv, 0)),
                   *command = json_object_get_string(json_object_array_get_idx(argv, 1));
        const char *name = tool ? strrchr(tool, '/') : NULL;
        ours = name && command && strcmp(name, "/accel") == 0 && strcmp(command, "run") == 0;
    }
    json_object_put(kernel);
    return ours;
}

/* Whether there is a kernel of this name that is not ours: then a message is on stderr. */
static bool is_taken(const char *file)
{
    if (access(file, F_OK) != 0 || is_ours(file))
        return false;
    complain(0, "accel jupyter: %s: accel has not made this kernel; it stays as it is\n", file);
    return true;
}

/* ---- The actions ---- */

/* Keeps what the user has put into a kernel that is there, such as its settings (env). */
static struct json_object *kernel_of(const struct jupyter_options *options, const char *tool,
                                     const char *python, const char *file)
{
    const char *const words[] = {
        tool, "run", "--", python, "-m", "ipykernel_launcher", "-f", "{connection_file}"};
    struct json_object *old = json_object_from_file(file), *argv = json_object_new_array(),
                       *kernel = old ? old : json_object_new_object();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        json_object_array_add(argv, json_object_new_string(words[i]));
    json_object_object_add(kernel, "argv", argv);
    json_object_object_add(kernel, "display_name", utf8_json(options->display));
    if (old)
        return kernel;
    struct json_object *metadata = json_object_new_object();
    json_object_object_add(metadata, "debugger", json_object_new_boolean(true));
    json_object_object_add(kernel, "language", json_object_new_string("python"));
    json_object_object_add(kernel, "metadata", metadata);
    return kernel;
}

/* Writes the file aside and renames it. */
static bool write_kernel(const char *file, struct json_object *kernel)
{
    char aside[PATH_MAX];
    if (snprintf(aside, sizeof aside, "%s.new", file) >= (int)sizeof aside) {
        errno = ENAMETOOLONG;
        return false;
    }
    const int format =
        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
    if (json_object_to_file_ext(aside, kernel, format) == 0 && rename(aside, file) == 0)
        return true;
    const int error = errno;
    unlink(aside);
    errno = error;
    return false;
}

static int install(const struct jupyter_options *options, char *file)
{
    char tool[PATH_MAX], python[PATH_MAX];
    if (!find_program(python, options->python))
        return complain(1, "accel jupyter: %s: there is no such program\n", options->python);
    const enum python answer = ask_python(python);
    if (answer == NO_PYTHON)
        return complain(1,
                        "accel jupyter: %s is no Python, or cannot start; allowed: a Python that "
                        "has ipykernel; nothing is installed\n",
                        python);
    if (answer != KERNEL_PYTHON)
        return advise(python, answer);
    if (!file_program(tool))
        return complain(1, "accel jupyter: the path of accel itself is unknown\n");
    if (is_taken(file))
        return 1;
    struct json_object *kernel = kernel_of(options, tool, python, file);
    const bool good = make_folders(file) && write_kernel(file, kernel);
    const int error = errno;
    json_object_put(kernel);
    if (!good)
        return complain(1, "accel jupyter: %s: %s\n", file, strerror(error));
    printf("%s\n", file);
    return 0;
}

static int uninstall(char *file)
{
    if (is_taken(file))
        return 1;
    if (unlink(file) != 0)
        return complain(1, "accel jupyter: %s: %s\n", file, strerror(errno));
    *strrchr(file, '/') = '\0';
    /* The folder stays if somebody has put more into it, such as pictures. */
    if (rmdir(file) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        return complain(1, "accel jupyter: %s: %s\n", file, strerror(errno));
    return 0;
}

static int jupyter(const struct command *command, int argc, char **argv)
{
    struct jupyter_options options = {
        .python = "python3", .name = "accel", .display = "Python (accel)"};
    char file[PATH_MAX + sizeof "/kernel.json"];
    const struct words words = options_read(command, argc, argv, &options);
    const char *const action = words.count > 0 ? words.word[0] : "no action";
    const bool installs = strcmp(action, "install") == 0;
    if (words.count > 1)
        options.python = words.word[1];
    if (!installs && strcmp(action, "uninstall") != 0)
        return complain(2, "accel jupyter: %s: allowed: install, uninstall\n", action);
    if (!name_is_allowed(options.name))
        return complain(2, "accel jupyter: --name=%s: allowed: letters, digits, '.', '_', '-'\n",
                        options.name);
    if (options.prefix && !*options.prefix)
        return complain(2, "accel jupyter: --prefix= is empty; allowed: a folder, such as an "
                           "environment's\n");
    if (!kernel_folder(file, &options))
        return complain(1, "accel jupyter: there is no folder for this user: see --prefix\n");
    strcat(file, "/kernel.json");
    const int status = installs ? install(&options, file) : uninstall(file);
    const int error = stream_flush(stdout);
    return error ? complain(1, "accel jupyter: stdout: %s\n", strerror(error)) : status;
}

/* Returns 1 if the kernel cannot be written or removed, 2 for wrong options. */
const struct command jupyter_command = {
    .name = "jupyter",
    .does = "give Jupyter a kernel that runs Python with libaccel",
    .options = rows,
    .arguments = "install|uninstall [PYTHON]",
    .words_most = 2,
    .doc =
        "Gives Jupyter a kernel that runs Python with libaccel, or takes it away again.\v"
        "The kernel is a file, kernels/NAME/kernel.json in Jupyter's folder, that starts PYTHON's "
        "ipykernel by `accel run'. PYTHON is a program's name or path (default: python3). It must "
        "have ipykernel; Jupyter itself may be another Python's. Settings go into the file as "
        "`\"env\": {\"ACCEL_LOG\": \"1\"}', and stay when it is installed again. A kernel of this "
        "name that accel has not made stays as it is, and the exit status is 1.",
    .run = jupyter};
