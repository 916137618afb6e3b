#!/bin/bash
# FFTW 3.3.10 (Debian 12): one library has three kinds of wisdom, and takes back only its own kind.
# A file of wisdom begins with a hash of all the algorithms that the planner knows.
# fftw_init_threads() adds some to the planner; the one that is made after fftw_cleanup() has them
# from the start, and another hash. So imports answer 0, without a reason,
# - in a program that calls fftw_init_threads(), and plans with one thread, of wisdom made without,
#   by fftw-wisdom without -T for instance: /etc/fftw/wisdom serves only one of the two kinds of
#   programs (the manual speaks of the other direction alone);
# - after fftw_cleanup(), of what the same process has exported before it.
# And fftw_plan_with_nthreads(1) without fftw_init_threads() calls fftw_cleanup(): all wisdom is
# gone, and plans are those of before a clean-up, undefined by the manual, which says that "plans
# already created before a call to fftw_plan_with_nthreads are unaffected". A library that sets the
# number of threads, or a shim that starts FFTW's threads, takes the program's wisdom from it.
# Needs gcc and apt-get of Debian 12.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q libfftw3-dev=3.3.10-1 libfftw3-double3=3.3.10-1 libfftw3-bin=3.3.10-1 > apt.log 2>&1 || { cat apt.log; exit 2; }
for package in *.deb; do dpkg -x "$package" debian; done
cat > wisdom.c <<'END'
#include <fftw3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fftw_complex x[64];

static void plan(void)
{
    fftw_destroy_plan(fftw_plan_dft_1d(64, x, x, FFTW_FORWARD, FFTW_MEASURE));
}

static int entries(void)
{
    char *text = fftw_export_wisdom_to_string();
    int lines = -2; /* the first and the last one */
    for (char *at = text; *at; at++)
        lines += *at == '\n';
    free(text);
    return lines;
}

/* Ways to begin: s(erial), t(hreads), a(gain: threads, and a clean-up). */
static void begin(char how)
{
    if (how == 's')
        return;
    fftw_init_threads();
    if (how == 'a') {
        plan();
        fftw_cleanup();
    }
}

int main(int count, char **arguments)
{
    begin(arguments[1][0]);
    if (count > 3) { /* HOW import FILE */
        printf("%d", fftw_import_wisdom_from_filename(arguments[3]));
        return 0;
    }
    if (count > 2) { /* HOW FILE */
        plan();
        return !fftw_export_wisdom_to_filename(arguments[2]);
    }
    plan(); /* HOW: what one call does */
    const int before = entries();
    fftw_plan_with_nthreads(1);
    printf("entries of wisdom %s, after fftw_plan_with_nthreads(1): %s\n", before > 0 ? "some" : "none", entries() > 0 ? "some" : "none");
    return 0;
}
END
libraries=$folder/debian/usr/lib/x86_64-linux-gnu
gcc -O1 -Wall -I debian/usr/include wisdom.c -o wisdom -L"$libraries" -lfftw3_threads -lfftw3 -lm -pthread
export LD_LIBRARY_PATH=$libraries
./wisdom s serial
./wisdom t threads
./wisdom a again
debian/usr/bin/fftw-wisdom -n -m -o tool co64
debian/usr/bin/fftw-wisdom -n -m -T 1 -o tool-T-1 co64
{
    for file in serial threads again tool tool-T-1; do
        echo "wisdom of $file: import without threads $(./wisdom s import $file), with $(./wisdom t import $file), with, after fftw_cleanup() $(./wisdom a import $file)"
    done
    echo "a program without threads: $(./wisdom s)"
    echo "one that has called fftw_init_threads(): $(./wisdom t)"
} > said
cat said
diff said - <<'END'
wisdom of serial: import without threads 1, with 0, with, after fftw_cleanup() 0
wisdom of threads: import without threads 0, with 1, with, after fftw_cleanup() 0
wisdom of again: import without threads 0, with 0, with, after fftw_cleanup() 1
wisdom of tool: import without threads 1, with 0, with, after fftw_cleanup() 0
wisdom of tool-T-1: import without threads 0, with 1, with, after fftw_cleanup() 0
a program without threads: entries of wisdom some, after fftw_plan_with_nthreads(1): none
one that has called fftw_init_threads(): entries of wisdom some, after fftw_plan_with_nthreads(1): some
END
