#define _GNU_SOURCE
#include "spelling.h"

#include <stdbool.h>
#include <string.h>

#include "text.h"

enum { LONGEST = 64 };

static int least_of_three(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Row i has the distances of the first i characters of `a` to each prefix of `b`. */
int spelling_distance(const char *a, const char *b)
{
    int row[LONGEST + 1], rows = (int)strnlen(a, LONGEST), columns = (int)strnlen(b, LONGEST);
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; i <= rows; i++) {
        int diagonal = row[0]; /* from the row before */
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            bool differ = text_upper(a[i - 1]) != text_upper(b[j - 1]);
            int distance = least_of_three(row[j] + 1, row[j - 1] + 1, diagonal + differ);
            diagonal = row[j];
            row[j] = distance;
        }
    }
    return row[columns];
}
