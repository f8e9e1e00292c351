# SPDX-License-Identifier: Apache-2.0
"""The built library exports exactly the names of exports.txt and our three extensions, needs only
the C library, and has the soname that NVML clients load.

  twin_nvml_exports.py NM READELF LIBRARY EXPORTS
"""

import subprocess
import sys

EXTENSIONS = {"gpoeoTwinVersion", "gpoeoTwinNow", "gpoeoTwinDeviceGetLockedClocks"}
C_LIBRARY = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


def lines(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def main(nm, readelf, library, exports):
    with open(exports, encoding="ascii") as file:
        listed = file.read().split()
    problems = []
    if listed != sorted(set(listed)):
        problems.append(f"{exports} is not sorted and unique")
    exported = {line.split()[-1].split("@")[0] for line in lines(nm, "-D", "--defined-only", library)}
    wanted = set(listed) | EXTENSIONS
    problems += [f"not exported: {name}" for name in sorted(wanted - exported)]
    problems += [f"exported beyond the list: {name}" for name in sorted(exported - wanted)]
    dynamic = lines(readelf, "-d", library)
    needed = {l.split("[")[1].rstrip("]") for l in dynamic if "(NEEDED)" in l}
    loader = {name for name in needed if name.startswith("ld-linux")}
    problems += [f"needs {name}" for name in sorted(needed - C_LIBRARY - loader)
                 if "asan" not in name and "tsan" not in name and "ubsan" not in name]
    if not any("(SONAME)" in l and "[libnvidia-ml.so.1]" in l for l in dynamic):
        problems.append("soname is not libnvidia-ml.so.1")
    print("\n".join(problems) or f"{len(wanted)} names exported, needs {sorted(needed)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
