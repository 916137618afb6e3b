/*
 * Where libsvm and liblinear keep the function that prints their lines: in a static variable that
 * only a function of theirs names.
 */
#ifndef ACCEL_PRINT_VARIABLE_H
#define ACCEL_PRINT_VARIABLE_H

/* set: the library's svm_set_print_string_function() or set_print_string_function(), or NULL. Its
 * code is read, it is not called. Returns the variable that it stores its argument in; NULL if its
 * code is not what compilers make of that. */
void *accel_print_variable(const void *set);

#endif
