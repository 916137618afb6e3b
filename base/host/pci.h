/*
 * Where a device is on the PCI bus, as Linux tells it, and whether one is there. Thread-safe.
 */
#ifndef ACCEL_PCI_H
#define ACCEL_PCI_H

#include <stdbool.h>

enum { PCI_PORT_BYTES = 24 };

extern const char pci_devices[]; /* the folder of links to all devices: "/sys/bus/pci/devices" */

/* Sets the name of the root port that leads to a device, as 0000:16:01.0: devices behind one have
 * its link together. Empty if there is none between the host and the device, or nobody knows.
 * Source: the kernel's Documentation/ABI/testing/sysfs-bus-pci; a link there has the way to the
 * device, bridge by bridge. Uses neither malloc nor stdio. */
void pci_root_port(const char *folder, int domain, int bus, int device, char port[PCI_PORT_BYTES]);

/* Returns whether a vendor's display or 3D controller is there (class 03); true where Linux does
 * not show the bus. A container sees all devices of its machine. Uses malloc, by opendir(3). */
bool pci_may_have_display(const char *folder, unsigned vendor);

#endif
