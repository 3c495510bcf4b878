#!/usr/bin/env bash
# Builds the Debian packages from the committed tree, into build/deb: the program, the library, its development files, the
# Python package and the bundled model.
#   scripts/deb.sh            build, and ask lintian
#   scripts/deb.sh twice      also build again elsewhere and compare the bytes
#   scripts/deb.sh chroot     install build/deb/*.deb into a fresh Debian and run debian/tests there; needs root and
#                             debootstrap (MIRROR: where it gets packages, default that of this machine)
# Exit 77: a tool is missing; it is named.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-once}
case $mode in once | twice | chroot) ;; *) echo "usage: scripts/deb.sh [twice|chroot]" >&2; exit 2 ;; esac
out=build/deb
work=$(mktemp -d)
root=$work/root
clean() {
    for mount in proc dev; do
        if mountpoint -q "$root/$mount"; then umount -l "$root/$mount"; fi
    done
    rm -rf --one-file-system "$work"
}
trap clean EXIT

needs() { # needs COMMAND PACKAGE
    command -v "$1" > /dev/null || { echo "deb: skipped: $2 is not installed"; exit 77; }
}
quietly() { "$@" > "$work/log" 2>&1 || { tail -40 "$work/log"; echo "deb: FAILED: $*" >&2; exit 1; }; }

build() { # build TREE FOLDER: packages of the committed tree, which lies in TREE meanwhile
    mkdir -p "$1/lamemo" "$2"
    git archive HEAD | tar -x -C "$1/lamemo"
    quietly env -C "$1/lamemo" dpkg-buildpackage -b -us -uc -d -j"${JOBS:-$(nproc)}"
    mv "$1"/*.deb "$1"/*.changes "$1"/*.buildinfo "$2"
    rm -rf "$1"
}

# The library's package is called after its soname.
check_name() {
    local file package soname
    file=$(find "$out" -name 'liblamemo[0-9]*.deb' ! -name '*-dbgsym_*')
    package=$(dpkg-deb -f "$file" Package)
    soname=$(dpkg-deb --fsys-tarfile "$file" | tar -t |
        sed -n 's|.*/liblamemo\.so\.\([0-9.]*\)$|\1|p' | sort | head -1)
    [ "$package" = "liblamemo$soname" ] ||
        { echo "deb: liblamemo.so.$soname is in a package called $package" >&2; exit 1; }
}

fresh_debian() {
    local mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -1)}
    quietly debootstrap --variant=minbase bookworm "$root" "$mirror"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/*; do
        if [ -f "$list" ]; then cp "$list" "$root$list"; fi
    done
    mount --bind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mkdir "$root/debs"
    cp "$out"/*.deb "$root/debs"
    cp -r debian/tests "$root/debs/tests"
}

inside() { quietly chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -c "$1"; }

if [ "$mode" = chroot ]; then
    needs debootstrap debootstrap
    [ "$(id -u)" -eq 0 ] || { echo "deb: skipped: a chroot needs root"; exit 77; }
    ls "$out"/*.deb > /dev/null
    fresh_debian
    inside 'apt-get -q update && cd /debs && apt-get -q -y install ./*.deb gcc libc6-dev pkg-config python3-numpy'
    for test in program serve library python; do
        inside "/debs/tests/$test"
        echo "deb: in a fresh Debian, debian/tests/$test passes"
    done
    exit 0
fi

needs dpkg-buildpackage dpkg-dev
needs dh debhelper
needs dh_python3 dh-python
rm -rf "$out"
build "$work/first" "$out"
check_name
ls "$out"/*.deb
if [ "$mode" = twice ]; then
    build "$work/elsewhere/second" "$work/again"
    for deb in "$out"/*.deb; do
        cmp "$deb" "$work/again/$(basename "$deb")"
    done
    echo "deb: built twice, the same bytes"
fi
needs lintian lintian
lintian --allow-root --fail-on error,warning "$out"/*.changes
echo "deb: lintian is content"
