#!/usr/bin/env python3
"""The layering test: a room may include itself and the rooms below it, nothing above. Prints file:line of every breach.

The order is the house of the design: kernels at the bottom, app on top. Third-party headers that belong to one room only are
checked too (no Qt in core or kernels, HDF5 only in core/io, Eigen only where matrices are solved, oneDNN only in its shim).
"""
import pathlib
import re
import sys

ORDER = ["kernels", "core/io", "core/rows", "core/names", "core/quant", "core/transform", "core/measure", "core/graph", "core/methods",
         "core/geometry", "core/evaluate", "core/synth", "core/plan", "core/report", "core/run",
         "views/models", "views/charts", "views/panels", "app"]
# Third-party header pattern -> folders that may include it.
PRIVATE = [
    (re.compile(r"^Q[A-Z]|^Qt"), ("views/", "app/")),
    (re.compile(r"^hdf5\.h|^H5"), ("core/io/",)),
    (re.compile(r"^Eigen/"), ("core/methods/", "core/transform/", "kernels/reference/", "kernels/cpu/", "core/geometry/", "core/evaluate/")),
    (re.compile(r"dnnl|oneapi/dnnl"), ("kernels/cpu/onednn_shim",)),
    (re.compile(r"^CLI/"), ("app/cli/",)),
    (re.compile(r"^cuda|^cublas"), ("kernels/cuda/",)),
]
# Heavy third-party headers that must not leak out of their folder through a header file.
NOT_IN_HEADERS = re.compile(r"^Eigen/|^hdf5\.h|dnnl|^cuda")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    best = ""
    for room in ORDER:
        if path == room or path.startswith(room + "/"):
            best = room if len(room) > len(best) else best
    return best


def breaches(root):
    for top in ("kernels", "core", "views", "app"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            relative = file.relative_to(root).as_posix()
            here = room_of(relative)
            if not here:
                yield f"{relative}:1: in no room of the house"
                continue
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(2)
                there = room_of(target)
                if there and ORDER.index(there) > ORDER.index(here):
                    yield f"{relative}:{number}: {here} may not include {target}: {there} is above it"
                if there.startswith("app") and here == "app" and relative.startswith("app/cli/") and not target.startswith("app/cli/"):
                    yield f"{relative}:{number}: the command line may not include the window ({target})"
                for pattern, allowed in PRIVATE:
                    if match.group(1) == "<" and pattern.search(target) and not relative.startswith(allowed):
                        yield f"{relative}:{number}: <{target}> is not for {here}"
                inside = relative.startswith(("core/methods/", "kernels/reference/", "kernels/cpu/")) and target.startswith("Eigen/")
                if file.suffix == ".h" and match.group(1) == "<" and NOT_IN_HEADERS.search(target) and not inside:
                    yield f"{relative}:{number}: <{target}> may not stand in a header"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(breaches(root))
    print("\n".join(found) if found else "layers: every include points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
