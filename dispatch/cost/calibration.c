#define _GNU_SOURCE
#include "calibration.h"

#include <stdlib.h>
#include <string.h>

#include "base/host/cpu.h"
#include "base/text/text.h"
#include "ops/op.h"
#include "ops/typical.h"

/* ---- Keys ---- */

/* Appends the name in quotes, without characters that would end the quotes or the line. */
static void put_name(struct accel_text *text, const char *name)
{
    text_char(text, '"');
    for (; *name; name++)
        text_char(text, *name < ' ' || *name == '"' || *name == 0x7f ? '_' : *name);
    text_char(text, '"');
}

static void put_cpu(struct accel_text *text)
{
    char name[CPU_NAME_BYTES];
    cpu_name(name);
    put_name(text, name);
}

static void start_key(struct accel_text *text, char key[CALIBRATION_KEY_BYTES], const char *kind)
{
    text_start(text, key, CALIBRATION_KEY_BYTES - 2); /* room for "]" and the end */
    text_string(text, kind);
}

static void end_key(struct accel_text *text)
{
    text->size = CALIBRATION_KEY_BYTES;
    text_char(text, ']');
    text_end(text);
}

void calibration_cpu_prefix(char key[CALIBRATION_KEY_BYTES])
{
    struct accel_text text;
    start_key(&text, key, "[cpu ");
    put_cpu(&text);
    text.size = CALIBRATION_KEY_BYTES;
    text_end(&text);
}

void calibration_cpu_key(char key[CALIBRATION_KEY_BYTES], const char *library, int threads)
{
    struct accel_text text;
    start_key(&text, key, "[cpu ");
    put_cpu(&text);
    text_string(&text, " threads=");
    text_integer(&text, threads);
    text_string(&text, " library=");
    put_name(&text, library);
    end_key(&text);
}

void calibration_gpu_key(char key[CALIBRATION_KEY_BYTES], const char *name, int cuda_version,
                         int cublas_version)
{
    struct accel_text text;
    start_key(&text, key, "[gpu ");
    put_name(&text, name);
    text_string(&text, " cuda=");
    text_integer(&text, cuda_version / 1000);
    text_char(&text, '.');
    text_integer(&text, cuda_version % 1000 / 10);
    text_string(&text, " cublas=");
    text_integer(&text, cublas_version);
    end_key(&text);
}

/* ---- Numbers: only in the forms that are written ---- */

static bool take_integer(struct calibration_line *line, int64_t *value)
{
    size_t digits = 0;
    for (*value = 0; digits < line->length && digits < 12; digits++) {
        char c = line->at[digits];
        if (c < '0' || c > '9')
            break;
        *value = 10 * *value + (c - '0');
    }
    line->at += digits;
    line->length -= digits;
    return digits > 0;
}

static bool take_decimal(struct calibration_line *line, double *value)
{
    int64_t whole, fraction;
    if (!take_integer(line, &whole))
        return false;
    *value = (double)whole;
    if (line->length == 0 || line->at[0] != '.')
        return true;
    line->at++;
    line->length--;
    size_t before = line->length;
    if (!take_integer(line, &fraction))
        return false;
    double scale = 1;
    for (size_t i = line->length; i < before; i++)
        scale *= 10;
    *value += (double)fraction / scale;
    return true;
}

static bool take_char(struct calibration_line *line, char c)
{
    if (line->length == 0 || line->at[0] != c)
        return false;
    line->at++;
    line->length--;
    return true;
}

/* Moves the line behind `text` if it begins with that. */
static bool take_text(struct calibration_line *line, const char *text)
{
    if (!calibration_begins(line, text))
        return false;
    line->at += strlen(text);
    line->length -= strlen(text);
    return true;
}

