#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes point down: a module may include only what the table below lets it.

usage: tools/check_includes.py [SOURCE_ROOT]

Tests (*_test.cc) and testing/ folders may include any module: they build scenes out of everything.
Exits 1 with a line for each include that breaks the table.
"""
import pathlib
import re
import sys

# Module (folder below src/) -> modules it may include, itself apart.
ALLOWED = {
    "base": set(),
    "wire": {"base"},
    "inject": {"wire"},
    "cupti": {"base"},
    "response": {"base"},
    "model": {"base", "response"},
    "gpu": {"base"},
    "gpu/nvml": {"base", "gpu"},
    "twin": {"base", "gpu", "response"},
    "twin/nvml": {"base", "gpu", "gpu/nvml", "twin"},  # of gpu/nvml only abi.h: see below
    "telemetry": {"base", "gpu"},
    "iteration": {"base"},
    "policy": {"base"},
    "report": {"base"},
    "control": {"base", "gpu", "iteration", "model", "policy", "response", "report", "telemetry", "wire"},
    "bench": {"base", "control", "gpu", "model", "policy", "report", "response", "telemetry", "twin"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def module_of(path):
    """The longest module name that is a prefix of the path."""
    matches = [m for m in ALLOWED if path == m or path.startswith(m + "/")]
    return max(matches, key=len) if matches else None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    bad = []
    for file in sorted((root / "src").rglob("*")):
        if file.suffix not in (".h", ".cc", ".c"):
            continue
        relative = file.relative_to(root / "src").as_posix()
        if relative.endswith("_test.cc") or "/testing/" in relative:
            continue
        module = module_of(relative)
        if module is None:
            bad.append(f"src/{relative}: in no module of tools/check_includes.py")
            continue
        for included in INCLUDE.findall(file.read_text()):
            target = module_of(included)
            if target is None or target == module:
                continue
            if target not in ALLOWED[module]:
                bad.append(f"src/{relative}: {module} must not include {included}")
            if (module, target) == ("twin/nvml", "gpu/nvml") and included != "gpu/nvml/abi.h":
                bad.append(f"src/{relative}: the twin's library may share only gpu/nvml/abi.h")
    print("\n".join(bad) if bad else "includes: every one points down")
    return 1 if bad else 0


sys.exit(main())
