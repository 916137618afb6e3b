/*
 * The schedule of a Level 3 call whose operands are in host memory: the order in which parts of
 * them (tiles) go up, kernels run, and finished parts of the result come down, on three engines of
 * a device that work at the same time. A pure function of shape, memory and rates, and its
 * simulation in virtual time. Knows neither devices nor calls; pipeline_job.h runs it.
 *
 * The schedule sees every operation as a sum over p of A(i, p) B(p, j), added to C(i, j), in
 * blocks; what is at the right of the other operand, it sees transposed.
 */
#ifndef ACCEL_SCHEDULE_H
#define ACCEL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "block_paces.h"
#include "short_columns.h"

enum schedule_engine { SCHEDULE_UP, SCHEDULE_COMPUTE, SCHEDULE_DOWN, SCHEDULE_ENGINES };
enum schedule_operand { SCHEDULE_A, SCHEDULE_B, SCHEDULE_C, SCHEDULE_OPERANDS };

/* The blocks of a triangle whose rows, and so its columns, are two groups: the triangle of the
 * first group, the rectangle of the second one's rows and the first one's columns, and the triangle
 * of the second; all of them. */
enum schedule_blocks {
    SCHEDULE_HEAD = 1,
    SCHEDULE_BETWEEN = 2,
    SCHEDULE_TAIL = 4,
    SCHEDULE_BLOCKS = 7
};

enum schedule_kind {
    SCHEDULE_PRODUCT,   /* A is m x k, B is k x n, C is m x n */
    SCHEDULE_SYMMETRIC, /* A is the lower triangle of an m x m matrix, B and C are m x n; k = m */
    SCHEDULE_RANK_K, /* A is n x k, C the lower triangle of A A', m = n; with two factors, B is n x
                        k: C is that of A B' + B A' */
    /* A is a triangle of order m, C is m x n, and is overwritten; k = m, and there is no B. C is
     * divided into panels of whole columns, which do not depend on each other, and a panel into
     * tiles of rows, which do. A block of C on A's diagonal comes before the others of its row if
     * it is multiplied, after them if it is solved. */
    SCHEDULE_MULTIPLY, /* by A C */
    SCHEDULE_SOLVE,    /* by inv(A) C */
    /* Many products of A m x k, B k x n and C m x n, in groups: a tile is the matrices of an
     * operand that a group brings, one behind the other. */
    SCHEDULE_BATCH
};

/* Which matrix of an operand a batch's product number i uses: number i / repeat % distinct. Those
 * of C are as many as the products. */
struct schedule_sharing {
    int64_t repeat, distinct;
};

struct schedule_call {
    enum schedule_kind kind;
    bool two;
    bool one_way; /* rank-k of two factors: C is the triangle of A B' alone */
    bool up;      /* multiply and solve: A is an upper triangle; one way: C is that of B A' */
    bool reads;   /* C goes up, too: always so if it is overwritten and k > 0 */
    /* Rank-k: of C, the blocks between `head` rows and the others that are not computed, as
     * bits */
    uint16_t omits;
    bool across[SCHEDULE_OPERANDS];   /* is stored transposed */
    bool in_place[SCHEDULE_OPERANDS]; /* on the device already */
    int64_t m, n, k;                  /* k = 0: only C is scaled */
    /* Rank-k: rows come in two groups, the first `head` of them, fewer than m, and the others. This
     * and `omits` are 0 if C is on the device. */
    int64_t head;
    /* The most rows, columns and depth of a product's block, and the most columns of a panel; below
     * 64 or a multiple of it; 0: any. */
    int64_t most, widest;
    /* A batch: its products, a group has at most `widest` of them. */
    int64_t products;
    double per_term;                                    /* real operations for each multiply-add */
    int64_t size[SCHEDULE_OPERANDS];                    /* bytes of an element */
    struct schedule_sharing sharing[SCHEDULE_OPERANDS]; /* a batch */
    /* The share of an operand's bytes that come from other devices' memory, at rates->peer; 0:
     * none. Which tiles those are, is not said here: each tile's copy takes the average, and counts
     * as one from the host's memory. */
    double lent[SCHEDULE_OPERANDS];
};
_Static_assert(sizeof(struct schedule_call) == 16 + 20 * 8, "without padding: it is a cache key");

/* Returns whether C is overwritten in panels of whole columns. */
static inline bool schedule_in_panels(const struct schedule_call *call)
{
    return call->kind == SCHEDULE_MULTIPLY || call->kind == SCHEDULE_SOLVE;
}

/* Returns whether a call is one kernel, if that fits: a small one, and one whose result is in
 * place. */
