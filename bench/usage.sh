# Read by the programs of this folder, which are shell scripts around Python: --help installs nothing. Where the packages are
# missing it prints the head of the script. $root is the repository, $packages the folder of the Python environment.
case " $* " in
*" --help "* | *" -h "*)
  python=${GE_WORK:-$root/build/bench}/$packages/bin/python
  if [ -x "$python" ] && "$python" "$0.py" --help 2>/dev/null; then exit 0; fi
  sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