bool calibration_next_cpu(struct calibration *rest, const char *prefix, const char *library,
                          int *threads, struct calibration_section *section)
{
    char end[CALIBRATION_KEY_BYTES];
    struct accel_text text;
    struct calibration_line header;
    int64_t count;
    start_key(&text, end, " library=");
    put_name(&text, library);
    end_key(&text);
    while (calibration_next_section(rest, prefix, &header, section)) {
        bool right = take_text(&header, prefix) && take_text(&header, " threads=") &&
                     take_integer(&header, &count) && count >= 1 && count <= 1 << 20;
        if (right && take_text(&header, end) && header.length == 0) {
            *threads = (int)count;
            return true;
        }
    }
    return false;
}

bool calibration_next_gpu(struct calibration *rest, char name[CALIBRATION_KEY_BYTES],
                          struct calibration_section *section)
{
    struct calibration_line header;
    while (calibration_next_section(rest, "[gpu \"", &header, section)) {
        take_text(&header, "[gpu \"");
        const char *quote = memchr(header.at, '"', header.length);
        size_t length = quote ? (size_t)(quote - header.at) : 0;
        if (length == 0 || length >= CALIBRATION_KEY_BYTES)
            continue;
        memcpy(name, header.at, length);
        name[length] = 0;
        return true;
    }
    return false;
}

static bool is_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether the text has the words as a whole: "L4" is not in "L40S". */
static bool has_words(const char *text, const char *words)
{
    size_t length = strlen(words);
    for (const char *at = text; (at = strcasestr(at, words)); at++) {
        bool begins = at == text || !is_part(at[-1]) || !is_part(words[0]);
        bool ends = length == 0 || !is_part(at[length]) || !is_part(words[length - 1]);
        if (begins && ends)
            return true;
        if (!*at)
            break;
    }
    return false;
}

bool calibration_find_gpu(const struct calibration *file, const char *name,
                          struct calibration_section *section)
{
    static const char maker[] = "NVIDIA ";
    struct calibration rest = *file;
    char found[CALIBRATION_KEY_BYTES];
    while (calibration_next_gpu(&rest, found, section)) {
        const char *card =
            strncasecmp(found, maker, sizeof maker - 1) == 0 ? found + sizeof maker - 1 : found;
        if (strcasecmp(found, name) == 0 || strcasecmp(card, name) == 0)
            return true;
    }
    /* A slice of a card is not the card. */
    rest = *file;
    while (calibration_next_gpu(&rest, found, section))
        if (has_words(found, name) && (!has_words(found, "MIG") || has_words(name, "MIG")))
            return true;
    return false;
}

const char *const calibration_gain_names[GPU_PRECISIONS] = {NULL, "gain_emulated", "gain_tf32",
                                                            "gain_bf16x9"};

const char calibration_schedule_ratio[] = "schedule_ratio";

const struct calibration_short_names calibration_short_up = {"short_up_bytes", "short_up_ms"},
                                     calibration_short_down = {"short_down_bytes", "short_down_ms"};

double calibration_section_value(const struct calibration_section *section, const char *name)
{
    struct calibration_line line;
    double value;
    return calibration_find_line(section, name, '=', &line) && take_decimal(&line, &value) &&
                   line.length == 0
               ? value
               : 0;
}

/* A function that no typical call is known of has none. */
static bool has_lines(const struct accel_routine *routine)
{
    return accel_is_blas(routine) || accel_op_of(routine)->cost->typical;
}

static bool take_call(struct calibration_line *line, const struct accel_routine *routine,
                      bool device, struct model_work *work, double *ms)
{
    int64_t size[ACCEL_DIMENSIONS] = {0};
    bool first = true;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++) {
        if (!accel_has_dimension(routine, i))
            continue;
        if ((!first && !take_char(line, 'x')) || !take_integer(line, &size[i]) || size[i] < 1 ||
            size[i] > INT32_MAX)
            return false;
        first = false;
    }
    struct accel_call call;
    if (!take_char(line, ':') || !take_decimal(line, ms) || !(*ms > 0))
        return false;
    shape_typical(&call, routine, size);
    model_work_of(&call, device, work);
    return true;
}

