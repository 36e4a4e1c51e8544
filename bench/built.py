"""The build's folder that a program of bench/ is given: it must hold the tools."""
import os
import sys


def built(folder):
    """The folder's absolute path; without tools in it, the end of the program with a sentence."""
    for tool in ("atc", "ge"):
        if not os.access(os.path.join(folder, "bin", tool), os.X_OK):
            sys.exit("%s: no build: bin/%s is not in it; give a folder such as build/release" % (folder, tool))
    return os.path.abspath(folder)
