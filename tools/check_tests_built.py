#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every *_test.cc is compiled into some target.

usage: tools/check_tests_built.py BUILD_DIR   (with its compile_commands.json)
"""
import json
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(sys.argv[1])
built = {pathlib.Path(c["file"]).resolve() for c in json.loads((build / "compile_commands.json").read_text())}
tests = [t for folder in ("src", "apps", "tests") for t in (root / folder).rglob("*_test.cc")]
orphans = [t for t in tests if t.resolve() not in built]
for orphan in orphans:
    print(f"{orphan.relative_to(root)}: in no target; add it to its CMakeLists.txt")
if not orphans:
    print(f"tests: all {len(tests)} *_test.cc files are in the build")
sys.exit(1 if orphans else 0)
