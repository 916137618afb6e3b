/* Whether this process is a fork server of Python's: one that is started to fork workers. */
#ifndef ACCEL_FORK_SERVER_H
#define ACCEL_FORK_SERVER_H

#include <stdbool.h>

/* multiprocessing's forkserver, which workers come from since Python 3.14 unless a program says
 * otherwise, imports the program's main module, and with it NumPy, before it forks. Its command is
 * `python -c "...from multiprocessing.forkserver import main;..."` (Lib/multiprocessing of CPython
 * 3.4 to 3.14). PySpark's `python -m pyspark.daemon` is one, too. Their children are none. The
 * first time, it reads how the process was started. Thread-safe; keeps errno. */
bool fork_server_is_this(void);

#endif
