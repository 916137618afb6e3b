/* The lines that libsvm prints while it trains, by the function that prints them in the program's
 * libsvm. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/thread/clock.h"
#include "libsvm.h"

void libsvm_say(const struct libsvm *library, const char *format, ...)
{
    char text[1024]; /* two of the largest numbers, with all their digits */
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    (*library->print)(text);
}

void libsvm_say_sigma(const struct libsvm *library, double sigma)
{
    libsvm_say(library,
               "Prob. model for test data: target value = predicted value + z,\nz: Laplace "
               "distribution e^(-|z|/sigma)/(2sigma),sigma= %g\n",
               sigma);
}

/* Each type prints the parameter that its training has found. */
static void print_parameter(const struct libsvm *library, const struct svm_training *t,
                            const struct svm_function *f, double c, double other_c)
{
    if ((t->type == SVM_C_SVC && c == other_c) || t->type == SVM_EPSILON_SVR) {
        if (library->prints_nu)
            libsvm_say(library, "nu = %f\n", f->sum / (c * f->rows));
    } else if (t->type == SVM_NU_SVC) {
        libsvm_say(library, "C = %f\n", 1 / f->r);
    } else if (t->type == SVM_NU_SVR) {
        libsvm_say(library, "epsilon = %f\n", -f->r);
    }
}

/* Returns the dots that are left. A dot is a thousand iterations, or one for each variable if these
 * are fewer. The caller's cap comes before a dot at the same iteration. */
static int64_t print_dots(const struct libsvm *library, const struct svm_training *t,
                          const struct svm_function *f, int64_t printed)
{
    const int64_t variables =
        f->rows * (t->type == SVM_EPSILON_SVR || t->type == SVM_NU_SVR ? INT64_C(2) : 1);
    const int64_t passes = f->variables ? accel_max(0, f->iterations - 1) : f->iterations;
    int64_t dots = passes / (variables < 1000 ? variables : 1000);
    for (; dots > 0 && printed > 0; dots--)
        printed--;
    for (; dots > 0; dots--)
        libsvm_say(library, ".");
    return printed;
}

int64_t libsvm_print_function(const struct libsvm *library, const struct svm_training *t,
                              const struct svm_function *f, int i, int j, int64_t dots)
{
    dots = print_dots(library, t, f, dots);
    libsvm_say(library, f->variables ? "WARN: libsvm Solver reached max_iter" : "*");
    libsvm_say(library, "\noptimization finished, #iter = %lld\n", (long long)f->iterations);
    print_parameter(library, t, f, t->class_c ? t->class_c[i] : t->c,
                    t->class_c ? t->class_c[j] : t->c);
    libsvm_say(library, "obj = %f, rho = %f\n", f->objective, f->rho);
    libsvm_say(library, "nSV = %d, nBSV = %d\n", f->support, f->bounded);
    return dots;
}

int64_t libsvm_print_job(const struct libsvm *library, const struct svm_job *job, int64_t dots)
{
    const struct svm_classes *classes = &job->classes;
    int i = 0, j = classes->count > 1;
    for (int k = 0; job->functions && k < svm_job_functions(job);
         k++, svm_next_pair(classes->count, &i, &j))
        dots = libsvm_print_function(library, &job->training, &job->functions[k], i, j, dots);
    if (classes->count > 1)
        libsvm_say(library, "Total nSV = %d\n", job->support);
    return dots;
}

struct svm_progress svm_progress_of(const struct libsvm *library)
{
    return (struct svm_progress){.library = library, .start = accel_now_ms()};
}

/* Programs print a dot for each thousand iterations while they train. A training that takes no
 * second prints them at its end. */
void svm_note_progress(void *context, int64_t iterations)
{
    const double soon_ms = 1000;
    struct svm_progress *p = context;
    p->iterations += iterations;
    if (accel_now_ms() - p->start < soon_ms)
        return;
    for (; p->dots < p->iterations / 1000; p->dots++)
        (*p->library->print)(".");
}
