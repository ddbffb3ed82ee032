#!/usr/bin/env python3
"""Makes public_suffixes.txt, beside this file, from the list of publicsuffix.org: without comments, names in ASCII.

usage: suffixes.py public_suffix_list.dat
"""
import os
import re
import sys

HEAD = """// This Source Code Form is subject to the terms of the Mozilla Public
// License, v. 2.0. If a copy of the MPL was not distributed with this
// file, You can obtain one at https://mozilla.org/MPL/2.0/.
// From https://publicsuffix.org/list/public_suffix_list.dat, version {version}, without its comments, names in ASCII.
// Made by `rules/data/suffixes.py`."""


def in_ascii(rule):
    labels = rule.lstrip("!").split(".")
    shown = ".".join(label if label.isascii() else "xn--" + label.encode("punycode").decode() for label in labels)
    return ("!" if rule.startswith("!") else "") + shown


with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
lines = [HEAD.format(version=re.search(r"// VERSION: (.*)", text)[1])]
for line in map(str.strip, text.splitlines()):
    if line.startswith(("// ===BEGIN", "// ===END")):
        lines.append(line)
    elif line and not line.startswith("//"):
        lines.append(in_ascii(line.split()[0]))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "public_suffixes.txt"), "w", encoding="ascii") as file:
    file.write("\n".join(lines) + "\n")