bool schedule_stays_whole(const struct schedule_call *call);

/* What solving by a triangle takes apart from the operations: no more than so many 10^9 bytes of
 * right-hand sides a second are solved, 0: there is no such bound, or it is not known; and so many
 * milliseconds for each row. */
struct schedule_solving {
    double gbps, row_ms;
};

/* What a device does in a second: 10^9 bytes up and down, and 10^9 operations in products that fill
 * it; one whose smallest size is d reaches d / (d + half) of that. And what each copy and kernel
 * takes besides, and an engine's wait for another one. */
struct schedule_rates {
    double up, down, compute, half;
    double copy_ms, kernel_ms, wait_ms;
    /* What each column of a panel that is factored takes besides, and each row of a triangle by
     * which is solved, since they wait for each other. The calling thread puts one after the other
     * on the stream. */
    double column_ms, row_ms;
    /* By a triangle, no more than so many 10^9 bytes a second are solved; 0: there is no such
     * bound. */
    double solve;
    /* The same of our own kernel, which solves for so many right-hand sides and more
     * (triangle_solve.h), unless the result is on the device; 0: never. It takes no longer
     * there. */
    double own_row_ms, own_solve;
    int64_t own_nrhs;
    double peer; /* 10^9 bytes a second from another device's memory; 0: there is no such way */
    /* What the calling thread takes to put a tile's copy on its stream; of the time of the copy,
     * what its chunks take from it; and what it takes to put a kernel on its stream. It does one
     * thing after the other. */
    double call_ms, chunk_share, launch_ms;
    /* What columns of a tile take besides where the matrix has longer ones. */
    struct short_columns short_up, short_down;
    struct block_paces paces; /* of products, in these operations */
};
_Static_assert(sizeof(struct schedule_rates) ==
                   17 * 8 + 2 * sizeof(struct short_columns) + sizeof(struct block_paces),
               "without padding: they are a part of a cache key");

/* Our own kernel solves by triangles of so many rows, and products do the rest; by a triangle of
 * fewer rows than the least, the device's BLAS solves. */
enum { SCHEDULE_OWN_ROWS = 128, SCHEDULE_OWN_LEAST = 64 };

struct schedule_step {
    uint8_t engine, operand; /* of the tile that is copied */
    /* A kernel adds the product number p to the tile (i, j) of C; in panels, one with the tile (p,
     * j) of C, or if p is i, it multiplies or solves by A's tile on the diagonal. A copy is of the
     * operand's tile (i, j). */
    int32_t i, j, p;
    int32_t slot; /* of the tile that is copied, or of C's, in the operand's memory */
    bool first;   /* the tile of C has not been computed yet */
    bool last;    /* the tile of C is finished */
    /* So many steps of each engine must be done before this one; of its own engine, a kernel waits
     * for those of the other side alone. */
    int32_t after[SCHEDULE_ENGINES];
};

/* Parameters of a schedule. */
struct schedule_params {
    /* How many rows and columns of C, and how much of k, a tile has; the last ones may have fewer.
     * The triangles' rows and columns are those of C's rows. A batch: `cols` products are a
     * group. */
    int64_t rows, cols, depth;
    /* Of the sixteenths of k, or of C's panels, that come first (short of memory: of k if C is
     * kept); a batch: so many groups at either end are half, a quarter … of the others. */
    int share;
    bool along_rows; /* short of memory: tiles of C come by rows, not by columns */
    int factor;      /* short of memory: the operand that gets the most of it; C: tiles of it come
                        together, while its factors go by */
    int buffers;     /* each operand has at least so many times what a kernel uses */
};

struct schedule {
    struct schedule_call call;
    struct schedule_params by;
    struct schedule_tiles {
        int rows, cols;
    } tiles[SCHEDULE_OPERANDS];
    int slots[SCHEDULE_OPERANDS];
    int64_t slot_bytes[SCHEDULE_OPERANDS];
    int64_t bytes; /* of all slots */
    bool whole;    /* all tiles of all operands have slots */
    struct schedule_step *step;
    int count, steps[SCHEDULE_ENGINES];
    double ms; /* simulated */
};

/* Sets what was measured of solving: by the device's BLAS, and by our own kernel, with own_nrhs.
 * Where the former is 0, the rate stays as it is. */
void schedule_set_solving(struct schedule_rates *rates, const struct schedule_solving by[2],
                          int64_t own_nrhs);

/* Of a device whose rates nobody knows; what copies, kernels and waits take besides, and `half`,
 * are those of any device. */
extern const struct schedule_rates schedule_nominal;

/* Makes the fastest of some schedules that need at most so many bytes. Returns false if there is
 * none, or no host memory. The caller gives it back by schedule_free(). */
