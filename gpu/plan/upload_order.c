#include "upload_order.h"

#include <stdlib.h>

enum { UP = SCHEDULE_UP };

/* While the steps are put in their new order. */
struct reordering {
    const struct schedule *s;
    const struct upload_order *tile;
    int *step; /* of each upload, its step */
    /* So many uploads, in the new order, are done when the first i, in the old one, are */
    int32_t *until;
    bool *brought; /* of each upload */
    struct numbered {
        int32_t number;
        int upload;
    } * own; /* by their numbers */
    int owns, next_own;
    struct schedule_step *to;
    int count, uploads;
};

static void put_upload(struct reordering *o, int upload)
{
    if (o->brought[upload])
        return;
    o->brought[upload] = true;
    o->to[o->count++] = o->s->step[o->step[upload]];
    o->until[upload + 1] = ++o->uploads;
}

/* Brings up own tiles with lower numbers. */
static void put_own(struct reordering *o, int below)
{
    for (; o->next_own < o->owns && o->own[o->next_own].number < below; o->next_own++)
        put_upload(o, o->own[o->next_own].upload);
}

static void put_steps(struct reordering *o, int ahead)
{
    for (int n = 0, upload = 0; n < o->s->count; n++) {
        const struct schedule_step *step = &o->s->step[n];
        if (step->engine != UP) {
            o->to[o->count] = *step;
            o->to[o->count++].after[UP] = o->until[step->after[UP]];
            continue;
        }
        const struct upload_order *tile = &o->tile[upload];
        if (tile->number >= 0 && !tile->own)
            put_own(o, tile->number + ahead);
        put_upload(o, upload);
        if (o->until[upload + 1] < o->until[upload])
            o->until[upload + 1] = o->until[upload];
        upload++;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static void find_uploads(struct reordering *o)
{
    int upload = 0;
    for (int n = 0; n < o->s->count; n++) {
        if (o->s->step[n].engine != UP)
            continue;
        if (o->tile[upload].number >= 0 && o->tile[upload].own)
            o->own[o->owns++] = (struct numbered){o->tile[upload].number, upload};
        o->step[upload++] = n;
    }
    qsort(o->own, (size_t)o->owns, sizeof *o->own, compare_numbers);
}

bool upload_order_make(struct schedule *s, const struct upload_order *tile, int ahead)
{
    const size_t uploads = (size_t)s->steps[UP] + 1;
    struct reordering o = {.s = s,
                           .tile = tile,
                           .step = malloc(uploads * sizeof *o.step),
                           .until = calloc(uploads, sizeof *o.until),
                           .brought = calloc(uploads, sizeof *o.brought),
                           .own = malloc(uploads * sizeof *o.own),
                           .to = malloc((size_t)s->count * sizeof *o.to)};
    const bool can = o.step && o.until && o.brought && o.own && o.to;
    if (can) {
        find_uploads(&o);
        put_steps(&o, ahead);
        free(s->step);
        s->step = o.to;
    } else {
        free(o.to);
    }
    free(o.step);
    free(o.until);
    free(o.brought);
    free(o.own);
    return can;
}
