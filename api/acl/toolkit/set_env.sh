# Source this file: sets ASCEND_HOME_PATH to the directory that holds it, and the search paths.
_ge_home="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]:-${(%):-%x}}")")" > /dev/null 2>&1 && pwd)"
export ASCEND_HOME_PATH="$_ge_home"
export ASCEND_TOOLKIT_HOME="$_ge_home"
export PATH="$_ge_home/bin${PATH:+:$PATH}"
export LD_LIBRARY_PATH="$_ge_home/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CMAKE_PREFIX_PATH="$_ge_home${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
unset _ge_home
