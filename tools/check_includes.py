#!/usr/bin/env python3
"""Checks which folder includes which: check_includes.py [ROOT].

A folder of src/ includes only include/, base/, ops/, trace/ and the folders above itself in FOLDERS. Device APIs never
include each other. No two folders include each other in a circle, nor do two folders inside one. Every quoted include
names a file by its path from src/ or include/. cli/, bindings/, tests/, fuzz/ and examples/ may include everything.
"""

import pathlib
import re
import sys

# The order in which a graph passes through the folders (docs/architecture.md).
FOLDERS = ["base", "ops", "graph", "devices", "plan", "run", "models", "onnx", "arrays", "trace"]
FOR_EVERYONE = {"include", "base", "ops", "trace"}
# Folders of src/devices/ that are not device APIs: every API may use the first; the second uses every API.
SHARED_BY_DEVICES = {"shaders", "discovery"}
SUFFIXES = {".h", ".cpp", ".def", ".cu", ".cuh", ".comp", ".glsl", ".frag", ".vert"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)


def includes_of(path):
    """Yields the text between quotes or angle brackets of each include in a file, with its line number."""
    text = path.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start()) + 1, match.group(1)) for match in INCLUDE.finditer(text)]


def resolve(root, included):
    """Returns the file of this repository that an include names, or None for a system or generated header."""
    for base in ("src", "include", "tests"):
        candidate = root / base / included
        if candidate.is_file():
            return candidate
    return None


def folder_of(root, path):
    """Returns 'include', or the folder below src/ that contains the file."""
    parts = path.relative_to(root).parts
    return parts[1] if parts[0] == "src" else parts[0]


def room_of(root, path):
    """Returns the folder inside the file's folder of src/, such as "models/text", or None."""
    parts = path.relative_to(root).parts
    return "/".join(parts[1:3]) if parts[0] == "src" and len(parts) > 3 else None


def backend_of(root, path):
    """Returns the device API that a file below src/devices/ belongs to, or None."""
    folder, _, name = (room_of(root, path) or "").partition("/")
    return name if folder == "devices" and name not in SHARED_BY_DEVICES else None


def forbidden(root, path, target):
    """Returns why `path` may not include `target`, or None."""
    here, there = folder_of(root, path), folder_of(root, target)
    if there == "tests":
        return "the library does not include tests/"
    if here == there:
        mine, other = backend_of(root, path), backend_of(root, target)
        if mine and other and mine != other:
            return f"devices/{mine} and devices/{other} never include each other"
        return None
    if here == "include":
        return None if there == "ops" else "include/ includes only itself and the tables of ops/"
    if here == "base":
        return "base/ includes only include/ and itself" if there != "include" else None
    if here not in FOLDERS:
        return f"src/{here}/ is not in the list of folders of tools/check_includes.py"
    if there in FOR_EVERYONE:
        return None
    if there not in FOLDERS:
        return f"src/{there}/ is not in the list of folders of tools/check_includes.py"
    if FOLDERS.index(there) > FOLDERS.index(here):
        return f"{there}/ stands below {here}/"
    return None


def circle_in(edges):
    """Returns folders that include each other in a circle, or None. `edges`: folder -> {folder: example}."""

    def walk(folder, trail):
        if folder in trail:
            return trail[trail.index(folder) :] + [folder]
        for target in sorted(edges.get(folder, {})):
            found = walk(target, trail + [folder])
            if found:
                return found
        return None

    for folder in sorted(edges):
        found = walk(folder, [])
        if found:
            return found
    return None


def problems(root):
    found, edges = [], {}
    files = [p for base in ("include", "src") for p in sorted((root / base).rglob("*")) if p.suffix in SUFFIXES]
    for path in files:
        for line, included in includes_of(path):
            where = f"{path.relative_to(root)}:{line}"
            target = resolve(root, included)
            if target is None:
                if included.split("/")[0] in FOLDERS + ["shunt"] or (path.parent / included).is_file():
                    found.append(f'{where}: "{included}" is no path from src/ or include/ to a file that exists')
                continue
            reason = forbidden(root, path, target)
            if reason:
                found.append(f'{where}: includes "{included}", but {reason}')
            here, there = folder_of(root, path), folder_of(root, target)
            # The public headers expand the tables of ops/, on which every other folder builds.
            if here == there:
                here, there = room_of(root, path), room_of(root, target)
            if here and there and here != there and "include" not in (here, there):
                edges.setdefault(here, {}).setdefault(there, where)
    circle = circle_in(edges)
    if circle:
        steps = [f"{a}/ includes {b}/ at {edges[a][b]}" for a, b in zip(circle, circle[1:])]
        found.append("folders include each other in a circle: " + ", ".join(steps))
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    found = problems(root)
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
