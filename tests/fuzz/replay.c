/*
 * replay FILE...: gives each file to a fuzz target, without a fuzzer. Prints a file's name when it
 * is through, so that the one that ends the program is the first that is missing.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

/* A copy of exactly the file's length: what is read beyond it is beyond the allocation. */
static bool feed(const char *path)
{
    FILE *file = fopen(path, "rb");
    long length = -1;
    if (file && fseek(file, 0, SEEK_END) == 0)
        length = ftell(file);
    uint8_t *data = length >= 0 ? malloc((size_t)length + (length == 0)) : NULL;
    bool read = data && fseek(file, 0, SEEK_SET) == 0 &&
                fread(data, 1, (size_t)length, file) == (size_t)length;
    if (file)
        fclose(file);
    if (read)
        LLVMFuzzerTestOneInput(data, (size_t)length);
    free(data);
    return read;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!feed(argv[i])) {
            fprintf(stderr, "%s cannot be read\n", argv[i]);
            return 2;
        }
        printf("%s\n", argv[i]);
        fflush(stdout);
    }
    return 0;
}
