#include "overlap.h"

#include "op.h"

#include <stdlib.h>
#include <string.h>

/* One matrix is compared with at most so many that begin within its extent: with strides, in an
 * array. More count as sharing. */
enum { BESIDE_MAX = 65536, NEIGHBOURS_MAX = 256 };

/* A matrix's elements. ld 0: a single column, which fits any leading dimension. */
struct element_grid {
    uintptr_t at;
    uint64_t rows, cols, ld, extent;
};

static struct element_grid place_of_matrix(const struct accel_span *x, const void *ptr)
{
    bool column = x->cols == 1 || (x->rows == 1 && x->ld == 1);
    return (struct element_grid){.at = (uintptr_t)ptr,
                                 .rows = (uint64_t)(column ? x->rows * x->cols : x->rows),
                                 .cols = (uint64_t)(column ? 1 : x->cols),
                                 .ld = column ? 0 : (uint64_t)x->ld,
                                 .extent = (uint64_t)accel_extent(x, 1)};
}

/* Returns whether two matrices with elements of `size` bytes have one in common. Blocks of one
 * large matrix have none, although their extents overlap. No recursion that changes the two over:
 * clang 14 then writes into the caller's own copies. */
static bool share(const struct element_grid *one, const struct element_grid *other, uint64_t size)
{
    const struct element_grid *x = one->at <= other->at ? one : other, *y = x == one ? other : one;
    const uint64_t distance = y->at - x->at, ld = x->ld ? x->ld : y->ld;
    if (distance >= x->extent)
        return false;
    if (distance % size != 0 || ld == 0 || (x->ld && y->ld && x->ld != y->ld) || x->rows > ld ||
        y->rows > ld)
        return true;
    const uint64_t cols = distance / size / ld, rows = distance / size % ld;
    return (rows < x->rows && cols < x->cols) || (rows + y->rows > ld && cols + 1 < x->cols);
}

/* ---- Batches with strides ---- */

bool overlap_in_strides(const struct accel_span *x, int64_t batch)
{
    const int64_t size = (int64_t)accel_dtype_size(x->dtype), extent = accel_extent(x, 1);
    const struct element_grid first = place_of_matrix(x, x->ptr);
    for (int64_t i = 1; i < batch && (i - 1) * x->stride * size < extent; i++) {
        struct element_grid moved = first;
        moved.at += (uintptr_t)(i * x->stride * size);
        if (i > BESIDE_MAX || share(&first, &moved, (uint64_t)size))
            return true;
    }
    return false;
}

/* x has its own stride; y has the same, or 0. */
static bool strides_share(const struct accel_span *x, const struct accel_span *y, int64_t batch)
{
    const int64_t size = (int64_t)accel_dtype_size(x->dtype);
    const struct element_grid one = place_of_matrix(x, x->ptr), other = place_of_matrix(y, y->ptr);
    if (other.at >= one.at + (uintptr_t)accel_extent(x, batch) ||
        one.at >= other.at + (uintptr_t)accel_extent(y, batch))
        return false;
    if (batch > BESIDE_MAX || (y->stride != x->stride && y->stride != 0))
        return true;
    for (int64_t i = y->stride ? 1 - batch : 0; i < batch; i++) {
        struct element_grid moved = one;
        moved.at += (uintptr_t)(i * x->stride * size);
        if (share(&moved, &other, (uint64_t)size))
            return true;
    }
    return false;
}

/* ---- Batches in arrays ---- */

static int compare_pointers(const void *a, const void *b)
{
    void *const *x = a, *const *y = b;
    return ((uintptr_t)x[0] > (uintptr_t)y[0]) - ((uintptr_t)x[0] < (uintptr_t)y[0]);
}

/* Returns a copy of the array sorted by address, which the caller frees, or NULL without memory. */
static void **in_order(void *const *array, int64_t count)
{
    void **ordered = malloc((size_t)count * sizeof *ordered);
    if (ordered) {
        memcpy(ordered, array, (size_t)count * sizeof *ordered);
        qsort(ordered, (size_t)count, sizeof *ordered, compare_pointers);
    }
    return ordered;
}

/* Returns whether a place meets one of x's sorted matrices from `first` on. */
static bool meets_ordered(struct element_grid place, const struct accel_span *x,
                          void *const *ordered, int64_t first, int64_t count)
{
    for (int64_t i = first; i < count && (uintptr_t)ordered[i] < place.at + place.extent; i++) {
        const struct element_grid near = place_of_matrix(x, ordered[i]);
        if (i - first >= NEIGHBOURS_MAX || share(&near, &place, accel_dtype_size(x->dtype)))
            return true;
    }
    return false;
}

static bool neighbours_share(const struct accel_span *x, void *const *ordered, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (meets_ordered(place_of_matrix(x, ordered[i]), x, ordered, i + 1, count))
            return true;
    return false;
}

/* Returns the index of the first of x's sorted matrices that ends after `at`. */
static int64_t first_behind(uintptr_t at, const struct accel_span *x, void *const *ordered,
                            int64_t count)
{
    const uintptr_t extent = (uintptr_t)accel_extent(x, 1);
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((uintptr_t)ordered[middle] + extent <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool arrays_share(const struct accel_span *x, void *const *ordered,
                         const struct accel_span *y, int64_t count)
{
    for (int64_t j = 0; j < count; j++) {
        const struct element_grid other = place_of_matrix(y, y->array[j]);
        if (meets_ordered(other, x, ordered, first_behind(other.at, x, ordered, count), count))
            return true;
    }
    return false;
}

/* ---- A call ---- */

static bool has_elements(const struct accel_span *x)
{
    return x->ptr && accel_extent(x, 1) > 0;
}

/* Returns whether x has elements in common with other operands. ordered: x's sorted array; NULL: x
 * has strides. */
static bool shares_with_others(const struct accel_call *call, const struct accel_span *x,
                               void *const *ordered)
{
    if (!has_elements(x))
        return false;
    for (const struct accel_span *y = call->span; y < call->span + ACCEL_SPANS; y++)
        if (y != x && has_elements(y) && !x->array == !y->array &&
            (ordered ? arrays_share(x, ordered, y, call->batch) : strides_share(x, y, call->batch)))
            return true;
    return false;
}

static bool is_shared(const struct accel_call *call, const struct accel_span *x)
{
    if (!x->array)
        return shares_with_others(call, x, NULL);
    void **ordered = in_order(x->array, call->batch);
    bool shared = !ordered || neighbours_share(x, ordered, call->batch) ||
                  shares_with_others(call, x, ordered);
    free(ordered);
    return shared;
}

static bool operands_overlap(const struct accel_call *call)
{
    for (const struct accel_span *x = call->span; x < call->span + ACCEL_SPANS; x++)
        if ((x->access & ACCEL_WRITE) && is_shared(call, x))
            return true;
    return false;
}

bool overlap_in_call(const struct accel_call *call)
{
    void (*const narrow)(struct accel_call *) = accel_rules_of(call->op)->narrow;
    if (!narrow)
        return operands_overlap(call);
    struct accel_call narrowed = *call;
    narrow(&narrowed);
    return operands_overlap(&narrowed);
}
