/* Root ports, in a folder of links like Linux's: devices behind one switch have one, those with
 * ports of their own do not share it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
