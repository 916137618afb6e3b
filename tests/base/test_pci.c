/* Root ports, in a folder of links like Linux's: devices behind one switch have one, those with
 * ports of their own do not share it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host/pci.h"

static char folder[] = "/tmp/test-pci-XXXXXX";

static void put(const char *name, const char *way)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(symlink(way, path), 0);
}

static void drop(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static void expect(int domain, int bus, int device, const char *port)
{
    char found[PCI_PORT_BYTES] = "?";
    pci_root_port(folder, domain, bus, device, found);
    assert_string_equal(found, port);
}

static void ports(void **state)
{
    static const char *const names[] = {"0000:19:00.0", "0000:1a:00.0", "0001:03:1f.0",
                                        "0000:00:02.0", "0000:05:00.0", "0000:06:00.0"};
    (void)state;
    assert_non_null(mkdtemp(folder));
    put(names[0],
        "../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:19:00.0");
    put(names[1],
        "../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:01.0/0000:1a:00.0");
    put(names[2], "../../../devices/pci0001:00/0001:00:03.1/0001:03:1f.0");
    put(names[3], "../../../devices/pci0000:00/0000:00:02.0"); /* integrated: no port */
    put(names[4], "../../../devices/platform/0000:05:00.0");
    put(names[5], "../../../devices/pci0000:00/a-name-longer-than-any-port-has/0000:06:00.0");
    expect(0, 0x19, 0, "0000:16:01.0");
    expect(0, 0x1a, 0, "0000:16:01.0");
    expect(1, 3, 0x1f, "0001:00:03.1");
    expect(0, 0, 2, "");
    expect(0, 5, 0, "");
    expect(0, 6, 0, "");
    expect(0, 0x77, 0, ""); /* there is no such device */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        drop(names[i]);
    rmdir(folder);
    pci_root_port("/nowhere", 0, 0, 0, (char[PCI_PORT_BYTES]){"?"});
}

/* Puts a device's file there. */
static void put_number(const char *device, const char *name, const char *number)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, device);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", folder, device, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(number, file);
    fclose(file);
}

static int take_away(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st, (void)type, (void)walk;
    return remove(path);
}

static void displays(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test-pci-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_false(pci_may_have_display(folder, 0x10de));
    put_number("0000:01:00.1", "vendor", "0x10de\n"); /* its sound */
    put_number("0000:01:00.1", "class", "0x040300\n");
    put_number("0000:00:02.0", "vendor", "0x8086\n");
    put_number("0000:00:02.0", "class", "0x030000\n");
    put_number("0000:05:00.0", "vendor", "0x10de\n");
    put("0000:06:00.0", "/nowhere");
    assert_false(pci_may_have_display(folder, 0x10de));
    assert_true(pci_may_have_display(folder, 0x8086));
    put_number("0000:19:00.0", "vendor", "0x10de\n");
    put_number("0000:19:00.0", "class", "0x030200\n");
    assert_true(pci_may_have_display(folder, 0x10de));
    assert_true(pci_may_have_display("/nowhere", 0x10de));
    assert_int_equal(nftw(folder, take_away, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ports), cmocka_unit_test(displays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
