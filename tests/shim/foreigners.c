/*
 * foreigners LIBRARY [OTHER...]: opens the libraries, LIBRARY last; calls its functions, which have names of BLAS and other
 * arguments, and multiplies by each of the others (`libcaller_…`), in turn. A name that begins with "+" is opened for all.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *load(const char *name)
{
    void *library =
        dlopen(name + (*name == '+'), RTLD_NOW | (*name == '+' ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library)
        printf("%s\n", dlerror());
    return library;
}

int main(int argc, char **argv)
{
    int (*product[8])(int), (*foreign)(void);
    int wrong = 0;
    if (argc < 2 || argc > 9)
        return 2;
    for (int i = 2; i < argc; i++) {
        void *library = load(argv[i]);
        void *found = library ? dlsym(library, "caller_product") : NULL;
        memcpy(&product[i - 2], &found, sizeof found);
        if (!library)
            return 2;
    }
    void *library = load(argv[1]);
    void *found = library ? dlsym(library, "foreign_calls") : NULL;
    if (!found)
        return 2;
    memcpy(&foreign, &found, sizeof foreign);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < argc - 2; i++)
            wrong += product[i] ? product[i](3 + 4 * round) : 0;
        wrong += foreign();
    }
    struct pair {
        double re, im;
    } (*function)(double), pair;
    found = dlsym(library, "zgemm_");
    memcpy(&function, &found, sizeof function);
    pair = function(7);
    wrong += pair.re != 7 || pair.im != -7;
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
