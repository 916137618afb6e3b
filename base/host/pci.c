#define _GNU_SOURCE
#include "pci.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"

const char pci_devices[] = "/sys/bus/pci/devices";

static void hexadecimal(struct accel_text *text, int value, int digits)
{
    while (digits-- > 0)
        text_char(text, "0123456789abcdef"[value >> (4 * digits) & 15]);
}

void pci_root_port(const char *folder, int domain, int bus, int device, char port[PCI_PORT_BYTES])
{
    char path[256], way[1024];
    struct accel_text text;
    port[0] = 0;
    text_start(&text, path, sizeof path);
    text_string(&text, folder);
    text_char(&text, '/');
    hexadecimal(&text, domain, 4);
    text_char(&text, ':');
    hexadecimal(&text, bus, 2);
    text_char(&text, ':');
    hexadecimal(&text, device, 2);
    text_string(&text, ".0");
    if (!text_end(&text))
        return;
    const ssize_t length = readlink(path, way, sizeof way - 1);
    if (length <= 0)
        return;
    way[length] = 0;
    const char *root = strstr(way, "/pci"), *first = root ? strchr(root + 1, '/') : NULL;
    const char *end = first ? strchr(first + 1, '/') : NULL;
    /* Then the device itself comes first, or a name that is none of PCI's */
    if (!end || end - first > PCI_PORT_BYTES)
        return;
    memcpy(port, first + 1, (size_t)(end - first - 1));
    port[end - first - 1] = 0;
}

/* Returns the number in a file of a device's folder, 0x10de; 0 if there is none. */
static unsigned long read_number(int folder, const char *device, const char *name)
{
    char path[300], number[24];
    struct accel_text text;
    text_start(&text, path, sizeof path);
    text_string(&text, device);
    text_char(&text, '/');
    text_string(&text, name);
    const int fd = text_end(&text) ? openat(folder, path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t length = fd < 0 ? 0 : read(fd, number, sizeof number - 1);
    if (fd >= 0)
        close(fd);
    number[length > 0 ? length : 0] = 0;
    return strtoul(number, NULL, 16);
}

bool pci_may_have_display(const char *folder, unsigned vendor)
{
    DIR *devices = opendir(folder);
    const struct dirent *device;
    bool found = false;
    if (!devices)
        return true;
    while (!found && (device = readdir(devices)))
        found = read_number(dirfd(devices), device->d_name, "vendor") == vendor &&
                read_number(dirfd(devices), device->d_name, "class") >> 16 == 3;
    closedir(devices);
    return found;
}
