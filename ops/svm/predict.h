/*
 * What a prediction reads of a model, whosever it is, and how support vectors are told from others
 * by what they contain.
 */
#ifndef ACCEL_SVM_PREDICT_H
#define ACCEL_SVM_PREDICT_H

#include "gpu/exec/ml/smo.h"
#include "libsvm.h"
#include "sklearn.h"

/* A model and a vector, in the program's memory. */
struct svm_view {
    const struct libsvm_parameter *parameter;
    int classes; /* 2 if there are none */
    int vectors; /* support vectors */
    double *const *coefficient;
    const double *rho;
    const int *label, *counts;              /* of each class; NULL: none */
    const struct libsvm_node *const *nodes; /* of each support vector; NULL: they are dense */
    const struct sklearn_node *dense;
    const void *x; /* a vector as those */
};

/* Layouts: numbers of struct libsvm; these are scikit-learn's. */
enum { SVM_VIEW_SKLEARN = 128, SVM_VIEW_SKLEARN_CSR };

/* Returns the layout of the models of a provider's svm_predict_values(), 0: not known:
 * accel_foreign.accepts. */
int svm_view_layout(const struct accel_provider *provider);

/* The offset of a model's number of support vectors: accel_foreign.count_at. */
int svm_view_count_at(int layout);

/* Returns false if the library itself must see the model or the vector. Reads the vector, but no
 * support vectors. */
bool svm_view_of(struct svm_view *view, int layout, const void *model, const void *x);

/* Returns the number of decision values. */
int64_t svm_view_functions(const struct svm_view *view);

/* The support vectors of a function, in two ranges; the second may be empty. They are summed in
 * this order. */
struct svm_range {
    const double *coefficient; /* of each vector from `first` on */
    int64_t first, count;
};
/* first: of each class, its first support vector. i < j; without classes 0 and 0. */
void svm_view_ranges(const struct svm_view *view, const int64_t *first, int i, int j,
                     struct svm_range range[2]);

/* What all support vectors are. Equal keys are of vectors that are equal to the last bit. */
struct svm_content {
    struct gpu_key key;
    double length;           /* as given to svm_content_of() */
    struct libsvm_size size; /* as libsvm_measure() finds it, if all is well with the vectors */
};

/* Reads all support vectors, with the copy pool. length: of a vector, about. Returns
 * GPU_UNSUPPORTED if a vector has no pointer, or a dense one another length. */
enum gpu_status svm_content_of(const struct svm_view *view, double length,
                               struct svm_content *content);

/* Copies the support vectors; the caller frees the matrix. Returns GPU_UNSUPPORTED if they are not
 * what the library's documentation asks for. */
enum gpu_status svm_view_vectors(const struct svm_view *view, struct libsvm_size *size,
                                 struct svm_matrix *x);

/* Whether svm_view_vectors() makes a matrix in CSR. */
bool svm_view_is_sparse(const struct svm_view *view, const struct libsvm_size *size);

/* Copies the vector x to a dense one of size->features elements. Returns the sum of the squares
 * that smo_vector() asks for. */
double svm_view_vector(const struct svm_view *view, const struct libsvm_size *size, double *v);

/* ---- Models that have been seen: hints, by addresses, which may be wrong ---- */

struct svm_admission {
    int64_t features, stored; /* of all vectors, by some of them */
    int64_t alone;            /* stored elements whose feature another vector lacks, likewise */
    int seen;   /* calls since the vectors were put on the device, or were found changed */
    int hits;   /* calls that found them there since then */
    int misses; /* how often they were put there for too few calls, one after another */
    int far;    /* calls one after another whose vector the library alone can judge */
    bool cached, refused; /* on the device; not what it can do */
};

/* Notes a call. */
struct svm_admission svm_admission_look(const struct svm_view *view);
/* Note that a call has found the vectors on the device, or had to put them there; that they are not
 * for the device. surprised: the call's own admission had them there. Of threads that begin to
 * predict at once several put them, and none is surprised. */
void svm_admission_found(const struct svm_view *view);
void svm_admission_put(const struct svm_view *view, bool surprised);
void svm_admission_refused(const struct svm_view *view);
/* Notes whether the library alone can judge a call's vector. After some in a row, the model's are
 * not for the device. */
void svm_admission_vector(const struct svm_view *view, bool far);

#endif
