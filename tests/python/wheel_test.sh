#!/bin/sh
# wheel_test.sh -- the wheel is built without a network, twice with the same bytes, and works on its own.
# Usage: wheel_test.sh BUILD SOURCE     with the build finished; exit 77: pip, setuptools or wheel is not installed
set -eu
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LAMEMO LAMEMO_LIBRARY LAMEMO_MODELS PYTHONPATH

for turn in 1 2; do
    mkdir "$work/$turn"
    "$source/scripts/wheel.sh" "$build" "$work/$turn" > "$work/log" || exit $?
done
cmp "$work"/1/*.whl "$work"/2/*.whl
case $(basename "$work"/1/*.whl) in
lamemo-*-py3-none-linux_*.whl) ;;
*) ls "$work/1"; exit 1 ;;
esac
/usr/bin/python3 -m pip --disable-pip-version-check install --quiet --no-index --no-deps --root-user-action=ignore \
    --target "$work/site" "$work"/1/*.whl
cd "$work"
PYTHONPATH=$work/site /usr/bin/python3 - << END
import lamemo
assert lamemo.library_path().startswith("$work/site/lamemo/lib"), lamemo.library_path()
assert lamemo.program_path() == "$work/site/lamemo/bin/lamemo", lamemo.program_path()
print(lamemo.Model("wiki11m")("The history of Rome", max_tokens=20))
END
PYTHONPATH=$work/site "$work/site/bin/lamemo" generate --model wiki11m -n 10 "Rome" | grep -q . # as pip puts it into PATH
