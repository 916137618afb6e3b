/*
 * One problem of train(): the weights w that make |w|^2 / 2 + the sum of c_i loss(y_i, w . x_i)
 * least. The rows and all vectors of their length are on the device; vectors of as many elements as
 * there are columns are the host's. After a failure nothing more is computed, and results are
 * undefined: see linear_loss.failure.
 */
#ifndef ACCEL_LIBLINEAR_LOSS_H
#define ACCEL_LIBLINEAR_LOSS_H

#include "gpu/device/own.h"
#include "library.h"

/* A list of sparse vectors on the device: see gpu/own/linear.cu. */
struct linear_segments {
    int64_t count;
    unsigned group; /* threads for each */
    gpu_address first, place, value;
};

/* The rows on the device. */
struct linear_rows {
    struct gpu_work *work;
    int64_t rows, columns;
    struct gpu_fit fit; /* of all kernels */
    gpu_address tiles;  /* 0: sparse */
    int64_t tile_rows, tile_count;
    struct linear_segments by_row, by_column; /* a long column is several segments */
    gpu_address segment_of;                   /* of each column, its first segment */
    gpu_address partial;                      /* sums that are still to be added up */
};

enum { LINEAR_BLOCKS_MOST = 256 };

struct linear_loss {
    struct linear_rows *x;
    int solver;
    double p;
    enum gpu_status failure; /* GPU_OK: none */
    gpu_address y, c;        /* of each row */
    gpu_address z;           /* decision values */
    gpu_address step;        /* of the decision values */
    gpu_address slope, curvature;
    gpu_address w; /* memory for a vector of the columns */
    double partial[LINEAR_BLOCKS_MOST];
};

/* Copies `rows` rows to the device; elements: those of all. Returns GPU_UNSUPPORTED if there are no
 * kernels. */
enum gpu_status linear_rows_load(struct linear_rows *x, struct gpu_work *work,
                                 struct linear_node *const *nodes, int64_t rows, int64_t columns,
                                 int64_t elements);

enum gpu_status linear_loss_make(struct linear_loss *f, struct linear_rows *x, int solver,
                                 double p);
/* Begins with a problem: y and c of each row. */
void linear_loss_begin(struct linear_loss *f, const double *y, const double *c);

/* Returns the sum of the losses at w, where the decision values are from now on. */
double linear_loss_at(struct linear_loss *f, const double *w);
/* g := the gradient of the sum there; the curvature is from now on the one there. */
void linear_loss_gradient(struct linear_loss *f, double *g);
/* hs := H s, with the Hessian of the sum by the curvature; m := its diagonal. */
void linear_loss_hessian(struct linear_loss *f, const double *s, double *hs);
void linear_loss_diagonal(struct linear_loss *f, double *m);

/* Set the direction of steps; return the sum of the losses after a step; make it. */
void linear_loss_aim(struct linear_loss *f, const double *s);
double linear_loss_ahead(struct linear_loss *f, double alpha);
void linear_loss_advance(struct linear_loss *f, double alpha);

#endif
