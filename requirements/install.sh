#!/bin/sh
# Install a lock into an environment: install.sh PYTHON LOCK.
# torch comes first and alone: its CPU build lives on PyTorch's own index, which is asked only if no other place has
# it (an index that cannot be reached costs seconds per package). --no-deps because the lock is complete; see lock.py.
set -eu
python=$1 lock=$2
torch=$(grep '^torch==' "$lock")
case $torch in
  *+cpu)
    "$python" -m pip install --quiet --no-deps "$torch" 2>/dev/null ||
      "$python" -m pip install --quiet --no-deps "$torch" --index-url https://download.pytorch.org/whl/cpu
    ;;
esac
"$python" -m pip install --quiet --no-deps -r "$lock"
