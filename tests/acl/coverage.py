"""Every function of AscendCL is exported, in the list that tests call through, and called by name in a test; every type has
its size and values in the ABI test.

  python3 coverage.py LIBRARY        NM in the environment names another nm

counted.txt: the functions that at least two public programs call; they must be there and have a test that is written for
them. All others that the headers declare have one too.
"""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def read(*patterns):
    text = ""
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            with open(path) as f:
                text += re.sub(r"//.*", "", f.read())
    return text


def main():
    faults = []

    def none(what, names):
        if names:
            faults.append("%s: %s" % (what, " ".join(sorted(names))))

    out = subprocess.run([os.environ.get("NM", "nm"), "-D", "--defined-only", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    exported = set(re.findall(r" T (acl\w+)", out))
    headers = read("api/acl/include/acl/*.h", "api/acl/include/aclnn/*.h")
    declared = set(re.findall(r"ACL_FUNC_VISIBILITY[^;]*?\b(acl\w+)\s*\(", headers))
    listed = set(re.findall(r"F\((\w+)\)", read("tests/acl/functions.inc")))
    called = set(re.findall(r"\b(acl\w+)\s*\(", read("tests/acl/*.cc", "tests/acl/*.h", "tests/acl/*.c", "examples/acl/*.cc", "examples/acl/*.h")))
    # By pointer: the two getters of a text.
    called |= set(re.findall(r"\b(aclprofGetOp\w+)", read("examples/acl/operators.cc")))
    with open(os.path.join(HERE, "counted.txt")) as f:
        counted = set(line.strip() for line in f if not line.startswith("#"))
    none("declared, not exported", declared - exported)
    none("exported, not declared", exported - declared)
    none("not in functions.inc", declared - listed - {"aclAppLog"})
    none("in functions.inc, not declared", listed - declared)
    none("counted, not declared", counted - declared)
    none("counted, without a test", counted - called)
    none("declared, without a test", declared - called)
    # Every type: its size, and the value of each enumerator.
    plain = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    held = set(re.findall(r"SAME\((.*?), ", read("tests/acl/abi.c", "tests/acl/abi_rest.inc")))
    types = set(re.findall(r"typedef (?:struct|union)\s*\w*\s*\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}\s*(\w+);", plain))
    enumerators = set()
    for body in re.findall(r"typedef enum\s*\w*\s*\{([^}]*)\}", plain):
        enumerators |= set(re.findall(r"(\w+)\s*(?:=\s*[^,]+)?(?:,|$)", body.strip()))
    none("types whose size is not checked", {t for t in types if "sizeof(%s)" % t not in held})
    none("enumerators whose value is not checked", enumerators - held)
    for fault in faults:
        print("FAILED: " + fault)
    print("%d functions exported, %d counted in public programs, %d called by tests; %d types and %d enumerators held: %s" % (
        len(exported), len(counted), len(declared & called), len(types), len(enumerators), "FAILED" if faults else "passed"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