bool calibration_section_curve(const struct calibration_section *section,
                               const struct accel_routine *routine, struct model_curve *curve)
{
    struct model_work works[MODEL_POINTS];
    double ms[MODEL_POINTS];
    struct calibration_line line;
    int count = 0;
    if (!has_lines(routine) || !calibration_find_line(section, routine->name, ' ', &line))
        return false;
    do {
        if (count == MODEL_POINTS ||
            !take_call(&line, routine, curve->device, &works[count], &ms[count]))
            return false;
        count++;
    } while (take_char(&line, ' '));
    if (line.length > 0)
        return false;
    model_fit(curve, works, ms, count);
    return true;
}

/* ---- Algorithms ---- */

static const char svd_prefix[] = "svd_", pace_prefix[] = "pace_", short_prefix[] = "short_";
static const char type_letters[ACCEL_DTYPES] = {'s', 'd', 'c', 'z'};

static void put_solve_name(char name[CALIBRATION_SOLVE_BYTES], enum accel_dtype dtype, bool own,
                           const char *what)
{
    struct accel_text text;
    text_start(&text, name, CALIBRATION_SOLVE_BYTES);
    text_string(&text, "solve_");
    text_char(&text, type_letters[dtype]);
    text_string(&text, own ? "_own_" : "_blas_");
    text_string(&text, what);
    text_end(&text);
}

struct calibration_solve_names calibration_solve_names(enum accel_dtype dtype, bool own)
{
    struct calibration_solve_names names;
    put_solve_name(names.gbps, dtype, own, "gbps");
    put_solve_name(names.row_ms, dtype, own, "row_ms");
    put_solve_name(names.nrhs, dtype, own, "nrhs");
    return names;
}

void calibration_svd_name(char name[CALIBRATION_SVD_BYTES], enum accel_dtype dtype, bool vectors)
{
    struct accel_text text;
    text_start(&text, name, CALIBRATION_SVD_BYTES);
    text_string(&text, svd_prefix);
    text_char(&text, type_letters[dtype]);
    text_string(&text, vectors ? "_vectors" : "_values");
    text_end(&text);
}

static bool take_algorithm(struct calibration_line *line, enum gpu_svd *algorithm)
{
    size_t length = 0;
    while (length < line->length && line->at[length] != ' ')
        length++;
    for (int i = 0; i < GPU_SVDS; i++)
        if (strlen(gpu_svd_names[i]) == length && memcmp(line->at, gpu_svd_names[i], length) == 0) {
            line->at += length;
            line->length -= length;
            *algorithm = (enum gpu_svd)i;
            return true;
        }
    return false;
}

bool calibration_section_svd(const struct calibration_section *section, enum accel_dtype dtype,
                             bool vectors, enum gpu_svd algorithm[GPU_SVD_OCTAVES])
{
    char name[CALIBRATION_SVD_BYTES];
    int nearest[GPU_SVD_OCTAVES];
    struct calibration_line line;
    for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++)
        nearest[octave] = GPU_SVD_OCTAVES;
    calibration_svd_name(name, dtype, vectors);
    if (!calibration_find_line(section, name, ' ', &line))
        return false;
    do {
        int64_t order;
        enum gpu_svd named;
        if (!take_integer(&line, &order) || order < 1 || !take_char(&line, ':') ||
            !take_algorithm(&line, &named))
            return false;
        for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++) {
            int away = abs(gpu_svd_octave(order) - octave);
            if (away >= nearest[octave])
                continue;
            nearest[octave] = away;
            algorithm[octave] = named;
        }
    } while (take_char(&line, ' '));
    return line.length == 0;
}

void calibration_pace_name(char name[CALIBRATION_PACE_BYTES], enum accel_dtype dtype)
{
    struct accel_text text;
    text_start(&text, name, CALIBRATION_PACE_BYTES);
    text_string(&text, pace_prefix);
    text_char(&text, type_letters[dtype]);
    text_end(&text);
}

