#!/bin/sh
# sources.sh FOLDER: the source packages gsl and libsodium of this Debian, unpacked to FOLDER/gsl and FOLDER/libsodium.
# apt's own lists of sources stay as they are: this makes a copy in which `deb` says `deb-src`.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
mkdir -p "$lists/parts" "$lists/state/partial"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.list /etc/apt/sources.list.d/debian.sources; do
  [ -e "$file" ] || continue
  sed -e 's/^Types:.*/Types: deb-src/' -e 's/^deb /deb-src /' "$file" >"$lists/parts/$(basename "$file")"
done
apt_source() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$lists/parts" -o Dir::State::lists="$lists/state" \
    -o APT::Sandbox::User=root "$@"
}
apt_source update
mkdir -p "$folder/download"
cd "$folder/download"
apt_source source gsl libsodium >/dev/null
for name in gsl libsodium; do
  rm -rf "$folder/$name"
  mv "$(find . -maxdepth 1 -type d -name "$name*" | head -1)" "$folder/$name"
  dpkg-parsechangelog -l "$folder/$name/debian/changelog" -S Version >"$folder/$name.version"
done
