#include "triangle.h"

/* Each pair of groups has a part of its own; further parts have two groups' triangles each. */
static int pairs_of(int groups)
{
    return groups * (groups - 1) / 2;
}

int triangle_groups(int parts)
{
    for (int groups = 3; groups <= TRIANGLE_GROUPS; groups++)
        if (parts >= pairs_of(groups) && parts <= pairs_of(groups) + (groups + 1) / 2)
            return groups;
    return 0;
}

/* Returns the part of two groups, or of one where the other is empty. */
static struct accel_region group_part(const int64_t *edge, int upper, int lower, unsigned blocks)
{
    struct accel_region r = {edge[lower], edge[upper], edge[lower + 1] - edge[lower],
                             edge[upper + 1] - edge[upper], blocks};
    if (r.rows == 0 && blocks & SCHEDULE_HEAD)
        return (struct accel_region){r.col, 0, r.cols, 0, SCHEDULE_TAIL};
    if (r.cols == 0 || r.rows == 0)
        r.blocks &= SCHEDULE_TAIL;
    if (r.cols == 0 && r.blocks == 0)
        r.rows = 0;
    return r;
}

void triangle_lay_out(struct accel_region *region, int parts, const int64_t *edge)
{
    const int groups = triangle_groups(parts), alone = 2 * (parts - pairs_of(groups));
    const int64_t last[] = {edge[groups - 1], edge[groups], edge[groups]};
    int count = 0;
    for (int with = 1; with >= 0; with--) /* the pairs that have a group's triangle, too */
        for (int lower = 1; lower < groups; lower++)
            for (int upper = 0; upper < lower; upper++) {
                unsigned blocks = SCHEDULE_BETWEEN;
                if (lower == upper + 1 && upper >= alone)
                    blocks |= SCHEDULE_HEAD;
                if (lower == groups - 1 && upper == 0 && lower >= alone)
                    blocks |= SCHEDULE_TAIL;
                if ((blocks != SCHEDULE_BETWEEN) == with)
                    region[count++] = group_part(edge, upper, lower, blocks);
            }
    for (int first = 0; first < alone && first + 1 < groups; first += 2)
        region[count++] = group_part(edge, first, first + 1, SCHEDULE_HEAD | SCHEDULE_TAIL);
    if (alone > groups)
        region[count] = group_part(last, 0, 1, SCHEDULE_HEAD); /* its group number 1 is empty */
}