bool calibration_section_paces(const struct calibration_section *section, enum accel_dtype dtype,
                               struct block_paces *paces)
{
    char name[CALIBRATION_PACE_BYTES];
    struct block_paces found = {.highest = 0};
    struct calibration_line line;
    *paces = found;
    calibration_pace_name(name, dtype);
    if (!calibration_find_line(section, name, ' ', &line))
        return false;
    do {
        int64_t rows;
        double pace;
        if (!take_integer(&line, &rows) || rows < PACE_LEAST || rows > PACE_MOST ||
            rows % PACE_STEP != 0 || !take_char(&line, ':') || !take_decimal(&line, &pace) ||
            !(pace >= PACE_SLOWEST && pace <= PACE_FASTEST))
            return false;
        found.of[(rows - PACE_LEAST) / PACE_STEP] = (float)pace;
    } while (take_char(&line, ' '));
    if (line.length > 0)
        return false;
    block_paces_settle(&found);
    *paces = found;
    return true;
}

/* ---- Writing a section's lines ---- */

void calibration_put_value(struct string_buffer *body, const char *name, double value)
{
    char line[64];
    struct accel_text text;
    text_start(&text, line, sizeof line);
    text_string(&text, name);
    text_char(&text, '=');
    text_decimal(&text, value);
    text_char(&text, '\n');
    string_buffer_add(body, line, text.length);
}

/* Returns a size from its logarithm, as model_work_of() makes it; at most as large as take_call()
 * reads. */
static int64_t size_at(float place)
{
    int64_t whole = (int64_t)place;
    double size = (double)((int64_t)1 << whole) * (1 + ((double)place - (double)whole));
    return accel_min((int64_t)(size + 0.5), INT32_MAX);
}

static void put_point(struct string_buffer *body, const struct accel_routine *routine,
                      const struct model_curve *curve, const struct model_point *point)
{
    int64_t size[ACCEL_DIMENSIONS] = {0};
    char buffer[128];
    struct accel_text text;
    struct accel_call call;
    struct model_work work;
    text_start(&text, buffer, sizeof buffer);
    text_char(&text, ' ');
    for (int i = 0; i < ACCEL_DIMENSIONS; i++) {
        if (!accel_has_dimension(routine, i))
            continue;
        size[i] = size_at(point->place[i]);
        if (text.length > 1)
            text_char(&text, 'x');
        text_integer(&text, size[i]);
    }
    shape_typical(&call, routine, size);
    model_work_of(&call, curve->device, &work);
    double ms = model_point_ms(curve, point, &work);
    text_char(&text, ':');
    text_decimal(&text, ms);
    if (ms >= 1e-6) /* less is written as 0, which is not read */
        string_buffer_add(body, buffer, text.length);
}

void calibration_put_curve(struct string_buffer *body, const struct accel_routine *routine,
                           const struct model_curve *curve)
{
    const size_t before = body->length;
    string_buffer_add_string(body, routine->name);
    const size_t empty = body->length;
    for (int i = 0; has_lines(routine) && i < curve->points; i++)
        if (curve->point[i].place[ACCEL_DIMENSIONS] == 0)
            put_point(body, routine, curve, &curve->point[i]);
    if (body->length > empty) {
        string_buffer_add_string(body, "\n");
    } else if (body->text) {
        body->length = before;
        body->text[before] = 0;
    }
}

void calibration_put_measured(struct string_buffer *body, const struct calibration_section *section)
{
    const char *at = section->text, *end = at + section->length;
    struct calibration_line line;
    while (calibration_next_line(&at, end, &line))
        if (calibration_begins(&line, calibration_when) || calibration_begins(&line, svd_prefix) ||
            calibration_begins(&line, pace_prefix) || calibration_begins(&line, short_prefix)) {
            string_buffer_add(body, line.at, line.length);
            string_buffer_add_string(body, "\n");
        }
}
