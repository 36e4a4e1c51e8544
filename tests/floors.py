"""Checks every #include against the floors: a folder includes only folders on lower floors (or itself).

  python3 tests/floors.py [ROOT]      exits 1 and prints each violation
"""
import os
import re
import sys

FLOOR = {"base": 0, "abi": 0, "pictures": 1, "expr": 1, "type": 2, "om": 2, "tile": 3, "rt": 3, "ir": 4, "ops": 5, "soc": 5,
         "opt": 6, "lower": 6, "emit": 6, "plan": 6, "import": 6, "fuse": 7, "driver": 8, "api": 9, "tools": 9}
RUNTIME = {"base", "abi", "om", "rt"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def violations(root):
    for folder, floor in FLOOR.items():
        for where, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                # The public C headers of api/acl include each other by their installed names.
                if not name.endswith((".h", ".cc", ".c")) or "/api/acl/include" in where:
                    continue
                path = os.path.join(where, name)
                with open(path, encoding="utf-8") as f:
                    for number, line in enumerate(f, 1):
                        m = INCLUDE.match(line)
                        if not m:
                            continue
                        target = m.group(1).split("/")[0]
                        place = "%s:%d" % (os.path.relpath(path, root), number)
                        if target not in FLOOR:
                            yield "%s: includes %s: not a folder of this project" % (place, m.group(1))
                        elif target != folder and FLOOR[target] >= floor:
                            yield "%s: %s (floor %d) may not include %s (floor %d)" % (
                                place, folder, floor, m.group(1), FLOOR[target])
                        elif (folder == "rt" or path.startswith(os.path.join(root, "api", "acl"))) and \
                                target not in RUNTIME | {"api"}:
                            yield "%s: the runtime's closure may not include %s" % (place, m.group(1))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = list(violations(root))
    print("\n".join(found) if found else "floors: every include goes down")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