bool schedule_make(struct schedule *s, const struct schedule_call *call,
                   const struct schedule_rates *rates, int64_t memory_bytes);
/* Makes one by the parameters of another: the same, in a small part of the time that it took to
 * choose them. */
bool schedule_make_by(struct schedule *s, const struct schedule_params *params,
                      const struct schedule_call *call, const struct schedule_rates *rates,
                      int64_t memory_bytes);
void schedule_free(struct schedule *s);

/* Returns whether there is a slot for each tile of an operand that is used, so that none is
 * brought up twice. */
bool schedule_brings_once(const struct schedule *s, int operand);

/* Leaves out the uploads of an operand that is on the device as a whole. The kernels stay as they
 * are, and so does the result, bit for bit. Returns false, and changes nothing, if there is no host
 * memory. */
bool schedule_leave_out(struct schedule *s, int operand);

/* Adds a step, of which only the engine is set, to a schedule that is made step by step. *room: for
 * how many there is memory, at first 0. Returns NULL if there is no more host memory. */
struct schedule_step *schedule_add(struct schedule *s, int *room, int engine);

/* What a simulation tells, in milliseconds and bytes. */
struct schedule_times {
    double ms, busy[SCHEDULE_ENGINES]; /* each engine's own work */
    double first;                      /* until the first kernel starts */
    double last;                       /* from the end of the kernel before the last to the end */
    double bytes[SCHEDULE_ENGINES];    /* up: from host memory */
    double lent_bytes;                 /* from other devices' memory */
};
/* Without host memory, `first` is negative, and the others are 0. */
struct schedule_times schedule_simulate(const struct schedule *s,
                                        const struct schedule_rates *rates);

/* Returns whether the tiles of a panel are finished from the first to the last one, or from the
 * last to the first one. */
bool schedule_ascends(const struct schedule_call *call);

/* A batch: returns a group's first product, or for the number behind the last group, that of all;
 * and the bytes of an operand's matrix on the device. An operand with one slot has all of its
 * matrices there, and each goes up with the first group that uses it; of the others, a slot has
 * those that one group uses. */
int64_t schedule_group_start(const struct schedule *s, int group);
int64_t schedule_matrix_bytes(const struct schedule_call *call, int operand);

/* A batch: returns where the matrix of product number i, of a group, is in the operand's memory, in
 * bytes. */
int64_t schedule_matrix_at(const struct schedule *s, int operand, int group, int64_t product);

/* Rank-k: returns how many rows of C's tiles are those of its first group; behind it a new tile
 * begins. */
int schedule_head(const struct schedule *s);

/* Returns whether some kernels may run beside others: where all tiles have slots, and C is not
 * where the program has it. Not those of a batch. Its tiles and slots are set. */
bool schedule_has_sides(const struct schedule *s);

/* Returns whether the kernels of a tile of C run beside those of which this says that they do not.
 * Kernels of one side come in their order; all on the diagonal of a triangle C are on one. */
bool schedule_goes_beside(const struct schedule *s, int i, int j);

/* Returns whether a tile of C is computed. */
bool schedule_computes(const struct schedule *s, int i, int j);

/* Returns where in an operand a tile is, and its size. A batch's tile number j has the matrices
 * from `col` on, as many as columns, with as many elements as rows; matrix number r is that of
 * product r * repeat. */
struct schedule_tile {
    int64_t row, col, rows, cols;
};
struct schedule_tile schedule_tile_of(const struct schedule *s, int operand, int i, int j);

/* Returns the bytes of a tile that cross the link: of one on the diagonal of a triangle, little
 * more than the triangle (chunks.h). From another device, all of it comes. */
double schedule_tile_bytes(const struct schedule *s, int operand, int i, int j);

/* Sets the tiles that a kernel reads besides the one of C that it writes: of which operand, and
 * which. Returns their number. */
struct schedule_source {
    int operand, i, j;
};
enum { SCHEDULE_SOURCES = 4 };
int schedule_sources(const struct schedule *s, int i, int j, int p,
                     struct schedule_source source[SCHEDULE_SOURCES]);

/* Returns the rate (schedule_rates.compute) by which one kernel of the whole call takes so many
 * milliseconds; and of a rate, the milliseconds. Of the rates, `half` and the paces count. */
double schedule_compute(const struct schedule_call *call, const struct schedule_rates *rates,
                        double ms);

/* Returns the milliseconds of the longest engine, if a call is computed in one kernel and nothing
 * is sent twice: no schedule is faster. */
double schedule_floor(const struct schedule_call *call, const struct schedule_rates *rates);

#endif
