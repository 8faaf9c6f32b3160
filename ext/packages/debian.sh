#!/bin/sh
# Fetches packages from Debian. The script works on copies of apt's lists and does not change apt's own lists and settings.
#
#   debian.sh source FOLDER PACKAGE...       source packages, unpacked to FOLDER/PACKAGE
#   debian.sh root ARCHITECTURE FOLDER PACKAGE... packages of another architecture and their dependencies, unpacked to FOLDER
set -eu
what=$1
shift
architecture=$(dpkg --print-architecture)
if [ "$what" = root ]; then architecture=$1; shift; fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
mkdir -p "$own/parts" "$own/lists/partial" "$own/cache/archives/partial"
: >"$own/status"
type=deb
if [ "$what" = source ]; then type=deb-src; fi
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.list /etc/apt/sources.list.d/debian.sources; do
  [ -e "$file" ] || continue
  sed -e "s/^Types:.*/Types: $type/" -e "s/^deb /$type /" "$file" >"$own/parts/$(basename "$file")"
done
apt() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$own/parts" -o Dir::State::lists="$own/lists" \
    -o Dir::State::status="$own/status" -o Dir::Cache="$own/cache" -o APT::Architecture="$architecture" \
    -o APT::Architectures::="$architecture" -o APT::Sandbox::User=root "$@"
}
apt update
if [ "$what" = source ]; then
  mkdir -p "$folder/download"
  cd "$folder/download"
  apt source "$@" >/dev/null
  for name; do
    rm -rf "${folder:?}/$name"
    mv "$(find . -maxdepth 1 -type d -name "$name*" | head -1)" "$folder/$name"
    dpkg-parsechangelog -l "$folder/$name/debian/changelog" -S Version >"$folder/$name.version"
  done
else
  apt install -y --no-install-recommends --download-only "$@" >/dev/null
  for package in "$own"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
fi
