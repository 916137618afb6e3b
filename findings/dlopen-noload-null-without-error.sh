#!/usr/bin/env bash
# dlopen(path, RTLD_NOLOAD) of glibc 2.36 (Debian 12) returns NULL without an error if the library
# is not loaded but could be: dlerror() is NULL, too, and a program that prints it prints (null), or
# ends. If the file is not there, or is one for another machine, the same call leaves a message,
# although nothing was to be loaded: the linker opens the file and looks at its header first. So the
# error tells whether a path, with $LIB and $PLATFORM in it, would be found. Of a file for another
# machine, which is there, the message says "No such file or directory".
# Needs gcc and Debian 12's libc6 2.36.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >program.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *const handle = dlopen(argv[i], RTLD_LAZY | RTLD_NOLOAD);
        const char *const error = dlerror();
        printf("%s, %s\n", handle ? "handle" : "NULL", error ? error : "no error");
    }
    return 0;
}
END
gcc program.c -o program
echo 'int x;' >library.c
gcc -shared -fPIC library.c -o library.so
cp library.so other.so
printf '\267\000' | dd of=other.so bs=1 seek=18 conv=notrunc status=none # e_machine: AArch64
mkdir lib x86_64 haswell
for platform in x86_64 haswell; do cp library.so $platform/; done
getconf GNU_LIBC_VERSION
./program "$folder/library.so" "$folder/\$PLATFORM/library.so" "$folder/none.so" \
    "$folder/other.so" libc.so.6 | sed "s,$folder/,,g" | tee said
cat >wanted <<'END'
NULL, no error
NULL, no error
NULL, none.so: cannot open shared object file: No such file or directory
NULL, other.so: cannot open shared object file: No such file or directory
handle, no error
END
diff said wanted
