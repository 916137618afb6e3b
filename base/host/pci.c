#define _GNU_SOURCE
#include "pci.h"

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
