#define _GNU_SOURCE
#include "expect.h"

#include <errno.h>
#include <fnmatch.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/util/complain.h"
#include "ops/names.h"

/* ---- Reading an expectation ---- */

static bool fault(const char *text, const char *part, const char *what)
{
    return complain(false,
                    "accel diff: --expect '%s': %s%s%s; allowed: 'SYMBOL on gpu|cpu OP N' or "
                    "'SYMBOL why REASON OP N', with OP one of >= <= == != > <\n",
                    text, part, *part ? " " : "", what);
}

/* Whether the log may have a name that the glob matches. */
static bool matches_a_name(const char *glob)
{
    for (uint32_t i = 0; i < accel_name_count; i++)
        if (fnmatch(glob, accel_names[i].symbol, 0) == 0)
            return true;
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (accel_name_called(accel_routines[i].name) == &accel_routines[i] &&
            fnmatch(glob, accel_routines[i].name, 0) == 0)
            return true;
    return false;
}

static bool find_reason(enum accel_why *why, const char *name)
{
    for (int i = 0; i < ACCEL_WHYS; i++)
        if (strcmp(accel_why_name((enum accel_why)i), name) == 0) {
            *why = (enum accel_why)i;
            return true;
        }
    return false;
}

static const struct relation *find_relation(const char *name)
{
    static const struct relation relations[] = {
        {">=", {false, true, true}}, {"<=", {true, true, false}}, {"==", {false, true, false}},
        {"!=", {true, false, true}}, {">", {false, false, true}}, {"<", {true, false, false}},
    };
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (strcmp(name, relations[i].name) == 0)
            return &relations[i];
    return NULL;
}

static bool fault_reason(const char *text, const char *name)
{
    fprintf(stderr, "accel diff: --expect '%s': %s is no reason; allowed:", text, name);
    for (int i = 0; i < ACCEL_WHYS; i++)
        fprintf(stderr, " %s", accel_why_name((enum accel_why)i));
    fputc('\n', stderr);
    return false;
}

bool expect_parse(struct expectation *expectation, const char *text)
{
    char verb[16] = "", place[32] = "", relation[3] = "", number[24] = "", more[2] = "", *end;
    *expectation = (struct expectation){.text = text};
    int read = sscanf(text, " %127s %15s %31[a-z_] %2[<>=!] %23s %1s", expectation->symbol, verb,
                      place, relation, number, more);
    if (read != 5)
        return fault(text, "", read > 5 ? "more than five words" : "not five words");
    errno = 0;
    expectation->wanted = strtoll(number, &end, 10);
    if (*end || errno || expectation->wanted < 0)
        return fault(text, number, "is no count");
    expectation->relation = find_relation(relation);
    if (!expectation->relation)
        return fault(text, relation, "is no relation");
    if (!matches_a_name(expectation->symbol))
        return fault(text, expectation->symbol, "names nothing that libaccel intercepts");
    expectation->by_reason = strcmp(verb, "why") == 0;
    if (expectation->by_reason)
        return find_reason(&expectation->why, place) || fault_reason(text, place);
    if (strcmp(verb, "on") != 0)
        return fault(text, verb, "is neither on nor why");
    expectation->on_gpu = strcmp(place, "gpu") == 0;
    return expectation->on_gpu || strcmp(place, "cpu") == 0 ||
           fault(text, place, "is neither gpu nor cpu");
}

/* ---- Counting ---- */

static const char *field(struct json_object *line, const char *key)
{
    struct json_object *value;
    return json_object_object_get_ex(line, key, &value) ? json_object_get_string(value) : NULL;
}

static void count_decision(struct decision_counts *decisions, struct expectation *expectations,
                           int count, struct json_object *line)
{
    const char *symbol = field(line, "sym"), *ran = field(line, "ran"), *why = field(line, "why");
    enum accel_why reason = ACCEL_FASTER;
    struct json_object *depth;
    if (!symbol || !ran || !why) /* the line is an event */
        return;
    bool on_gpu = strstr(ran, "cpu") == NULL, known = find_reason(&reason, why);
    const bool inner =
        json_object_object_get_ex(line, "depth", &depth) && json_object_get_int64(depth) > 0;
    if (inner) {
        decisions->inner_on_gpu += on_gpu;
        decisions->inner_on_cpu += !on_gpu;
    } else {
        decisions->on_gpu += on_gpu;
        decisions->on_cpu += !on_gpu;
    }
    if (known && !inner)
        decisions->why[reason]++;
    for (int i = 0; i < count; i++) {
        struct expectation *e = &expectations[i];
        bool counts = e->by_reason ? known && e->why == reason : e->on_gpu == on_gpu;
        if (counts && fnmatch(e->symbol, symbol, 0) == 0)
            e->seen++;
    }
}

bool expect_count(struct decision_counts *decisions, struct expectation *expectations, int count,
                  const char *path)
{
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    FILE *file = fopen(path, "re");
    *decisions = (struct decision_counts){.on_gpu = 0};
    if (!file && errno == ENOENT)
        return true;
    while (file && good && getline(&line, &size, file) >= 0) {
        struct json_object *object = json_tokener_parse(line);
        if (json_object_is_type(object, json_type_object))
            count_decision(decisions, expectations, count, object);
        else if (line[0] == '{') /* other lines are a summary, or an error of the program */
            good = false;
        json_object_put(object);
    }
    if (!file || !good || ferror(file))
        complain(0, "accel diff: the decisions cannot be read: %s\n",
                 good ? strerror(errno) : line);
    good = good && file && !ferror(file);
    free(line);
    if (file)
        fclose(file);
    return good;
}

bool expect_is_met(const struct expectation *e)
{
    return e->relation->met[(e->seen >= e->wanted) + (e->seen > e->wanted)];
}
